//! Durable small writes: ours from 256 tasks, beside one transaction each and beside a bare rusqlite batch, in one run.
//!
//! `cargo bench --bench group_commit` prints rates and their ratios; the absolute numbers belong to the machine.

use std::time::{Duration, Instant};

use tsuzuki::db::{Db, DbUrl, Open};
use tsuzuki::ledger::{Subject, event};
use tsuzuki::time::Clock;

const WRITES: usize = 10_000;
const TASKS: usize = 256;
const INSERT: &str =
    "INSERT INTO events (at, job_name, subject, code, detail) VALUES (?1, NULL, ?2, ?3, NULL)";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Runtime::new()?;
    let dir = tempfile::tempdir()?;
    let (grouped, commits) = runtime.block_on(grouped(&dir.path().join("grouped.db")))?;
    let single = runtime.block_on(one_by_one(&dir.path().join("single.db")))?;
    let bare = runtime.block_on(bare(&dir.path().join("bare.db")))?;
    let mut out = std::io::stdout();
    let rate = |spent: Duration, writes: usize| writes as f64 / spent.as_secs_f64();
    let ours = rate(grouped, WRITES);
    use std::io::Write;
    writeln!(out, "{WRITES} durable writes from {TASKS} tasks: {ours:.0}/s in {commits} commits")?;
    writeln!(
        out,
        "one task, one transaction each:   {:.0}/s ({:.1} x slower)",
        rate(single, WRITES / 10),
        ours / rate(single, WRITES / 10)
    )?;
    writeln!(
        out,
        "bare rusqlite, batches of 100:    {:.0}/s (ours reaches {:.0} %)",
        rate(bare, WRITES),
        100.0 * ours / rate(bare, WRITES)
    )?;
    Ok(())
}

async fn grouped(path: &std::path::Path) -> Result<(Duration, u64), tsuzuki::db::Error> {
    let db = Db::open(DbUrl::File(path.to_owned()), Open::Create, Clock::system()).await?;
    let started = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..TASKS {
        let db = db.clone();
        let writes = WRITES / TASKS + usize::from(task < WRITES % TASKS);
        tasks.spawn(async move {
            for _ in 0..writes {
                db.write(add).await?;
            }
            Ok::<(), tsuzuki::db::Error>(())
        });
    }
    tasks.join_all().await.into_iter().collect::<Result<Vec<()>, _>>()?;
    Ok((started.elapsed(), db.stats().commits()))
}

async fn one_by_one(path: &std::path::Path) -> Result<Duration, tsuzuki::db::Error> {
    let db = Db::open(DbUrl::File(path.to_owned()), Open::Create, Clock::system()).await?;
    let started = Instant::now();
    for _ in 0..WRITES / 10 {
        db.write(add).await?;
    }
    Ok(started.elapsed())
}

fn add(tx: &mut tsuzuki::db::Tx<'_>) -> tsuzuki::db::Result<()> {
    event::add(tx, None, &Subject::new("blog", "example"), "unchanged", &serde_json::Value::Null, tx.now())
}

async fn bare(path: &std::path::Path) -> Result<Duration, Box<dyn std::error::Error>> {
    // Our own code creates the schema; the loop uses only rusqlite.
    Db::open(DbUrl::File(path.to_owned()), Open::Create, Clock::system()).await?.close().await;
    let connection = rusqlite::Connection::open(path)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    let started = Instant::now();
    for _ in 0..WRITES / 100 {
        let tx = connection.unchecked_transaction()?;
        let mut insert = tx.prepare_cached(INSERT)?;
        for _ in 0..100 {
            insert.execute(("2026-01-15T00:02:11.123Z", "blog:example", "unchanged"))?;
        }
        drop(insert);
        tx.commit()?;
    }
    Ok(started.elapsed())
}
