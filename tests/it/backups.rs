//! Backups and resets: what is refused, in which words, and what is left alone.

use crate::desk::{Desk, code, err};
use tsuzuki::db::{self, Db, Open, Place};
use tsuzuki::time::Clock;

#[track_caller]
fn refuses(desk: &Desk, args: &[&str], expected: i32, words: &[&str]) {
    let output = desk.run(args);
    let said = err(&output);
    assert_eq!(code(&output), expected, "{args:?}: {said}");
    for word in words {
        assert!(said.contains(word), "{args:?}: `{word}` in {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_refusal_names_the_right_next_step() {
    let desk = Desk::new("");
    refuses(&desk, &["db", "backup", "b.db"], 1, &["there is no database at", "there is nothing to back up"]);
    assert!(desk.run(&["db", "migrate"]).status.success());
    assert!(desk.run(&["db", "backup", "b.db"]).status.success());
    refuses(&desk, &["db", "backup", "b.db"], 1, &["b.db exists already", "name a new file"]);
    refuses(
        &desk,
        &["db", "backup", "no/such/b.db"],
        1,
        &["there is no directory no/such", "mkdir -p no/such"],
    );
    let wants_backup = "name a file that `tsuzuki db backup` has written";
    refuses(&desk, &["db", "restore", "nope.db"], 2, &["there is no file nope.db", wants_backup]);
    refuses(&desk, &["db", "restore", "tsuzuki.db", "--yes"], 2, &["is the database itself", wants_backup]);
    for (name, bytes) in [("empty.db", &b""[..]), ("text.db", b"not a database, but some text")] {
        std::fs::write(desk.path().join(name), bytes).unwrap();
        let said = format!("{name} is no backup that can be used");
        refuses(&desk, &["db", "restore", name, "--yes"], 1, &[&said, "nothing was changed", wants_backup]);
    }
    let files = desk.files();
    let place = Place::File(desk.path().join("tsuzuki.db"));
    let held = Db::open(place, Open::Existing, Clock::system()).await.unwrap();
    refuses(&desk, &["db", "restore", "b.db", "--yes"], 6, &["is in use", "stop `tsuzuki serve`"]);
    held.close().await;
    assert_eq!(desk.files(), files, "nothing half-done is left");

    let schema = crate::databases::Schema::create();
    for args in [&["db", "backup", "x.db"][..], &["db", "restore", "b.db", "--yes"]] {
        let output = desk.run_on(&schema.url, args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains("`pg_dump`"), "{said}");
    }
}

#[test]
fn a_damaged_database_is_replaced_with_all_that_belongs_to_it() {
    let desk = Desk::new("");
    assert!(desk.run(&["db", "migrate"]).status.success());
    assert!(desk.run(&["db", "backup", "b.db"]).status.success());
    std::fs::write(desk.path().join("tsuzuki.db"), "broken").unwrap();
    std::fs::write(desk.path().join("tsuzuki.db-wal"), "of the broken one").unwrap();
    refuses(&desk, &["status"], 1, &["is not a SQLite database", "check [store] url"]);
    let restored = desk.run(&["db", "restore", "b.db", "--yes"]);
    assert!(restored.status.success(), "{restored:?}");
    assert!(desk.run(&["db", "check"]).status.success());
    let kept = std::fs::read(desk.path().join("tsuzuki.db.before-restore")).unwrap();
    assert_eq!(kept, b"broken");
}

on_both_databases! {
    async fn a_reset_leaves_the_tables_of_others_alone(fixture) {
        fixture.db.write(|tx| {
            tx.execute(tsuzuki::sql!("CREATE TABLE strangers (a INTEGER)"), tsuzuki::params![])?;
            tx.execute(tsuzuki::sql!("INSERT INTO strangers (a) VALUES (7)"), tsuzuki::params![])?;
            tsuzuki::ledger::event::add(tx, None, "x", "x", &serde_json::Value::Null, tx.now())
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
