//! What needs a person is printed where people look, and commands that change something complete even if their output
//! fails.

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::test_env::{TestEnv, output_beside};
use tsuzuki::demo::faults::Fault;
use tsuzuki::demo::gemini::Gemini;
use tsuzuki::demo::site::{Content, Site};
use tsuzuki::demo::webhook::WebhookServer;
use tsuzuki::time::Timestamp;

const ALLOW: &str = "allow_private = [\"127.0.0.1\"]";

/// The program at a given time.
fn command(test_env: &TestEnv, args: &[&str], now: Timestamp) -> Command {
    let mut command = test_env.command(args);
    command.env("TSUZUKI_NOW", now.to_string());
    command
}

async fn run(test_env: &TestEnv, args: &[&str], now: Timestamp) -> Said {
    Said::of(&output_beside(command(test_env, args, now)).await)
}

#[derive(Debug)]
struct Said {
    code: i32,
    out: String,
    err: String,
}

impl Said {
    fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let code = output.status.code().unwrap_or(-1);
        Self { code, out: text(&output.stdout), err: text(&output.stderr) }
    }

    /// Checks that it succeeded and that stderr contains these words.
    #[track_caller]
    fn warns(&self, code: i32, words: &str) {
        assert_eq!(self.code, code, "{self:?}");
        assert!(self.err.contains(words), "`{words}` in {self:?}");
    }
}

fn day(number: u32) -> Timestamp {
    format!("2026-01-{number:02}T00:00:00Z").parse().unwrap()
}

fn hook(server: &WebhookServer) -> String {
    format!("[channel.hook]\nkind = \"webhook\"\nurl = \"{}\"\n{ALLOW}\n", server.url)
}

fn blogs(name: &str, keys: &str, site: &Site) -> String {
    format!(
        "[[job]]\nname = \"{name}\"\nkind = \"blogs\"\ndeliver = [\"hook\"]\n{ALLOW}\n{keys}\nblog = [{{ id = \"{name}\", url = \"{}\" }}]\n",
        site.url
    )
}

const HELD: &str = "1 message on hold until you decide: `tsuzuki delivery ls --state held`";
const FAILED: &str = "1 message failed and will not be sent: `tsuzuki delivery ls --state failed`";

#[tokio::test(flavor = "multi_thread")]
async fn what_is_held_is_said_by_the_run_that_holds_it_and_by_status_until_it_is_decided() {
    let site = Site::start(Content::with_articles(3, day(1))).await.unwrap();
    let server = WebhookServer::start().await.unwrap();
    let test_env = TestEnv::new(&(hook(&server) + &blogs("mine", "hold_above = 2", &site)));
    let first = run(&test_env, &["run-due", "-q"], day(2)).await;
    assert_eq!((first.code, first.err.as_str()), (0, ""));
    site.edit(|content| (0..11).for_each(|n| content.publish(&format!("n{n}"), &format!("New {n}"), day(3))));

    let held = run(&test_env, &["run-due", "-q"], day(4)).await;
    held.warns(0, HELD);
    assert_eq!(held.out, "", "cron mails what is on stderr, and nothing else is there to tell");
    let again = run(&test_env, &["run-due", "-q"], day(5)).await;
    assert_eq!((again.code, again.err.as_str()), (0, ""), "told once, not with every line of a crontab");
    run(&test_env, &["run", "mine"], day(6)).await.warns(0, HELD);
    let words = "job mine: 1 message on hold until you decide: `tsuzuki delivery ls --state held --job mine`";
    let status = run(&test_env, &["status"], day(6)).await;
    status.warns(0, words);
    assert!(status.out.contains("◆ Needs approval"), "{status:?}");
    let json = run(&test_env, &["status", "--json"], day(6)).await;
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json[0]["messages_held"], 1);
    let doctor = run(&test_env, &["doctor", "--offline"], day(6)).await;
    assert!(doctor.out.contains(HELD), "{doctor:?}");
    run(&test_env, &["change", "ls"], day(6))
        .await
        .warns(0, "1 held: `tsuzuki change approve ID` or `skip ID`");

    assert_eq!(run(&test_env, &["change", "skip", "1"], day(6)).await.code, 0);
    let status = run(&test_env, &["status"], day(6)).await;
    assert_eq!((status.code, status.err.as_str()), (0, ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_failed_for_good_changes_the_exit_code_and_stays_in_status() {
    let site = Site::start(Content::with_articles(2, day(1))).await.unwrap();
    let server = WebhookServer::start().await.unwrap();
    server.script.always(Some(Fault::Status(400, Vec::new())));
    let test_env = TestEnv::new(&(hook(&server) + &blogs("mine", "first_run = \"all\"", &site)));
    run(&test_env, &["run-due", "-q"], day(2)).await.warns(3, FAILED);
    let again = run(&test_env, &["run-due", "-q"], day(3)).await;
    assert_eq!((again.code, again.err.as_str()), (0, ""));
    let words =
        "job mine: 1 message failed and will not be sent: `tsuzuki delivery ls --state failed --job mine`";
    run(&test_env, &["status"], day(3)).await.warns(0, words);
    assert_eq!(run(&test_env, &["status"], day(12)).await.err, "", "an old failure is in the listing only");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_says_when_what_waits_may_leave() {
    let site = Site::start(Content::with_articles(2, day(1))).await.unwrap();
    let server = WebhookServer::start().await.unwrap();
    let channel = hook(&server) + "quiet_hours = \"00:00-23:30\"\ntimezone = \"UTC\"\n";
    let test_env = TestEnv::new(
        &(channel + "[app]\ntimezone = \"UTC\"\n" + &blogs("mine", "first_run = \"all\"", &site)),
    );
    let ran = run(&test_env, &["run-due"], day(2)).await;
    let at = day(2).to_string()[..10].to_owned();
    let words = format!("paused until {at} 23:30 +00:00: quiet hours; 1 message waiting");
    assert!(ran.code == 0 && ran.err.contains(&words), "{ran:?}");
    assert!(!ran.err.contains("the next leaves at"), "once is enough: {ran:?}");
    run(&test_env, &["status"], day(2)).await.warns(0, &words);
    assert!(server.posts().is_empty());
    let quiet = run(&test_env, &["run-due", "-q"], day(2).plus(Duration::from_secs(7200))).await;
    assert_eq!((quiet.code, quiet.err.as_str()), (0, ""), "that is no alarm");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_hears_of_a_locked_channel_in_the_run_that_locks_it() {
    let site = Site::start(Content::with_articles(2, day(1))).await.unwrap();
    let (server, operators) = (WebhookServer::start().await.unwrap(), WebhookServer::start().await.unwrap());
    server.script.always(Some(Fault::Status(401, Vec::new())));
    let ops = hook(&operators).replace("channel.hook", "channel.ops");
    let app = "[app]\nlanguage = \"en\"\nalert = [\"ops\"]\n";
    let test_env = TestEnv::new(&(hook(&server) + &ops + app + &blogs("mine", "first_run = \"all\"", &site)));
    for time in 2..4 {
        assert_eq!(run(&test_env, &["run-due", "-q"], day(time)).await.code, 4);
        let posts = operators.posts();
        assert!(posts.len() == 1 && posts[0].body.contains("channel hook: paused: "), "{posts:?}");
    }
}

/// The cells of the only message in `delivery ls`.
async fn listed(test_env: &TestEnv, now: Timestamp) -> String {
    let printed = run(test_env, &["delivery", "ls", "--state", "ready"], now).await;
    assert_eq!((printed.code, printed.out.lines().count()), (0, 2), "{printed:?}");
    printed.out.lines().nth(1).unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_over_its_daily_limit_is_told_with_its_end_and_by_a_quiet_run_once() {
    let sites = [1, 2].map(|n| Content::with_articles(n, day(1)));
    let [one, two] = sites.map(Site::start);
    let (one, two) = (one.await.unwrap(), two.await.unwrap());
    let server = WebhookServer::start().await.unwrap();
    let channel = hook(&server) + "max_per_day = 1\ntimezone = \"UTC\"\n[app]\ntimezone = \"UTC\"\n";
    let first = "first_run = \"all\"";
    let test_env = TestEnv::new(&(channel + &blogs("one", first, &one) + &blogs("two", first, &two)));
    let words =
        "paused until 2026-01-03 00:00 +00:00: 1 message sent today (`max_per_day`); 1 message waiting";
    run(&test_env, &["run-due", "-q"], day(2)).await.warns(0, words);
    let later = day(2).plus(Duration::from_secs(7200));
    let again = run(&test_env, &["run-due", "-q"], later).await;
    assert_eq!((again.code, again.err.as_str()), (0, ""), "told once, not with every line of a crontab");
    run(&test_env, &["run-due"], later).await.warns(0, words);
    run(&test_env, &["status"], later).await.warns(0, words);
    let row = listed(&test_env, later).await;
    assert!(row.contains("2026-01-03 00:00") && row.contains("1 message sent today"), "{row}");
    let japanese = run(&test_env, &["--lang", "ja", "status"], later).await;
    japanese.warns(0, "チャンネル hook：2026-01-03 00:00 +00:00 まで一時停止中：本日の上限（`max_per_day`）の 1 件を送信済み（送信待ち 1 件）");
    assert_eq!(server.posts().len(), 1);
    assert_eq!(run(&test_env, &["status"], day(4)).await.err, "", "a new day");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_that_was_asked_to_wait_is_told_with_its_end_and_by_a_quiet_run_once() {
    let site = Site::start(Content::with_articles(2, day(1))).await.unwrap();
    let server = WebhookServer::start().await.unwrap();
    server.script.next(Fault::Status(429, vec![("retry-after", "7200".to_owned())]));
    let test_env = TestEnv::new(
        &(hook(&server) + "[app]\ntimezone = \"UTC\"\n" + &blogs("mine", "first_run = \"all\"", &site)),
    );
    let words = "paused until 2026-01-02 02:00 +00:00: ";
    run(&test_env, &["run-due", "-q"], day(2)).await.warns(0, words);
    let later = day(2).plus(Duration::from_secs(3600));
    assert_eq!(run(&test_env, &["run-due", "-q"], later).await.err, "");
    run(&test_env, &["status"], later).await.warns(0, words);
    let row = listed(&test_env, later).await;
    assert!(row.contains("2026-01-02 02:00") && row.contains("429"), "{row}");
    assert!(server.posts().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_that_refuses_our_credentials_ends_with_4_every_time() {
    let site = Site::start(Content::with_articles(2, day(1))).await.unwrap();
    let server = WebhookServer::start().await.unwrap();
    server.script.always(Some(Fault::Status(401, Vec::new())));
    let test_env = TestEnv::new(&(hook(&server) + &blogs("mine", "first_run = \"all\"", &site)));
    let words = "channel hook is paused: HTTP 401 from the webhook";
    run(&test_env, &["run-due", "-q"], day(2)).await.warns(4, words);
    let again = run(&test_env, &["run-due", "-q"], day(3)).await;
    again.warns(4, words);
    assert_eq!(again.err.lines().count(), 1, "{again:?}");
    run(&test_env, &["run-due"], day(4)).await.warns(4, words);
    let status = "channel hook: paused: HTTP 401 from the webhook";
    run(&test_env, &["status"], day(4)).await.warns(0, status);
    let row = listed(&test_env, day(4)).await;
    assert!(row.contains(" -  ") && row.contains("HTTP 401"), "it has no next time: {row}");
    assert!(
        !run(&test_env, &["run-due"], day(5)).await.err.contains("the next leaves at"),
        "nobody knows when"
    );
    let explained = run(&test_env, &["why", "hook"], day(4)).await;
    assert!(explained.out.contains("until its credentials change"), "{explained:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_still_missing_ends_with_4_like_the_first_time() {
    let site = Site::start(Content::with_articles(2, day(1))).await.unwrap();
    let gemini = Gemini::start().await.unwrap();
    let test_env = TestEnv::new(&format!(
        "[llm.model]\nkind = \"gemini\"\napi_key = \"${{NO_SUCH_KEY}}\"\nbase_url = \"{}\"\n{ALLOW}\n\
         [[job]]\nname = \"p\"\nkind = \"press\"\nfeed = \"{}feed.xml\"\nllm = \"model\"\nfirst_run = \"all\"\n{ALLOW}\n",
        gemini.url, site.url
    ));
    for day in [day(2), day(2).plus(Duration::from_secs(60))] {
        let ran = run(&test_env, &["run", "p"], day).await;
        assert_eq!(ran.code, 4, "{ran:?}");
        assert!(ran.out.contains("[llm.model]: ") && ran.out.contains("NO_SUCH_KEY"), "{ran:?}");
        assert!(ran.out.contains("  hint: `tsuzuki doctor` says which keys"), "{ran:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_of_the_database_address_is_named_with_its_place() {
    let test_env = TestEnv::new("[store]\nurl = \"postgres://a:${NOPE}@127.0.0.1:1/none\"\n");
    let printed = run(&test_env, &["status"], day(2)).await;
    printed.warns(4, "tsuzuki.toml:2:7");
    assert!(
        printed.err.contains("NOPE is not set") && printed.err.contains("database needs it"),
        "{printed:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_reader_has_gone_sends_and_ends_as_it_would() {
    let site = Site::start(Content::with_articles(2, day(1))).await.unwrap();
    let server = WebhookServer::start().await.unwrap();
    let dead = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}/", listener.local_addr().unwrap())
    };
    let config = hook(&server) + &blogs("mine", "first_run = \"all\"", &site);
    let dead_job = format!(
        "[[job]]\nname = \"dead\"\nkind = \"blogs\"\n{ALLOW}\nblog = [{{ id = \"dead\", url = \"{dead}\" }}]\n"
    );
    let test_env = TestEnv::new(&(config + &dead_job));
    for (args, code) in [(&["run", "mine"][..], 0), (&["run", "dead"], 1), (&["run", "dead", "--json"], 1)] {
        let mut command = command(&test_env, args, day(2));
        let output = tokio::task::spawn_blocking(move || {
            let (reader, writer) = std::io::pipe().unwrap();
            drop(reader);
            command.stdout(writer).stderr(Stdio::piped()).output().unwrap()
        });
        let printed = Said::of(&output.await.unwrap());
        assert_eq!(printed.code, code, "{args:?}: {printed:?}");
    }
    assert_eq!(server.posts().len(), 1, "the digest has left");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quick_job_is_sent_while_a_slow_one_still_runs_and_what_was_killed_is_due() {
    let quick = Site::start(Content::with_articles(2, day(1))).await.unwrap();
    let hanging = Content { fault: Some(Fault::Hang), ..Content::with_articles(2, day(1)) };
    let slow = Site::start(hanging).await.unwrap();
    let server = WebhookServer::start().await.unwrap();
    let config = hook(&server) + &blogs("slow", "", &slow) + &blogs("quick", "first_run = \"all\"", &quick);
    let test_env = TestEnv::new(&config);
    let mut child = command(&test_env, &["run-due", "-q"], day(2)).stderr(Stdio::null()).spawn().unwrap();
    let patience = Instant::now() + Duration::from_secs(20);
    while server.posts().is_empty() {
        assert!(
            Instant::now() < patience && child.try_wait().unwrap().is_none(),
            "nothing was sent beside it"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(child.try_wait().unwrap().is_none(), "the slow job still runs");

    let status = |now: Timestamp| {
        let test_env = &test_env;
        async move {
            let printed = run(test_env, &["status", "--json"], now).await;
            let rows: serde_json::Value = serde_json::from_str(&printed.out).unwrap();
            (
                format!(
                    "{} {}",
                    rows[0]["state"].as_str().unwrap(),
                    rows[0]["why"].as_str().unwrap_or_default()
                ),
                rows[0]["next_run_at"].as_str().unwrap().to_owned(),
            )
        }
    };
    let soon = day(2).plus(Duration::from_secs(2));
    assert_eq!(status(soon).await.0, "running ");
    child.kill().unwrap();
    child.wait().unwrap();
    let (state, next) = status(soon).await;
    assert_eq!(state, "due its last run was cut off");
    assert!(next.starts_with("2026-01-02T00:00:0"), "due at once, not at the next point: {next}");
    let why = run(&test_env, &["why", "slow", "--json"], soon).await;
    let why: serde_json::Value = serde_json::from_str(&why.out).unwrap();
    let next = why[0]["job"]["next_run_at"].as_str().unwrap();
    assert!(next.starts_with("2026-01-02T00:00:0"), "`why` says the same: {next}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_whose_secret_is_not_set_is_paused_until_it_is() {
    let site = Site::start(Content::with_articles(2, day(1))).await.unwrap();
    let server = WebhookServer::start().await.unwrap();
    let channel = format!("[channel.hook]\nkind = \"webhook\"\nurl = \"${{HOOK_URL}}\"\n{ALLOW}\n");
    let test_env = TestEnv::new(&(channel + &blogs("mine", "first_run = \"all\"", &site)));
    for (args, day) in
        [(&["run", "mine"][..], day(2)), (&["run", "mine", "-q"], day(3)), (&["run-due", "-q"], day(4))]
    {
        let ran = run(&test_env, args, day).await;
        ran.warns(4, "channel hook is paused: HOOK_URL is not set");
        assert!(!ran.err.contains("credentials") && !ran.err.contains("reject"), "{ran:?}");
    }
    let status = run(&test_env, &["status"], day(4)).await;
    status.warns(0, "channel hook: paused: HOOK_URL is not set: `tsuzuki doctor`");
    assert_eq!(status.err.lines().count(), 1, "one cause is said once: {status:?}");
    assert!(status.out.contains("✕ Needs setup: HOOK_URL is not set"), "{status:?}");
    let why = run(&test_env, &["why", "hook"], day(4)).await;
    assert!(why.out.contains("channel hook until its credentials change: HOOK_URL is not set"), "{why:?}");
    let mut set = command(&test_env, &["run", "mine", "-q"], day(5));
    set.env("HOOK_URL", server.url.to_string());
    let ran = Said::of(&output_beside(set).await);
    assert_eq!((ran.code, ran.err.as_str(), server.posts().len()), (0, "", 1), "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_whose_key_is_not_set_is_asked_as_soon_as_it_is() {
    let site = Site::start(Content::with_articles(2, day(1))).await.unwrap();
    let gemini = Gemini::start().await.unwrap();
    let test_env = TestEnv::new(&format!(
        "[llm.model]\nkind = \"gemini\"\napi_key = \"${{MODEL_KEY}}\"\nbase_url = \"{}\"\n{ALLOW}\n\
         [[job]]\nname = \"p\"\nkind = \"press\"\nfeed = \"{}feed.xml\"\nllm = \"model\"\nfirst_run = \"all\"\n{ALLOW}\n",
        gemini.url, site.url
    ));
    let ran = run(&test_env, &["run", "p", "-q"], day(2)).await;
    assert!(ran.code == 4 && ran.out.contains("MODEL_KEY is not set"), "{ran:?}");
    let why = run(&test_env, &["why", "provider:model"], day(2)).await;
    assert!(
        why.out.contains("has no valid key; paused until ") && !why.out.contains("refuses our key"),
        "{why:?}"
    );
    let mut set = command(&test_env, &["run", "p"], day(2).plus(Duration::from_secs(60)));
    set.env("MODEL_KEY", tsuzuki::demo::gemini::KEY);
    let ran = Said::of(&output_beside(set).await);
    assert!(!ran.out.contains("MODEL_KEY") && ran.code != 4, "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_did_not_need_its_key_yet_says_that_it_is_missing() {
    let site = Site::start(Content::with_articles(2, day(1))).await.unwrap();
    let test_env = TestEnv::new(&format!(
        "[llm.model]\nkind = \"gemini\"\napi_key = \"${{MODEL_KEY}}\"\n\
         [[job]]\nname = \"p\"\nkind = \"press\"\nfeed = \"{}feed.xml\"\nllm = \"model\"\n{ALLOW}\n",
        site.url
    ));
    let ran = run(&test_env, &["run", "p"], day(2)).await;
    assert!(ran.code == 0 && ran.err.contains("job `p` needs setup: MODEL_KEY is not set"), "{ran:?}");
    let quiet = run(&test_env, &["run", "p", "-q"], day(2).plus(Duration::from_secs(60))).await;
    assert_eq!((quiet.code, quiet.out.as_str(), quiet.err.as_str()), (0, "", ""), "nothing is wrong yet");
    let why = run(&test_env, &["why", "job:p"], day(2)).await;
    assert!(why.out.contains("needs setup") && why.out.contains("MODEL_KEY is not set"), "{why:?}");
}

/// Every exit code except 0 comes with a line about it, also with `-q` and when the output is for programs.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_fails_without_a_word() {
    use tsuzuki::db::{Db, DbUrl, Open};
    let site = Site::start(Content::with_articles(2, day(1))).await.unwrap();
    let server = WebhookServer::start().await.unwrap();
    server.script.always(Some(Fault::Status(401, Vec::new())));
    let locked = TestEnv::new(&(hook(&server) + &blogs("mine", "first_run = \"all\"", &site)));
    assert_eq!(run(&locked, &["run", "mine", "-q"], day(2)).await.code, 4);
    let held = TestEnv::new(&(hook(&server) + &blogs("mine", "", &site)));
    let at = DbUrl::File(held.file("tsuzuki.db"));
    let db = Db::open(at, Open::Create, tsuzuki::time::Clock::starting_at(day(2))).await.unwrap();
    let owner = tsuzuki::id::Owner::this_process();
    let claim = move |tx: &mut tsuzuki::db::Tx<'_>| {
        tsuzuki::ledger::lease::claim(tx, "job:mine", &owner, Duration::from_secs(3600))
    };
    db.write(claim).await.unwrap();
    let wrong = TestEnv::new("[app]\nlangage = \"ja\"\n");
    let unset = TestEnv::new("[channel.out]\nkind = \"slack\"\nurl = \"${NOT_SET}\"\n");
    let empty = TestEnv::empty();
    for (test_env, args, code) in [
        (&locked, &["run", "mine"][..], 4),
        (&locked, &["run-due"], 4),
        (&held, &["run", "mine"], 6),
        (&wrong, &["check"], 5),
        (&wrong, &["status"], 5),
        (&wrong, &["run-due"], 5),
        (&unset, &["check", "--strict"], 5),
        (&unset, &["doctor", "--offline"], 4),
        (&unset, &["why", "nobody"], 1),
        (&unset, &["item", "show", "7"], 1),
        (&unset, &["db", "reset"], 2),
        (&empty, &["check"], 5),
        (&empty, &["inspect", "feed", "nowhere.xml"], 1),
    ] {
        for more in [&["-q"][..], &["-q", "--json"]] {
            let printed = run(test_env, &[args, more].concat(), day(2)).await;
            assert_eq!(printed.code, code, "{args:?} {more:?} {printed:?}");
            let words =
                if more.len() == 1 { printed.out.clone() + &printed.err } else { printed.err.clone() };
            assert!(!words.trim().is_empty(), "{args:?} {more:?} {printed:?}");
        }
    }
}
