//! Items on the command line, and picks that stay quick when there are many.

use std::process::{Command, Output};

use super::*;
use tsuzuki::db::Dialect;

fn tsuzuki(fixture: &Fixture, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tsuzuki"))
        .env("TZ", "Asia/Tokyo")
        .arg("-c")
        .arg(fixture.dir.path().join("tsuzuki.toml"))
        .args(args)
        .env("TSUZUKI_NOW", fixture.clock.now().to_string())
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn items_are_listed_shown_skipped_and_retried() {
    crate::databases::run(Dialect::Sqlite, |fixture| async move {
        let world = World::new(&fixture, &More { job: "items_per_run = 2", ..More::default() }).await;
        let store = format!("[store]\nurl = \"{}\"\n", fixture.place);
        let text = config_text(
            &world.ministry,
            &world.gemini,
            &world.mastodon,
            &More { tables: &store, ..More::default() },
        );
        std::fs::write(fixture.dir.path().join("tsuzuki.toml"), text).unwrap();
        world.publish("later", Shape::Later);
        world.publish("bare", Shape::Bare);
        world.live(1).await;

        let all = said(&tsuzuki(&fixture, &["item", "ls"]));
        assert!(all.contains("報道資料 later") && all.contains("報道資料 bare"), "{all}");
        let some = said(&tsuzuki(
            &fixture,
            &["item", "ls", "--state", "deferred", "--reason", "page_not_ready", "--job", "mic"],
        ));
        assert!(some.contains("報道資料 later") && !some.contains("報道資料 bare"), "{some}");
        let unknown = tsuzuki(&fixture, &["item", "ls", "--state", "done"]);
        assert!(
            unknown.status.code() == Some(2) && said(&unknown).contains("unprocessed, deferred"),
            "{}",
            said(&unknown)
        );

        let url = world.ministry.page("later");
        let shown = said(&tsuzuki(&fixture, &["item", "show", &url]));
        for part in
            ["put off: the page is not complete yet", "failed attempts", "資料は後日掲載される", "not before"]
        {
            assert!(shown.contains(part), "{part} in {shown}");
        }
        let json: serde_json::Value =
            serde_json::from_slice(&tsuzuki(&fixture, &["--json", "item", "show", &url]).stdout).unwrap();
        assert_eq!((json["status"].as_str(), json["retry_count"].as_u64()), (Some("deferred"), Some(1)));

        assert!(tsuzuki(&fixture, &["item", "skip", &url]).status.success());
        let again = tsuzuki(&fixture, &["item", "skip", &url]);
        assert_eq!(again.status.code(), Some(1));
        assert!(said(&again).contains("it is over"), "{}", said(&again));
        assert!(tsuzuki(&fixture, &["item", "retry", &json["id"].to_string()]).status.success());
        assert_eq!(world.standing("later").await, "0/-/0");
        let missing = tsuzuki(&fixture, &["item", "show", "https://nowhere.example/"]);
        assert!(!missing.status.success() && said(&missing).contains("item ls"), "{}", said(&missing));
        let why = said(&tsuzuki(&fixture, &["why", &url]));
        assert!(
            why.contains("the page is not complete yet") && why.contains("to be tried again, by hand"),
            "{why}"
        );
        let plan = said(&tsuzuki(&fixture, &["run", "mic", "--dry-run"]));
        assert!(plan.contains("screen: 報道資料"), "{plan}");
    });
}

on_both_databases! {
    async fn a_run_can_be_taken_step_by_step(fixture) {
        let world = World::new(&fixture, &More::default()).await;
        let store = format!("[store]\nurl = \"{}\"\n", fixture.address());
        let more = More { tables: &store, ..More::default() };
        let text = config_text(&world.ministry, &world.gemini, &world.mastodon, &more);
        std::fs::write(fixture.dir.path().join("tsuzuki.toml"), text).unwrap();
        world.publish("steps", files(&[10_000]));
        let step = |name: &str| {
            let output = tsuzuki(&fixture, &["run", "mic", "--step", name]);
            (output.status.code(), said(&output))
        };
        let asked = world.gemini.log().len();

        assert_eq!(step("screen").0, Some(0), "there is nothing to screen yet");
        assert!(world.items().await.is_empty(), "screening does not read the feed");
        let (code, text) = step("collect");
        assert_eq!(code, Some(0), "{text}");
        assert_eq!(world.standing("steps").await, "0/-/0", "{text}");
        assert_eq!(step("post").0, Some(0), "nothing is pending yet");
        assert_eq!(world.standing("steps").await, "0/-/0");
        assert_eq!(world.gemini.log().len(), asked, "nobody asked the model");
        let (code, text) = step("screen");
        assert_eq!(code, Some(0), "{text}");
        assert_eq!(world.standing("steps").await, "2/-/0", "{text}");
        assert!(world.posts().is_empty());
        let (code, text) = step("post");
        assert_eq!(code, Some(0), "{text}");
        assert_eq!(world.posts().len(), 1, "{text}");
        let (code, text) = step("sumarise");
        assert!(code == Some(2) && text.contains("collect, screen, post"), "{text}");
    }
}
