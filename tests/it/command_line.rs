//! The program as its users meet it: real processes, exit codes, words and files.

use std::io::{BufRead as _, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

use crate::test_env::{TestEnv, code, ends_with, err, out, output_text, send_signal};
use rustix::process::Signal;
use tsuzuki::db::{Db, DbUrl, Open, Tx};
use tsuzuki::ledger::{Subject, cursor};
use tsuzuki::time::Clock;
use tsuzuki::{params, sql};

/// Writes into the database that the program will find.
async fn write_rows<T: Send + 'static>(
    test_env: &TestEnv,
    write: impl Fn(&mut Tx<'_>) -> tsuzuki::db::Result<T> + Send + 'static,
) {
    let place = DbUrl::File(test_env.file("tsuzuki.db"));
    let db = Db::open(place, Open::Create, Clock::system()).await.unwrap();
    db.write(write).await.unwrap();
    db.close().await;
}

const BLOGS: &str = "[[job]]\nname = \"blogs\"\nkind = \"blogs\"\nblog = [{ id = \"example\", url = \"https://example.com\" }]\n";
const BOOKS: &str = "[[job]]\nname = \"books\"\nkind = \"books\"\nqueries = [\"x\"]\n";

#[test]
fn a_typo_is_told_with_line_column_and_what_was_meant() {
    let test_env = TestEnv::new("[app]\ntimezon = \"Asia/Tokyo\"\n");
    let printed = test_env.ends("check", 5);
    assert!(printed.contains("tsuzuki.toml:2:1"), "{printed}");
    assert!(printed.contains("did you mean `timezone`?"), "{printed}");
    assert_eq!(out(&test_env.run(&["check"])), "");
    assert_eq!(test_env.files(), ["tsuzuki.toml"], "check opens nothing");
}

#[test]
fn usage_errors_exit_2_and_help_goes_to_stdout() {
    let test_env = TestEnv::new("");
    test_env.ends("no-such-command", 2);
    test_env.ends("run --bogus", 2);
    let help = test_env.ends("--help", 0);
    assert!(help.contains("Exit codes: 0 fine"), "{help}");
    let version = test_env.run(&["--version"]);
    assert_eq!(out(&version).trim(), format!("tsuzuki {}", env!("CARGO_PKG_VERSION")));
}

#[test]
fn without_a_config_file_the_way_out_is_told() {
    let test_env = TestEnv::new("");
    std::fs::remove_file(test_env.file("tsuzuki.toml")).unwrap();
    let printed = test_env.ends("status", 5);
    assert!(printed.contains("hint: run `tsuzuki init`"), "{printed}");
    test_env.ends("init", 0);
    test_env.ends("check", 0);
    let again = test_env.run(&["init"]);
    assert_eq!(code(&again), 1, "a file that exists is left as it is");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_is_reset_only_with_yes_and_in_the_documents_words() {
    let test_env = TestEnv::new("");
    write_rows(&test_env, |tx| {
        cursor::put(tx, "ai-books", &"a".repeat(64), 120, true, tx.now())?;
        cursor::put(tx, "ai-books", &"b".repeat(64), 40, false, tx.now())
    })
    .await;

    let printed = test_env.ends("job cursor reset ai-books", 2);
    assert!(
        printed.contains("forgets position 120 (all collected), position 40 (not finished)"),
        "{printed}"
    );
    assert!(printed.contains("hint: run `tsuzuki job cursor reset ai-books --yes`"), "{printed}");

    let wrong = test_env.ends("job cursor reset ai-boks --yes", 2);
    assert!(wrong.contains("did you mean `ai-books`?"), "{wrong}");

    // The job is not in the config, but its rows are in the database.
    let reset = test_env.run(&["job", "cursor", "reset", "ai-books", "--yes"]);
    assert_eq!((code(&reset), out(&reset).as_str()), (0, "Reset 2 cursor(s) for job: ai-books\n"));
    assert_eq!(test_env.json("job cursor show"), serde_json::json!([]));
}

#[test]
fn listings_are_json_when_asked_and_tables_align_for_full_width_names() {
    let test_env = TestEnv::new(
        "[[job]]\nname = \"総務省のブログ\"\nkind = \"blogs\"\nblog = [{ id = \"a\", url = \"https://example.com\" }]\n\
         [[job]]\nname = \"b\"\nkind = \"blogs\"\nblog = [{ id = \"c\", url = \"https://example.org\" }]\n",
    );
    assert_eq!(test_env.json("job ls")[0]["job_name"], "総務省のブログ");
    let table = out(&test_env.run(&["job", "ls"]));
    let column = |line: &str| tsuzuki::text::width(line.split("blogs").next().unwrap());
    let columns: Vec<usize> = table.lines().skip(1).map(column).collect();
    assert_eq!(columns.len(), 2, "{table}");
    assert_eq!(columns[0], columns[1], "{table}");
    assert!(!table.contains('\u{1b}'), "no colour in a pipe");
}

#[test]
fn jobs_are_edited_in_place_and_comments_stay() {
    let test_env = TestEnv::new(&format!("# my jobs\n\n{BLOGS}\n# the end\n"));
    test_env.ends("job disable blogs", 0);
    let text = test_env.config();
    assert!(text.starts_with("# my jobs\n") && text.contains("enabled = false"), "{text}");
    test_env.ends("job update blogs --set every=3h", 0);
    test_env.ends("job update blogs --set evry=3h", 5);
    assert!(!test_env.config().contains("evry"), "a change that would not be valid is not written");
    assert!(test_env.ends("job update blogs --set name=news", 2).contains("cannot be renamed"));
    test_env.ends("job rm blogs", 2);
    test_env.ends("job rm blogs --yes", 0);
    assert!(test_env.config().starts_with("# my jobs"));
    assert_eq!(code(&test_env.run(&["job", "enable", "blogs"])), 2, "there is no such job any more");
}

#[test]
fn a_dry_run_creates_no_file_and_changes_no_row() {
    let test_env = TestEnv::new(BLOGS);
    let planned = test_env.run(&["run-due", "--dry-run"]);
    assert!(code(&planned) == 0 && out(&planned).contains("blogs: would run"), "{}", err(&planned));
    assert_eq!(test_env.files(), ["tsuzuki.toml"]);

    test_env.ends("db migrate", 0);
    let state = || (checksums(test_env.path()), std::fs::read(test_env.file("tsuzuki.db")).unwrap());
    let before = state();
    test_env.ends("run-due --dry-run", 0);
    assert_eq!(test_env.files(), ["tsuzuki.db", "tsuzuki.toml"]);
    assert!(before == state());
}

#[test]
fn a_first_file_has_the_zone_of_its_machine() {
    let test_env = TestEnv::new("");
    let path = test_env.file("first.toml");
    let init = |args: &[&str], zone: &str| {
        let _ = std::fs::remove_file(&path);
        let mut command = test_env.command(&[&["init", "-c", "first.toml"], args].concat());
        let output = command.env("TZ", zone).output().unwrap();
        (code(&output), std::fs::read_to_string(&path).unwrap_or_default())
    };
    for (args, machine, zone) in [
        (&[][..], "Europe/Vienna", "Europe/Vienna"),
        (&["--timezone", "Asia/Seoul"], "Europe/Vienna", "Asia/Seoul"),
        (&["--lang", "ja"], "UTC", "Asia/Tokyo"),
        (&[], "No/Where", "UTC"),
    ] {
        let (code, text) = init(args, machine);
        assert!(code == 0 && text.contains(&format!("timezone = \"{zone}\"")), "{args:?} {machine}: {text}");
    }
    assert_eq!(init(&["--timezone", "No/Where"], "UTC"), (2, String::new()));
}

#[test]
fn looking_creates_no_database() {
    let test_env = TestEnv::new(&format!("{BLOGS}{BOOKS}"));
    for listing in [
        "status",
        "change ls",
        "delivery ls",
        "item ls",
        "book ls",
        "token ls",
        "mail status",
        "quota ls",
        "project ls",
        "branch ls",
        "bulk ls",
        "bulk status",
        "commits ls",
        "commits stats",
        "job ls",
        "job cursor show",
        "mail preview books",
        "export items",
        "export opml",
    ] {
        test_env.ends(&format!("{listing} --json"), i32::from(listing == "export items"));
        assert_eq!(test_env.files(), ["tsuzuki.toml"], "{listing}");
    }
    for (one, printed) in [
        ("change show 1", "there is no change 1"),
        ("delivery show 1", "there is no delivery 1"),
        ("item show 1", "there is no item `1`"),
        ("bulk show", "no run has been started yet"),
        ("branch ls nobody/nothing", "there is no project `nobody/nothing`"),
        ("db info", "tsuzuki db migrate"),
    ] {
        let looked = test_env.run(&one.split(' ').collect::<Vec<_>>());
        assert!(code(&looked) > 0 && err(&looked).contains(printed), "{one}: {}", err(&looked));
        assert_eq!(test_env.files(), ["tsuzuki.toml"], "{one}");
    }
}

#[test]
fn exporting_and_previewing_change_no_database() {
    let test_env = TestEnv::new(&format!("{BLOGS}{BOOKS}"));
    test_env.ends("db migrate", 0);
    // The database has an older version: a read-only command may not migrate it.
    let file = rusqlite::Connection::open(test_env.file("tsuzuki.db")).unwrap();
    file.execute_batch(
        "DELETE FROM schema_migrations WHERE version = (SELECT MAX(version) FROM schema_migrations)",
    )
    .unwrap();
    drop(file);
    let before = std::fs::read(test_env.file("tsuzuki.db")).unwrap();
    for looking in [&["export", "items"][..], &["export", "opml"], &["mail", "preview", "books"], &["status"]]
    {
        let printed = ends_with(&test_env.run(looking), 1);
        assert!(printed.contains("tsuzuki db migrate"), "{looking:?}: {printed}");
        assert_eq!(std::fs::read(test_env.file("tsuzuki.db")).unwrap(), before, "{looking:?}");
    }
}

#[test]
fn what_has_nothing_to_show_is_null_as_json() {
    let test_env = TestEnv::new(BOOKS);
    for args in [&["bulk", "status", "--json"][..], &["mail", "preview", "books", "--json"]] {
        let printed = test_env.run(args);
        assert_eq!((code(&printed), out(&printed).as_str()), (0, "null\n"), "{args:?}: {}", err(&printed));
        let plain = test_env.run(&args[..args.len() - 1]);
        assert_eq!((code(&plain), out(&plain).as_str()), (0, ""), "{args:?}");
    }
}

#[test]
fn a_blog_that_was_never_checked_is_not_its_own_suggestion() {
    let test_env = TestEnv::new(BLOGS);
    for thing in ["example", "blog:example"] {
        let printed = ends_with(&test_env.run(&["why", thing]), 1);
        assert!(
            printed.contains("the blog `example` is in the config, but no run has come to it yet"),
            "{printed}"
        );
        assert!(
            printed.contains("`tsuzuki run-due --force`") && !printed.contains("did you mean"),
            "{printed}"
        );
    }
    assert!(test_env.ends("why exampel", 1).contains("did you mean `example`?"));
}

#[test]
fn a_proxy_that_is_missing_or_wrong_is_told_as_what_it_is() {
    let missing = TestEnv::new(&format!("[app]\nproxy = \"${{GONE}}\"\n{BLOGS}"));
    let printed = missing.ends("run blogs", 4);
    assert!(printed.contains("`proxy` in [app]") && printed.contains("GONE"), "{printed}");
    let printed = missing.ends("doctor --offline", 4);
    assert!(printed.contains("secret app.proxy") && !printed.contains("store.url"), "{printed}");
    missing.ends("status", 0);
    let wrong = TestEnv::new(&format!("[app]\nproxy = \"somewhere\"\n{BLOGS}"));
    let printed = wrong.ends("run blogs", 5);
    assert!(printed.contains("http://HOST:PORT"), "{printed}");
    let web = TestEnv::new(
        "[web.auth]\nuser = \"me\"\npassword = \"${GONE}\"\n[store]\nurl = \"postgres://u:${LOST}@127.0.0.1:1/x\"\n",
    );
    let printed = web.ends("doctor --offline", 4);
    assert!(
        printed.contains("secret web.auth.password") && printed.contains("secret store.url"),
        "{printed}"
    );
}

#[test]
fn the_limit_that_books_have_by_themselves_is_listed() {
    let test_env = TestEnv::new(BOOKS);
    test_env.ends("db migrate", 0);
    let file = rusqlite::Connection::open(test_env.file("tsuzuki.db")).unwrap();
    file.execute_batch(
        "INSERT INTO api_usage (date, provider, count) VALUES ('2026-01-15', 'google_books', 7)",
    )
    .unwrap();
    drop(file);
    let limit = |command: &mut std::process::Command| {
        let listed: serde_json::Value = serde_json::from_str(&out(&command.output().unwrap())).unwrap();
        listed[0]["per_day"].clone()
    };
    assert_eq!(limit(&mut test_env.command(&["quota", "ls", "--json"])), 100);
    let fresh = TestEnv::new(BOOKS);
    for args in [
        &["why", "google_books"][..],
        &["quota", "ls", "google_books"],
        &["quota", "reset", "google_books", "--yes"],
    ] {
        ends_with(&fresh.run(args), 0);
    }
    assert!(fresh.ends("quota ls gogle_books", 2).contains("did you mean `google_books`?"));
    assert_eq!(limit(test_env.command(&["quota", "ls", "--json"]).env("DAILY_BOOKS_API_LIMIT", "40")), 40);
}

/// Of every table but the one in which a copy notes that it is one.
fn checksums(dir: &Path) -> std::collections::BTreeMap<String, tsuzuki::db::TableSurvey> {
    let place = DbUrl::File(dir.join("tsuzuki.db"));
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let db = Db::open(place, Open::ReadOnly, Clock::system()).await.unwrap();
        let mut survey = tsuzuki::db::survey(&db).await.unwrap();
        db.close().await;
        survey.remove("restores").unwrap();
        survey
    })
}

#[test]
fn the_database_is_backed_up_restored_and_reset() {
    let test_env = TestEnv::new(BLOGS);
    test_env.ends("job pause blogs --reason holiday", 0);
    let before = checksums(test_env.path());
    test_env.ends("db backup copy.db", 0);
    assert_eq!(code(&test_env.run(&["db", "backup", "copy.db"])), 1, "an existing file is not overwritten");
    test_env.ends("db reset", 2);
    test_env.ends("db reset --yes", 0);
    assert_ne!(checksums(test_env.path()), before);
    test_env.ends("db restore copy.db", 2);
    for kept in ["tsuzuki.db.before-restore", "tsuzuki.db.before-restore-2"] {
        assert!(test_env.ends("db restore copy.db --yes", 0).contains(kept), "{kept}");
        assert_eq!(checksums(test_env.path()), before);
        assert!(test_env.file(kept).exists(), "what was there is kept, each time");
    }
    let status = out(&test_env.run(&["status"]));
    assert!(status.contains("∥ Paused: holiday"), "{status}");
    test_env.ends("db check", 0);
    test_env.write("copy.db", "not a database");
    test_env.ends("db restore copy.db --yes", 1);
    assert_eq!(checksums(test_env.path()), before, "a bad backup replaces nothing");
}

#[test]
fn status_makes_nothing_and_says_that_nothing_has_run() {
    let test_env = TestEnv::new(BLOGS);
    let status = test_env.run(&["status"]);
    let (table, words) = (out(&status), err(&status));
    assert!(words.contains("Nothing has run yet: there is no database at sqlite:"), "{words}");
    assert!(code(&status) == 0 && table.contains("○ Not run yet"), "{table}");
    let json = test_env.json("status");
    assert_eq!((&json[0]["job_name"], json[0]["last_run_at"].is_null()), (&"blogs".into(), true));
    test_env.ends("why blogs", 0);
    assert_eq!(test_env.files(), ["tsuzuki.toml"]);

    test_env.ends("db migrate", 0);
    let bytes = std::fs::read(test_env.file("tsuzuki.db")).unwrap();
    assert_eq!(err(&test_env.run(&["status"])), "");
    assert!(bytes == std::fs::read(test_env.file("tsuzuki.db")).unwrap());

    let schema = crate::databases::Schema::create();
    for _ in 0..2 {
        let status = ends_with(&test_env.run_on(&schema.url, &["status"]), 0);
        assert!(status.contains("Nothing has run yet"), "{status}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn times_are_local_for_people_and_utc_as_json() {
    let test_env = TestEnv::new(&format!("[app]\ntimezone = \"Europe/Berlin\"\n{BLOGS}"));
    write_rows(&test_env, |tx| {
        let at = "2026-07-15T22:30:00.000Z".parse().unwrap();
        cursor::put(tx, "x", &"a".repeat(64), 40, false, at)?;
        let why = "long ".repeat(40);
        let printed = tsuzuki::phrase!("waiting until {at}: {why}", "{at} まで待機：{why}", at, why);
        tsuzuki::engine::store::mark_begun(tx, "blogs", at)?;
        tsuzuki::engine::store::mark_ended(tx, "blogs", tsuzuki::engine::RunOutcome::Success, &printed, None, at)?;
        tsuzuki::ledger::pause::put(tx, &Subject::provider("p"), Some(at), &"x".into(), at)?;
        tx.execute(
            sql!("INSERT INTO projects (project_id, host, remote_id, path, name, first_seen_at, last_seen_at, removed_at) VALUES (1, 'h', 1, 'a/b', 'b', ?1, ?1, ?1)"),
            params![at],
        )?;
        tx.execute(
            sql!("INSERT INTO branches (project_id, branch_name) VALUES (1, 'main')"),
            params![],
        )?;
        tx.execute(
            sql!("INSERT INTO commits (project_id, branch_name, sha, author_name, author_email, committed_date_utc, additions, deletions) VALUES (1, 'main', 'a1', 'n', 'e', ?1, 0, 0)"),
            params![at],
        )?;
        tx.execute(
            sql!("INSERT INTO bulk_collection_runs (run_id, started_at_utc, status, total_targets, completed_count, failed_count, success_count) VALUES ('11111111-1111-4111-8111-111111111111', ?1, 'running', 1, 0, 0, 0)"),
            params![at],
        )?;
        Ok(())
    })
    .await;
    for (line, heading) in [
        ("job cursor show", "UPDATED (Europe/Berlin)"),
        ("status", "LAST RUN (Europe/Berlin)"),
        ("project ls", "GONE SINCE (Europe/Berlin)"),
        ("commits ls", "COMMITTED (Europe/Berlin)"),
        ("bulk ls", "STARTED (Europe/Berlin)"),
    ] {
        let table = out(&test_env.run(&line.split(' ').collect::<Vec<_>>()));
        assert!(table.lines().next().unwrap().contains(heading), "{line}: {table}");
        assert!(table.contains("2026-07-16 00:30") && !table.contains("22:30"), "{line}: {table}");
        let json = test_env.json(line).to_string();
        assert!(json.contains("2026-07-15T22:30:00.000Z") && !json.contains("2026-07-16"), "{line}: {json}");
    }
    let table = out(&test_env.run(&["status"]));
    assert!(table.contains("waiting until 2026-07-16 00:30 +02:00: long"), "{table}");
    let row = table.lines().last().unwrap();
    assert!(row.ends_with('…') && row.len() < 220, "a long result is cut in a pipe, too: {table}");
    let json = test_env.json("status").to_string();
    assert!(json.contains("long ".repeat(40).trim()), "nothing is cut as JSON: {json}");
    let rests = test_env.run(&["job", "pause", "blogs", "--for", "1h"]);
    assert!(err(&rests).trim_end().ends_with(":00") && err(&rests).contains(" +0"), "{}", err(&rests));
}

#[tokio::test(flavor = "multi_thread")]
async fn status_all_names_single_blogs_that_left_the_config() {
    let two = BLOGS.replace("}]", "}, { id = \"old\", url = \"https://old.example\" }]");
    let test_env = TestEnv::new(&two);
    write_rows(&test_env, |tx| {
        for (blog, job) in [("example", "blogs"), ("old", "blogs"), ("gone-with-its-job", "other")] {
            tx.execute(
                sql!("INSERT INTO blog_state (blog_id, job_name, last_check_at) VALUES (?1, ?2, ?3)"),
                params![blog, job, tx.now()],
            )?;
        }
        Ok(())
    })
    .await;
    let all = out(&test_env.run(&["status", "--all"]));
    assert!(!all.contains("not in the config"), "both blogs are in the file: {all}");
    test_env.write("tsuzuki.toml", BLOGS);
    let all = out(&test_env.run(&["status", "--all"]));
    assert!(all.contains("blog `old` is not in the config"), "{all}");
    assert!(!all.contains("example") && !all.contains("gone-with-its-job"), "{all}");
    let json = test_env.json("status --all");
    let left: Vec<_> = json.as_array().unwrap().iter().filter_map(|row| row["left"].as_str()).collect();
    assert_eq!(left, ["old"]);
    assert!(!out(&test_env.run(&["status"])).contains("old"));
}

#[test]
fn secrets_never_appear_in_any_output() {
    let secret = "hunter2-very-secret";
    let test_env =
        TestEnv::new(&format!("[store]\nurl = \"postgres://me:{secret}@127.0.0.1:1/none\"\n{BLOGS}"));
    for line in [
        "status",
        "status -v",
        "db info",
        "doctor",
        "config show",
        "check --json",
        "run-due --log-format json -v",
    ] {
        let printed = output_text(&test_env.run(&line.split(' ').collect::<Vec<_>>()));
        assert!(!printed.contains(secret), "{line} printed it: {printed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_nothing_has_is_refused_with_what_was_meant() {
    let test_env = TestEnv::new(&format!(
        "[channel.hook]\nkind = \"webhook\"\nurl = \"https://h.example\"\n[quota.books]\nper_day = 9\n{BLOGS}"
    ));
    write_rows(&test_env, |tx| {
        let now = tx.now();
        // A job and a channel that have left the config, but not the database.
        tx.execute(
            sql!("INSERT INTO outbox (key, job_name, channel, recipient, topic, subject, payload, state, created_at, not_before) VALUES ('k', 'old', 'gone', 'r', 't', 's', '{}', 'held', ?1, ?1)"),
            params![now],
        )?;
        tx.execute(
            sql!("INSERT INTO projects (project_id, host, remote_id, path, name, first_seen_at, last_seen_at) VALUES (1, 'h', 1, 'a/b', 'b', ?1, ?1)"),
            params![now],
        )?;
        tx.execute(sql!("INSERT INTO branches (project_id, branch_name) VALUES (1, 'main')"), params![])
    })
    .await;
    for (line, expected) in [
        ("run-due --kind blog", "there is no kind of job `blog`\nhint: did you mean `blogs`?"),
        ("change ls exampel", "there is no blog `exampel`\nhint: did you mean `example`?"),
        ("change ls --job blog", "there is no job `blog`\nhint: did you mean `blogs`?"),
        ("change resume zz", "there is no blog `zz`\nhint: "),
        ("delivery ls --job blog", "hint: did you mean `blogs`?"),
        ("delivery ls --channel hok", "there is no channel `hok`\nhint: did you mean `hook`?"),
        ("delivery approve --job blog", "hint: did you mean `blogs`?"),
        ("delivery skip --job blog", "hint: did you mean `blogs`?"),
        ("item ls --job blog", "hint: did you mean `blogs`?"),
        ("book ls --job blog", "hint: did you mean `blogs`?"),
        ("job cursor show blog", "hint: did you mean `blogs`?"),
        ("quota ls boks", "there is no provider `boks`\nhint: did you mean `books`?"),
        ("quota reset boks --yes", "hint: did you mean `books`?"),
        ("commits stats --branch mian", "there is no branch `mian`\nhint: did you mean `main`?"),
        ("commits ls --branch mian", "hint: did you mean `main`?"),
    ] {
        let refused = test_env.ends(line, 2);
        assert!(refused.contains(expected), "{line}: {refused}");
        let refused = test_env.run(&line.split(' ').chain(["--json"]).collect::<Vec<_>>());
        assert_eq!(code(&refused), 2, "{line}: {}", err(&refused));
        let error: serde_json::Value = serde_json::from_str(&err(&refused)).unwrap();
        let (message, hint) = (&error["error"]["message"], &error["error"]["hints"][0]);
        let printed = format!("{}\nhint: {}", message.as_str().unwrap(), hint.as_str().unwrap());
        assert!(printed.contains(expected), "{line}: {printed}");
        assert_eq!(error["error"]["exit_code"], 2);
    }
    for line in [
        "change ls example",
        "change ls --job blogs",
        "item ls",
        "book ls --job blogs",
        "quota ls books",
        "job cursor show blogs",
        "token ls",
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let empty = test_env.run(&words);
        assert_eq!((code(&empty), out(&empty), err(&empty)), (0, "".into(), "Nothing to list.\n".into()));
        let json = test_env.run(&[&words[..], &["--json"]].concat());
        assert_eq!((out(&json).trim(), err(&json).as_str()), ("[]", ""), "{line}");
    }
    for line in [
        "delivery ls --job old",
        "delivery ls --channel gone",
        "commits stats --branch main",
        "delivery skip --job old",
    ] {
        test_env.ends(line, 0);
    }
}

#[test]
fn what_serve_would_refuse_is_an_error_of_the_file() {
    for (listen, place, hint) in [
        ("0.0.0.0:18999", "tsuzuki.toml:2:10", "set `user` and `password` in [web.auth]"),
        ("localhost:8742", "tsuzuki.toml:2:10", "write an IP address and a port: \"127.0.0.1:8742\""),
        ("127.0.0.1", "tsuzuki.toml:2:10", "\"127.0.0.1:8741\""),
        ("::1", "tsuzuki.toml:2:10", "\"[::1]:8741\""),
        ("here", "tsuzuki.toml:2:10", "\"127.0.0.1:8741\""),
    ] {
        let test_env = TestEnv::new(&format!("[web]\nlisten = \"{listen}\"\n"));
        let checked = test_env.ends("check", 5);
        assert!(checked.contains(place) && checked.contains(hint), "{listen}: {checked}");
    }
    let guarded =
        "[web]\nlisten = \"0.0.0.0:18999\"\n[web.auth]\nuser = \"me\"\npassword = \"${WEB_PASSWORD}\"\n";
    for fine in [guarded, "[web]\nlisten = \"[::1]:8741\"\nprompt_listen = \"0.0.0.0:80\"\n"] {
        TestEnv::new(fine).ends("check", 0);
    }
}

#[test]
fn a_file_of_somebody_else_is_named_as_such_and_never_copied() {
    let test_env = TestEnv::new("[store]\nurl = \"sqlite:notes.txt\"\n");
    let notes = "my notes, which are longer than the header of a database file is, line by line\n".repeat(20);
    test_env.write("notes.txt", &notes);
    for line in ["status", "db migrate", "db backup copy.db"] {
        let printed = test_env.ends(line, 1);
        assert!(
            printed.contains("is not a SQLite database") && printed.contains("check [store] url"),
            "{printed}"
        );
        assert!(!printed.contains("damaged") && !printed.contains("restore"), "{line}: {printed}");
    }
    assert_eq!(test_env.read("notes.txt"), notes);

    std::fs::remove_file(test_env.file("notes.txt")).unwrap();
    let theirs = rusqlite::Connection::open(test_env.file("notes.txt")).unwrap();
    theirs.execute_batch("CREATE TABLE songs (title TEXT)").unwrap();
    drop(theirs);
    for line in ["status", "db backup copy.db"] {
        assert!(test_env.ends(line, 1).contains("is not a tsuzuki database"), "{line}");
    }
    assert_eq!(test_env.files(), ["notes.txt", "tsuzuki.toml"]);
}

#[test]
fn an_address_of_this_machine_is_refused_with_the_key_that_allows_it() {
    let test_env = TestEnv::new(&BLOGS.replace("https://example.com", "http://127.0.0.1:18009/"));
    let allow = "add `allow_private = [\"127.0.0.1\"]` where its address stands in the config: [[job]],";
    assert!(test_env.ends("run blogs", 1).contains(allow));
    assert!(test_env.ends("why example", 0).contains(allow));
}

#[test]
fn the_first_interrupt_ends_a_command_that_only_looks() {
    // A server that accepts connections and never answers.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/", listener.local_addr().unwrap());
    let job = BLOGS.replace("https://example.com", &address) + "allow_private = [\"127.0.0.1\"]\n";
    let test_env = TestEnv::new(&job);
    for args in [
        &["job", "test", "blogs"][..],
        &["doctor"],
        &["inspect", "feed", &address, "--allow-private", "127.0.0.1"],
    ] {
        let mut command = test_env.command(args);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let _call = listener.accept().unwrap();
        let asked_at = std::time::Instant::now();
        send_signal(child.id(), Signal::INT);
        assert_eq!(child.wait().unwrap().code(), Some(130), "{args:?}");
        assert!(asked_at.elapsed() < std::time::Duration::from_secs(8), "{args:?}: {:?}", asked_at.elapsed());
    }
}

/// Waits until a process has taken over a signal, by no clock of ours.
#[allow(clippy::disallowed_methods, reason = "another process starts when it does")]
fn wait_until_caught(pid: u32, signal: Signal) {
    while !catches(pid, signal) {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

fn catches(pid: u32, signal: Signal) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(caught.trim(), 16).unwrap() & (1_u64 << (signal.as_raw() - 1)) != 0
}

#[test]
fn the_end_of_a_terminal_ends_a_command_unless_it_runs_under_nohup() {
    let test_env = TestEnv::new("");
    let waiting = |how: &str| {
        let piped = Stdio::piped;
        let mut command = Command::new("env");
        command
            .args([how, env!("CARGO_BIN_EXE_tsuzuki"), "inspect", "feed", "-"])
            .current_dir(test_env.path());
        let mut child = command.stdin(piped()).stdout(piped()).stderr(piped()).spawn().unwrap();
        let open_input = child.stdin.take();
        (child, open_input)
    };
    let (child, _open_input) = waiting("--default-signal=HUP");
    wait_until_caught(child.id(), Signal::HUP);
    send_signal(child.id(), Signal::HUP);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", err(&output));
    let (child, _open_input) = waiting("--ignore-signal=HUP");
    wait_until_caught(child.id(), Signal::TERM);
    assert!(!catches(child.id(), Signal::HUP));
    send_signal(child.id(), Signal::TERM);
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
}

#[test]
fn the_first_signal_ends_a_command_that_waits_for_its_input() {
    let test_env = TestEnv::new(BLOGS);
    for args in [
        &["inspect", "feed", "-"][..],
        &["inspect", "feed", "-", "-q"],
        &["inspect", "page", "-", "--batch"],
        &["import", "urls", "-"],
        &["import", "opml", "-", "-q"],
    ] {
        for signal in [Signal::TERM, Signal::INT] {
            let mut command = test_env.command(args);
            let piped = Stdio::piped;
            let mut child = command.stdin(piped()).stdout(piped()).stderr(piped()).spawn().unwrap();
            let open_input = child.stdin.take();
            wait_until_caught(child.id(), signal);
            send_signal(child.id(), signal);
            let output = child.wait_with_output().unwrap();
            assert_eq!(output.status.code(), Some(130), "{args:?} {signal:?}: {}", err(&output));
            assert!(err(&output).contains("interrupted"), "{args:?} {signal:?}: {}", err(&output));
            drop(open_input);
        }
    }
    assert_eq!(test_env.config(), BLOGS, "nothing was imported");
}

#[test]
fn a_closed_pipe_is_nobodys_fault() {
    let test_env = TestEnv::new("");
    let script =
        format!("{} man | head -c 1 >/dev/null; echo ${{PIPESTATUS[0]}}", env!("CARGO_BIN_EXE_tsuzuki"));
    let output = Command::new("bash").args(["-c", &script]).current_dir(test_env.path()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "0", "{}", err(&output));
}

/// Starts the daemon; returns also its lines of output.
fn serve(test_env: &TestEnv) -> (Child, Lines<BufReader<ChildStderr>>) {
    let mut command = test_env.command(&["serve"]);
    let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    (child, lines)
}

#[test]
fn the_daemon_stops_cleanly_on_sigterm() {
    let test_env = TestEnv::new("");
    // It prints that it serves once everything is open.
    let (mut child, mut lines) = serve(&test_env);
    assert!(lines.any(|line| line.unwrap().contains("Serving 0 jobs")));
    assert!(lines.any(|line| line.unwrap().contains("No job starts by itself")));
    send_signal(child.id(), Signal::TERM);
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{rest:?}");
    assert_eq!(test_env.files(), ["tsuzuki.db", "tsuzuki.toml"], "the WAL is tidied away");
}

#[test]
fn the_daemon_reads_its_config_again_on_sighup() {
    let test_env = TestEnv::new("");
    let (mut child, mut lines) = serve(&test_env);
    assert!(lines.any(|line| line.unwrap().contains("No job starts by itself")));
    wait_until_caught(child.id(), Signal::HUP);
    send_signal(child.id(), Signal::HUP);
    assert!(lines.any(|line| line.unwrap().contains("Read the config again: 0 jobs now")));
    send_signal(child.id(), Signal::TERM);
    lines.for_each(drop);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn the_daemon_warns_of_a_new_job_that_sends_nowhere() {
    // An address of this machine is refused, so nothing leaves it.
    let test_env = TestEnv::new(&BLOGS.replace("https://example.com", "http://127.0.0.1:18009/"));
    let (mut child, mut lines) = serve(&test_env);
    let warned = lines.any(|line| line.unwrap().contains("job `blogs` sends nowhere: results are kept"));
    send_signal(child.id(), Signal::TERM);
    assert!(warned);
    lines.for_each(drop);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn the_command_line_speaks_the_language_of_the_option_the_config_or_the_locale() {
    let test_env = TestEnv::new(BLOGS);
    let with =
        |args: &[&str], lang: &str| output_text(&test_env.command(args).env("LANG", lang).output().unwrap());
    for printed in [with(&["status"], "ja_JP.UTF-8"), with(&["status", "--lang", "ja"], "en_US.UTF-8")] {
        for words in ["ジョブ", "○ 未実行", "まだ実行されていません"] {
            assert!(printed.contains(words), "{words}: {printed}");
        }
    }
    assert!(with(&["status"], "C.UTF-8").contains("LAST RUN"));
    let doctor = with(&["doctor", "--offline", "--lang", "ja"], "C");
    assert!(
        doctor.contains("判定") && doctor.contains("まだありません（初回の実行で作成されます）"),
        "{doctor}"
    );
    let jobs = with(&["job", "ls", "--lang", "ja"], "C");
    assert!(jobs.contains("スケジュール") && jobs.contains("1 時間ごと（既定）"), "{jobs}");
    let refused = with(&["job", "show", "blog", "--lang", "ja"], "C");
    assert!(
        refused.contains("エラー: ジョブ `blog` はありません\nヒント: `blogs` ではありませんか？"),
        "{refused}"
    );
    test_env.write("tsuzuki.toml", &format!("[app]\nlanguage = \"en\"\n{BLOGS}"));
    assert!(with(&["status"], "ja_JP.UTF-8").contains("LAST RUN"), "the config stands above the locale");
}

#[test]
fn zones_come_from_the_machine_unless_the_file_names_one_and_quota_days_stay_in_tokyo() {
    let test_env = TestEnv::new(BLOGS);
    let with = |args: &[&str], zone: &str| {
        out(&test_env
            .command(args)
            .env("TZ", zone)
            .env("TSUZUKI_NOW", "2026-01-15T23:30:00Z")
            .output()
            .unwrap())
    };
    assert!(with(&["status"], "Europe/Berlin").contains("(Europe/Berlin)"));
    let shown = with(&["config", "show", "--origins"], "Europe/Berlin");
    let line = |key: &str| shown.lines().find(|line| line.starts_with(key)).unwrap_or_default().to_owned();
    assert!(
        line("app.timezone").contains("Europe/Berlin") && line("app.timezone").contains("the machine"),
        "{shown}"
    );
    assert!(line("job.blogs.kind").contains("the file"), "{shown}");
    let output =
        test_env.command(&["config", "show", "--origins"]).env("APP_TZ", "Asia/Seoul").output().unwrap();
    assert!(out(&output).contains("environment: APP_TZ"), "{}", out(&output));
    test_env.write("tsuzuki.toml", "[[job]]\nname = \"b\"\nkind = \"books\"\nqueries = [\"x\"]\n");
    let mut command = test_env.command(&["quota", "reset", "google_books"]);
    let refused =
        command.env("TZ", "Europe/Berlin").env("TSUZUKI_NOW", "2026-01-15T23:30:00Z").output().unwrap();
    assert!(err(&refused).contains("2026-01-16"), "the day of Tokyo: {}", err(&refused));
}

#[test]
fn config_show_says_where_the_zone_the_language_and_every_value_come_from() {
    let (machine, locale) = ("the machine (TZ, /etc/localtime)", "the locale (LC_ALL, LC_MESSAGES, LANG)");
    let (berlin, japanese) = (("TZ", "Europe/Berlin"), ("LANG", "ja_JP.UTF-8"));
    let of_file = "[app]\ntimezone = \"Asia/Seoul\"\nlanguage = \"ja\"\n";
    for (app, env, option, zone, language) in [
        ("", &[berlin, japanese][..], None, ("Europe/Berlin", machine), ("ja", locale)),
        ("", &[("TZ", ":America/Lima"), ("LANG", "de_DE")], None, ("America/Lima", machine), ("en", locale)),
        ("", &[("TZ", "UTC"), ("LANG", "C.UTF-8")], None, ("UTC", machine), ("en", "default")),
        ("", &[("TZ", "UTC"), japanese, ("LC_ALL", "en_GB")], None, ("UTC", machine), ("en", locale)),
        (
            "",
            &[berlin, ("APP_TZ", "Asia/Seoul")],
            None,
            ("Asia/Seoul", "environment: APP_TZ"),
            ("en", "default"),
        ),
        (of_file, &[berlin, ("LANG", "en_US")], None, ("Asia/Seoul", "the file"), ("ja", "the file")),
        (of_file, &[berlin, ("APP_TZ", "UTC")], None, ("UTC", "environment: APP_TZ"), ("ja", "the file")),
        (
            "",
            &[berlin, ("LANG", "en_US")],
            Some("ja"),
            ("Europe/Berlin", machine),
            ("ja", "the option --lang"),
        ),
    ] {
        let test_env = TestEnv::new(&format!("{app}{BLOGS}"));
        let run = |args: &[&str]| {
            let mut command = test_env.command(args);
            command.args(option.iter().flat_map(|lang| ["--lang", lang])).envs(env.iter().copied());
            ends_with(&command.output().unwrap(), 0)
        };
        let origins: Vec<serde_json::Value> =
            serde_json::from_str(&run(&["config", "show", "--origins", "--json"])).unwrap();
        let origin_of = |key: &str| {
            let origin = origins.iter().find(|origin| origin["key"] == key).unwrap();
            (origin["value"].as_str().unwrap(), origin["origin"].as_str().unwrap())
        };
        assert_eq!(
            (origin_of("app.timezone"), origin_of("app.language")),
            (zone, language),
            "{app}{env:?}{option:?}"
        );
        assert_eq!(origin_of("store.url").1, "default");
        assert_eq!(origin_of("job.blogs.blog.example.url"), ("https://example.com", "the file"));
        // Commands behave as the origins say.
        let status = run(&["job", "ls"]);
        assert_eq!(status.contains("スケジュール"), language.0 == "ja", "{env:?}: {status}");
        let shown = run(&["status"]);
        assert!(shown.contains(&format!("({})", zone.0)), "{env:?}: {shown}");
    }
}

#[test]
fn backups_are_kept_by_number() {
    let test_env = TestEnv::new(BLOGS);
    test_env.ends("db migrate", 0);
    for second in 1..=4 {
        let mut command = test_env.command(&["db", "backup", "--keep", "2"]);
        command.env("TSUZUKI_NOW", format!("2026-01-15T00:00:0{second}Z"));
        let output = command.output().unwrap();
        assert_eq!(code(&output), 0, "{}", err(&output));
    }
    let mut kept: Vec<String> = std::fs::read_dir(test_env.file("backups"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    kept.sort();
    // The clock advances while the program starts, so milliseconds differ.
    let seconds: Vec<&str> = kept.iter().map(|name| &name[..23]).collect();
    assert_eq!(seconds, ["tsuzuki-20260115T000003", "tsuzuki-20260115T000004"]);
    std::fs::remove_dir_all(test_env.file("backups")).unwrap();
    test_env.write("backups", "in the way");
    let refused = ends_with(&test_env.run(&["db", "backup", "--keep", "2"]), 1);
    assert!(refused.contains("backups cannot be made: "), "{refused}");
}

#[test]
fn a_copy_is_kept_before_the_schema_changes() {
    let test_env = TestEnv::new(BLOGS);
    test_env.ends("db migrate", 0);
    assert!(!test_env.files().iter().any(|file| file.contains(".before-v")), "a new file needs no copy");
    let known = tsuzuki::db::known_migrations();
    let newest = known.last().unwrap();
    let statements = newest.text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let undo = |words: Vec<&str>| match words[..] {
        ["CREATE", "TABLE", table, ..] => Some(format!("DROP TABLE {table};")),
        ["ALTER", "TABLE", table, "ADD", "COLUMN", column, ..] => {
            Some(format!("ALTER TABLE {table} DROP COLUMN {column};"))
        }
        ["DROP", "TABLE", table] => {
            let begin = format!("CREATE TABLE {} (", table.trim_end_matches(';'));
            let made = known.iter().find_map(|migration| migration.text.split_once(&begin)).unwrap().1;
            let whole = format!("{begin}{};", made.split(';').next().unwrap());
            Some(tsuzuki::db::Dialect::Sqlite.render_schema(&whole))
        }
        _ => None,
    };
    let undone: String = statements.filter_map(undo).collect();
    let undone = format!("DELETE FROM schema_migrations WHERE version = {}; {undone}", newest.version);
    rusqlite::Connection::open(test_env.file("tsuzuki.db")).unwrap().execute_batch(&undone).unwrap();
    test_env.ends("db migrate", 0);
    let copy = format!("tsuzuki.db.before-v{}", newest.version);
    assert!(test_env.files().contains(&copy), "{:?}", test_env.files());
}

#[tokio::test]
async fn a_part_of_a_title_or_a_bare_number_is_enough_for_why() {
    let test_env = TestEnv::new(BLOGS);
    write_rows(&test_env, |tx| {
        for (url, title) in [("https://a.example/1", "家計調査（月報）の公表"), ("https://a.example/2", "家計 Survey")] {
            tx.execute(
                sql!("INSERT INTO items (url, title, published_at, status, reason, retry_count, created_at, last_checked_at, job_name) VALUES (?1, ?2, ?3, 0, 0, 0, ?3, ?3, 'mic')"),
                params![url, title, tx.now()],
            )?;
        }
        Ok(())
    })
    .await;
    let printed = test_env.ends("why survey", 0);
    assert!(printed.contains("item 2 of job mic: 家計 Survey"), "{printed}");
    let several = ends_with(&test_env.run(&["why", "家計 "]), 0);
    assert!(several.contains("item 2") && !several.contains("item 1"), "{several}");
    let several = test_env.run(&["why", "家計調査"]);
    assert!(ends_with(&several, 0).contains("item 1 of job mic"));
    assert!(test_env.ends("why 2", 0).contains("item 2 of job mic"));
    assert!(test_env.ends("why 家計", 2).contains("`家計` can be 2 things"), "two letters are a word");
    for short in ["家", "su"] {
        assert!(
            ends_with(&test_env.run(&["why", short]), 1).contains("nothing is known"),
            "{short} is no part"
        );
    }
}
