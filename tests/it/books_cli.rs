//! The commands about books, as a person types them, with the real program.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Output, Stdio};

use tsuzuki::demo::google_books::{isbn, volumes};
use tsuzuki::sql;

use crate::books_world::{self, World};
use crate::databases::{self, Fixture};
use crate::test_env::{Daemon, ends_with, send_signal};
use rustix::process::Signal;

/// A folder with a config file, and the program in it.
struct Shell<'a> {
    fixture: &'a Fixture,
}

impl Shell<'_> {
    fn write(&self, text: &str) {
        std::fs::write(self.fixture.dir.path().join("tsuzuki.toml"), text).unwrap();
    }

    async fn run(&self, line: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tsuzuki"));
        command.env("TZ", "Asia/Tokyo");
        command
            .args(line.split(' '))
            .current_dir(self.fixture.dir.path())
            .env_remove("TSUZUKI_CONFIG")
            .env("TSUZUKI_NOW", self.fixture.clock.now().to_string())
            .env("NO_COLOR", "1");
        tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
    }

    /// What a command prints, which has to end well.
    async fn say(&self, line: &str) -> String {
        let output = self.run(line).await;
        let said =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {said}");
        said
    }

    /// What a command that has to end well prints for programs.
    async fn print(&self, line: &str) -> String {
        let output = self.run(line).await;
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// What a command that has to end with `code` says.
    async fn refuse(&self, line: &str, code: i32) -> String {
        let output = self.run(line).await;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{line}: {said}");
        said
    }
}

#[test]
fn serve_shows_the_pages_and_stops_when_asked() {
    databases::run(tsuzuki::db::Dialect::Sqlite, async |fixture| {
        let world = World::new(&fixture, volumes(0, 7)).await;
        // A port that was free a moment ago.
        let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let shell = Shell { fixture: &fixture };
        shell.write(&format!("[web]\nlisten = \"{address}\"\n{}", world.text("max_per_run = 10")));
        let mut command = Command::new(env!("CARGO_BIN_EXE_tsuzuki"));
        command.env("TZ", "Asia/Tokyo");
        command
            .arg("serve")
            .current_dir(fixture.dir.path())
            .env_remove("TSUZUKI_CONFIG")
            .stderr(Stdio::piped());
        let mut daemon = Daemon(command.spawn().unwrap());
        let mut log = BufReader::new(daemon.0.stderr.take().unwrap()).lines();
        let listening = log.by_ref().map(Result::unwrap).find(|line| line.contains("Dashboard at"));
        assert!(listening.unwrap().contains(&address.to_string()));
        let health = crate::books_pages::ask(address, "GET", "/healthz", "").await;
        assert_eq!((health.status, health.body.as_str()), (200, "ok\n"));
        // The port is taken now, and this config names it.
        assert!(shell.refuse("serve", 1).await.contains("cannot listen on"));
        send_signal(daemon.0.id(), Signal::TERM);
        assert_eq!(daemon.0.wait().unwrap().code(), Some(0), "asked to stop is not a failure");
        drop(log);
        shell.write("[web]\nlisten = \"0.0.0.0:0\"\n");
        assert!(shell.refuse("serve", 5).await.contains("[web.auth]"));
    });
}

#[test]
fn books_mails_and_tokens_are_shown_and_reset() {
    databases::run(tsuzuki::db::Dialect::Sqlite, async |fixture| {
        let world = World::new(&fixture, volumes(0, 7)).await;
        let shell = Shell { fixture: &fixture };
        shell.write(&world.text("max_per_run = 10\nmail_limit = 2"));

        let plan = shell.say("run-due --dry-run").await;
        assert!(
            plan.contains("collect: up to 10 volumes from startIndex=0 (0 of 100 requests used today)"),
            "{plan}"
        );
        assert_eq!(world.google.asked().len(), 0, "a dry run asks for nothing");

        let said = shell.say("run-due").await;
        assert!(
            said.contains("[WARN][google-books][shelf] Exhausted: startIndex=7 >= totalItems=7"),
            "{said}"
        );
        assert!(said.contains("collected 7 → with ISBN 7 → new 7 → undelivered 7 → queued 2"), "{said}");
        assert!(said.contains("sent 1 message"), "{said}");

        let books = shell.say("book ls").await;
        assert_eq!(books.lines().count(), 8, "{books}");
        assert_eq!(shell.say("book ls --undelivered --job shelf").await.lines().count(), 6);
        assert!(shell.refuse("book ls --job other", 2).await.contains("there is no job `other`"));
        let json: serde_json::Value =
            serde_json::from_str(&shell.say("book ls --json --limit 3").await).unwrap();
        assert_eq!(json.as_array().unwrap().len(), 3);
        assert!(json[0]["isbn13"].is_string() && json[0]["authors"].is_array());

        let story = shell.say(&format!("book show {}", isbn(5))).await;
        for part in ["都市計画入門", "found", "chosen for a digest", "sent"] {
            assert!(story.contains(part), "{part}: {story}");
        }
        let why = shell.say(&format!("why {}", isbn(5))).await;
        assert!(why.contains("都市計画入門") && why.contains("sent (delivery 1)"), "{why}");
        let tried = shell.say("job test shelf").await;
        assert!(tried.contains("1 request was counted against the quota `google_books`"), "{tried}");
        let prompt = shell.say(&format!("book prompt {}", isbn(5))).await;
        assert!(prompt.contains(&isbn(5)) && !prompt.contains("身近な例"), "{prompt}");
        let said = shell.refuse("book show 9784101010014", 1).await;
        assert!(said.contains("no job has found a book with ISBN 9784101010014"), "{said}");
        assert!(shell.refuse("book show 9784101010013", 2).await.contains("its check digit is wrong"));

        let status = shell.say("mail status").await;
        assert!(status.lines().nth(1).unwrap().starts_with("shelf"), "{status}");
        let preview = shell.say("mail preview shelf").await;
        assert!(
            preview.contains("【shelf】新着の本 2冊（2026-01-15）") && preview.contains("/p/0000"),
            "{preview}"
        );
        assert!(shell.say("mail preview shelf --part html").await.contains("<!doctype html>"));
        assert!(shell.refuse("mail preview shelv", 2).await.contains("did you mean `shelf`?"));
        assert!(shell.refuse("mail reset --job shelf", 2).await.contains("--yes"));
        assert!(
            shell.refuse("mail reset --job shell --yes", 2).await.contains("shelf"),
            "a name that nobody has"
        );
        assert!(
            shell
                .refuse("mail reset --since yesterday --yes", 2)
                .await
                .contains("neither a moment nor a day")
        );
        assert!(
            shell
                .say("mail reset --job shelf --since 2026-01-16 --yes")
                .await
                .contains("Reset 0 delivered books")
        );
        assert!(
            shell.say("mail reset --job shelf --since 1d --yes").await.contains("Reset 2 delivered books"),
            "of the last day"
        );
        let story = shell.say(&format!("book show {}", isbn(5))).await;
        assert!(story.contains("● found → ○ chosen → ○ sent"), "{story}");
        for said in
            [shell.run("mail preview shelf").await, shell.run("check").await, shell.run("doctor").await]
        {
            let said =
                String::from_utf8_lossy(&said.stdout).into_owned() + &String::from_utf8_lossy(&said.stderr);
            assert!(said.contains("the links to prompts point to this machine"), "{said}");
        }
        assert_eq!(shell.say("book ls --undelivered").await.lines().count(), 8);

        let tokens = shell.say("token ls --json").await;
        let tokens: serde_json::Value = serde_json::from_str(&tokens).unwrap();
        let prefix = tokens[0]["token"].as_str().unwrap();
        assert_eq!(
            (tokens.as_array().unwrap().len(), prefix.len()),
            (2, 8),
            "a listing does not hand out tokens"
        );
        assert!(shell.say(&format!("token revoke {prefix}")).await.contains("Revoked token"));
        assert_eq!(shell.say("token ls").await.lines().count(), 2);
        assert!(shell.say("token ls --all").await.contains("revoked"));
        assert!(shell.refuse("token revoke 1234", 2).await.contains("first eight characters"));

        let said = shell.say("run-due --force").await;
        assert!(said.contains("[shelf] Skipped: exhausted (query_set_hash="), "{said}");
        assert!(shell.refuse("job cursor reset shelf", 2).await.contains("--yes"));
        assert_eq!(shell.say("job cursor reset shelf --yes").await, "Reset 1 cursor(s) for job: shelf\n");
        shell.say("run-due --force").await;
        assert_eq!(world.google.asked().len(), 4, "two runs, a look, and doctor");
    });
}

#[test]
fn after_a_refused_digest_the_run_and_why_say_when_the_next_is_made() {
    databases::run(tsuzuki::db::Dialect::Sqlite, async |fixture| {
        let world = World::new(&fixture, volumes(0, 7)).await;
        let shell = Shell { fixture: &fixture };
        shell.write(&world.text("max_per_run = 10\nmail_limit = 3"));
        world.hook.script.next(tsuzuki::demo::faults::Fault::Status(400, Vec::new()));
        shell.refuse("run shelf", 3).await;
        fixture.clock.advance(std::time::Duration::from_secs(60));
        let said = shell.say("run shelf").await;
        assert!(said.contains("shelf: waiting: "), "{said}");
        assert!(
            said.contains("a digest was refused, the next is made after 2026-01-16 08:02 +09:00"),
            "{said}"
        );
        let said = shell.say("why shelf").await;
        assert!(
            said.contains("its digests until 2026-01-16 08:02 +09:00: the last one was refused"),
            "{said}"
        );
        assert!(said.contains("tsuzuki delivery retry 1  # send again what failed"), "{said}");
        let said = shell.say(&format!("why {}", isbn(5))).await;
        let wanted = "not sent, in no digest before 2026-01-16 09:02 +09:00 (1 digest with it refused)";
        assert!(said.contains(wanted), "{said}");
        let said = shell.say(&format!("why {}", isbn(6))).await;
        assert!(said.contains("not sent\n"), "it was in no refused digest: {said}");
    });
}

#[test]
fn without_a_key_the_run_says_where_to_get_one() {
    databases::run(tsuzuki::db::Dialect::Sqlite, async |fixture| {
        let world = World::new(&fixture, volumes(0, 7)).await;
        let shell = Shell { fixture: &fixture };
        shell.write(&world.text("cron = \"0 9 * * *\""));
        world.google.reply(books_world::over_limit("defaultPerDayPerProject", "1/d/{project}", "0"));
        let said = ends_with(&shell.run("run shelf").await, 4);
        assert!(said.contains("Google Books needs an API key"), "{said}");
        assert!(said.contains("https://console.cloud.google.com/apis/credentials"), "{said}");
        let status: serde_json::Value = serde_json::from_str(&shell.print("status --json").await).unwrap();
        assert_eq!(status[0]["next_run_at"], "2026-01-16T00:00:00.000Z", "{status}");
        // Google itself is not even asked.
        let google = format!("api_url = \"{}\", ", world.google.url);
        shell.write(&world.text("").replace(&google, ""));
        shell.say("quota reset google_books --yes").await;
        for command in ["run shelf", "job test shelf"] {
            let said = ends_with(&shell.run(command).await, 4);
            assert!(said.contains("Google Books needs an API key"), "{command}: {said}");
            assert!(said.contains("https://console.cloud.google.com/apis/credentials"), "{command}: {said}");
        }
        for command in ["check", "doctor"] {
            let said = shell.run(command).await;
            let said =
                [said.stdout, said.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
            assert!(said.contains("no key for Google Books"), "{command}: {said}");
            assert!(said.contains("https://console.cloud.google.com/apis/credentials"), "{command}: {said}");
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
        let shell = Shell { fixture: &fixture };
        shell
            .write(&world.text("max_per_run = 10\nalso_newest = true\ninclude = { words = [\"機械学習\"] }"));
        let said = shell.say("job test shelf").await;
        assert!(said.contains("7 new to the job") && said.contains("6 books would not be sent"), "{said}");
        shell.say("run shelf").await;
        let said = shell.say("job test shelf").await;
        assert!(said.contains("a run would read the newest alone"), "{said}");
    });
}

#[test]
fn after_an_outage_status_and_why_say_when_the_job_is_tried_again() {
    databases::run(tsuzuki::db::Dialect::Sqlite, async |fixture| {
        let world = World::new(&fixture, volumes(0, 7)).await;
        let shell = Shell { fixture: &fixture };
        shell.write(&world.text("cron = \"0 9 * * *\"\nretries = 0"));
        world.google.reply(books_world::outage());
        let said = ends_with(&shell.run("run shelf").await, 1);
        assert!(said.contains("HTTP 503: Service temporarily unavailable."), "{said}");
        let status: serde_json::Value = serde_json::from_str(&shell.print("status --json").await).unwrap();
        let next = status[0]["next_run_at"].as_str().unwrap().to_owned();
        assert!(next.starts_with("2026-01-15T00:07:"), "{status}");
        let said = shell.say("why shelf").await;
        assert!(said.contains("it is not due before 2026-01-15 09:07"), "{said}");
        fixture.clock.set(next.parse().unwrap());
        let said = shell.say("run-due").await;
        assert!(said.contains("returned=7, totalItems=7"), "{said}");
    });
}

#[test]
fn the_lines_about_paging_are_their_own_text_and_nothing_else() {
    databases::run(tsuzuki::db::Dialect::Sqlite, async |fixture| {
        let world = World::new(&fixture, volumes(0, 7)).await;
        let shell = Shell { fixture: &fixture };
        shell.write(&world.text("max_per_run = 10\ndeliver = []"));
        let hash = "521fe5c9ece1aa1f";
        let lines = [
            "[google-books][shelf] Page 1: startIndex=0, returned=7, totalItems=7".to_owned(),
            format!(
                "[WARN][google-books][shelf] Exhausted: startIndex=7 >= totalItems=7 (query_set_hash={hash})"
            ),
        ];
        let said = shell.say("run shelf").await;
        let logged: Vec<&str> = said.lines().filter(|line| line.contains("google-books")).collect();
        assert_eq!(logged, lines);
        let said = shell.say("run shelf").await;
        let skipped = format!("[shelf] Skipped: exhausted (query_set_hash={hash})");
        assert!(said.lines().any(|line| line == skipped), "{said}");
        let said = shell.say("--log-format json run shelf").await;
        let line = said.lines().find(|line| line.contains("Skipped")).unwrap();
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(
            (&line["message"], &line["job"], &line["level"]),
            (&skipped.into(), &"shelf".into(), &"WARN".into())
        );
    });
}
