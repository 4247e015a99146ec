//! Refusals without a stated cause: the document, or the form of our requests.

use super::*;
use tsuzuki::demo::gemini::Reply;

on_both_databases! {
    async fn a_refusal_of_the_request_as_such_buries_nothing(fixture) {
        // The provider's message, and the state of the first item after two days of it.
        for (reply, first) in [
            (Reply::BadField("thinking_budget"), "0/-/0"),
            (Reply::Status(404), "0/-/0"),
            (Reply::BadRequest("Request contains an invalid argument."), "1/5/1"),
        ] {
            let fixture = &fixture;
            fixture.clock.set(crate::databases::test_start());
            crate::press::answers::reset(fixture).await;
            let world = World::new(fixture, &More { job: "items_per_run = 3", ..More::default() }).await;
            for slug in ["a", "b", "c"] {
                world.publish(slug, files(&[2000]));
            }
            world.gemini.always(Some(reply.clone()));
            let failure = failed(world.finish().await);
            assert!(matches!(&failure, Failure::Config(why) if why.to_string().contains("[llm.gemini]: ") && why.to_string().contains("doctor")), "{failure:?}");
            for _ in 0..48 {
                world.clock.advance(HOUR);
                assert!(matches!(failed(world.finish().await), Failure::Config(_)), "{reply:?}: it is said every time");
            }
            let mut standings = vec![world.standing("a").await, world.standing("b").await, world.standing("c").await];
            standings.sort();
            assert_eq!(standings, ["0/-/0", "0/-/0", first], "{reply:?}");
            let asked = world.gemini.questions().len();
            // Each refusal without a cause is followed by a control question.
            assert!((7..=19).contains(&asked), "{reply:?}: asked {asked} times in two days");
            world.gemini.always(None);
            world.clock.advance(DAY);
            world.live(3).await;
            assert_eq!(world.posts().len(), 3, "{reply:?}");
        }
    }

    /// Two broken documents in a row: the provider accepts a harmless one, so our requests as such are fine.
    async fn documents_that_are_refused_one_after_the_other_keep_no_other_from_being_asked_about(fixture) {
        let world = World::new(&fixture, &More { job: "items_per_run = 9", ..More::default() }).await;
        let refusal = || Reply::BadRequest("Request contains an invalid argument.");
        for slug in ["a", "b", "c"] {
            world.publish(slug, files(&[2000]));
        }
        world.gemini.next(refusal());
        world.gemini.next(refusal());
        let report = world.run().await;
        world.send().await;
        assert_eq!(report.waiting_until, None, "{report:?}");
        let standings = [world.standing("a").await, world.standing("b").await, world.standing("c").await];
        assert_eq!(standings, ["3/0/0", "1/5/1", "1/5/1"], "the newest comes first in the feed");
        let control = &world.gemini.questions()[2];
        assert!(control.text().contains("This is a test.") && !control.text().contains("報道資料"), "{}", control.text());
        // The next day they are worth a post, and their summaries are refused: files are part of our requests.
        world.clock.advance(DAY);
        for _ in ["b", "c"] {
            world.gemini.next(Reply::Usual);
            world.gemini.next(refusal());
        }
        let report = world.run().await;
        assert_eq!(report.waiting_until, None, "{report:?}");
        let questions = world.gemini.questions();
        let control = questions.iter().rfind(|asked| asked.text().contains("This is a test.")).unwrap();
        assert!(control.body.to_string().contains("application/pdf"), "{}", control.body);
    }

    async fn a_document_that_alone_is_refused_costs_the_provider_nothing(fixture) {
        let world = World::new(&fixture, &More { job: "items_per_run = 9", ..More::default() }).await;
        world.publish("a", files(&[2000]));
        world.gemini.next(Reply::BadRequest("Request contains an invalid argument."));
        world.live(1).await;
        assert_eq!(world.standing("a").await, "1/5/1");
        // An answer for another document lies between the two refusals.
        world.publish("b", files(&[2000]));
        world.live(1).await;
        assert_eq!(world.standing("b").await, "3/0/0");
        world.publish("c", files(&[2000]));
        world.gemini.next(Reply::BadRequest("Request contains an invalid argument."));
        let report = world.run().await;
        assert_eq!(report.waiting_until, None, "{report:?}");
    }

    /// A server error, a time-out or too many tokens at once that one document alone brings about stops no other, and ends like any
    /// other failure.
    async fn a_document_at_which_the_provider_always_fails_keeps_no_other_waiting(fixture) {
        for reply in [Reply::Status(500), Reply::TokensPerMinute] {
            fixture.clock.set(crate::databases::test_start());
            crate::press::answers::reset(&fixture).await;
            a_document_fails_alone(&fixture, reply).await;
        }
    }
}

async fn a_document_fails_alone(fixture: &Fixture, reply: Reply) {
    let world = World::new(fixture, &More { job: "items_per_run = 9", ..More::default() }).await;
    world.publish("bad", files(&[2000]));
    world.gemini.about("報道資料 bad", reply);
    world.live(1).await;
    assert_eq!(world.standing("bad").await, "2/-/0");
    world.publish("good", files(&[2000]));
    world.live(12).await;
    assert_eq!(world.standing("good").await, "3/0/0", "within the hour");
    assert!(world.standing("bad").await.starts_with("1/5/"), "{}", world.standing("bad").await);
    let about = Subject::new("item", world.ministry.page("bad"));
    let events = world.db.read(move |tx| event::list_about(tx, &about, 100)).await.unwrap();
    assert!(
        events.iter().any(|event| event.detail.to_string().contains("only about this document")),
        "{events:?}"
    );
    for _ in 0..48 {
        world.live(1).await;
        world.clock.advance(HOUR);
    }
    assert_eq!((world.standing("bad").await.as_str(), world.posts().len()), ("3/6/4", 1));
}
