//! Every SQL text of the program can be prepared on both databases.

use tsuzuki::db::STATEMENTS;

on_both_databases! {
    async fn every_statement_can_be_prepared(fixture) {
        // Tests may use their own SQL; the program may not.
        let ours: Vec<_> = STATEMENTS.iter().filter(|statement| statement.at().starts_with("src/")).collect();
        assert!(ours.len() > 20, "only {} statements were gathered", ours.len());
        let mut failures = Vec::new();
        for statement in ours {
            // Each in its own transaction: on PostgreSQL a failure ends the transaction.
            if let Err(error) = fixture.db.claim(move |tx| tx.prepare(statement)).await {
                failures.push(format!("{}: {error}", statement.at()));
            }
        }
        assert!(failures.is_empty(), "{}", failures.join("\n"));
    }
}
