//! The live schema of both databases, compared with the seed documents.

use std::collections::BTreeMap;

use tsuzuki::db::{DbUrl, Dialect, Error};
use tsuzuki::{params, sql};

/// Tables and columns of the seeds, in their words: name, type, constraints. `auto` is AUTOINCREMENT, `pk` a part of
/// the primary key, `=x` a default. Columns of ours may stand beside them and are not listed.
const TABLES: &str = "
items               id INTEGER pk auto | url TEXT not-null | title TEXT not-null | published_at TIMESTAMP not-null
                    status INTEGER not-null | reason INTEGER | retry_count INTEGER not-null
                    created_at TIMESTAMP not-null | last_checked_at TIMESTAMP not-null
books               isbn13 TEXT pk | title TEXT not-null | authors_json TEXT | publisher TEXT | published_date TEXT
                    description TEXT | cover_url TEXT | links_json TEXT | source TEXT not-null
                    first_seen_at TEXT not-null | last_seen_at TEXT not-null | last_delivered_at TEXT
deliveries          id INTEGER pk auto | job_name TEXT not-null | delivered_at TEXT not-null | isbn13_list_json TEXT not-null
delivery_items      id INTEGER pk auto | delivery_id INTEGER not-null | job_name TEXT not-null | isbn13 TEXT not-null
                    delivered_at TEXT not-null
job_state           job_name TEXT pk | last_success_at TEXT | last_run_at TEXT
api_usage           date TEXT pk | provider TEXT pk | count INTEGER not-null =0
prompts             id INTEGER pk auto | isbn13 TEXT not-null | prompt_text TEXT not-null | created_at TEXT not-null
prompt_tokens       token TEXT pk | prompt_id INTEGER not-null | expires_at TEXT not-null | created_at TEXT not-null
collect_cursor      job_name TEXT pk not-null | query_set_hash TEXT pk not-null | start_index INTEGER not-null =0
                    is_exhausted INTEGER not-null =0 | last_updated_at TEXT not-null =now
blog_state          blog_id TEXT pk | etag TEXT | last_modified TEXT | url_fingerprint TEXT | feed_url TEXT
                    sitemap_url TEXT | recent_entry_keys TEXT | last_check_at TEXT not-null | last_change_at TEXT
check_history       id INTEGER pk auto | blog_id TEXT not-null | checked_at TEXT not-null | http_status INTEGER
                    skipped INTEGER not-null =0 | changed INTEGER not-null =0 | url_fingerprint TEXT | error_message TEXT
bulk_collection_runs     run_id TEXT pk | started_at_utc TEXT not-null | completed_at_utc TEXT | status TEXT not-null
                    total_targets INTEGER not-null | completed_count INTEGER not-null =0
                    failed_count INTEGER not-null =0 | success_count INTEGER not-null =0
bulk_collection_results  run_id TEXT pk not-null | project_id INTEGER pk not-null | branch_name TEXT pk not-null
                    status TEXT not-null | new_commits_count INTEGER | error_message TEXT | processed_at_utc TEXT
commits             project_id INTEGER | branch_name TEXT not-null | sha TEXT not-null | author_name TEXT not-null
                    author_email TEXT not-null | committed_date_utc TEXT not-null | additions INTEGER not-null
                    deletions INTEGER not-null
";

/// Named indexes of the seeds. `idx_items_url` also has the job (decision 1); 004's index on commits has no name there.
const INDEXES: &[&str] = &[
    "idx_items_url UNIQUE items(job_name, url)",
    "idx_items_status_last_checked_at items(status, last_checked_at)",
    "idx_items_status_published_at items(status, published_at)",
    "idx_books_undelivered books(last_delivered_at) WHERE last_delivered_at is null",
    "idx_books_last_seen books(last_seen_at)",
    "idx_deliveries_job deliveries(job_name)",
    "idx_delivery_items_job delivery_items(job_name)",
    "idx_delivery_items_isbn13 delivery_items(isbn13)",
    "idx_delivery_items_delivery delivery_items(delivery_id)",
    "idx_prompts_isbn13 prompts(isbn13)",
    "idx_prompt_tokens_expires prompt_tokens(expires_at)",
    "idx_collect_cursor_job collect_cursor(job_name)",
    "idx_check_history_blog_time check_history(blog_id, checked_at desc)",
    "idx_check_history_changed check_history(changed) WHERE changed = 1",
    "idx_bulk_results_run_status bulk_collection_results(run_id, status)",
    "idx_bulk_results_target_status bulk_collection_results(project_id, branch_name, status)",
    "idx_bulk_runs_status_started bulk_collection_runs(status, started_at_utc)",
    "* commits(project_id, branch_name, committed_date_utc)",
];

/// Foreign keys and unique sets of the seeds.
const KEYS: &[&str] = &[
    "delivery_items(delivery_id) -> deliveries(id)",
    "prompt_tokens(prompt_id) -> prompts(id)",
    "bulk_collection_results(run_id) -> bulk_collection_runs(run_id) on delete cascade",
    "commits(project_id) -> projects(project_id)",
    "unique delivery_items(job_name, isbn13)",
    "unique commits(project_id, branch_name, sha)",
];

#[derive(Debug, Clone, PartialEq, Eq)]
struct Column {
    kind: String,
    not_null: bool,
    key: bool,
    auto: bool,
    default: Option<String>,
}

type Schema = BTreeMap<String, BTreeMap<String, Column>>;

fn seeds() -> Schema {
    let mut schema = Schema::new();
    let mut table = String::new();
    for line in TABLES.lines().filter(|line| !line.trim().is_empty()) {
        let columns = if line.starts_with(' ') {
            line
        } else {
            let (name, rest) = line.split_once(' ').unwrap();
            table = name.to_owned();
            rest
        };
        for column in columns.split('|') {
            let words: Vec<&str> = column.split_whitespace().collect();
            let key = words.contains(&"pk");
            schema.entry(table.clone()).or_default().insert(
                words[0].to_owned(),
                Column {
                    kind: words[1].to_owned(),
                    not_null: key || words.contains(&"not-null"),
                    key,
                    auto: words.contains(&"auto"),
                    default: words.iter().find_map(|word| word.strip_prefix('=')).map(str::to_owned),
                },
            );
        }
    }
    assert_eq!(schema.len(), 14, "all tables of the seeds are listed");
    schema
}

/// A live database, queried in its own dialect.
struct Live {
    schema: Schema,
    indexes: Vec<String>,
    keys: Vec<String>,
}

fn plain_default(text: Option<String>) -> Option<String> {
    let text = text?;
    if text.contains("strftime") || text.contains("clock_timestamp") {
        return Some("now".into());
    }
    // SQLite returns the text as written, PostgreSQL may add a cast.
    Some(text.split("::").next().unwrap_or_default().trim_matches(['(', ')', '\'']).to_owned())
}

fn on_sqlite(place: &DbUrl) -> Live {
    let DbUrl::File(path) = place else { panic!("not a file") };
    let connection = rusqlite::Connection::open(path).unwrap();
    let strings = |text: &str| -> Vec<Vec<String>> {
        let mut statement = connection.prepare(text).unwrap();
        let width = statement.column_count();
        let rows = statement.query_map([], |row| {
            (0..width).map(|i| Ok(text_of(row.get_ref(i)?))).collect::<rusqlite::Result<Vec<_>>>()
        });
        rows.unwrap().map(Result::unwrap).collect()
    };
    let mut schema = Schema::new();
    let mut keys = Vec::new();
    for table in
        strings("SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    {
        let (table, made_by) = (&table[0], &table[1]);
        let columns =
            format!("SELECT name, type, \"notnull\", dflt_value, pk FROM pragma_table_info('{table}')");
        for row in strings(&columns) {
            let auto = made_by.contains(&format!("{} INTEGER PRIMARY KEY AUTOINCREMENT", row[0]));
            let key = row[4] != "0";
            let default = (row[3] != "NULL").then(|| row[3].clone());
            schema.entry(table.clone()).or_default().insert(
                row[0].clone(),
                Column {
                    kind: row[1].clone(),
                    not_null: key || row[2] == "1",
                    key,
                    auto,
                    default: plain_default(default),
                },
            );
        }
        for row in strings(&format!(
            "SELECT \"from\", \"table\", \"to\", on_delete FROM pragma_foreign_key_list('{table}')"
        )) {
            let cascade = if row[3] == "CASCADE" { " on delete cascade" } else { "" };
            keys.push(format!("{table}({}) -> {}({}){cascade}", row[0], row[1], row[2]));
        }
        for row in strings(&format!(
            "SELECT name FROM pragma_index_list('{table}') WHERE \"unique\" = 1 AND origin = 'u'"
        )) {
            let columns: Vec<String> =
                strings(&format!("SELECT name FROM pragma_index_info('{}') ORDER BY seqno", row[0])).concat();
            keys.push(format!("unique {table}({})", columns.join(", ")));
        }
    }
    let indexes = strings("SELECT sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL").concat();
    Live { schema, indexes: indexes.iter().map(|text| plain_index(text)).collect(), keys }
}

fn text_of(value: rusqlite::types::ValueRef<'_>) -> String {
    use rusqlite::types::ValueRef;
    match value {
        ValueRef::Null => "NULL".into(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
        other => format!("{other:?}"),
    }
}

fn on_postgres(place: &DbUrl) -> Live {
    let DbUrl::Server(url) = place.clone() else { panic!("not a server") };
    std::thread::spawn(move || {
        let mut client = postgres::Client::connect(&url, postgres::NoTls).unwrap();
        let mut strings = |text: &str| -> Vec<Vec<String>> {
            let rows = client.query(text, &[]).unwrap();
            rows.iter()
                .map(|row| (0..row.len()).map(|i| row.get::<_, Option<String>>(i).unwrap_or("NULL".into())).collect())
                .collect()
        };
        let mut schema = Schema::new();
        let columns = "SELECT table_name::text, column_name::text, data_type::text, is_nullable::text, column_default::text,
                is_identity::text, collation_name::text
            FROM information_schema.columns WHERE table_schema = current_schema()";
        let keyed = strings(
            "SELECT cl.relname::text, a.attname::text FROM pg_constraint c JOIN pg_class cl ON cl.oid = c.conrelid
             JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = ANY (c.conkey)
             WHERE c.contype = 'p' AND c.connamespace = current_schema()::regnamespace",
        );
        for row in strings(columns) {
            let kind = match (row[2].as_str(), row[6].as_str()) {
                ("bigint", _) => "INTEGER",
                ("text", "C") => "TEXT",
                other => panic!("{}.{} has the type {other:?}", row[0], row[1]),
            };
            let default = (row[4] != "NULL").then(|| row[4].clone());
            schema.entry(row[0].clone()).or_default().insert(row[1].clone(), Column {
                kind: kind.into(),
                not_null: row[3] == "NO",
                key: keyed.contains(&vec![row[0].clone(), row[1].clone()]),
                auto: row[5] == "YES",
                default: plain_default(default),
            });
        }
        let constraints = strings(
            "SELECT conrelid::regclass::text, pg_get_constraintdef(oid) FROM pg_constraint
             WHERE connamespace = current_schema()::regnamespace AND contype IN ('f', 'u')",
        );
        let keys = constraints
            .iter()
            .map(|row| {
                let text = row[1].to_lowercase();
                match text.strip_prefix("unique ") {
                    Some(columns) => format!("unique {}{columns}", row[0]),
                    None => {
                        let text = text.replace("foreign key ", "").replace(" references ", " -> ");
                        format!("{}{text}", row[0])
                    }
                }
            })
            .collect();
        let schema_name = strings("SELECT current_schema()::text")[0][0].clone();
        let indexes = strings("SELECT indexdef FROM pg_indexes WHERE schemaname = current_schema()").concat();
        let indexes = indexes
            .iter()
            .map(|text| plain_index(&text.replace(&format!("{schema_name}."), "").replace(" USING btree", "")))
            .collect();
        Live { schema, indexes, keys }
    })
    .join()
    .unwrap()
}

/// `CREATE UNIQUE INDEX x ON t (a, b DESC) WHERE …` as `x UNIQUE t(a, b desc) WHERE …`.
fn plain_index(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (unique, rest) = match text.strip_prefix("CREATE UNIQUE INDEX ") {
        Some(rest) => (" UNIQUE", rest),
        None => ("", text.strip_prefix("CREATE INDEX ").unwrap_or(&text)),
    };
    let (name, rest) = rest.split_once(" ON ").unwrap();
    let (table, rest) = rest.split_once(" (").unwrap();
    let (columns, condition) = rest.split_once(')').unwrap();
    let condition = condition.trim().replace(['(', ')'], "").replace("IS NULL", "is null");
    let condition = if condition.is_empty() { String::new() } else { format!(" {condition}") };
    format!("{name}{unique} {table}({}){condition}", columns.to_lowercase())
}

fn compare(live: &Live, kind_of: impl Fn(&str) -> String) {
    for (table, columns) in seeds() {
        let found = live.schema.get(&table).unwrap_or_else(|| panic!("the table {table} is missing"));
        for (name, mut wanted) in columns {
            wanted.kind = kind_of(&wanted.kind);
            let mut column = found.get(&name).unwrap_or_else(|| panic!("{table}.{name} is missing")).clone();
            if (table.as_str(), name.as_str()) == ("commits", "project_id") {
                // The seed does not say; it has to be a project in any case.
                column.not_null = wanted.not_null;
            }
            assert_eq!(column, wanted, "{table}.{name}");
        }
    }
    for wanted in INDEXES {
        let is_there = match wanted.strip_prefix("* ") {
            None => live.indexes.iter().any(|index| index == wanted),
            Some(shape) => live.indexes.iter().any(|index| index.ends_with(&format!(" {shape}"))),
        };
        assert!(is_there, "no index `{wanted}` among\n{}", live.indexes.join("\n"));
    }
    for wanted in KEYS {
        assert!(
            live.keys.iter().any(|key| key == wanted),
            "no key `{wanted}` among\n{}",
            live.keys.join("\n")
        );
    }
}

#[test]
fn sqlite_has_the_seeds_tables_verbatim() {
    crate::databases::run(Dialect::Sqlite, |fixture| async move {
        compare(&on_sqlite(&fixture.place), str::to_owned);
    });
}

#[test]
fn postgresql_has_the_seeds_tables_in_its_own_types() {
    crate::databases::run(Dialect::Postgres, |fixture| async move {
        compare(&on_postgres(&fixture.place), |kind| {
            if kind == "TIMESTAMP" { "TEXT".into() } else { kind.to_owned() }
        });
    });
}

on_both_databases! {
    async fn the_rules_of_bulk_runs_are_kept_by_the_database(fixture) {
        let run = sql!(
            "INSERT INTO bulk_collection_runs (run_id, started_at_utc, completed_at_utc, status, total_targets,
               completed_count, failed_count) VALUES (?1, 'x', ?2, ?3, 3, ?4, ?5)"
        );
        let result = sql!(
            "INSERT INTO bulk_collection_results (run_id, project_id, branch_name, status, new_commits_count, error_message)
             VALUES ('a', ?1, 'main', ?2, ?3, ?4)"
        );
        let none: Option<&str> = None;
        for (what, refused) in [
            ("an unknown status", fixture.db.write(move |tx| tx.execute(run, params!["x", none, "paused", 0, 0])).await),
            ("more ended than targets", fixture.db.write(move |tx| tx.execute(run, params!["x", none, "running", 2, 2])).await),
            ("ended but running", fixture.db.write(move |tx| tx.execute(run, params!["x", "now", "running", 0, 0])).await),
            ("completed without a time", fixture.db.write(move |tx| tx.execute(run, params!["x", none, "completed", 0, 0])).await),
        ] {
            assert!(matches!(refused, Err(Error::Constraint(_))), "{what}: {refused:?}");
        }
        fixture.db.write(move |tx| tx.execute(run, params!["a", none, "running", 0, 0])).await.unwrap();
        let second = fixture.db.write(move |tx| tx.execute(run, params!["b", none, "running", 0, 0])).await;
        assert!(matches!(second, Err(Error::Constraint(_))), "two running: {second:?}");
        for (what, refused) in [
            ("success without a count", fixture.db.write(move |tx| tx.execute(result, params![1, "success", None::<i64>, none])).await),
            ("failed without a message", fixture.db.write(move |tx| tx.execute(result, params![1, "failed", None::<i64>, none])).await),
            ("an unknown status", fixture.db.write(move |tx| tx.execute(result, params![1, "done", 0, "x"])).await),
        ] {
            assert!(matches!(refused, Err(Error::Constraint(_))), "{what}: {refused:?}");
        }
        fixture.db.write(move |tx| tx.execute(result, params![1, "success", 0, none])).await.unwrap();
    }

    async fn a_url_occurs_once_per_job(fixture) {
        let add = sql!(
            "INSERT INTO items (url, title, published_at, status, retry_count, created_at, last_checked_at, job_name)
             VALUES ('u', 't', 'x', ?2, 0, 'x', 'x', ?1)"
        );
        fixture.db.write(move |tx| tx.execute(add, params!["a", 0])).await.unwrap();
        fixture.db.write(move |tx| tx.execute(add, params!["b", 0])).await.unwrap();
        let again = fixture.db.write(move |tx| tx.execute(add, params!["a", 0])).await;
        assert!(matches!(again, Err(Error::Constraint(_))), "{again:?}");
        let status = fixture.db.write(move |tx| tx.execute(add, params!["c", 4])).await;
        assert!(matches!(status, Err(Error::Constraint(_))), "{status:?}");
    }
}
