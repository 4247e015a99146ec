//! `channel`: listing, adding and testing with real servers, and shell completion of names.

use std::time::Duration;

use serde_json::Value as Json;
use tsuzuki::demo::faults::Fault;
use tsuzuki::demo::mastodon::{MastodonServer, TOKEN};
use tsuzuki::demo::site::{Content, Site};
use tsuzuki::demo::smtp::SmtpServer;
use tsuzuki::demo::webhook::WebhookServer;
use tsuzuki::time::{Clock, Timestamp};

use crate::blogs::newest;
use crate::test_env::{TestEnv, code, ends_with, out, output_beside, output_text};

const JOB: &str = "# mine\n[[job]] # the only one\nname = \"b\"\nkind = \"blogs\"\nblog = [{ id = \"a\", url = \"https://a.example\" }]\n";

#[test]
fn channels_of_every_kind_are_added_by_flags() {
    let test_env = TestEnv::new(JOB);
    for (args, table) in [
        (
            "mastodon --instance https://mastodon.example",
            "[channel.mastodon]\nkind = \"mastodon\"\ninstance = \"https://mastodon.example\"\ntoken = \"${MASTODON_TOKEN}\"\n",
        ),
        (
            "email family --smtp smtp.example.com:587 --from me@example.com --to a@example.com --to b@example.com \
             --user me --password-env MAIL_PASSWORD --set pace=5s",
            "[channel.family]\nkind = \"email\"\nsmtp = \"smtp.example.com:587\"\nfrom = \"me@example.com\"\n\
             to = [\"a@example.com\", \"b@example.com\"]\nuser = \"me\"\npassword = \"${MAIL_PASSWORD}\"\npace = \"5s\"\n",
        ),
        ("slack team --url-env TEAM_URL", "[channel.team]\nkind = \"slack\"\nurl = \"${TEAM_URL}\"\n"),
        ("webhook", "[channel.webhook]\nkind = \"webhook\"\nurl = \"${WEBHOOK_URL}\"\n"),
        (
            "webhook hook --set url=https://example.com/hook",
            "[channel.hook]\nkind = \"webhook\"\nurl = \"https://example.com/hook\"\n",
        ),
    ] {
        let before = test_env.config();
        let args: Vec<&str> = ["channel", "add"].into_iter().chain(args.split_whitespace()).collect();
        let output = test_env.run(&args);
        ends_with(&output, 0);
        assert_eq!(out(&output), table);
        assert_eq!(test_env.config(), format!("{before}\n{table}"), "the rest of the file is as it was");
    }
    let output = test_env.run(&["check"]);
    assert_eq!(code(&output), 0, "{}", output_text(&output));
    let printed = output_text(&test_env.run(&["channel", "add", "slack", "other"]));
    assert!(printed.contains("needs setup: `url`: SLACK_WEBHOOK_URL is not set"), "{printed}");
    let japanese = output_text(&test_env.run(&["channel", "add", "slack", "third", "--lang", "ja"]));
    assert!(japanese.contains("次は `tsuzuki channel test third`"), "{japanese}");
}

#[test]
fn a_channel_that_would_not_work_is_not_written() {
    let test_env = TestEnv::new(&format!("{JOB}[channel.mail]\nkind = \"slack\"\nurl = \"${{X}}\"\n"));
    let before = test_env.config();
    for (args, code, words) in [
        ("mastodon", 5, &["the key `instance` is missing", "nothing was written", "--instance URL"][..]),
        ("mastodon --instance nonsense", 5, &["nonsense"]),
        ("email --smtp x:0 --from a@example.com --to b@example.com", 5, &["is not a mail server"]),
        ("slack mail", 2, &["there is a channel `mail` already"]),
        (
            "slack team --instance https://a.example",
            2,
            &["--instance is for mastodon channels, this is a slack channel"],
        ),
        ("mastodn toots", 2, &["there is no kind of channel `mastodn`", "did you mean `mastodon`?"]),
        ("pigeon", 2, &["kinds: mastodon, email, slack, webhook"]),
        ("slack team --set nonsense=1", 5, &["nonsense"]),
    ] {
        let args: Vec<&str> = ["channel", "add"].into_iter().chain(args.split_whitespace()).collect();
        let printed = ends_with(&test_env.run(&args), code);
        for words in words {
            assert!(printed.contains(words), "{args:?}: {words}: {printed}");
        }
        assert_eq!(test_env.config(), before, "{args:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_message_goes_through_every_kind_and_says_what_the_server_answered() {
    let toots = MastodonServer::start(Clock::system()).await.unwrap();
    let (hook, slack) = (WebhookServer::start().await.unwrap(), WebhookServer::start().await.unwrap());
    let smtp = SmtpServer::start().await.unwrap();
    let allow = "allow_private = [\"127.0.0.1\"]";
    let config = |token: &str| {
        format!(
            "[app]\nlanguage = \"en\"\n[channel.toot]\nkind = \"mastodon\"\ninstance = \"{}\"\ntoken = \"{token}\"\nvisibility = \"public\"\n{allow}\n\
             [channel.hook]\nkind = \"webhook\"\nurl = \"{}\"\nsecret = \"s3cret\"\n{allow}\n\
             [channel.slack]\nkind = \"slack\"\nurl = \"{}\"\n{allow}\n\
             [channel.mail]\nkind = \"email\"\nsmtp = \"{}\"\ntls = \"none\"\nfrom = \"a@example.com\"\nto = [\"b@example.com\"]\n{allow}\n",
            toots.url, hook.url, slack.url, smtp.address
        )
    };
    let test_env = TestEnv::new(&config(TOKEN));
    for (name, answer) in [
        ("toot", "sent a test message to toot (account); the server answered: 1\n"),
        ("hook", "sent a test message to hook (webhook); the server answered: HTTP 200: ok\n"),
        ("slack", "sent a test message to slack (webhook); the server answered: HTTP 200: ok\n"),
        ("mail", "sent a test message to mail (b@example.com); the server answered: 2.0.0 kept as 1\n"),
    ] {
        let output = test_env.run_beside(&["channel", "test", name]).await;
        ends_with(&output, 0);
        assert_eq!(out(&output), answer);
    }
    let toot = &toots.toots()[0].request;
    assert!(toot["status"].as_str().unwrap().starts_with("Test message from tsuzuki"), "{toot}");
    assert_eq!(toot["visibility"], "direct", "a test is nobody else's news");
    let posts = hook.posts();
    assert!(posts[0].body.contains("Test message from tsuzuki"), "{posts:?}");
    assert!(posts[0].headers.contains_key("webhook-signature"), "{posts:?}");
    assert!(slack.posts()[0].body.contains("Test message from tsuzuki"));
    assert!(smtp.mails()[0].data.contains("Subject: Test message from tsuzuki"), "{:?}", smtp.mails());

    let json = test_env.run_beside(&["channel", "test", "hook", "--json"]).await;
    let json: Json = serde_json::from_str(&out(&json)).unwrap();
    assert_eq!(json[0]["answer"], "HTTP 200: ok");
    let printed = ends_with(&test_env.run_beside(&["channel", "test"]).await, 2);
    assert!(printed.contains("which channel? hook, mail, slack, toot"), "{printed}");
    let printed = ends_with(&test_env.run_beside(&["channel", "test", "toots"]).await, 2);
    assert!(printed.contains("did you mean `toot`?"), "{printed}");

    hook.script.next(Fault::Status(500, Vec::new()));
    let printed = ends_with(&test_env.run_beside(&["channel", "test", "hook"]).await, 1);
    assert!(printed.contains("was not sent: HTTP 500 from the webhook"), "{printed}");
    // Missing settings are reported before any request is sent.
    let unset = "[channel.mail]\nkind = \"email\"\nsmtp = \"127.0.0.1:9\"\nfrom = \"a@example.com\"\nto = [\"b@example.com\"]\n\
                 tls = \"none\"\nuser = \"a\"\npassword = \"${MAIL_PASSWORD}\"\nallow_private = [\"127.0.0.1\"]\n";
    let printed = ends_with(&TestEnv::new(unset).run_beside(&["channel", "test", "mail"]).await, 4);
    assert!(printed.contains("was not sent: MAIL_PASSWORD is not set"), "{printed}");
    // A mail server of one's own has to be named, and the error says how.
    let near =
        unset.replace("user = \"a\"\npassword = \"${MAIL_PASSWORD}\"\nallow_private = [\"127.0.0.1\"]\n", "");
    let printed = ends_with(&TestEnv::new(&near).run_beside(&["channel", "test", "mail"]).await, 1);
    assert!(printed.contains("add `allow_private = [\"127.0.0.1\"]`"), "{printed}");
    let test_env = TestEnv::new(&config("wrong"));
    let printed = ends_with(&test_env.run_beside(&["channel", "test", "toot"]).await, 4);
    assert!(printed.contains("the test message to toot (account) was not sent"), "{printed}");
    assert_eq!(toots.toots().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listing_says_which_channels_send_and_which_wait_until_when() {
    let site = Site::start(Content::with_articles(2, newest())).await.unwrap();
    let (good, busy) = (WebhookServer::start().await.unwrap(), WebhookServer::start().await.unwrap());
    let allow = "allow_private = [\"127.0.0.1\"]";
    let config = format!(
        "[app]\nlanguage = \"en\"\n\
         [channel.good]\nkind = \"webhook\"\nurl = \"{}\"\n{allow}\n[channel.busy]\nkind = \"slack\"\nurl = \"{}\"\n{allow}\n\
         [channel.unset]\nkind = \"slack\"\nurl = \"${{NOT_SET}}\"\n\
         [[job]]\nname = \"b\"\nkind = \"blogs\"\nfirst_run = \"all\"\ndeliver = [\"good\", \"busy\"]\n{allow}\n\
         blog = [{{ id = \"a\", url = \"{}\" }}]\n",
        good.url, busy.url, site.url
    );
    let test_env = TestEnv::new(&config);
    busy.script.next(Fault::Status(429, vec![("retry-after", "3600".to_owned())]));
    test_env.run_beside(&["run", "b"]).await;
    let rows: Vec<Json> = serde_json::from_str(&out(&test_env.run(&["channel", "ls", "--json"]))).unwrap();
    let row = |name: &str| rows.iter().find(|row| row["channel"] == name).unwrap();
    let (good, busy, unset) = (row("good"), row("busy"), row("unset"));
    assert_eq!((&good["state"], &good["messages"], &good["jobs"][0]), (&"ok".into(), &0.into(), &"b".into()));
    assert!(good["last_sent_at"].is_string() && good["waits_until"].is_null(), "{good}");
    assert_eq!((&busy["state"], &busy["messages"]), (&"paused".into(), &1.into()), "{busy}");
    assert!(busy["waits_until"].is_string() && busy["last_sent_at"].is_null(), "{busy}");
    assert_eq!(unset["state"], "setup", "{unset}");
    assert!(unset["why"].as_str().unwrap().contains("NOT_SET"), "{unset}");
    let printed = test_env.ends("channel ls", 0);
    for words in ["● OK", "∥ Paused", "✕ Needs setup", "LAST SENT"] {
        assert!(printed.contains(words), "{words}: {printed}");
    }
    let printed = test_env.ends("channel ls --lang ja", 0);
    assert!(printed.contains("チャンネル") && printed.contains("∥ 一時停止中"), "{printed}");
    let printed = test_env.ends("why channel:busy", 0);
    for words in ["∥ channel busy", "tsuzuki channel test busy", "tsuzuki delivery retry --channel busy"] {
        assert!(printed.contains(words), "{words}: {printed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_whose_attempts_fail_is_not_fine_until_one_arrives() {
    let site = Site::start(Content::with_articles(2, newest())).await.unwrap();
    let server = WebhookServer::start().await.unwrap();
    server.script.always(Some(Fault::Status(500, Vec::new())));
    let allow = "allow_private = [\"127.0.0.1\"]";
    let test_env = TestEnv::new(&format!(
        "[app]\nlanguage = \"en\"\n[channel.hook]\nkind = \"webhook\"\nurl = \"{}\"\n{allow}\n\
         [[job]]\nname = \"b\"\nkind = \"blogs\"\nfirst_run = \"all\"\ndeliver = [\"hook\"]\n{allow}\n\
         blog = [{{ id = \"a\", url = \"{}\" }}]\n",
        server.url, site.url
    ));
    let at = async |minutes: u64, line: &str| {
        let now: Timestamp = "2026-01-15T00:00:00Z".parse().unwrap();
        let mut command = test_env.command(&line.split(' ').collect::<Vec<_>>());
        command.env("TSUZUKI_NOW", now.plus(Duration::from_secs(60 * minutes)).to_string());
        output_text(&output_beside(command).await)
    };
    let ran = at(0, "run-due").await;
    assert!(
        ran.contains(
            "delivery 1 to hook failed: HTTP 500 from the webhook: as requested; next attempt 2026-01-15T00:0"
        ),
        "{ran}"
    );
    let status = at(0, "status").await;
    let words = "channel hook: 1 message not sent yet: HTTP 500 from the webhook: as requested; next attempt 2026-01-15 ";
    assert!(status.contains(words) && !status.contains("warning: channel"), "{status}");
    assert!(status.contains(": `tsuzuki delivery ls --channel hook`"), "{status}");
    let listed = at(0, "channel ls").await;
    assert!(listed.contains("◔ Waiting") && listed.contains("HTTP 500"), "{listed}");
    // A state is asked for by the word that is shown for it, too.
    for word in ["ready", "queued", "送信待ち"] {
        assert!(at(0, &format!("delivery ls --state {word}")).await.contains("HTTP 500"), "{word}");
    }
    assert!(!at(0, "delivery ls --state sent").await.contains("HTTP 500"));
    // Once is an accident; again and again is none.
    at(10, "run-due").await;
    at(40, "run-due").await;
    let status = at(40, "status").await;
    assert!(status.contains(&format!("warning: {words}")), "{status}");
    let listed = at(40, "channel ls").await;
    assert!(listed.contains("▲ Failing"), "{listed}");
    assert!(at(40, "why channel:hook").await.contains("▲ channel hook"));
    assert!(at(40, "status --lang ja").await.contains("まだ送信できていないメッセージ 1 件"));
    server.script.always(None);
    at(300, "run-due").await;
    let (status, listed) = (at(300, "status").await, at(300, "channel ls").await);
    assert!(!status.contains("not sent yet") && listed.contains("● OK"), "{status}{listed}");
}

/// The completions that the program offers for the last of `words`.
pub(crate) fn completed(test_env: &TestEnv, words: &[&str]) -> Vec<String> {
    let mut command = test_env.command(&["--", "tsuzuki"]);
    command.args(words).env("TSUZUKI_COMPLETE", "bash").env("_CLAP_IFS", "\n");
    command.env("_CLAP_COMPLETE_INDEX", words.len().to_string());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", output_text(&output));
    out(&output).lines().map(|line| line.trim().to_owned()).collect()
}

#[test]
fn shells_complete_commands_and_the_names_of_the_config() {
    let test_env = TestEnv::new(&format!("{JOB}[channel.mail]\nkind = \"slack\"\nurl = \"${{X}}\"\n"));
    for (words, wanted) in [
        (&["chan"][..], "channel"),
        (&["channel", ""], "test"),
        (&["channel", "test", ""], "mail"),
        (&["delivery", "ls", "--channel", "m"], "mail"),
        (&["job", "show", ""], "b"),
        (&["run", ""], "b"),
        (&["blog", "show", ""], "a"),
        (&["why", ""], "a"),
        (&["why", "m"], "mail"),
        (&["job", "add", ""], "press"),
        (&["job", "add", "blogs", "x", "--deliver", ""], "mail"),
        (&["channel", "add", "m"], "mastodon"),
        (&["import", "opml", ""], "tsuzuki.toml"),
        (&["inspect", "feed", "tsu"], "tsuzuki.toml"),
    ] {
        let answers = completed(&test_env, words);
        assert!(answers.iter().any(|answer| answer == wanted), "{words:?}: {answers:?}");
    }
    assert!(!completed(&test_env, &["channel", "add", ""]).contains(&"mail".to_owned()), "a new name is new");
    // A config that cannot be read is no reason for noise in the middle of a line.
    let broken = TestEnv::new("[app\n");
    assert!(!completed(&broken, &["job", "show", ""]).contains(&"b".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_test_is_the_same_for_mail_channels_alone() {
    let smtp = SmtpServer::start().await.unwrap();
    let config = format!(
        "[app]\nlanguage = \"en\"\n[channel.hook]\nkind = \"webhook\"\nurl = \"https://example.com/\"\n\
         [channel.mail]\nkind = \"email\"\nsmtp = \"{}\"\ntls = \"none\"\nfrom = \"a@example.com\"\n\
         to = [\"b@example.com\", \"c@example.com\"]\nallow_private = [\"127.0.0.1\"]\n",
        smtp.address
    );
    let test_env = TestEnv::new(&config);
    let output = output_beside(test_env.command(&["mail", "test", "--to", "d@example.com"])).await;
    assert!(ends_with(&output, 0).contains("sent a test message to mail (d@example.com)"));
    assert_eq!(smtp.mails().len(), 1, "nobody else gets it");
}
