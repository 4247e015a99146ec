//! Exports: every row once, in pages, filtered, and through real pipes and files.

use std::process::Stdio;

use tokio_util::sync::CancellationToken;
use tsuzuki::engine::table::TableFilter;
use tsuzuki::export::{self, Format, RowWriter, Style};
use tsuzuki::time::Timestamp;
use tsuzuki::{params, sql};

use crate::databases::Fixture;
use crate::test_env::{TestEnv, code, err, out};

async fn csv(fixture: &Fixture, what: &str, filter: &TableFilter) -> Vec<String> {
    let mut writer = RowWriter::new(Vec::new(), Format::Csv, Style::default());
    let count = export::write(&fixture.db, table(what), filter, &mut writer, &CancellationToken::new())
        .await
        .unwrap();
    let text = String::from_utf8(writer.into_inner()).unwrap();
    let lines: Vec<String> = text.split("\r\n").map(str::to_owned).filter(|line| !line.is_empty()).collect();
    assert_eq!(lines.len() as u64, count + 1, "a head and a line for each row");
    lines
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

on_both_databases! {
    async fn messages_of_every_channel_are_exported_whatever_became_of_them(fixture) {
        fixture.db.write(|tx| {
            for n in 0..1100_i64 {
                let (job, state) = if n % 2 == 0 { ("one", "sent") } else { ("two", "held") };
                let day = if n < 10 { "2025-01-01T00:00:00.000Z" } else { "2025-02-01T00:00:00.000Z" };
                tx.execute(
                    sql!("INSERT INTO outbox (key, job_name, channel, recipient, topic, subject, payload, state, created_at, not_before, attempts, remote_id) VALUES (?1, ?2, 'mail', 'a@example.com', 't', '=x', '{\"secret\":1}', ?3, ?4, ?4, 1, 'r')"),
                    params![format!("k{n}"), job, state, day],
                )?;
            }
            Ok(())
        }).await.unwrap();
        let all = csv(&fixture, "messages", &TableFilter::default()).await;
        assert_eq!(all[0], "id,job_name,topic,subject,generation,channel,recipient,state,created_at,not_before,attempts,first_attempt_at,last_attempt_at,settled_at,remote_id,last_error");
        assert!(all[1].ends_with(",one,t,'=x,0,mail,a@example.com,sent,2025-01-01T00:00:00.000Z,2025-01-01T00:00:00.000Z,1,,,,r,"), "{}", all[1]);
        assert_eq!(all.len(), 1101);
        assert!(!all.concat().contains("secret"), "texts are not among the columns");
        let few = TableFilter { owner: Some("two".into()), until: at("2025-01-15T00:00:00Z"), ..TableFilter::default() };
        assert_eq!(csv(&fixture, "messages", &few).await.len(), 6);
    }

    async fn every_row_comes_once_over_many_pages(fixture) {
        fixture.db.write(|tx| {
            for n in 0..1203_i64 {
                let job = if n % 3 == 0 { "one" } else { "two" };
                let day = format!("2025-{:02}-01T00:00:00.000Z", n % 12 + 1);
                tx.execute(
                    sql!("INSERT INTO items (url, title, published_at, status, retry_count, created_at, last_checked_at, job_name) VALUES (?1, '+1', ?2, 0, 0, ?2, ?2, ?3)"),
                    params![format!("https://a.example/{n}"), day, job],
                )?;
                tx.execute(
                    sql!("INSERT INTO books (isbn13, title, source, first_seen_at, last_seen_at) VALUES (?1, 'b', 'g', ?2, ?2)"),
                    params![format!("{n:013}"), day],
                )?;
                if n % 3 == 0 {
                    tx.execute(sql!("INSERT INTO job_books (job_name, isbn13, first_seen_at) VALUES ('one', ?1, ?2)"), params![format!("{n:013}"), day])?;
                }
                tx.execute(
                    sql!("INSERT INTO blog_changes (job_name, blog_id, found_at, code, detail) VALUES (?1, 'b', ?2, 'new', '{\"entries\":[{\"key\":\"k\",\"url\":\"https://a.example/\",\"title\":\"=x\",\"published_at\":null}]}')"),
                    params![job, day],
                )?;
            }
            Ok(())
        }).await.unwrap();
        let items = csv(&fixture, "items", &TableFilter::default()).await;
        assert_eq!(items.len(), 1204);
        assert!(items[1].contains(",https://a.example/0,'+1,2025-01-01T00:00:00.000Z,unprocessed,,0,"), "{}", items[1]);
        let unique: std::collections::HashSet<&String> = items.iter().collect();
        assert_eq!(unique.len(), 1204);
        let of_one = TableFilter { owner: Some("one".into()), ..TableFilter::default() };
        assert_eq!(csv(&fixture, "items", &of_one).await.len(), 402);
        assert_eq!(csv(&fixture, "books", &of_one).await.len(), 402);
        assert_eq!(csv(&fixture, "books", &TableFilter::default()).await.len(), 1204);
        let changes = csv(&fixture, "changes", &of_one).await;
        assert_eq!(changes.len(), 402);
        assert!(changes[1].ends_with(",new,0,,1,'=x,https://a.example/,"), "{}", changes[1]);
        // From the first day on, and before the last.
        let quarter = TableFilter { since: at("2025-02-01T00:00:00Z"), until: at("2025-04-01T00:00:00Z"), ..TableFilter::default() };
        for what in ["items", "books", "changes"] {
            let lines = csv(&fixture, what, &quarter).await;
            assert!(lines[1..].iter().all(|line| line.contains("2025-02-01") || line.contains("2025-03-01")));
            assert_eq!(lines.len(), 203, "{what:?}");
        }
        assert_eq!(csv(&fixture, "deliveries", &TableFilter::default()).await, ["id,job_name,delivered_at,isbn13_list"]);
        assert_eq!(csv(&fixture, "commits", &TableFilter::default()).await.len(), 1);
    }

    async fn a_commit_is_exported_without_its_authors_address(fixture) {
        fixture.db.write(|tx| {
            tx.execute(sql!("INSERT INTO projects (project_id, host, remote_id, path, name, first_seen_at, last_seen_at) VALUES (1, 'a.example', 1, 'g/a', 'a', '', ''), (2, 'b.example', 1, 'g/b', 'b', '', '')"), params![])?;
            for n in 0..1500_i64 {
                tx.execute(
                    sql!("INSERT INTO commits (project_id, branch_name, sha, author_name, author_email, committed_date_utc, additions, deletions) VALUES (?1, ?2, ?3, 'Ann', 'ann@secret.example', '2025-01-01T00:00:00.000Z', 1, 2)"),
                    params![n % 2 + 1, if n % 4 < 2 { "main" } else { "dev" }, format!("{n:040x}")],
                )?;
            }
            Ok(())
        }).await.unwrap();
        let lines = csv(&fixture, "commits", &TableFilter::default()).await;
        assert_eq!(lines[0], "project,branch_name,sha,author_name,committed_date_utc,additions,deletions,stats_missing,unreachable_since,is_merge,title");
        assert_eq!(lines.len(), 1501);
        assert!(!lines.concat().contains("secret.example"));
        let of_b = TableFilter { owner: Some("b.example".into()), ..TableFilter::default() };
        assert_eq!(csv(&fixture, "commits", &of_b).await.len(), 751);
    }
}

/// A desk with a few items in its database.
fn desk_with_items(count: usize) -> TestEnv {
    let test_env = TestEnv::new("[app]\ntimezone = \"Asia/Tokyo\"\n");
    let rows: String = (0..count).map(|n| format!("INSERT INTO items (url, title, published_at, status, retry_count, created_at, last_checked_at) VALUES ('https://a.example/{n}', '=1+1', '2025-01-01T00:00:00Z', 0, 0, '2025-01-01', '2025-01-01');")).collect();
    crate::import::source(test_env.path(), "mic.db", &format!("{} {rows}", crate::import::MIC_BOT));
    test_env.ends("import mic-bot mic.db --job mic -q", 0);
    test_env
}

#[test]
fn a_file_is_written_whole_and_never_over_another() {
    let test_env = desk_with_items(3);
    let written = test_env.ends("export items --output items.tsv", 0);
    assert!(written.contains("Wrote 3 rows to items.tsv"), "{written}");
    assert!(test_env.read("items.tsv").starts_with("id\tjob_name\turl\ttitle\t"));
    let again = test_env.ends("export items --output items.tsv", 2);
    assert!(again.contains("items.tsv is there already\nhint: --force replaces it"), "{again}");
    test_env.ends("export items --output items.tsv --force --raw --bom --format csv", 0);
    assert!(test_env.read("items.tsv").starts_with("\u{feff}id,job_name"));
    assert!(test_env.read("items.tsv").contains(",=1+1,"));
    let env: Vec<_> = std::fs::read_dir(test_env.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with(".tsuzuki"))
        .collect();
    assert_eq!(env, Vec::<String>::new(), "no part is left behind");
    let ndjson = test_env.run(&["export", "items", "--output", "x.ndjson"]);
    assert_eq!(code(&ndjson), 0);
    assert_eq!(test_env.read("x.ndjson").lines().count(), 3);
    test_env.ends("export items --output no/such/dir.csv", 1);
    test_env.ends("export items --output x.opml", 2);
    test_env.ends("export items --json --bom", 2);
    let read = test_env.json("export items --since 2025-01-01 --until 2025-01-02");
    assert_eq!(read.as_array().unwrap().len(), 3, "the day begins at midnight of the configured zone");
    let none = test_env.run(&["export", "items", "--until", "2025-01-01"]);
    assert_eq!(out(&none).lines().count(), 1);
    test_env.ends("export commits --job nobody", 2);
}

#[test]
fn a_file_that_promises_another_format_is_not_written() {
    let test_env = desk_with_items(1);
    let wrong = test_env.ends("export items -o items.xlsx", 2);
    assert!(wrong.contains("by the ending `.xlsx`\nhint: csv, tsv, json and ndjson"), "{wrong}");
    assert!(!test_env.file("items.xlsx").exists());
    test_env.ends("export items -o items.txt --format tsv", 0);
    test_env.ends("export items -o items", 0);
    let written = test_env.read("items");
    assert_eq!(written.lines().count(), 2, "a name without an ending is CSV");
}

#[test]
fn a_job_that_nobody_knows_is_an_error_and_not_an_empty_file() {
    let test_env = desk_with_items(1);
    let job =
        "[[job]]\nname = \"mic\"\nkind = \"blogs\"\nblog = [{ id = \"x\", url = \"https://example.com\" }]\n";
    test_env.write("tsuzuki.toml", job);
    let wrong = test_env.run(&["export", "items", "--job", "mci", "--output", "x.csv"]);
    assert_eq!((code(&wrong), out(&wrong)), (2, String::new()));
    assert!(err(&wrong).contains("there is no job `mci`\nhint: did you mean `mic`?"), "{}", err(&wrong));
    assert!(!test_env.file("x.csv").exists());
    test_env.ends("export opml --job nobody", 2);
    // Rows imported for a job that is no longer in the config can still be exported.
    test_env.write("tsuzuki.toml", "");
    assert_eq!(out(&test_env.run(&["export", "items", "--job", "mic"])).lines().count(), 2);
}

#[cfg(unix)]
#[test]
fn a_file_that_is_replaced_keeps_its_mode() {
    use std::os::unix::fs::PermissionsExt;
    let test_env = desk_with_items(1);
    let file = test_env.file("x.csv");
    for mode in [0o600, 0o666] {
        std::fs::write(&file, "").unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
        test_env.ends("export items --output x.csv --force", 0);
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, mode);
        assert_eq!(test_env.read("x.csv").lines().count(), 2);
    }
}

#[test]
fn a_reader_that_leaves_early_is_nobodys_fault() {
    let test_env = desk_with_items(5000);
    let mut child =
        test_env.command(&["export", "items"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = [0; 10];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut first).unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((code(&output), err(&output)), (0, String::new()));
}

fn table(name: &str) -> &'static tsuzuki::engine::Table {
    tsuzuki::app::tables().find(|table| table.name == name).unwrap()
}
