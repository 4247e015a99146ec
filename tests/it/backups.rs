//! Backups and resets: what is refused, with which message, and what stays unchanged.

use crate::test_env::{TestEnv, code, err};
use tsuzuki::db::{self, Db, DbUrl, Open};
use tsuzuki::ledger::Subject;
use tsuzuki::time::Clock;

#[track_caller]
fn refuses(test_env: &TestEnv, args: &[&str], expected: i32, words: &[&str]) {
    let output = test_env.run(args);
    let printed = err(&output);
    assert_eq!(code(&output), expected, "{args:?}: {printed}");
    for word in words {
        assert!(printed.contains(word), "{args:?}: `{word}` in {printed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_refusal_names_the_right_next_step() {
    let test_env = TestEnv::new("");
    refuses(
        &test_env,
        &["db", "backup", "b.db"],
        1,
        &["there is no database at", "there is nothing to back up"],
    );
    test_env.ends("db migrate", 0);
    test_env.ends("db backup b.db", 0);
    refuses(&test_env, &["db", "backup", "b.db"], 1, &["b.db exists already", "name a new file"]);
    refuses(
        &test_env,
        &["db", "backup", "no/such/b.db"],
        1,
        &["there is no directory no/such", "mkdir -p no/such"],
    );
    let wants_backup = "name a file that `tsuzuki db backup` has written";
    refuses(&test_env, &["db", "restore", "nope.db"], 2, &["there is no file nope.db", wants_backup]);
    refuses(
        &test_env,
        &["db", "restore", "tsuzuki.db", "--yes"],
        2,
        &["is the database itself", wants_backup],
    );
    for (name, bytes) in [("empty.db", &b""[..]), ("text.db", b"not a database, but some text")] {
        std::fs::write(test_env.file(name), bytes).unwrap();
        let printed = format!("{name} is no backup that can be used");
        refuses(
            &test_env,
            &["db", "restore", name, "--yes"],
            1,
            &[&printed, "nothing was changed", wants_backup],
        );
    }
    let files = test_env.files();
    let place = DbUrl::File(test_env.file("tsuzuki.db"));
    let held = Db::open(place, Open::Existing, Clock::system()).await.unwrap();
    for command in [&["db", "restore", "b.db", "--yes"][..], &["db", "reset", "--yes"]] {
        refuses(&test_env, command, 6, &["is in use", "stop `tsuzuki serve`"]);
    }
    held.close().await;
    assert_eq!(test_env.files(), files, "nothing half-done is left");

    let schema = crate::databases::Schema::create();
    for args in [&["db", "backup", "x.db"][..], &["db", "restore", "b.db", "--yes"]] {
        let output = test_env.run_on(&schema.url, args);
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && printed.contains("`pg_dump`"), "{printed}");
    }
}

#[test]
fn a_damaged_database_is_replaced_with_all_that_belongs_to_it() {
    let test_env = TestEnv::new("");
    test_env.ends("db migrate", 0);
    test_env.ends("db backup b.db", 0);
    test_env.write("tsuzuki.db", "broken");
    test_env.write("tsuzuki.db-wal", "of the broken one");
    refuses(&test_env, &["status"], 1, &["is not a SQLite database", "check [store] url"]);
    let restored = test_env.run(&["db", "restore", "b.db", "--yes"]);
    assert!(restored.status.success(), "{restored:?}");
    test_env.ends("db check", 0);
    let kept = std::fs::read(test_env.file("tsuzuki.db.before-restore")).unwrap();
    assert_eq!(kept, b"broken");
}

#[test]
fn nobody_else_reads_a_new_database_and_copies_keep_the_rights_of_what_they_stand_for() {
    use std::os::unix::fs::PermissionsExt as _;
    let test_env = TestEnv::new("[store]\nurl = \"sqlite:tsuzuki.db\"\n");
    let mode = |name: &str| test_env.file(name).metadata().unwrap().permissions().mode() & 0o777;
    let set = |name: &str, mode| {
        std::fs::set_permissions(test_env.file(name), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    test_env.ends("run-due", 0);
    assert_eq!(mode("tsuzuki.db"), 0o600, "it holds messages and links to prompts");
    test_env.ends("db backup private.db", 0);
    assert_eq!(mode("private.db"), 0o600, "a copy is no more open than its original");
    set("tsuzuki.db", 0o640);
    set("private.db", 0o644);
    test_env.ends("db restore private.db --yes", 0);
    assert_eq!(mode("tsuzuki.db"), 0o640, "as the database was that it replaces");
}

#[test]
fn what_is_left_of_a_removed_database_is_not_laid_over_the_restored_one() {
    let test_env = TestEnv::new("");
    test_env.ends("db migrate", 0);
    let file = test_env.file("tsuzuki.db");
    let write = |connection: &rusqlite::Connection, subject: &str| {
        connection
            .execute(
                "INSERT INTO events (at, subject, code, detail) VALUES ('2026-01-15T00:00:00.000Z', ?1, 'x', 'null')",
                [subject],
            )
            .unwrap();
    };
    let connection = rusqlite::Connection::open(&file).unwrap();
    connection.pragma_update(None, "journal_mode", "wal").unwrap();
    write(&connection, "before");
    test_env.ends("db backup b.db", 0);
    write(&connection, "after");
    // As after a power cut: the database is gone, its log is not.
    let log = std::fs::read(test_env.file("tsuzuki.db-wal")).unwrap();
    assert!(!log.is_empty());
    drop(connection);
    std::fs::remove_file(&file).unwrap();
    std::fs::write(test_env.file("tsuzuki.db-wal"), &log).unwrap();

    let restored = test_env.run(&["db", "restore", "b.db", "--yes"]);
    assert!(restored.status.success(), "{restored:?}");
    let connection = rusqlite::Connection::open(&file).unwrap();
    let mut subjects = connection.prepare("SELECT subject FROM events WHERE code = 'x'").unwrap();
    let found: Vec<String> = subjects.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert_eq!(found, ["before"]);
    assert_eq!(
        std::fs::read(test_env.file("tsuzuki.db.before-restore-wal")).unwrap(),
        log,
        "kept, not thrown away"
    );
}

#[test]
#[allow(clippy::disallowed_methods, reason = "another process ends when it does, by no clock of ours")]
fn a_backup_beside_a_busy_writer_ends_and_is_of_one_moment() {
    let test_env = TestEnv::new("");
    test_env.ends("db migrate", 0);
    let connection = rusqlite::Connection::open(test_env.file("tsuzuki.db")).unwrap();
    connection
        .execute_batch(
            "CREATE TABLE ballast (a BLOB); CREATE TABLE pair (a INTEGER, b INTEGER); INSERT INTO pair VALUES (0, 0);
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
             INSERT INTO ballast SELECT randomblob(2000) FROM n;",
        )
        .unwrap();
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let writer = {
        let stop = std::sync::Arc::clone(&stop);
        std::thread::spawn(move || {
            let mut commits = 0;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                connection
                    .execute_batch("BEGIN; UPDATE pair SET a = a + 1; UPDATE pair SET b = b + 1; COMMIT")
                    .unwrap();
                commits += 1;
            }
            commits
        })
    };
    let mut backup = test_env.command(&["db", "backup", "b.db"]).spawn().unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let ended = loop {
        match backup.try_wait().unwrap() {
            Some(status) => break Some(status),
            None if std::time::Instant::now() > deadline => break None,
            None => std::thread::sleep(std::time::Duration::from_millis(20)),
        }
    };
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let commits: i32 = writer.join().unwrap();
    let _ = backup.kill();
    assert!(ended.is_some_and(|status| status.success()), "it did not end beside {commits} commits");
    assert!(commits > 10, "{commits}");
    let copy = rusqlite::Connection::open(test_env.file("b.db")).unwrap();
    let (a, b): (i64, i64) =
        copy.query_row("SELECT a, b FROM pair", [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    assert_eq!(a, b);
    assert_eq!(test_env.files().iter().filter(|name| name.contains(".part")).count(), 0);
}

on_both_databases! {
    async fn a_reset_leaves_the_tables_of_others_alone(fixture) {
        fixture.db.write(|tx| {
            tx.execute(tsuzuki::sql!("CREATE TABLE strangers (a INTEGER)"), tsuzuki::params![])?;
            tx.execute(tsuzuki::sql!("INSERT INTO strangers (a) VALUES (7)"), tsuzuki::params![])?;
            tsuzuki::ledger::event::add(tx, None, &Subject::verbatim("x"), "x", &serde_json::Value::Null, tx.now())
        }).await.unwrap();
        assert_eq!(db::count_rows(&fixture.db).await.unwrap()["events"], 1);
        assert!(!db::count_rows(&fixture.db).await.unwrap().contains_key("strangers"));
        db::reset(&fixture.db).await.unwrap();
        let rows = db::count_rows(&fixture.db).await.unwrap();
        assert!(rows["events"] == 0 && rows.len() > 20, "{rows:?}");
        let theirs = fixture.db.read(|tx| tx.count(tsuzuki::sql!("SELECT a FROM strangers"), tsuzuki::params![]));
        assert_eq!(theirs.await.unwrap(), 7);
    }
}
