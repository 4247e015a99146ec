//! The plans of statements over tables of a realistic size, with the statistics that the databases keep of them.

use tsuzuki::db::{DbUrl, Dialect, STATEMENTS, Sql};

/// Tables that are filled below, and grow with the years.
const FILLED: [&str; 9] = [
    "book_digest_items",
    "books",
    "bulk_collection_results",
    "commits",
    "commits_left_out",
    "delivery_items",
    "job_books",
    "outbox",
    "prompt_tokens",
];

/// Statements that read more rows than they return, by a part of their text, and why that is right.
const EXCUSED: [(&str, &str); 9] = [
    ("FROM commits WHERE unreachable_since IS NULL", "statistics read what they count"),
    ("GROUP BY author_email, author_name", "statistics read what they count"),
    ("SELECT sha FROM commits WHERE project_id = ", "what a branch has, before it is deleted by hand"),
    ("SELECT COUNT(*) FROM commits WHERE project_id", "what a branch has, before it is deleted by hand"),
    ("FROM branches b JOIN projects p", "counts the commits of each branch along the index"),
    ("DELETE FROM delivery_items", "by hand, of everything"),
    ("GROUP BY job_name, channel, state", "counts what is open or failed, hardly any of all"),
    ("GROUP BY channel ORDER BY channel", "counts what is open, hardly any of all"),
    ("(SELECT COUNT(*) FROM commits c", "counts the commits of each branch along the index"),
];

/// A project of 40,000 commits and four of 5,000, two years of runs, 20,000 books and as many messages.
fn fill(dialect: Dialect) -> String {
    let hex = match dialect {
        Dialect::Sqlite => |number: &str| format!("printf('%040x', {number})"),
        Dialect::Postgres => |number: &str| format!("lpad(to_hex({number}), 40, '0')"),
    };
    let text = |number: &str| format!("CAST({number} AS TEXT)");
    let rows = |count: u32| {
        format!("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) SELECT ")
    };
    let date = "'20' || CAST(10 + i % 15 AS TEXT) || '-01-01T00:00:00.000Z'";
    let project = "CASE WHEN i <= 40000 THEN 1 ELSE 2 + i % 4 END";
    [
        format!("INSERT INTO projects (project_id, host, remote_id, path, name, first_seen_at, last_seen_at) {} i, 'h', i, 'team/p' || {}, 'p', '', '' FROM n", rows(5), text("i")),
        format!("INSERT INTO branches (project_id, branch_name, complete_head, job_name) {} i, 'main', 'x', 'code' FROM n", rows(5)),
        format!("INSERT INTO commits (project_id, branch_name, sha, author_name, author_email, committed_date_utc, additions, deletions, title, parents, stats_missing, unreachable_since) {} {project}, 'main', {}, 'Author ' || {}, 'a' || {} || '@x', {date}, 1, 1, 't', {}, CASE WHEN i % 500 = 0 THEN 1 ELSE 0 END, CASE WHEN i % 700 = 0 THEN '2026' END FROM n", rows(60_000), hex("i"), text("i % 40"), text("i % 40"), hex("i - 1")),
        format!("INSERT INTO commits_left_out (project_id, branch_name, sha, why, parents) {} 1, 'main', {}, 'before_since', '' FROM n", rows(20_000), hex("i + 100000")),
        format!("INSERT INTO bulk_collection_runs (run_id, started_at_utc, completed_at_utc, status, total_targets, told_at) {} 'run' || {}, {date}, {date}, 'completed', 5, {date} FROM n", rows(4_000), text("i")),
        format!("INSERT INTO bulk_collection_results (run_id, project_id, branch_name, status, new_commits_count) {} 'run' || {}, 1 + i % 5, 'main', 'success', 0 FROM n", rows(20_000), text("1 + i / 5 % 4000")),
        format!("INSERT INTO books (isbn13, title, source, first_seen_at, last_seen_at, last_delivered_at) {} 'b' || {}, 't', 'google_books', {date}, {date}, CASE WHEN i % 10 > 0 THEN {date} END FROM n", rows(20_000), text("i")),
        format!("INSERT INTO job_books (job_name, isbn13, first_seen_at, is_waiting, last_sent_at) {} 'job' || {}, 'b' || {}, {date}, CASE WHEN i % 10 = 0 THEN 1 ELSE 0 END, CASE WHEN i % 10 > 0 THEN {date} END FROM n", rows(20_000), text("i % 3"), text("i")),
        format!("INSERT INTO deliveries (job_name, delivered_at, isbn13_list_json) {} 'job' || {}, {date}, '[]' FROM n", rows(4_000), text("i % 3")),
        format!("INSERT INTO delivery_items (delivery_id, job_name, isbn13, delivered_at) {} 1 + i % 4000, 'job' || {}, 'b' || {}, {date} FROM n", rows(18_000), text("i % 3"), text("i")),
        format!("INSERT INTO book_digests (job_name, created_at, delivery_id) {} 'job' || {}, {date}, i FROM n", rows(4_000), text("i % 3")),
        format!("INSERT INTO book_digest_items (digest_id, position, isbn13) {} 1 + i % 4000, i / 4000, 'b' || {} FROM n", rows(19_999), text("i")),
        format!("INSERT INTO prompts (isbn13, prompt_text, created_at) {} 'b' || {}, 'p', {date} FROM n", rows(20_000), text("i")),
        format!("INSERT INTO prompt_tokens (token, prompt_id, expires_at, created_at) {} {}, i, {date}, {date} FROM n", rows(20_000), hex("i")),
        format!("INSERT INTO outbox (key, job_name, channel, recipient, topic, subject, payload, state, created_at, not_before, settled_at) {} 'k' || {}, 'job' || {}, 'mail', 'r', 'books.digest', 'digest:' || {}, '{{}}', CASE WHEN i % 5000 = 0 THEN 'ready' ELSE 'sent' END, {date}, {date}, {date} FROM n", rows(20_000), text("i"), text("i % 3"), text("i % 4000")),
        "ANALYZE".to_owned(),
    ]
    .join(";\n")
}

/// Our statements about the filled tables.
fn list_statements() -> impl Iterator<Item = &'static Sql> {
    let is_ours = |at: &str| at.starts_with("src/") && !at.starts_with("src/demo/");
    STATEMENTS.iter().filter(move |statement| is_ours(statement.at())).filter(|statement| {
        let text = statement.render(Dialect::Sqlite);
        FILLED.iter().any(|table| text.contains(&format!(" {table}")))
    })
}

/// The statements whose plan has a line that `is_bad`, unless they are excused.
fn list_faults(plans: Vec<(&'static Sql, Vec<String>)>, is_bad: impl Fn(&str, &str) -> bool) -> Vec<String> {
    assert!(plans.len() > 60, "only {} statements were looked at", plans.len());
    let mut faults = Vec::new();
    for (statement, plan) in plans {
        let text = statement.render(Dialect::Sqlite);
        let is_excused = EXCUSED.iter().any(|(piece, _)| text.contains(piece));
        if !is_excused && plan.iter().any(|line| is_bad(text, line)) {
            faults.push(format!("{}:\n  {}", statement.at(), plan.join("\n  ")));
        }
    }
    faults
}

#[test]
fn sqlite_goes_along_indexes_with_the_statistics_of_years() {
    crate::databases::run(Dialect::Sqlite, |fixture| async move {
        let DbUrl::File(path) = &fixture.place else { panic!("not a file") };
        let connection = rusqlite::Connection::open(path).unwrap();
        connection
            .execute_batch(&format!("PRAGMA foreign_keys = OFF; BEGIN; {}; COMMIT", fill(Dialect::Sqlite)))
            .unwrap();
        drop(connection);
        let connection = rusqlite::Connection::open(path).unwrap();
        let plan = |statement: &Sql| -> Vec<String> {
            let text = format!("EXPLAIN QUERY PLAN {}", statement.render(Dialect::Sqlite));
            let mut explained = connection.prepare(&text).unwrap();
            let nulls = rusqlite::params_from_iter(vec![rusqlite::types::Null; explained.parameter_count()]);
            explained.query_map(nulls, |row| row.get(3)).unwrap().map(Result::unwrap).collect()
        };
        let plans = list_statements().map(|statement| (statement, plan(statement))).collect();
        let faults = list_faults(plans, |text, line| {
            let is_walk = text.contains("ORDER BY") && text.contains("LIMIT");
            let name = line.strip_prefix("SCAN ").and_then(|rest| rest.split(' ').next());
            !is_walk && name.is_some_and(|name| FILLED.contains(&crate::plans::table_of(text, name)))
        });
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    });
}

#[test]
fn postgresql_goes_along_indexes_with_the_statistics_of_years() {
    crate::databases::run(Dialect::Postgres, |fixture| async move {
        let DbUrl::Server(url) = fixture.place.clone() else { panic!("not a server") };
        // The client blocks, also when it is dropped, so it has its own thread.
        let faults = std::thread::spawn(move || {
            let mut client = postgres::Client::connect(&url, postgres::NoTls).unwrap();
            client.batch_execute(&fill(Dialect::Postgres)).unwrap();
            client.batch_execute("SET plan_cache_mode = force_custom_plan").unwrap();
            let plans =
                list_statements().map(|statement| (statement, explain(&mut client, statement))).collect();
            list_faults(plans, |_, line| {
                FILLED.iter().any(|table| {
                    let scanned = line.split("Seq Scan on ").nth(1).and_then(|rest| rest.split(' ').next());
                    scanned == Some(*table)
                })
            })
        })
        .join()
        .unwrap();
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    });
}

/// How PostgreSQL goes about a statement, planned for values as the program plans it.
fn explain(client: &mut postgres::Client, statement: &Sql) -> Vec<String> {
    let text = statement.render(Dialect::Postgres);
    client
        .batch_execute(&format!("PREPARE looked_at AS {text}"))
        .unwrap_or_else(|error| panic!("{text}: {error:?}"));
    let types: Vec<String> = client
        .query(
            "SELECT unnest(parameter_types)::text FROM pg_prepared_statements WHERE name = 'looked_at'",
            &[],
        )
        .unwrap()
        .iter()
        .map(|row| row.get(0))
        .collect();
    let values: Vec<&str> = types.iter().map(|of| if of == "text" { "'main'" } else { "1" }).collect();
    let call = if values.is_empty() { String::new() } else { format!("({})", values.join(", ")) };
    let messages = client.simple_query(&format!("EXPLAIN EXECUTE looked_at{call}")).unwrap();
    client.batch_execute("DEALLOCATE looked_at").unwrap();
    let line = |message: &postgres::SimpleQueryMessage| match message {
        postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    };
    messages.iter().filter_map(line).collect()
}
