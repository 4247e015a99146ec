//! `db move`: everything is copied once, whatever happens meanwhile, and the source is not used afterwards.

mod generated;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tsuzuki::db::{self, DatabaseMove, Db, DbUrl, Open, TableSurvey, Tx};
use tsuzuki::demo::site::{Content, Site};
use tsuzuki::demo::webhook::WebhookServer;
use tsuzuki::engine::{Finished, Progress, Runner, Selection, Skipped};
use tsuzuki::id::Owner;
use tsuzuki::ledger::{Subject, event, lease};
use tsuzuki::time::Clock;

use crate::databases::{Schema, place_at};
use crate::test_env::{Stopped, TestEnv, ends_with, err};

/// A desk whose database is `old.db`.
fn desk_with(more: &str) -> TestEnv {
    TestEnv::new(&format!("# mine\n[store] # here\nurl = \"sqlite:old.db\" # the old one\n\n{more}"))
}

/// Dies at a point; the exit code is that of a signal.
fn die_at(test_env: &TestEnv, point: &str, args: &[&str]) {
    let output = test_env.command(args).env("TSUZUKI_FAIL_AT", point).output().unwrap();
    assert_eq!(output.status.code(), None, "{point} was not reached: {}", err(&output));
}

/// The content of a database, except tables about the database itself.
async fn survey(place: &DbUrl) -> BTreeMap<String, TableSurvey> {
    let db = Db::open(place.clone(), Open::ReadOnly, Clock::system()).await.unwrap();
    let mut survey = db::survey(&db).await.unwrap();
    db.close().await;
    survey.retain(|table, _| !["schema_migrations", "db_move", "db_copy"].contains(&table.as_str()));
    survey
}

async fn filled(test_env: &TestEnv, seed: u64, rows: usize) -> BTreeMap<String, TableSurvey> {
    let place = DbUrl::File(test_env.file("old.db"));
    Db::open(place.clone(), Open::Create, Clock::system()).await.unwrap().close().await;
    generated::fill(&test_env.file("old.db"), seed, rows);
    let survey = survey(&place).await;
    assert!(survey.len() > 20 && survey.values().all(|table| table.rows > 1), "{survey:?}");
    survey
}

fn at(schema: &Schema) -> DbUrl {
    DbUrl::Server(schema.url.clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn there_and_back_gives_the_same_rows_and_checksums_in_every_table() {
    let test_env = desk_with("");
    let before = filled(&test_env, 1, 60).await;
    let (schema, other) = (Schema::create(), Schema::create());
    let moved = test_env.run(&["db", "move", "--to", &schema.url]);
    let words = ends_with(&moved, 0);
    for (table, survey) in &before {
        let line = words.lines().find(|line| line.split_whitespace().next() == Some(table)).unwrap();
        assert!(line.contains(&survey.checksum), "{line}");
        assert_eq!(line.split_whitespace().nth(1), Some(survey.rows.to_string().as_str()), "{line}");
    }
    assert!(words.contains("under [store]: url = \"postgres://"), "{words}");
    assert_eq!(survey(&at(&schema)).await, before);
    assert_eq!(survey(&DbUrl::File(test_env.file("old.db"))).await, before, "the source keeps its rows");

    ends_with(&test_env.run_on(&schema.url, &["db", "move", "--to", &other.url]), 0);
    ends_with(&test_env.run_on(&other.url, &["db", "move", "--to", "again.db"]), 0);
    ends_with(&test_env.run_on("sqlite:again.db", &["db", "move", "--to", "deep/er/last.db"]), 0);
    assert_eq!(survey(&DbUrl::File(test_env.file("deep/er/last.db"))).await, before);
    let checked = ends_with(&test_env.run_on("sqlite:deep/er/last.db", &["db", "check"]), 0);
    assert!(checked.contains("sound"), "{checked}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_that_is_killed_goes_on_where_it_stopped() {
    for (seed, to_server) in [(2, true), (3, false)] {
        let test_env = desk_with("");
        let before = filled(&test_env, seed, 520).await;
        let schema = Schema::create();
        let target = if to_server {
            schema.url.clone()
        } else {
            format!("sqlite:{}", test_env.file("new.db").display())
        };
        let args = ["db", "move", "--to", target.as_str()];
        for point in ["move.batch", "move.batch:3", "move.batch:20", "move.compared", "move.left"] {
            die_at(&test_env, point, &args);
            for refused in [
                &["status"][..],
                &["db", "info"],
                &["run-due"],
                &["run-due", "--dry-run"],
                &["db", "migrate"],
            ] {
                let words = ends_with(&test_env.run_on(&target, refused), 1);
                assert!(words.contains("is being filled by a move from sqlite:"), "{refused:?}: {words}");
            }
        }
        // Between the two last steps of a move the old place is closed already: nothing can happen twice.
        assert!(test_env.ends("run-due", 1).contains("was moved to"));
        ends_with(&test_env.run(&args), 0);
        assert_eq!(survey(&place_at(&target)).await, before);
        ends_with(&test_env.run_on(&target, &["db", "info"]), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_changed_in_the_source_after_a_kill_arrives_as_it_is_now() {
    let test_env = desk_with("");
    filled(&test_env, 4, 520).await;
    let schema = Schema::create();
    let args = ["db", "move", "--to", schema.url.as_str()];
    die_at(&test_env, "move.batch:25", &args);
    // The lock died with the process, so jobs may have run since.
    let db = Db::open(DbUrl::File(test_env.file("old.db")), Open::Existing, Clock::system()).await.unwrap();
    db.write(|tx| {
        tx.execute(
            tsuzuki::sql!("UPDATE blog_entries SET title = 'later' WHERE blog_id >= 'm'"),
            tsuzuki::params![],
        )?;
        tx.execute(tsuzuki::sql!("DELETE FROM check_history WHERE id % 3 = 0"), tsuzuki::params![])?;
        event::add(tx, None, &Subject::verbatim("later"), "x", &serde_json::Value::Null, tx.now())
    })
    .await
    .unwrap();
    db.close().await;
    let before = survey(&DbUrl::File(test_env.file("old.db"))).await;
    ends_with(&test_env.run(&args), 0);
    assert_eq!(survey(&at(&schema)).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_moves_at_once_only_one_arrives() {
    let test_env = desk_with("");
    filled(&test_env, 4, 5).await;
    // The second opens the source while the first moves everything, and continues when the data is gone.
    let first = Stopped::at("move.compared", &mut test_env.command(&["db", "move", "--to", "first.db"]));
    let second = Stopped::at("move.waiting", &mut test_env.command(&["db", "move", "--to", "second.db"]));
    ends_with(&first.wake(), 0);
    let words = ends_with(&second.wake(), 1);
    assert!(words.contains("first.db"), "it says where everything is now: {words}");
    assert!(!test_env.file("second.db").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_refused_while_a_job_runs_and_where_rows_are() {
    let test_env = desk_with("");
    filled(&test_env, 5, 5).await;
    let place = DbUrl::File(test_env.file("old.db"));
    let db = Db::open(place.clone(), Open::Existing, Clock::system()).await.unwrap();
    let owner = Owner::this_process();
    let claim =
        db.claim(move |tx| lease::claim(tx, "job:slow", &owner, Duration::from_secs(600))).await.unwrap();
    let words = test_env.ends("db move --to new.db", 6);
    assert!(words.contains("jobs are running: job:slow (process "), "{words}");
    assert!(!test_env.file("new.db").exists(), "nothing is made");
    assert!(test_env.ends("db move --to new.db --dry-run", 0).contains("would be refused now"));
    let lease::Claim::Taken(held) = claim else { panic!("{claim:?}") };
    db.write(move |tx| held.release(tx)).await.unwrap();
    db.write(|tx| {
        tx.execute(
            tsuzuki::sql!(
                "UPDATE outbox SET state = 'sending', lease_owner = 'elsewhere/1/x', lease_until = '2999-01-01T00:00:00.000Z'
                 WHERE id = (SELECT MIN(id) FROM outbox)"
            ),
            tsuzuki::params![],
        )
    })
    .await
    .unwrap();
    db.close().await;
    assert!(test_env.ends("db move --to new.db", 6).contains("1 message being sent"));

    let other = desk_with("");
    filled(&other, 6, 5).await;
    assert!(other.ends("db move --to old.db", 2).contains("is the database that everything is in"));
    let full = format!("sqlite:{}", test_env.file("old.db").display());
    let words = ends_with(&other.run(&["db", "move", "--to", &full]), 1);
    assert!(words.contains("is not empty: the table"), "{words}");
    die_at(&other, "move.batch:2", &["db", "move", "--to", "new.db"]);
    let third = desk_with("");
    filled(&third, 7, 5).await;
    let begun = format!("sqlite:{}", other.file("new.db").display());
    let words = ends_with(&third.run(&["db", "move", "--to", &begun]), 1);
    assert!(words.contains("holds an unfinished move from sqlite:"), "{words}");
    std::fs::write(third.file("text.db"), "not a database, but long enough to be taken for one".repeat(30))
        .unwrap();
    third.ends("db move --to text.db", 1);
    third.ends("db move --to mysql://x/y", 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_changes_no_byte_and_the_switch_keeps_comments() {
    let test_env = desk_with("# the end\n");
    filled(&test_env, 8, 10).await;
    let schema = Schema::create();
    let (bytes, config) = (std::fs::read(test_env.file("old.db")).unwrap(), test_env.config());
    let words = test_env.ends("db move --to sub/new.db --dry-run", 0);
    assert!(words.contains("which would be made"), "{words}");
    assert!(
        ends_with(&test_env.run(&["db", "move", "--to", &schema.url, "--dry-run"]), 0)
            .contains("which is empty")
    );
    assert!(bytes == std::fs::read(test_env.file("old.db")).unwrap() && config == test_env.config());
    assert!(!test_env.file("sub").exists());

    let secret = schema.url.replace("tsuzuki@", "tsuzuki:hunter2-secret@");
    let refused = test_env.run(&["db", "move", "--to", &secret, "--switch"]);
    assert!(ends_with(&refused, 2).contains("would write the password"));
    let printed = ends_with(&test_env.run(&["db", "move", "--to", &secret, "--dry-run"]), 0);
    assert!(!printed.contains("hunter2"), "{printed}");

    let named = schema.url.replace("tsuzuki@", "tsuzuki:${DB_PASSWORD}@");
    let mut command = test_env.command(&["db", "move", "--to", &named, "--switch"]);
    ends_with(&command.env("DB_PASSWORD", "hunter2-secret").output().unwrap(), 0);
    let expected = config.replace("sqlite:old.db", &named);
    assert_eq!(test_env.config(), expected, "one value changed, nothing else");
    let output =
        test_env.command(&["db", "move", "--to", "sub/new.db", "--switch"]).env("DB_PASSWORD", "x").output();
    ends_with(&output.unwrap(), 0);
    assert_eq!(test_env.config(), config.replace("old.db", "sub/new.db"));
    test_env.ends("db info", 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn new_rows_get_numbers_that_were_never_used() {
    let test_env = desk_with("");
    filled(&test_env, 9, 20).await;
    let schema = Schema::create();
    let add = |tx: &mut Tx<'_>| {
        event::add(tx, None, &Subject::verbatim("x"), "x", &serde_json::Value::Null, tx.now())?;
        tx.count(tsuzuki::sql!("SELECT MAX(id) FROM events"), tsuzuki::params![])
    };
    let db = Db::open(DbUrl::File(test_env.file("old.db")), Open::Existing, Clock::system()).await.unwrap();
    let last = db.write(add).await.unwrap();
    // The row with the highest number is deleted, but its number may be known outside.
    db.write(|tx| tx.execute(tsuzuki::sql!("DELETE FROM events WHERE subject = 'x'"), tsuzuki::params![]))
        .await
        .unwrap();
    db.close().await;
    ends_with(&test_env.run(&["db", "move", "--to", &schema.url]), 0);
    ends_with(&test_env.run_on(&schema.url, &["db", "move", "--to", "back.db"]), 0);
    let db = Db::open(DbUrl::File(test_env.file("back.db")), Open::Existing, Clock::system()).await.unwrap();
    assert_eq!(db.write(add).await.unwrap(), last + 1);
    db.close().await;
    let third = Schema::create();
    ends_with(&test_env.run_on("sqlite:back.db", &["db", "move", "--to", &third.url]), 0);
    let db = Db::open(at(&third), Open::Existing, Clock::system()).await.unwrap();
    assert_eq!(db.write(add).await.unwrap(), last + 2);
    db.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_switch_that_was_cut_off_is_finished_by_the_same_command() {
    let test_env = desk_with("");
    let before = filled(&test_env, 10, 5).await;
    let args = ["db", "move", "--to", "new.db", "--switch"];
    die_at(&test_env, "move.ended", &args);
    assert!(test_env.config().contains("sqlite:old.db"), "the last step is missing");
    for args in [&args[..4], &["db", "move", "--to", "new.db", "--dry-run"]] {
        let words = ends_with(&test_env.run(args), 1);
        assert!(words.contains("was moved to sqlite:") && words.contains("hint: add --switch"), "{words}");
    }
    let words = ends_with(&test_env.run(&args), 0);
    assert!(words.contains("before") && words.contains("The config file now says"), "{words}");
    assert!(test_env.config().contains("sqlite:new.db"), "{}", test_env.config());
    assert_eq!(survey(&DbUrl::File(test_env.file("new.db"))).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reopened_database_does_not_say_that_it_was_restored() {
    let test_env = desk_with("");
    let place = DbUrl::File(test_env.file("old.db"));
    let db = Db::open(place, Open::Create, Clock::system()).await.unwrap();
    db.write(|tx| {
        tx.execute(
            tsuzuki::sql!(
                "INSERT INTO outbox (key, job_name, channel, recipient, topic, subject, payload, state, created_at, not_before)
                 VALUES ('k', 'b', 'hook', 'r', 't', 's', '{}', 'ready', ?1, ?1)"
            ),
            tsuzuki::params![tx.now()],
        )
    })
    .await
    .unwrap();
    db.close().await;
    test_env.ends("db move --to new.db", 0);
    assert!(test_env.ends("status", 0).contains("everything was moved to sqlite:"));
    test_env.ends("db move --reopen --yes", 0);
    let words = test_env.ends("delivery show 1", 0);
    assert!(words.contains("moved elsewhere, and is in use again") && !words.contains("restored"), "{words}");
    assert!(words.contains("delivery 1") && words.contains("may or may not have arrived"), "{words}");
}

fn mover(from: &DbUrl, to: &Path) -> DatabaseMove {
    DatabaseMove {
        from: from.clone(),
        to: DbUrl::File(to.to_owned()),
        clock: Clock::system(),
        list_busy: |_| Ok(Vec::new()),
        is_stopped: Box::new(|| false),
        progress: Box::new(|_| {}),
    }
}

on_both_databases! {
    async fn a_process_that_still_has_the_old_place_open_starts_and_sends_nothing(fixture) {
        let text = "[channel.hook]\nkind = \"webhook\"\nurl = \"http://127.0.0.1:9/\"\nallow_private = [\"127.0.0.1\"]\n\
                    [[job]]\nname = \"b\"\nkind = \"blogs\"\ndeliver = [\"hook\"]\nblog = [{ id = \"x\", url = \"http://127.0.0.1:9/\" }]\n";
        let config = tsuzuki::config::parse(text, Path::new("t.toml"), tsuzuki::app::kinds(), &tsuzuki::config::Env::of([])).unwrap();
        let app = tsuzuki::app::App::new(&config, fixture.db.clone()).unwrap();
        let at = fixture.clock.now();
        fixture.db.write(move |tx| {
            tx.execute(
                tsuzuki::sql!(
                    "INSERT INTO outbox (key, job_name, channel, recipient, topic, subject, payload, state, created_at, not_before)
                     VALUES ('k', 'b', 'hook', 'r', 't', 's', '{}', 'ready', ?1, ?1)"
                ),
                tsuzuki::params![at],
            )
        }).await.unwrap();
        let report = mover(&fixture.place, &fixture.dir.path().join("new.db")).run().await.unwrap();
        assert!(!report.resumed);
        let stop = CancellationToken::new();
        let runner = Runner::new(fixture.db.clone(), Progress::default());
        let finished = runner.run(app.jobs.clone(), Selection::Forced, &stop).await;
        assert!(matches!(&finished[..], [(_, Finished::Skipped(Skipped::Moved(to)))] if to.contains("new.db")), "{finished:?}");
        app.sender().send_due(&stop).await.unwrap();
        let tried = fixture.db.read(|tx| tx.count(tsuzuki::sql!("SELECT CAST(SUM(attempts) AS BIGINT) FROM outbox"), tsuzuki::params![]));
        assert_eq!(tried.await.unwrap(), 0, "the message is the new place's to send");
        assert!(matches!(
            Db::open(fixture.place.clone(), Open::Existing, Clock::system()).await,
            Err(db::Error::MovedAway { to, .. }) if to.contains("new.db")
        ));
        let again = mover(&fixture.place, &fixture.dir.path().join("other.db")).run().await;
        assert!(matches!(again, Err(db::MoveError::Db(db::Error::MovedAway { .. }))), "it has left already");

        let left = Db::open(fixture.place.clone(), Open::Left, Clock::system()).await.unwrap();
        assert!(db::reopen(&left).await.unwrap().is_some());
        Db::open(fixture.place.clone(), Open::Existing, Clock::system()).await.unwrap();
    }

    async fn nobody_writes_to_the_source_while_it_is_copied(fixture) {
        for _ in 0..3 {
            fixture.db.write(|tx| event::add(tx, None, &Subject::verbatim("x"), "x", &serde_json::Value::Null, tx.now())).await.unwrap();
        }
        let (began, begun) = std::sync::mpsc::channel();
        let (go_on, went_on) = std::sync::mpsc::channel::<()>();
        let wait = std::sync::Mutex::new(went_on);
        let mover = DatabaseMove {
            progress: Box::new(move |step| {
                if let db::MoveStep::Table { name: "leases", .. } = step {
                    began.send(()).unwrap();
                    wait.lock().unwrap().recv().unwrap();
                }
            }),
            ..mover(&fixture.place, &fixture.dir.path().join("new.db"))
        };
        let moving = tokio::spawn(mover.run());
        tokio::task::spawn_blocking(move || begun.recv().unwrap()).await.unwrap();
        let (db, owner) = (fixture.db.clone(), Owner::this_process());
        let mut claiming = tokio::spawn(async move {
            db.claim(move |tx| lease::claim(tx, "job:x", &owner, Duration::from_secs(60))).await
        });
        let early = tokio::time::timeout(Duration::from_millis(300), &mut claiming).await;
        assert!(early.is_err(), "a job could begin in a database that is being copied");
        assert_eq!(fixture.db.read(|tx| tx.count(tsuzuki::sql!("SELECT COUNT(*) FROM events"), tsuzuki::params![])).await.unwrap(), 3, "reading goes on");
        go_on.send(()).unwrap();
        moving.await.unwrap().unwrap();
        let late = claiming.await.unwrap();
        assert!(matches!(late, Err(db::Error::MovedAway { .. })), "written where nobody looks any more: {late:?}");
        let write = fixture.db.write(|tx| event::add(tx, None, &Subject::verbatim("x"), "x", &serde_json::Value::Null, tx.now())).await;
        assert!(matches!(write, Err(db::Error::MovedAway { .. })), "{write:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_moved_database_runs_on_without_repeating_anything() {
    let start = "2026-01-15T00:00:00Z".parse().unwrap();
    let site = Site::start(Content::with_articles(3, start)).await.unwrap();
    let hook = WebhookServer::start().await.unwrap();
    let test_env = desk_with(&format!(
        "[channel.hook]\nkind = \"webhook\"\nurl = \"{}\"\nsecret = \"s3cret-of-the-hook\"\nallow_private = [\"127.0.0.1\"]\n\n\
         [[job]]\nname = \"b\"\nkind = \"blogs\"\ndeliver = [\"hook\"]\nallow_private = [\"127.0.0.1\"]\n\
         blog = [{{ id = \"x\", url = \"{}\" }}]\n",
        hook.url, site.url
    ));
    let run = |args: &'static [&'static str]| {
        let mut command = test_env.command(args);
        async move { tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap() }
    };
    ends_with(&run(&["run", "b"]).await, 0);
    site.edit(|content| content.publish("one", "The first news", start));
    ends_with(&run(&["run", "b"]).await, 0);
    assert_eq!(hook.posts().len(), 1);

    let schema = Schema::create();
    let mut command = test_env.command(&["db", "move", "--to", &schema.url, "--switch"]);
    ends_with(&tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap(), 0);
    ends_with(&run(&["run", "b"]).await, 0);
    assert_eq!(hook.posts().len(), 1, "what was told is known in the new place");
    site.edit(|content| content.publish("two", "The second news", start));
    ends_with(&run(&["run", "b"]).await, 0);
    let posts = hook.posts();
    assert_eq!(posts.len(), 2);
    let body = format!("{:?}", posts[1]);
    assert!(body.contains("The second news") && !body.contains("The first news"), "{body}");
}
