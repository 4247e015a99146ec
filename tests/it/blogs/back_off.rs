//! A server that asks for a delay gets it, and nothing reports success meanwhile.

use tsuzuki::demo::faults::Fault;
use tsuzuki::engine::RunOutcome;

use super::{HOUR, World, blog, config_text, feed_only, site, watch};
use crate::test_env::{TestEnv, code, ends_with, out, output_text};

fn busy(seconds: &str) -> Fault {
    Fault::Status(429, vec![("retry-after", seconds.to_owned())])
}

on_both_databases! {
    async fn a_run_without_a_blog_that_waits_is_no_success(fixture) {
        let (fine, asks) = (site(feed_only).await, site(feed_only).await);
        let world = World::new(&fixture, &config_text("", &[blog("fine", &fine, ""), blog("asks", &asks, "")]));
        world.run().await;
        fixture.clock.advance(HOUR);
        asks.edit(|content| content.fault = Some(busy("20000")));
        let until = fixture.clock.now().plus(std::time::Duration::from_secs(20_000));
        let report = world.run().await;
        assert_eq!(report.outcome(), RunOutcome::Partly, "{report:?}");
        assert!(report.problems[0].to_string().contains(&format!("not checked before {until}")), "{report:?}");
        asks.take_log();
        for _ in 0..5 {
            fixture.clock.advance(HOUR);
            let report = world.run().await;
            assert_eq!((report.outcome(), report.problems.len()), (RunOutcome::Partly, 0), "{report:?}");
            assert_eq!(
                report.summary,
                format!("checked 1 of 2 blogs: 1 unchanged, 1 waiting as asked by their servers (asks until {until})")
            );
        }
        assert!(asks.take_log().is_empty(), "it is left alone for as long as it asks");
        asks.edit(|content| content.fault = None);
        fixture.clock.advance(HOUR);
        assert_eq!(world.run().await.outcome(), RunOutcome::Success);
    }

    async fn a_wait_that_no_server_asked_for_keeps_nobody_from_checking(fixture) {
        let (site, world) = watch(&fixture, feed_only).await;
        world.run().await;
        site.edit(|content| content.fault = Some(Fault::Status(503, vec![])));
        world.run().await;
        assert_eq!(world.state("b").await.not_before, None);
        site.edit(|content| content.fault = None);
        // Another process, which does not know of this one's pause.
        let again = World::new(&fixture, &config_text("", &[blog("b", &site, "")]));
        assert_eq!(again.run().await.outcome(), RunOutcome::Success);
    }
}

#[tokio::test]
async fn every_command_says_what_waits_and_until_when() {
    let asks = site(feed_only).await;
    let test_env = TestEnv::new(&format!(
        "[app]\ntimezone = \"UTC\"\n[[job]]\nname = \"sites\"\nkind = \"blogs\"\nallow_private = [\"127.0.0.0/8\"]\n\
         [[job.blog]]\n{}\n",
        blog("asks", &asks, "")
    ));
    ends_with(&test_env.run_beside(&["run", "sites"]).await, 0);
    let fine = ends_with(&test_env.run_beside(&["why", "asks"]).await, 0);
    assert!(fine.contains("  next check "), "also of a blog that is fine: {fine}");
    asks.edit(|content| content.fault = Some(busy("7200")));
    ends_with(&test_env.run_beside(&["run", "sites"]).await, 3);
    asks.edit(|content| content.fault = None);
    asks.take_log();
    let quiet = test_env.run_beside(&["run-due", "--force", "-q"]).await;
    assert_eq!(code(&quiet), 3, "{}", output_text(&quiet));
    assert_eq!(out(&quiet).lines().count(), 1, "{}", output_text(&quiet));
    assert!(
        out(&quiet).starts_with("sites: partly failed: checked 0 of 1 blog: 1 waiting"),
        "{}",
        output_text(&quiet)
    );
    assert!(out(&quiet).contains("(asks until "), "{}", output_text(&quiet));
    let by_name = ends_with(&test_env.run_beside(&["run", "sites"]).await, 3);
    assert!(by_name.contains("asked by their servers (asks until "), "{by_name}");
    assert!(asks.take_log().is_empty(), "nobody asks a server that has forbidden it");
    for (args, expected) in [
        (&["status"][..], "◔ Waiting: asks until "),
        (&["why", "sites"], "blog asks until "),
        (&["why", "asks"], "next check"),
        (&["doctor", "--offline"], "blog asks until "),
        (&["run", "sites", "--dry-run"], "skip asks until "),
    ] {
        let printed = ends_with(&test_env.run_beside(args).await, 0);
        assert!(printed.contains(expected), "{args:?}: {printed}");
    }
}

#[tokio::test]
async fn a_job_is_failing_when_a_blog_fails_and_calm_when_blogs_only_wait() {
    let (fine, asks, breaks) = (site(feed_only).await, site(feed_only).await, site(feed_only).await);
    let blogs = [blog("fine", &fine, ""), blog("asks", &asks, ""), blog("breaks", &breaks, "")]
        .join("\n[[job.blog]]\n");
    let test_env = TestEnv::new(&format!(
        "[app]\ntimezone = \"UTC\"\n[[job]]\nname = \"sites\"\nkind = \"blogs\"\nallow_private = [\"127.0.0.0/8\"]\n\
         [[job.blog]]\n{blogs}\n"
    ));
    ends_with(&test_env.run_beside(&["run", "sites"]).await, 0);
    asks.edit(|content| content.fault = Some(busy("7200")));
    breaks.edit(|content| content.fault = Some(Fault::Status(404, vec![])));
    ends_with(&test_env.run_beside(&["run", "sites"]).await, 3);
    let status = ends_with(&test_env.run_beside(&["status"]).await, 0);
    assert!(status.contains("▲ Failing: partly"), "{status}");
    breaks.edit(|content| content.fault = Some(busy("3600")));
    ends_with(&test_env.run_beside(&["run", "sites"]).await, 3);
    let status = ends_with(&test_env.run_beside(&["status"]).await, 0);
    assert!(status.contains("◔ Waiting: 2 of 3 blogs, until ") && !status.contains("warning"), "{status}");
    let state = ends_with(&test_env.run_beside(&["why", "job:sites"]).await, 0);
    assert!(state.starts_with("◔ job sites"), "{state}");
}

#[tokio::test]
async fn many_failures_are_one_sentence_of_status_with_the_command_that_lists_them() {
    let (fine, broken) = (site(feed_only).await, site(feed_only).await);
    broken.edit(|content| content.fault = Some(Fault::Status(404, vec![])));
    let ids: Vec<String> = (0..6).map(|number| format!("broken{number}")).collect();
    let url = broken.url.to_string();
    let tables = ids.iter().map(|id| format!("id = \"{id}\"\nurl = \"{}/{id}/\"", url.trim_end_matches('/')));
    let tables: Vec<String> = tables.chain([blog("fine", &fine, "")]).collect();
    let test_env = TestEnv::new(&format!(
        "[[job]]\nname = \"sites\"\nkind = \"blogs\"\nallow_private = [\"127.0.0.0/8\"]\n[[job.blog]]\n{}\n",
        tables.join("\n[[job.blog]]\n")
    ));
    ends_with(&test_env.run_beside(&["run", "sites"]).await, 3);
    let status = ends_with(&test_env.run_beside(&["status"]).await, 0);
    assert!(status.contains("checked 7 of 7 blogs: "), "{status}");
    assert!(status.contains("6 failed (`tsuzuki blog ls --failing`)"), "{status}");
    let named = ids.iter().filter(|id| status.contains(&format!("{id}: "))).count();
    assert_eq!(named, 1, "the first stands for all: {status}");
}
