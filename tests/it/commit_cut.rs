//! A connection to PostgreSQL that breaks inside COMMIT: the caller gets the real outcome, and the work is done once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tsuzuki::db::{Db, DbUrl, Dialect, Open};
use tsuzuki::ledger::{Subject, event};

use crate::databases;

/// COMMIT as the client sends it: a simple query.
const COMMIT: &[u8] = b"Q\x00\x00\x00\x0bCOMMIT\x00";

/// What happens to the first COMMIT that passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    /// The server never receives it.
    BeforeServer,
    /// The server executes it; the answer is lost.
    BeforeAnswer,
    /// The client is cut off at once, and the server receives it later: in between the transaction is open.
    ServerIsLate,
    /// As `BeforeAnswer`, and the query for the outcome is cut off, too.
    TheQuestionToo,
}

const CUT: u32 = 2;
const CUT_AGAIN: u32 = 3;

/// A way to the server that breaks inside the first COMMIT after `armed` was set to 1.
async fn start(server: String, cut: Cut, armed: Arc<AtomicU32>) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(&server).await.unwrap();
            tokio::spawn(pass(client, server, cut, Arc::clone(&armed)));
        }
    });
    port
}

async fn pass(client: TcpStream, server: TcpStream, cut: Cut, armed: Arc<AtomicU32>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let back = tokio::spawn(async move {
        let _ = tokio::io::copy(&mut from_server, &mut to_client).await;
        (from_server, to_client)
    });
    let mut buffer = vec![0; 65536];
    while let Ok(count @ 1..) = from_client.read(&mut buffer).await {
        let said = &buffer[..count];
        let is_question = said.windows(14).any(|part| part == b"pg_xact_status");
        if cut == Cut::TheQuestionToo
            && is_question
            && armed.compare_exchange(CUT, CUT_AGAIN, Ordering::SeqCst, Ordering::SeqCst).is_ok()
        {
            break;
        }
        let is_commit = said.ends_with(COMMIT);
        if is_commit && armed.compare_exchange(1, CUT, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            // The client receives nothing from here on.
            back.abort();
            let _ = back.await;
            match cut {
                Cut::BeforeServer => {}
                Cut::BeforeAnswer | Cut::TheQuestionToo => {
                    to_server.write_all(said).await.unwrap();
                    // After Terminate, the server still executes what it received before.
                    to_server.shutdown().await.unwrap();
                }
                Cut::ServerIsLate => {
                    drop(from_client);
                    tokio::time::sleep(Duration::from_millis(300)).await;
                    to_server.write_all(said).await.unwrap();
                    to_server.shutdown().await.unwrap();
                }
            }
            return;
        }
        if to_server.write_all(said).await.is_err() {
            break;
        }
    }
    back.abort();
}

fn cut_inside_commit(cut: Cut, expected_runs: u32) {
    databases::run(Dialect::Postgres, |fixture| async move {
        let address = fixture.address();
        let server: url::Url = address.parse().unwrap();
        let place = format!("{}:{}", server.host_str().unwrap(), server.port().unwrap());
        let armed = Arc::new(AtomicU32::new(0));
        let port = start(place, cut, Arc::clone(&armed)).await;
        let mut proxied = server;
        proxied.set_port(Some(port)).unwrap();
        let place = DbUrl::Server(proxied.as_str().to_owned());
        let db = Db::open(place, Open::Existing, fixture.clock.clone()).await.unwrap();

        armed.store(1, Ordering::SeqCst);
        let runs = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&runs);
        let added = db.write(move |tx| {
            let run = counted.fetch_add(1, Ordering::SeqCst) + 1;
            event::add(
                tx,
                None,
                &Subject::verbatim("subject"),
                "written",
                &serde_json::json!({ "run": run }),
                tx.now(),
            )?;
            Ok(run)
        });
        let answered = added.await.unwrap();
        let cuts = if cut == Cut::TheQuestionToo { CUT_AGAIN } else { CUT };
        assert_eq!(armed.load(Ordering::SeqCst), cuts, "the connection was never cut");
        assert_eq!(answered, expected_runs, "{cut:?}: the answer is that of the run that was committed");
        assert_eq!(runs.load(Ordering::SeqCst), expected_runs, "{cut:?}");
        let events =
            fixture.db.read(|tx| event::list_about(tx, &Subject::verbatim("subject"), 10)).await.unwrap();
        assert_eq!(events.len(), 1, "{cut:?}: written exactly once");
    });
}

#[test]
fn a_commit_that_never_arrived_is_done_again() {
    cut_inside_commit(Cut::BeforeServer, 2);
}

#[test]
fn a_commit_whose_answer_was_lost_is_not_done_again() {
    cut_inside_commit(Cut::BeforeAnswer, 1);
}

#[test]
fn a_commit_that_arrives_late_is_waited_for() {
    cut_inside_commit(Cut::ServerIsLate, 1);
}

#[test]
fn a_question_that_is_lost_too_is_asked_again() {
    cut_inside_commit(Cut::TheQuestionToo, 1);
}
