//! `why` and the results of runs, as people read them: words, local times, and what to do next.

use tsuzuki::demo::site::{Content, Site};
use tsuzuki::demo::webhook::WebhookServer;
use tsuzuki::ledger::{Subject, event, lease, pause};
use tsuzuki::{params, sql};

use crate::test_env::{TestEnv, code, output_text};

const ALLOW: &str = "allow_private = [\"127.0.0.1\"]";

/// Runs the program; returns its exit code and output.
async fn tsuzuki(test_env: &TestEnv, args: &[&str]) -> (i32, String) {
    let output = test_env.run_beside(args).await;
    (code(&output), output_text(&output))
}

#[track_caller]
fn has(text: &str, env: &[&str]) {
    for part in env {
        assert!(text.contains(part), "`{part}` in\n{text}");
    }
    assert!(!text.contains("{\"") && !text.contains("Z,") && !text.contains(".000Z"), "raw:\n{text}");
}

/// An address without a listener.
fn dead_address() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}/", listener.local_addr().unwrap())
}

on_both_databases! {
    async fn why_tells_all_about_a_job(fixture) {
        let site = Site::start(Content::with_articles(3, fixture.clock.now())).await.unwrap();
        let hook = WebhookServer::start().await.unwrap();
        let test_env = TestEnv::on(&fixture, &format!(
            "[channel.hook]\nkind = \"webhook\"\nurl = \"{}\"\n{ALLOW}\n\
             [[job]]\nname = \"mine\"\nkind = \"blogs\"\nevery = \"3h\"\ndeliver = [\"hook\"]\n{ALLOW}\nblog = [{{ id = \"site\", url = \"{}\" }}]\n",
            hook.url, site.url
        ));
        let (code, never) = tsuzuki(&test_env, &["why", "mine"]).await;
        assert_eq!(code, 0, "{never}");
        has(&never, &["job mine: blogs, every 3 h\n", "delivers to     hook", "last run        never", "due: `run-due` or `serve` starts it"]);

        assert_eq!(tsuzuki(&test_env, &["run-due", "-q"]).await.0, 0);
        let (_, printed) = tsuzuki(&test_env, &["why", "mine"]).await;
        // 09:02 in Tokyo; the grid of three hours has its next point at noon.
        has(&printed, &[
            "last run        2026-01-15 09:02 +09:00",
            "last success    2026-01-15 09:02 +09:00",
            "not running: it is not due before 2026-01-15 12:00 +09:00",
            "runs\n    2026-01-15 09:02 +09:00  success: checked 1 of 1 blog",
            "events\n",
            "blog site: first run: 3 existing entries recorded, no notification (read by feed)",
        ]);
        let (_, japanese) = tsuzuki(&test_env, &["why", "mine", "--lang", "ja"]).await;
        has(&japanese, &[
            "ジョブ mine：blogs",
            "2026-01-15 09:02 +09:00  成功：1 件中 1 件を確認：初回 1 件（既存の 3 件を記録、通知なし）",
            "ブログ site：初回：既存の 3 件を記録（通知なし、フィード で確認）",
        ]);

        fixture.db.write(|tx| {
            let now = tx.now();
            for (key, state) in [("a", "held"), ("b", "failed"), ("c", "unknown")] {
                tx.execute(
                    sql!("INSERT INTO outbox (key, job_name, channel, recipient, topic, subject, payload, state, created_at, not_before) VALUES (?1, 'mine', 'hook', 'r', 't', 's', '{}', ?2, ?3, ?3)"),
                    params![key, state, now],
                )?;
            }
            pause::put(tx, &Subject::channel("hook"), Some(now.plus(std::time::Duration::from_secs(4 * 3600))), &"it asked us to wait".into(), now)?;
            pause::put(tx, &Subject::channel("other"), None, &"not ours".into(), now)?;
            pause::put(tx, &Subject::new("blog", "site"), None, &"it is gone".into(), now)?;
            let owner = tsuzuki::id::Owner::this_process();
            lease::claim(tx, "job:mine", &owner, std::time::Duration::from_secs(600))?;
            event::add(tx, None, &Subject::verbatim("x"), "x", &serde_json::Value::Null, now)
        }).await.unwrap();
        fixture.clock.advance(std::time::Duration::from_secs(3 * 3600));
        fixture.db.write(|tx| tx.execute(sql!("UPDATE leases SET expires_at = '2999-01-01T00:00:00.000Z'"), params![])).await.unwrap();
        let (_, printed) = tsuzuki(&test_env, &["why", "mine"]).await;
        has(&printed, &[
            "now             already running (process ",
            "since 2026-01-15 ",
            "paused          blog site until it is resumed: it is gone",
            "paused          channel hook until 2026-01-15 13:02 +09:00: it asked us to wait",
            "hook: 1 failed\n",
            "hook: 1 needs approval\n",
            "hook: 1 may or may not have arrived",
            "tsuzuki blog resume site  # resume blog site",
            "tsuzuki delivery retry --channel hook  # resume channel hook",
            "tsuzuki delivery retry ",
            "tsuzuki delivery approve --job mine  # send what needs approval",
        ]);
        assert!(!printed.contains("not ours"), "{printed}");
        let (_, json) = tsuzuki(&test_env, &["why", "mine", "--json"]).await;
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json[0]["job"]["config"]["schedule"], "every 3h");
        assert_eq!(json[0]["job"]["runs"][0]["code"], "success");
        assert_eq!(json[0]["job"]["state"]["last_run_at"].as_str().unwrap().len(), 24);
    }

    async fn a_word_that_means_several_things_is_asked_back(fixture) {
        let site = Site::start(Content::with_articles(3, fixture.clock.now())).await.unwrap();
        let test_env = TestEnv::on(&fixture, &format!(
            "[[job]]\nname = \"twin\"\nkind = \"blogs\"\n{ALLOW}\nblog = [{{ id = \"twin\", url = \"{}\" }}]\n", site.url
        ));
        let (code, printed) = tsuzuki(&test_env, &["run", "twin"]).await;
        assert_eq!(code, 0, "{printed}");
        let (code, printed) = tsuzuki(&test_env, &["why", "twin"]).await;
        assert_eq!(code, 2);
        has(&printed, &["`twin` can be 2 things", "hint: `tsuzuki why blog:twin`", "hint: `tsuzuki why job:twin`"]);
        has(&tsuzuki(&test_env, &["why", "job:twin"]).await.1, &["job twin: blogs"]);
        let blog = tsuzuki(&test_env, &["why", "blog:twin"]).await.1;
        has(&blog, &["blog twin\n", "read by         feed", "checks\n", "nothing new (HTTP 200)", "feed found: http"]);
        let (code, printed) = tsuzuki(&test_env, &["why", "twn"]).await;
        assert_eq!(code, 1);
        has(&printed, &["nothing is known about `twn`", "did you mean `twin`?"]);
    }

    async fn what_a_job_without_a_channel_found_was_not_sent(fixture) {
        let site = Site::start(Content::with_articles(3, fixture.clock.now())).await.unwrap();
        let test_env = TestEnv::on(&fixture, &format!(
            "[[job]]\nname = \"mine\"\nkind = \"blogs\"\nfirst_run = \"latest:2\"\n{ALLOW}\nblog = [{{ id = \"alpha\", url = \"{}\" }}]\n",
            site.url
        ));
        let silent = "job `mine` sends nowhere: results are kept and shown by `status` and `change ls`; add `deliver` to be notified";
        let (code, first) = tsuzuki(&test_env, &["run", "mine"]).await;
        assert_eq!(code, 0, "{first}");
        has(&first, &[&format!("warning: {silent}")]);
        let (_, again) = tsuzuki(&test_env, &["run", "mine"]).await;
        assert!(!again.contains("sends nowhere"), "only the first run warns: {again}");
        let (_, why) = tsuzuki(&test_env, &["why", &format!("{}article-3", site.url)]).await;
        has(&why, &["sent            no: the job has no channel in `deliver`", "change 1: 2 new", "3 existing entries recorded, 2 of them announced"]);
        assert!(!why.contains("yes, see below") && !why.contains("2 told"), "{why}");
    }

    async fn an_address_tells_its_entry_its_blog_and_where_it_was_told(fixture) {
        let site = Site::start(Content::with_articles(3, fixture.clock.now())).await.unwrap();
        let hook = WebhookServer::start().await.unwrap();
        let test_env = TestEnv::on(&fixture, &format!(
            "[channel.hook]\nkind = \"webhook\"\nurl = \"{}\"\n{ALLOW}\n\
             [[job]]\nname = \"mine\"\nkind = \"blogs\"\ndeliver = [\"hook\"]\nhold_above = 2\n{ALLOW}\nblog = [{{ id = \"alpha\", url = \"{}\" }}]\n",
            hook.url, site.url
        ));
        let why = async |slug: &str| tsuzuki(&test_env, &["why", &format!("{}{slug}", site.url)]).await;
        assert_eq!(tsuzuki(&test_env, &["run", "mine"]).await.0, 0);
        for number in 0..2 {
            let (count, day) = (1 + number * 3, std::time::Duration::from_secs(24 * 3600));
            fixture.clock.advance(day);
            site.edit(|content| (0..count).for_each(|n| content.publish(&format!("n{number}{n}"), "New", fixture.clock.now())));
            assert_eq!(tsuzuki(&test_env, &["run", "mine"]).await.0, 0);
        }

        let (code, printed) = why("n00?utm_source=mail").await;
        assert_eq!(code, 0, "{printed}");
        has(&printed, &["entry of blog alpha: New", "first seen      2026-01-16 09:02 +09:00", "sent            yes", "change 1: ", "delivery 1 to hook: sent"]);
        has(&why("n13").await.1, &["sent            needs approval", "change 2: ", "delivery 2 to hook: needs approval", "tsuzuki delivery approve 2  # send it"]);
        has(&why("article-2").await.1, &["sent            no: it was not new", "first run: 3 existing entries recorded, no notification"]);
        has(&why("").await.1, &["blog alpha\n", "checks\n"]);
        let (code, printed) = why("never-seen").await;
        assert_eq!(code, 1);
        has(&printed, &["nothing is known about `http://"]);
        has(&tsuzuki(&test_env, &["why", "alpa"]).await.1, &["did you mean `alpha`?"]);
        let (_, json) = tsuzuki(&test_env, &["why", &format!("{}n00", site.url), "--json"]).await;
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json[0]["entry"]["changes"][0]["deliveries"][0]["state"], "sent");
    }

    async fn branches_projects_and_messages_need_no_kind_before_their_name(fixture) {
        let test_env = TestEnv::on(&fixture, "");
        fixture.db.write(|tx| {
            let now = tx.now();
            for (id, host) in [(1, "a.example"), (2, "b.example")] {
                tx.execute(
                    sql!("INSERT INTO projects (project_id, host, remote_id, path, name, default_branch, first_seen_at, last_seen_at) VALUES (?1, ?2, 1, ?3, 'app', 'main', ?4, ?4)"),
                    params![id, host, if id == 1 { "team/app" } else { "other/lib" }, now],
                )?;
                tx.execute(sql!("INSERT INTO branches (project_id, branch_name) VALUES (?1, 'release/1.0')"), params![id])?;
            }
            let detail = serde_json::json!({ "why": "1 new commit", "run": "r" });
            event::add(tx, None, &Subject::verbatim("branch:team/app/release/1.0"), "collected", &detail, now)?;
            tx.execute(
                sql!("INSERT INTO outbox (key, job_name, channel, recipient, topic, subject, payload, state, created_at, not_before, last_error) VALUES ('k', 'j', 'hook', 'you', 't', 's', '{}', 'failed', ?1, ?1, 'refused')"),
                params![now],
            )?;
            Ok(())
        }).await.unwrap();
        for thing in ["team/app/release/1.0", "app/release/1.0", "branch:team/app/release/1.0", "project:team/app/release/1.0"] {
            has(&tsuzuki(&test_env, &["why", thing]).await.1, &["branch release/1.0 of project team/app", "collected: 1 new commit"]);
        }
        for thing in ["lib", "project:other/lib", "project:lib"] {
            has(&tsuzuki(&test_env, &["why", thing]).await.1, &["project other/lib (2) on b.example"]);
        }
        let (code, printed) = tsuzuki(&test_env, &["why", "1"]).await;
        assert_eq!(code, 0, "a project and a message have this number, and both are shown: {printed}");
        has(&printed, &["project team/app (1) on a.example", "▲ delivery 1: s\n"]);
        has(&tsuzuki(&test_env, &["why", "delivery:1"]).await.1, &["▲ delivery 1: s\n", "state           failed", "last error      refused", "tsuzuki delivery retry 1  # try again"]);
    }

    async fn a_job_that_failed_wholly_says_so_and_the_exit_code_agrees(fixture) {
        let site = Site::start(Content::with_articles(3, fixture.clock.now())).await.unwrap();
        let job = |name: &str, urls: &[&str]| {
            let blogs: Vec<String> = urls.iter().enumerate().map(|(n, url)| format!("{{ id = \"{name}{n}\", url = \"{url}\" }}")).collect();
            format!("[[job]]\nname = \"{name}\"\nkind = \"blogs\"\n{ALLOW}\nblog = [{}]\n", blogs.join(", "))
        };
        let (dead, alive) = (dead_address(), site.url.to_string());
        let config = job("dead", &[&dead]) + &job("half", &[&dead, &alive]) + &job("alive", &[&alive]);
        let test_env = TestEnv::on(&fixture, &config);
        let (code, printed) = tsuzuki(&test_env, &["run", "dead"]).await;
        assert_eq!(code, 1, "{printed}");
        assert!(printed.starts_with("dead: failed: checked 1 of 1 blog") && printed.contains("\n  dead0: "), "{printed}");
        has(&tsuzuki(&test_env, &["why", "dead0"]).await.1, &["failures in a row  1\n"]);
        let (code, printed) = tsuzuki(&test_env, &["run", "half"]).await;
        assert_eq!(code, 3, "{printed}");
        assert!(printed.starts_with("half: partly failed: "), "{printed}");
        let (code, printed) = tsuzuki(&test_env, &["run-due", "--force"]).await;
        assert_eq!(code, 3, "{printed}");
        has(&printed, &["3 jobs: 1 success, 1 partly failed, 1 failed."]);
        let (code, printed) = tsuzuki(&test_env, &["run-due"]).await;
        assert_eq!(code, 0, "{printed}");
        has(&printed, &["Nothing is due; the next is `", " +09:00."]);
        has(&tsuzuki(&test_env, &["why", "dead"]).await.1, &["failures in a row  2", "failed: dead0: "]);
    }
}
