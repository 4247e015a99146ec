//! Items on the command line, and picks that stay quick when there are many.

use super::*;
use crate::test_env::{code, output_text};
use tsuzuki::db::Dialect;

#[test]
fn items_are_listed_shown_skipped_and_retried() {
    crate::databases::run(Dialect::Sqlite, |fixture| async move {
        let world = World::new(&fixture, &More { job: "items_per_run = 2", ..More::default() }).await;
        let test_env = world.test_env(&fixture, &More::default());
        world.publish("later", Shape::Later);
        world.publish("bare", Shape::Bare);
        world.live(1).await;

        let all = test_env.ends("item ls", 0);
        assert!(all.contains("報道資料 later") && all.contains("報道資料 bare"), "{all}");
        let some = test_env.ends("item ls --state deferred --reason page_not_ready --job mic", 0);
        assert!(some.contains("報道資料 later") && !some.contains("報道資料 bare"), "{some}");
        assert!(test_env.ends("item ls --state done", 2).contains("unprocessed, deferred"));

        let url = world.ministry.page("later");
        let shown = test_env.ends(&format!("item show {url}"), 0);
        for part in
            ["put off: the page is not complete yet", "failed attempts", "資料は後日掲載される", "not before"]
        {
            assert!(shown.contains(part), "{part} in {shown}");
        }
        let json = test_env.json(&format!("item show {url}"));
        assert_eq!((json["status"].as_str(), json["retry_count"].as_u64()), (Some("deferred"), Some(1)));

        test_env.ends(&format!("item skip {url}"), 0);
        assert!(test_env.ends(&format!("item skip {url}"), 1).contains("it is over"));
        test_env.ends(&format!("item retry {}", json["id"]), 0);
        assert_eq!(world.standing("later").await, "0/-/0");
        assert!(test_env.ends("item show https://nowhere.example/", 1).contains("item ls"));
        let why = test_env.ends(&format!("why {url}"), 0);
        assert!(
            why.contains("the page is not complete yet") && why.contains("to be tried again, by hand"),
            "{why}"
        );
        let plan = test_env.ends("run mic --dry-run", 0);
        assert!(plan.contains("screen: 報道資料"), "{plan}");
    });
}

on_both_databases! {
    async fn a_run_can_be_taken_step_by_step(fixture) {
        let world = World::new(&fixture, &More::default()).await;
        let test_env = world.test_env(&fixture, &More::default());
        world.publish("steps", files(&[10_000]));
        let step = |name: &str| {
            let output = test_env.run(&["run", "mic", "--step", name]);
            (code(&output), output_text(&output))
        };
        let asked = world.gemini.log().len();

        assert_eq!(step("screen").0, 0, "there is nothing to screen yet");
        assert!(world.items().await.is_empty(), "screening does not read the feed");
        let (code, text) = step("collect");
        assert_eq!(code, 0, "{text}");
        assert_eq!(world.standing("steps").await, "0/-/0", "{text}");
        assert_eq!(step("post").0, 0, "nothing is pending yet");
        assert_eq!(world.standing("steps").await, "0/-/0");
        assert_eq!(world.gemini.log().len(), asked, "nobody asked the model");
        let (code, text) = step("screen");
        assert_eq!(code, 0, "{text}");
        assert_eq!(world.standing("steps").await, "2/-/0", "{text}");
        assert!(world.posts().is_empty());
        let (code, text) = step("post");
        assert_eq!(code, 0, "{text}");
        assert_eq!(world.posts().len(), 1, "{text}");
        let (code, text) = step("sumarise");
        assert!(code == 2 && text.contains("collect, screen, post"), "{text}");
    }
}
