//! The commands about books, as a person types them, with the real program.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use tsuzuki::demo::google_books::{isbn, volumes};
use tsuzuki::sql;

use crate::books_world::{self, World};
use crate::databases;
use crate::test_env::{self, Daemon, TestEnv, send_signal};
use rustix::process::Signal;

#[test]
fn serve_shows_the_pages_and_stops_when_asked() {
    databases::run(tsuzuki::db::Dialect::Sqlite, async |fixture| {
        let world = World::new(&fixture, volumes(0, 7)).await;
        // A port that was free a moment ago.
        let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let shell = TestEnv::on(
            &fixture,
            &format!("[web]\nlisten = \"{address}\"\n{}", world.text("max_per_run = 10")),
        );
        let mut daemon = Daemon(shell.command(&["serve"]).stderr(Stdio::piped()).spawn().unwrap());
        let mut log = BufReader::new(daemon.0.stderr.take().unwrap()).lines();
        let listening = log.by_ref().map(Result::unwrap).find(|line| line.contains("Dashboard at"));
        assert!(listening.unwrap().contains(&address.to_string()));
        let health = crate::books_pages::ask(address, "GET", "/healthz", "").await;
        assert_eq!((health.status, health.body.as_str()), (200, "ok\n"));
        // The port is taken now, and this config names it.
        assert!(shell.ends("serve", 1).contains("cannot listen on"));
        send_signal(daemon.0.id(), Signal::TERM);
        assert_eq!(daemon.0.wait().unwrap().code(), Some(0), "asked to stop is not a failure");
        drop(log);
        shell.write("tsuzuki.toml", "[web]\nlisten = \"0.0.0.0:0\"\n");
        assert!(shell.ends("serve", 5).contains("[web.auth]"));
    });
}

#[test]
fn books_mails_and_tokens_are_shown_and_reset() {
    databases::run(tsuzuki::db::Dialect::Sqlite, async |fixture| {
        let world = World::new(&fixture, volumes(0, 7)).await;
        let shell = TestEnv::on(&fixture, &world.text("max_per_run = 10\nmail_limit = 2"));

        let plan = shell.ends("run-due --dry-run", 0);
        assert!(
            plan.contains("collect: up to 10 volumes from startIndex=0 (0 of 100 requests used today)"),
            "{plan}"
        );
        assert_eq!(world.google.asked().len(), 0, "a dry run asks for nothing");

        let printed = shell.ends("run-due", 0);
        assert!(
            printed.contains("[WARN][google-books][shelf] Exhausted: startIndex=7 >= totalItems=7"),
            "{printed}"
        );
        assert!(
            printed.contains("collected 7 → with ISBN 7 → new 7 → undelivered 7 → queued 2"),
            "{printed}"
        );
        assert!(printed.contains("sent 1 message"), "{printed}");

        let books = shell.ends("book ls", 0);
        assert_eq!(books.lines().count(), 8, "{books}");
        assert_eq!(shell.ends("book ls --undelivered --job shelf", 0).lines().count(), 6);
        assert!(shell.ends("book ls --job other", 2).contains("there is no job `other`"));
        let json = shell.json("book ls --limit 3");
        assert_eq!(json.as_array().unwrap().len(), 3);
        assert!(json[0]["isbn13"].is_string() && json[0]["authors"].is_array());

        let story = shell.ends(&format!("book show {}", isbn(5)), 0);
        for part in ["都市計画入門", "found", "chosen for a digest", "sent"] {
            assert!(story.contains(part), "{part}: {story}");
        }
        let why = shell.ends(&format!("why {}", isbn(5)), 0);
        assert!(why.contains("都市計画入門") && why.contains("sent (delivery 1)"), "{why}");
        let tried = shell.ends("job test shelf", 0);
        assert!(tried.contains("1 request was counted against the quota `google_books`"), "{tried}");
        let prompt = shell.ends(&format!("book prompt {}", isbn(5)), 0);
        assert!(prompt.contains(&isbn(5)) && !prompt.contains("身近な例"), "{prompt}");
        let printed = shell.ends("book show 9784101010014", 1);
        assert!(printed.contains("no job has found a book with ISBN 9784101010014"), "{printed}");
        assert!(shell.ends("book show 9784101010013", 2).contains("its check digit is wrong"));

        let status = shell.ends("mail status", 0);
        assert!(status.lines().nth(1).unwrap().starts_with("shelf"), "{status}");
        let preview = shell.ends("mail preview shelf", 0);
        assert!(
            preview.contains("【shelf】新着の本 2冊（2026-01-15）") && preview.contains("/p/0000"),
            "{preview}"
        );
        assert!(shell.ends("mail preview shelf --part html", 0).contains("<!doctype html>"));
        assert!(shell.ends("mail preview shelv", 2).contains("did you mean `shelf`?"));
        assert!(shell.ends("mail reset --job shelf", 2).contains("--yes"));
        assert!(shell.ends("mail reset --job shell --yes", 2).contains("shelf"), "a name that nobody has");
        assert!(shell.ends("mail reset --since yesterday --yes", 2).contains("neither a moment nor a day"));
        assert!(
            shell
                .ends("mail reset --job shelf --since 2026-01-16 --yes", 0)
                .contains("Reset 0 delivered books")
        );
        assert!(
            shell.ends("mail reset --job shelf --since 1d --yes", 0).contains("Reset 2 delivered books"),
            "of the last day"
        );
        let story = shell.ends(&format!("book show {}", isbn(5)), 0);
        assert!(story.contains("● found → ○ chosen → ○ sent"), "{story}");
        for command in [&["mail", "preview", "shelf"][..], &["check"], &["doctor"]] {
            let printed = test_env::output_text(&shell.run(command));
            assert!(printed.contains("the links to prompts point to this machine"), "{printed}");
        }
        assert_eq!(shell.ends("book ls --undelivered", 0).lines().count(), 8);

        let tokens = shell.json("token ls");
        let prefix = tokens[0]["token"].as_str().unwrap();
        assert_eq!(
            (tokens.as_array().unwrap().len(), prefix.len()),
            (2, 8),
            "a listing does not hand out tokens"
        );
        assert!(shell.ends(&format!("token revoke {prefix}"), 0).contains("Revoked token"));
        assert_eq!(shell.ends("token ls", 0).lines().count(), 2);
        assert!(shell.ends("token ls --all", 0).contains("revoked"));
        assert!(shell.ends("token revoke 1234", 2).contains("first eight characters"));

        let printed = shell.ends("run-due --force", 0);
        assert!(printed.contains("[shelf] Skipped: exhausted (query_set_hash="), "{printed}");
        assert!(shell.ends("job cursor reset shelf", 2).contains("--yes"));
        assert_eq!(shell.ends("job cursor reset shelf --yes", 0), "Reset 1 cursor(s) for job: shelf\n");
        shell.ends("run-due --force", 0);
        assert_eq!(world.google.asked().len(), 4, "two runs, a look, and doctor");
    });
}

#[test]
fn after_a_refused_digest_the_run_and_why_say_when_the_next_is_made() {
    databases::run(tsuzuki::db::Dialect::Sqlite, async |fixture| {
        let world = World::new(&fixture, volumes(0, 7)).await;
        let shell = TestEnv::on(&fixture, &world.text("max_per_run = 10\nmail_limit = 3"));
        world.hook.script.next(tsuzuki::demo::faults::Fault::Status(400, Vec::new()));
        shell.ends("run shelf", 3);
        fixture.clock.advance(std::time::Duration::from_secs(60));
        let printed = shell.ends("run shelf", 0);
        assert!(printed.contains("shelf: waiting: "), "{printed}");
        assert!(
            printed.contains("a digest was refused, the next is made after 2026-01-16 08:02 +09:00"),
            "{printed}"
        );
        let printed = shell.ends("why shelf", 0);
        assert!(
            printed.contains("its digests until 2026-01-16 08:02 +09:00: the last one was refused"),
            "{printed}"
        );
        assert!(printed.contains("tsuzuki delivery retry 1  # send again what failed"), "{printed}");
        let printed = shell.ends(&format!("why {}", isbn(5)), 0);
        let wanted = "not sent, in no digest before 2026-01-16 09:02 +09:00 (1 digest with it refused)";
        assert!(printed.contains(wanted), "{printed}");
        let printed = shell.ends(&format!("why {}", isbn(6)), 0);
        assert!(printed.contains("not sent\n"), "it was in no refused digest: {printed}");
    });
}

#[test]
fn why_names_the_message_that_a_book_waits_in_and_what_keeps_it() {
    databases::run(tsuzuki::db::Dialect::Sqlite, async |fixture| {
        let world = World::new(&fixture, volumes(0, 7)).await;
        let shell = TestEnv::on(&fixture, &world.text("max_per_run = 10\nmail_limit = 3"));
        world.hook.script.next(tsuzuki::demo::faults::Fault::Status(401, Vec::new()));
        shell.ends("run shelf", 4);
        let said = shell.ends(&format!("why {}", isbn(5)), 0);
        for part in ["delivery 1 to hook: queued (HTTP 401", "channel hook until its credentials change"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(!shell.ends(&format!("why {}", isbn(6)), 0).contains("delivery 1"), "it is in none");
        shell.ends("delivery retry --channel hook", 0);
        shell.ends("run shelf", 0);
        assert!(!shell.ends(&format!("why {}", isbn(5)), 0).contains("delivery 1 to hook"), "it was sent");
    });
}

#[test]
fn what_waits_for_a_channel_that_has_left_the_config_says_so() {
    databases::run(tsuzuki::db::Dialect::Sqlite, async |fixture| {
        let world = World::new(&fixture, volumes(0, 7)).await;
        let text = world.text("max_per_run = 10\nmail_limit = 3");
        let shell = TestEnv::on(&fixture, &text);
        world.hook.script.next(tsuzuki::demo::faults::Fault::Status(401, Vec::new()));
        shell.ends("run shelf", 4);
        shell.write(
            "tsuzuki.toml",
            &text.replace("[channel.hook]", "[channel.new]").replace("[\"hook\"]", "[\"new\"]"),
        );
        let words = shell.ends("status", 0);
        assert!(words.contains("channel hook: the config does not name it; 1 message waiting"), "{words}");
        let words = shell.ends("delivery ls", 0);
        assert!(words.contains("the config does not name it") && !words.contains("401"), "{words}");
        let words = shell.ends("run shelf", 0);
        assert!(words.contains("queued 3") && words.contains("sent 1 message"), "{words}");
        assert_eq!(words.matches("hook").count(), 1, "it is named once: {words}");
    });
}

#[test]
fn resetting_a_quota_says_what_it_resumes() {
    databases::run(tsuzuki::db::Dialect::Sqlite, async |fixture| {
        let world = World::new(&fixture, volumes(0, 7)).await;
        let shell = TestEnv::on(&fixture, &world.text(""));
        world.google.reply(books_world::refusal(403, "dailyLimitExceeded"));
        shell.ends("run shelf", 0);
        let refused = shell.ends("quota reset google_books", 2);
        assert!(refused.contains("and resumes it if it is paused"), "{refused}");
        let printed = shell.ends("quota reset google_books --yes", 0);
        assert!(
            printed.contains("Resumed google_books, which was paused: ")
                && printed.contains("dailyLimitExceeded"),
            "{printed}"
        );
        let printed = shell.ends("quota reset google_books --yes", 0);
        assert!(!printed.contains("Resumed"), "{printed}");
        let printed = shell.ends("quota reset google_books --date yesterday --yes", 2);
        assert!(printed.contains("`yesterday` is no day") && printed.contains("2026-01-15"), "{printed}");
    });
}

#[test]
fn without_a_key_the_run_says_where_to_get_one() {
    databases::run(tsuzuki::db::Dialect::Sqlite, async |fixture| {
        let world = World::new(&fixture, volumes(0, 7)).await;
        let shell = TestEnv::on(&fixture, &world.text("cron = \"0 9 * * *\""));
        world.google.reply(books_world::over_limit("defaultPerDayPerProject", "1/d/{project}", "0"));
        let printed = shell.ends("run shelf", 4);
        assert!(printed.contains("Google Books needs an API key"), "{printed}");
        assert!(printed.contains("https://console.cloud.google.com/apis/credentials"), "{printed}");
        let status = shell.json("status");
        assert_eq!(status[0]["next_run_at"], "2026-01-16T00:00:00.000Z", "{status}");
        // No request is sent to Google.
        let google = format!("api_url = \"{}\", ", world.google.url);
        shell.write("tsuzuki.toml", &world.text("").replace(&google, ""));
        shell.ends("quota reset google_books --yes", 0);
        for command in ["run shelf", "job test shelf"] {
            let printed = shell.ends(command, 4);
            assert!(printed.contains("Google Books needs an API key"), "{command}: {printed}");
            assert!(
                printed.contains("https://console.cloud.google.com/apis/credentials"),
                "{command}: {printed}"
            );
        }
        for command in ["check", "doctor"] {
            let printed = test_env::output_text(&shell.run(&[command]));
            assert!(printed.contains("no key for Google Books"), "{command}: {printed}");
            assert!(
                printed.contains("https://console.cloud.google.com/apis/credentials"),
                "{command}: {printed}"
            );
        }
        assert_eq!(
            world.count(sql!("SELECT COUNT(*) FROM api_usage WHERE count > 0")).await,
            0,
            "nothing was counted"
        );
    });
}

#[test]
fn a_look_says_what_would_not_be_sent_and_what_a_run_would_read() {
    databases::run(tsuzuki::db::Dialect::Sqlite, async |fixture| {
        let world = World::new(&fixture, volumes(0, 7)).await;
        let shell = TestEnv::on(
            &fixture,
            &world.text("max_per_run = 10\nalso_newest = true\ninclude = { words = [\"機械学習\"] }"),
        );
        let printed = shell.ends("job test shelf", 0);
        assert!(
            printed.contains("7 new to the job") && printed.contains("6 books would not be sent"),
            "{printed}"
        );
        shell.ends("run shelf", 0);
        let printed = shell.ends("job test shelf", 0);
        assert!(printed.contains("a run would read the newest alone"), "{printed}");
    });
}

#[test]
fn after_an_outage_status_and_why_say_when_the_job_is_tried_again() {
    databases::run(tsuzuki::db::Dialect::Sqlite, async |fixture| {
        let world = World::new(&fixture, volumes(0, 7)).await;
        let shell = TestEnv::on(&fixture, &world.text("cron = \"0 9 * * *\"\nretries = 0"));
        world.google.reply(books_world::outage());
        let printed = shell.ends("run shelf", 1);
        assert!(printed.contains("HTTP 503: Service temporarily unavailable."), "{printed}");
        let status = shell.json("status");
        let next = status[0]["next_run_at"].as_str().unwrap().to_owned();
        assert!(next.starts_with("2026-01-15T00:07:"), "{status}");
        let printed = shell.ends("why shelf", 0);
        assert!(printed.contains("it is not due before 2026-01-15 09:07"), "{printed}");
        fixture.clock.set(next.parse().unwrap());
        let printed = shell.ends("run-due", 0);
        assert!(printed.contains("returned=7, totalItems=7"), "{printed}");
    });
}

#[test]
fn the_lines_about_paging_are_their_own_text_and_nothing_else() {
    databases::run(tsuzuki::db::Dialect::Sqlite, async |fixture| {
        let world = World::new(&fixture, volumes(0, 7)).await;
        let shell = TestEnv::on(&fixture, &world.text("max_per_run = 10\ndeliver = []"));
        let hash = "521fe5c9ece1aa1f";
        let lines = [
            "[google-books][shelf] Page 1: startIndex=0, returned=7, totalItems=7".to_owned(),
            format!(
                "[WARN][google-books][shelf] Exhausted: startIndex=7 >= totalItems=7 (query_set_hash={hash})"
            ),
        ];
        let printed = shell.ends("run shelf", 0);
        let logged: Vec<&str> = printed.lines().filter(|line| line.contains("google-books")).collect();
        assert_eq!(logged, lines);
        let printed = shell.ends("run shelf", 0);
        let skipped = format!("[shelf] Skipped: exhausted (query_set_hash={hash})");
        assert!(printed.lines().any(|line| line == skipped), "{printed}");
        let printed = shell.ends("--log-format json run shelf", 0);
        let line = printed.lines().find(|line| line.contains("Skipped")).unwrap();
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(
            (&line["message"], &line["job"], &line["level"]),
            (&skipped.into(), &"shelf".into(), &"WARN".into())
        );
    });
}
