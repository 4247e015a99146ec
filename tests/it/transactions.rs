//! The guarantees of `Db`: all or nothing, results after COMMIT, group commit, reconnecting, and clear errors.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures_util::future::join_all;
use tsuzuki::db::{Db, DbUrl, Dialect, Error, Open, Tx};
use tsuzuki::ledger::{Subject, cursor, event, pause};
use tsuzuki::time::Clock;
use tsuzuki::{params, sql};

fn add_event(tx: &mut Tx<'_>, subject: &str) -> tsuzuki::db::Result<()> {
    let now = tx.now();
    event::add(tx, None, &Subject::verbatim(subject), "test", &serde_json::Value::Null, now)
}

async fn count_about(db: &Db, subject: &'static str) -> usize {
    db.read(move |tx| Ok(event::list_about(tx, &Subject::verbatim(subject), 100)?.len())).await.unwrap()
}

on_both_databases! {
    async fn a_failed_closure_leaves_nothing_and_disturbs_nobody(fixture) {
        let db = &fixture.db;
        let bad = db.write(|tx| { add_event(tx, "bad")?; Err::<(), _>(Error::Constraint("refused".into())) });
        let good = db.write(|tx| add_event(tx, "good"));
        let (bad, good) = tokio::join!(bad, good);
        assert!(bad.is_err());
        good.unwrap();
        assert_eq!(count_about(db, "bad").await, 0);
        assert_eq!(count_about(db, "good").await, 1);
    }

    async fn a_panic_reaches_its_caller_and_nobody_else(fixture) {
        let db = fixture.db.clone();
        let panicking = tokio::spawn(async move {
            db.write(|tx| -> tsuzuki::db::Result<()> { add_event(tx, "panic")?; panic!("on purpose") }).await
        });
        assert!(panicking.await.unwrap_err().is_panic());
        fixture.db.write(|tx| add_event(tx, "after")).await.unwrap();
        assert_eq!(count_about(&fixture.db, "panic").await, 0);
        assert_eq!(count_about(&fixture.db, "after").await, 1);
    }

    async fn a_column_is_read_by_its_name_wherever_it_stands(fixture) {
        let read = |row: &tsuzuki::db::Row<'_>| {
            Ok((row.get::<String>("word")?, row.get::<Option<i64>>("number")?, row.get::<String>("other")?))
        };
        let expected = ("w".to_owned(), Some(7), "o".to_owned());
        let found = fixture.db.read(move |tx| {
            let one = tx.list(sql!("SELECT 'w' AS word, 7 AS number, 'o' AS other"), params![], read)?;
            let two = tx.list(sql!("SELECT 'o' AS other, 'w' AS word, 1 AS more, 7 AS number"), params![], read)?;
            Ok((one, two))
        }).await.unwrap();
        assert_eq!(found, (vec![expected.clone()], vec![expected]));
        let error = fixture.db
            .read(|tx| tx.find(sql!("SELECT 1 AS one"), params![], |row| row.get::<i64>("two")))
            .await
            .unwrap_err();
        assert!(error.to_string().contains("no column `two`"), "{error}");
    }

    async fn a_constraint_is_an_error_with_its_name(fixture) {
        let now = fixture.clock.now();
        let error = fixture.db.write(move |tx| {
            pause::put(tx, &Subject::verbatim("x"), None, &"first".into(), now)?;
            tx.execute(sql!("INSERT INTO pauses (name, paused_at, reason) VALUES (?1, ?1, ?1)"), params!["x"])
        }).await.unwrap_err();
        assert!(matches!(error, Error::Constraint(_)), "{error:?}");
    }

    async fn text_keeps_its_bytes_but_never_a_nul(fixture) {
        let name = "続き \u{1F600} ' \" ? ?1 \u{0}end";
        fixture.db.write(move |tx| cursor::put(tx, name, "h", 7, true, tx.now())).await.unwrap();
        let found = fixture.db.read(|tx| cursor::list(tx, None)).await.unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].job_name, name.replace('\0', ""));
        assert!(found[0].is_exhausted);
    }

    async fn a_database_opened_to_look_refuses_every_write(fixture) {
        let look = Db::open(fixture.place.clone(), Open::ReadOnly, fixture.clock.clone()).await.unwrap();
        assert!(matches!(look.write(|tx| add_event(tx, "x")).await, Err(Error::OpenedReadOnly)));
        // Even a closure that calls itself a read cannot write.
        assert!(look.read(|tx| add_event(tx, "x")).await.is_err());
        assert_eq!(count_about(&look, "x").await, 0);
    }

    async fn a_newer_schema_is_refused_and_untouched(fixture) {
        fixture.db.write(|tx| tx.execute(sql!(
            "INSERT INTO schema_migrations (version, name, checksum, applied_at) VALUES (9999, 'future', 'x', ?1)"
        ), params![tx.now()])).await.unwrap();
        let error = Db::open(fixture.place.clone(), Open::Create, Clock::system()).await.err().unwrap();
        assert!(matches!(error, Error::Newer { found: 9999, .. }), "{error:?}");
    }

    async fn an_edited_migration_is_refused(fixture) {
        fixture.db.write(|tx| tx.execute(sql!(
            "UPDATE schema_migrations SET checksum = 'edited' WHERE version = 1"
        ), params![])).await.unwrap();
        let error = Db::open(fixture.place.clone(), Open::Create, Clock::system()).await.err().unwrap();
        assert!(matches!(error, Error::Altered { version: 1 }), "{error:?}");
    }
}

#[test]
fn ten_thousand_durable_writes_share_at_most_five_hundred_commits() {
    crate::databases::run(Dialect::Sqlite, |fixture| async move {
        let before = fixture.db.stats().commits();
        let mut tasks = tokio::task::JoinSet::new();
        for task in 0..256 {
            let db = fixture.db.clone();
            tasks.spawn(async move {
                for _ in 0..(10_000 / 256 + usize::from(task < 10_000 % 256)) {
                    db.write(|tx| add_event(tx, "group")).await.unwrap();
                }
            });
        }
        tasks.join_all().await;
        let commits = fixture.db.stats().commits() - before;
        assert_eq!(fixture.db.stats().writes(), 10_000);
        assert!(commits <= 500, "{commits} commits");
        let stored = fixture.db.read(|tx| tx.count(sql!("SELECT count(*) FROM events"), params![])).await;
        assert_eq!(stored.unwrap(), 10_000);
    });
}

#[test]
fn a_collision_runs_the_closure_again() {
    crate::databases::run(Dialect::Postgres, |fixture| async move {
        let runs = Arc::new(AtomicU32::new(0));
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let (db, runs) = (fixture.db.clone(), Arc::clone(&runs));
            tasks.spawn(async move {
                let add_one = move |tx: &mut Tx<'_>| {
                    runs.fetch_add(1, Ordering::SeqCst);
                    let at = cursor::find(tx, "job", "h")?.map_or(0, |cursor| cursor.start_index);
                    cursor::put(tx, "job", "h", at + 1, false, tx.now())
                };
                for _ in 0..5 {
                    db.write(add_one.clone()).await.unwrap();
                }
            });
        }
        tasks.join_all().await;
        let cursor = fixture.db.read(|tx| cursor::find(tx, "job", "h")).await.unwrap().unwrap();
        assert_eq!(cursor.start_index, 40, "every read-then-write counted once");
        assert!(runs.load(Ordering::SeqCst) > 40, "nothing collided, so nothing was proved");
    });
}

#[test]
fn a_lost_connection_heals() {
    crate::databases::run(Dialect::Postgres, |fixture| async move {
        let backend = sql!("SELECT pg_backend_pid()");
        let before = fixture.db.read(|tx| tx.count(backend, params![])).await.unwrap();
        let killer = fixture.open_again().await;
        let killed =
            killer.read(move |tx| tx.count(sql!("SELECT pg_terminate_backend(?1)"), params![before])).await;
        assert_eq!(killed.unwrap(), 1);
        fixture.db.write(|tx| add_event(tx, "after")).await.unwrap();
        assert_eq!(count_about(&fixture.db, "after").await, 1);
        assert_ne!(fixture.db.read(|tx| tx.count(backend, params![])).await.unwrap(), before);
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_not_ours_is_refused_and_untouched() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("other.db");
    rusqlite::Connection::open(&path).unwrap().execute_batch("CREATE TABLE notes (x)").unwrap();
    let before = std::fs::read(&path).unwrap();
    let error = Db::open(DbUrl::File(path.clone()), Open::Create, Clock::system()).await.err().unwrap();
    assert!(matches!(error, Error::NotOurs { .. }), "{error:?}");
    assert!(error.hint().is_some());
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_file_is_refused_and_never_recreated() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tsuzuki.db");
    let db = Db::open(DbUrl::File(path.clone()), Open::Create, Clock::system()).await.unwrap();
    for _ in 0..50 {
        db.write(|tx| add_event(tx, "filler")).await.unwrap();
    }
    db.close().await;
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    for byte in &mut bytes[middle - 6_000..middle + 6_000] {
        *byte = 0xA5;
    }
    std::fs::write(&path, &bytes).unwrap();
    let error = Db::open(DbUrl::File(path.clone()), Open::Create, Clock::system()).await.err().unwrap();
    assert!(matches!(error, Error::Damaged(_)), "{error:?}");
    assert_eq!(std::fs::read(&path).unwrap(), bytes);

    std::fs::write(&path, b"this is no database, and long enough to have a header of 100 bytes or more ............................").unwrap();
    let error = Db::open(DbUrl::File(path), Open::Create, Clock::system()).await.err().unwrap();
    assert!(matches!(error, Error::NotADatabase(_)), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_database_is_only_created_when_allowed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sub/tsuzuki.db");
    for how in [Open::Existing, Open::ReadOnly] {
        let error = Db::open(DbUrl::File(path.clone()), how, Clock::system()).await.err().unwrap();
        assert!(matches!(error, Error::Missing(_)), "{error:?}");
    }
    assert!(!path.exists());
    Db::open(DbUrl::File(path.clone()), Open::Create, Clock::system()).await.unwrap().close().await;
    assert!(path.exists());
    let left: Vec<_> =
        std::fs::read_dir(path.parent().unwrap()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["tsuzuki.db"], "closing tidies the WAL away");
}

/// Reader and writer used to close at the same moment; then each saw the other, and neither tidied up.
#[tokio::test(flavor = "multi_thread")]
async fn closing_after_reads_tidies_the_wal_away_every_time() {
    let dir = tempfile::tempdir().unwrap();
    let place = DbUrl::File(dir.path().join("tsuzuki.db"));
    for how in std::iter::once(Open::Create).chain(std::iter::repeat_n(Open::ReadOnly, 100)) {
        let db = Db::open(place.clone(), how, Clock::system()).await.unwrap();
        assert_eq!(count_about(&db, "nothing").await, 0);
        db.close().await;
        let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, ["tsuzuki.db"]);
    }
}

/// A file-size limit simulates a full disk: writes fail, nothing is torn, and work continues when there is space.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_reported_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tsuzuki.db");
    let db = Db::open(DbUrl::File(path), Open::Create, Clock::system()).await.unwrap();
    db.write(|tx| add_event(tx, "first")).await.unwrap();
    // SQLite's own page limit causes the same error as a full disk.
    db.write(|tx| tx.find(sql!("PRAGMA max_page_count = 1"), params![], |row| row.get::<i64>(0)))
        .await
        .unwrap();
    let big = "x".repeat(100_000);
    let error = db.write(move |tx| add_event(tx, &big)).await.unwrap_err();
    assert!(matches!(error, Error::Full(_)), "{error:?}");
    db.write(|tx| tx.find(sql!("PRAGMA max_page_count = 1000000"), params![], |row| row.get::<i64>(0)))
        .await
        .unwrap();
    db.write(|tx| add_event(tx, "later")).await.unwrap();
    assert_eq!(count_about(&db, "first").await, 1);
    assert_eq!(count_about(&db, "later").await, 1);
}

/// The whole transaction is lost with the first closure, as on a full disk; those behind it were not even tried.
#[test]
fn a_write_that_takes_its_transaction_along_costs_nobody_else_theirs() {
    crate::databases::run(Dialect::Sqlite, async |fixture| {
        let db = &fixture.db;
        let trigger = sql!(
            "CREATE TRIGGER gone BEFORE INSERT ON events WHEN NEW.subject = 'doomed'
             BEGIN SELECT RAISE(ROLLBACK, 'gone'); END"
        );
        db.write(move |tx| tx.execute(trigger, params![])).await.unwrap();
        let (begin, begun) = std::sync::mpsc::channel::<()>();
        let (release, released) = std::sync::mpsc::channel::<()>();
        let (begin, released) = (std::sync::Mutex::new(begin), std::sync::Mutex::new(released));
        let mut first = Box::pin(db.write(move |_| {
            let _ = (begin.lock().unwrap().send(()), released.lock().unwrap().recv());
            Ok(())
        }));
        let mut doomed = Box::pin(db.write(|tx| add_event(tx, "doomed")));
        let mut behind = Box::pin(join_all((0..3).map(|_| db.write(|tx| add_event(tx, "behind")))));
        // Once polled they are in the queue, behind one that keeps the writer busy.
        std::future::poll_fn(|cx| {
            assert!(first.as_mut().poll(cx).is_pending());
            begun.recv().unwrap();
            assert!(doomed.as_mut().poll(cx).is_pending() && behind.as_mut().poll(cx).is_pending());
            std::task::Poll::Ready(())
        })
        .await;
        drop(release);
        let (first, doomed, behind) = tokio::join!(first, doomed, behind);
        first.unwrap();
        assert!(behind.iter().all(Result::is_ok), "{behind:?}");
        assert!(doomed.is_err());
        assert_eq!((count_about(db, "doomed").await, count_about(db, "behind").await), (0, 3));
    });
}
