//! Mails through the outbox, beside a client as ours once was: a connection for each mail, text and final dot in two writes, Nagle's
//! algorithm on.
//!
//! `cargo bench --bench mails [-- MAILS]`, by default 200. Both speak to the same server of the loopback world; only ours writes
//! down what it does, on SQLite and with `fsync`.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "the table is the product; a benchmark may panic"
)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Instant;

use tokio_util::sync::CancellationToken;
use tsuzuki::app::{self, App};
use tsuzuki::channel::outbox::{self, Batch, Provenance};
use tsuzuki::channel::{News, Notice};
use tsuzuki::config::{self, Env};
use tsuzuki::db::{Db, DbUrl, Open};
use tsuzuki::demo::smtp::SmtpServer;
use tsuzuki::ledger::Subject;
use tsuzuki::text::Language;
use tsuzuki::time::Clock;

use measure::{run, verdict};

mod measure;

/// The required speed-up.
const RATE_LIMIT: f64 = 10.0;
/// Mails of the slow client: each takes the delay of an acknowledgement.
const SLOW: usize = 50;

fn main() {
    let mails: usize = measure::args().first().map_or(200, |text| text.parse().unwrap());
    let (before, after) = run(async {
        let server = SmtpServer::start().await.unwrap();
        let (address, began) = (server.address, Instant::now());
        tokio::task::spawn_blocking(move || deliver_in_two_writes(address, SLOW)).await.unwrap();
        let before = SLOW as f64 / began.elapsed().as_secs_f64();
        (before, send(&server, mails).await)
    });
    println!("a connection and two writes a mail, nothing recorded: {before:>6.0} mails a second");
    println!("tsuzuki, everything recorded:                         {after:>6.0} mails a second");
    let ratio = after / before;
    println!("{ratio:.1} ×, at least {RATE_LIMIT}: {}", verdict(ratio >= RATE_LIMIT));
}

/// Queues mails and sends them in one pass; returns the rate per second.
async fn send(server: &SmtpServer, mails: usize) -> f64 {
    let dir = tempfile::tempdir().unwrap();
    let text = format!(
        "[channel.mail]\nkind = \"email\"\nsmtp = \"{}\"\ntls = \"none\"\nfrom = \"bot@example.com\"\n\
         to = [\"reader@example.com\"]\nallow_private = [\"127.0.0.1\"]\n",
        server.address
    );
    let config = config::parse(&text, Path::new("bench.toml"), app::kinds(), &Env::of_process()).unwrap();
    let place = DbUrl::File(dir.path().join("tsuzuki.db"));
    let db = Db::open(place, Open::Create, Clock::system()).await.unwrap();
    let app = App::new(&config, db.clone()).unwrap();
    for number in 0..mails {
        let notice =
            Notice { summary: "x".repeat(1500), ..Notice::new(format!("News {number}"), Language::En) };
        let news = News::from(notice);
        let (rendered, failed) =
            app.env.channels.render(&["mail".to_owned()], &app.env.channel_env, &news).await;
        db.write(move |tx| {
            let job = "bench".parse().unwrap();
            let batch = Batch {
                job: &job,
                topic: "bench",
                subject: &number.to_string(),
                generation: 0,
                hold: false,
                found: Provenance::Since(Some(tx.now())),
                about: &Subject::job(&job),
            };
            outbox::add_all(tx, &batch, &rendered, &failed, tx.now())
        })
        .await
        .unwrap();
    }
    let (known, connections, began) = (server.mails().len(), server.connections(), Instant::now());
    let report = app.sender().send_due(&CancellationToken::new()).await.unwrap();
    let took = began.elapsed().as_secs_f64();
    assert_eq!((report.sent, server.mails().len() - known), (mails as u64, mails));
    assert_eq!(server.connections() - connections, 1, "one for all mails");
    db.close().await;
    mails as f64 / took
}

/// Sends mails with Nagle's algorithm on, and text and final dot in two writes.
fn deliver_in_two_writes(address: SocketAddr, count: usize) {
    for _ in 0..count {
        let mut stream = TcpStream::connect(address).unwrap();
        let mut replies = BufReader::new(stream.try_clone().unwrap()).lines();
        let mut reply = move || while replies.next().unwrap().unwrap().as_bytes()[3] == b'-' {};
        let mut say = |text: &str| stream.write_all(text.as_bytes()).unwrap();
        reply();
        for command in ["EHLO a.example", "MAIL FROM:<a@example.com>", "RCPT TO:<b@example.com>", "DATA"] {
            say(&format!("{command}\r\n"));
            reply();
        }
        say(&format!("Subject: x\r\n\r\n{}\r\n", "x".repeat(1500)));
        say(".\r\n");
        reply();
        say("QUIT\r\n");
        reply();
    }
}
