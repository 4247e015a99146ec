//! Every statement finds its rows along an index, however many there are.

use rusqlite::types::Null;
use tsuzuki::db::{DbUrl, Dialect, STATEMENTS, Sql};

/// Tables that grow with the years, not with the config.
const GROWING: [&str; 13] = [
    "blog_changes",
    "blog_entries",
    "book_digest_items",
    "books",
    "bulk_collection_results",
    "check_history",
    "commits",
    "delivery_items",
    "events",
    "items",
    "job_books",
    "outbox",
    "prompt_tokens",
];

/// Statements that read or sort more rows than they return, by a part of their text, and why that is right.
const EXCUSED: [(&str, &str); 12] = [
    ("FROM commits WHERE unreachable_since IS NULL", "statistics read what they count"),
    ("GROUP BY author_email, author_name", "statistics read what they count"),
    ("DELETE FROM delivery_items", "by hand, of everything"),
    ("FROM bulk_collection_results WHERE run_id = ?1", "sorts the targets of one run"),
    ("v.id DESC LIMIT 50", "sorts the digests of one book"),
    (
        "FROM outbox WHERE state = ?1 AND (CAST(?2 AS TEXT) IS NULL OR job_name",
        "hardly any message is in another state than `sent`",
    ),
    ("GROUP BY job_name, channel, state", "counts what is open or failed, hardly any of all"),
    (") GROUP BY channel ORDER BY channel", "counts what is open, hardly any of all"),
    ("FROM blog_state s CROSS JOIN blog_entries e", "sorts the entries with one address"),
    ("FROM branches b JOIN projects p", "sorts the branches of the config"),
    (") newest GROUP BY status", "counts a bounded number of rows"),
    ("WITH RECURSIVE places", "steps from branch to branch along the index"),
];

/// How SQLite goes about a statement, line by line.
fn plan(connection: &rusqlite::Connection, statement: &Sql) -> Vec<String> {
    let text = format!("EXPLAIN QUERY PLAN {}", statement.render(Dialect::Sqlite));
    let mut explained = connection.prepare(&text).unwrap();
    let nulls = rusqlite::params_from_iter(vec![Null; explained.parameter_count()]);
    explained.query_map(nulls, |row| row.get(3)).unwrap().map(Result::unwrap).collect()
}

/// The table of `name` in a statement: itself, or the one it is an alias of.
pub(crate) fn table_of<'a>(text: &'a str, name: &'a str) -> &'a str {
    let words: Vec<&str> = text.split([' ', '\n', '(', ')', ',']).filter(|word| !word.is_empty()).collect();
    let named = words.windows(3).find(|three| matches!(three[0], "FROM" | "JOIN") && three[2] == name);
    named.map_or(name, |three| three[1])
}

/// The problem of a query plan, if any.
fn fault(text: &str, plan: &[String]) -> Option<String> {
    let sorts =
        plan.iter().find(|line| line.ends_with("B-TREE FOR ORDER BY") || line.ends_with("FOR GROUP BY"));
    // With a limit: read in order along the table or an index, as far as needed, unless it is sorted first.
    let is_walk = text.contains("ORDER BY") && text.contains("LIMIT");
    let scan = plan.iter().find(|line| {
        let name = line.strip_prefix("SCAN ").and_then(|rest| rest.split(' ').next());
        name.is_some_and(|name| GROWING.contains(&table_of(text, name)))
    });
    let touches_growing = GROWING.iter().any(|table| text.contains(&format!(" {table}")));
    scan.filter(|_| !is_walk).or(sorts.filter(|_| touches_growing)).cloned()
}

#[test]
fn no_statement_reads_or_sorts_a_growing_table() {
    crate::databases::run(Dialect::Sqlite, |fixture| async move {
        let DbUrl::File(path) = &fixture.place else { panic!("not a file") };
        let connection = rusqlite::Connection::open(path).unwrap();
        // The demo's own queries run on a database of some minutes.
        let is_ours = |at: &str| at.starts_with("src/") && !at.starts_with("src/demo/");
        let (mut faults, mut unused) = (Vec::new(), EXCUSED.map(|(piece, _)| piece).to_vec());
        for statement in STATEMENTS.iter().filter(|statement| is_ours(statement.at())) {
            let text = statement.render(Dialect::Sqlite);
            let plan = plan(&connection, statement);
            let Some(fault) = fault(text, &plan) else { continue };
            match EXCUSED.iter().find(|(piece, _)| text.contains(piece)) {
                Some((piece, _)) => unused.retain(|other| other != piece),
                None => faults.push(format!("{}: {fault}\n  {}", statement.at(), plan.join("\n  "))),
            }
        }
        assert!(faults.is_empty(), "{}", faults.join("\n"));
        assert!(unused.is_empty(), "no longer needed: {unused:?}");
    });
}

#[test]
fn a_pick_among_years_of_finished_work_reads_what_is_open() {
    // Statements with two possible indexes, and the more selective one.
    let wanted = [
        ("settled_at IS NULL AND state IN", "idx_outbox_untold"),
        ("state = 'held' AND state IN", "idx_outbox_open"),
        ("WHERE told_at IS NULL AND status = 'completed'", "idx_bulk_runs_untold"),
        ("WHERE j.job_name = ?1 AND j.is_waiting = 1", "idx_job_books_waiting"),
        ("AND c.pending <> 0", "idx_blog_chunks_pending"),
        ("WITH RECURSIVE places", "idx_commits_project_branch_date (project_id=? AND branch_name>?)"),
    ];
    crate::databases::run(Dialect::Sqlite, move |fixture| async move {
        let DbUrl::File(path) = &fixture.place else { panic!("not a file") };
        let connection = rusqlite::Connection::open(path).unwrap();
        for (piece, index) in wanted {
            let of_piece = |statement: &&Sql| statement.render(Dialect::Sqlite).contains(piece);
            let plans: Vec<_> =
                STATEMENTS.iter().filter(of_piece).map(|one| plan(&connection, one)).collect();
            assert!(!plans.is_empty(), "no statement has `{piece}`");
            for plan in plans {
                assert!(plan.iter().any(|line| line.contains(index)), "`{piece}`: {plan:#?}");
            }
        }
    });
}
