//! Books under `kill -9` at random instants, between the first page and the recorded delivery.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use tsuzuki::channel::outbox::{self, DeliveryFilter, State};
use tsuzuki::demo::google_books::{GoogleBooks, isbn, volumes};
use tsuzuki::demo::smtp::{Kept, SmtpServer};
use tsuzuki::{params, sql};

use crate::books_process;
use crate::databases::Fixture;
use crate::kill::Dice;

/// Searches, each of which is collected and mailed while the program is killed again and again.
const ROUNDS: u32 = 12;
/// Kills in each of them.
const KILLS: u32 = 4;
/// Books of a search, on three pages; a mail contains half of them.
const FOUND: u32 = 100;

/// How long after an event a kill follows at most, where it is aimed at one.
const SHORTLY: Duration = Duration::from_millis(8);

struct World {
    fixture: Fixture,
    google: GoogleBooks,
    mail: SmtpServer,
    /// Copies of a mail that had arrived when its sender died before it could write so.
    excused: BTreeMap<String, usize>,
}

impl World {
    async fn new(fixture: Fixture) -> Self {
        let google = GoogleBooks::start(Vec::new()).await.unwrap();
        let mail = SmtpServer::start().await.unwrap();
        Self { fixture, google, mail, excused: BTreeMap::new() }
    }

    /// Adds books to the search and writes a config that collects them.
    fn begin(&self, round: u32) {
        self.google.set_volumes(volumes(round * 1000, FOUND));
        let config = format!(
            "[quota.google_books]\nper_day = 100000\n\
             [channel.mail]\nkind = \"email\"\nsmtp = \"{}\"\ntls = \"none\"\nfrom = \"a@example.com\"\n\
             to = [\"b@example.com\"]\nallow_private = [\"127.0.0.1\"]\nmax_attempts = 1000\n\
             [[job]]\nname = \"shelf\"\nkind = \"books\"\nallow_private = [\"127.0.0.1\"]\n\
             google_books = {{ api_url = \"{}\" }}\nqueries = [\"round {round}\"]\nmax_per_run = {FOUND}\n\
             mail_limit = {}\nfallback_limit = 0\ndeliver = [\"mail\"]\n",
            self.mail.address,
            self.google.url,
            FOUND / 2
        );
        std::fs::write(self.fixture.dir.path().join("kill.toml"), config).unwrap();
    }

    fn start(&self) -> Child {
        let config = self.fixture.dir.path().join("kill.toml");
        let mut command = books_process::command(&self.fixture, &config);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        child.stderr.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        child
    }

    /// Runs the program to its end; returns how long its work took.
    fn run(&self) -> Duration {
        let mut child = self.start();
        let began = Instant::now();
        assert!(child.wait().unwrap().success());
        began.elapsed()
    }

    /// Starts the program and kills it: some time after its start, after one of its requests (the first kill of a round,
    /// for later ones find everything read), or after it turned to the mail server.
    async fn kill(&self, dice: &mut Dice, span: Duration, is_first: bool) {
        let (asked, connected) = (self.google.asked().len(), self.mail.connections());
        let wanted = usize::try_from(dice.roll(3)).unwrap();
        let mut child = self.start();
        let (is_there, span): (Box<dyn Fn() -> bool>, _) = match dice.roll(3) {
            0 if !is_first => (Box::new(|| true), span),
            _ if is_first || dice.roll(2) == 0 => {
                (Box::new(|| self.google.asked().len() > asked + wanted), SHORTLY)
            }
            _ => (Box::new(|| self.mail.connections() > connected), SHORTLY),
        };
        while !is_there() && child.try_wait().unwrap().is_none() {
            tokio::time::sleep(Duration::from_micros(200)).await;
        }
        let micros = dice.roll(u64::try_from(span.as_micros()).unwrap());
        tokio::time::sleep(Duration::from_micros(micros)).await;
        // A program that has ended in the meantime is not killed; it has done its work.
        let _ = child.kill();
        child.wait().unwrap();
    }

    /// Waits until the mail server has processed everything of the dead client, then lets its leases expire.
    async fn drain(&mut self) {
        self.mail.open.drain(self.mail.address, b"").await.unwrap();
        let rows =
            self.fixture.db.read(|tx| outbox::list(tx, &DeliveryFilter::default(), 10_000)).await.unwrap();
        for row in rows.iter().filter(|row| row.state == State::Sending) {
            let payload = &row.payload;
            let of_row = |mail: &Kept| isbns(mail).iter().all(|isbn| payload.contains(isbn.as_str()));
            let copies: Vec<Kept> = self.mail.mails().into_iter().filter(of_row).collect();
            if let Some(mail) = copies.first() {
                self.excused.insert(mail.header("Message-ID").unwrap().to_owned(), copies.len());
            }
        }
        self.fixture.clock.advance(Duration::from_secs(600));
    }

    /// How often each mail arrived, by its Message-ID.
    fn copies(&self) -> BTreeMap<String, usize> {
        let mut copies = BTreeMap::new();
        for mail in self.mail.mails() {
            *copies.entry(mail.header("Message-ID").unwrap().to_owned()).or_default() += 1;
        }
        copies
    }

    async fn count(&self, sql: &'static tsuzuki::db::Sql) -> i64 {
        self.fixture.db.read(move |tx| tx.count(sql, params![])).await.unwrap()
    }

    /// Invariants between runs, however the last one ended.
    async fn check_always(&self, round: u32) {
        let (found, before) = (i64::from(FOUND), i64::from(round * FOUND));
        let books = self.count(sql!("SELECT COUNT(*) FROM books")).await - before;
        let cursors =
            self.fixture.db.read(|tx| tsuzuki::ledger::cursor::list(tx, Some("shelf"))).await.unwrap();
        let read: i64 = cursors.iter().map(|cursor| cursor.start_index).sum::<i64>() - before;
        assert_eq!(read, books, "round {round}: the cursor stands exactly behind the books that were saved");
        assert!((0..=found).contains(&books), "round {round}: {books} books");
        let marked = self.count(sql!("SELECT COUNT(*) FROM books WHERE last_delivered_at IS NOT NULL")).await;
        let items = self.count(sql!("SELECT COUNT(*) FROM delivery_items")).await;
        assert_eq!(marked, items, "round {round}: a delivery is recorded as a whole");
    }

    /// Invariants after a completed round.
    async fn check_done(&self, round: u32) {
        let all = i64::from((round + 1) * FOUND);
        assert_eq!(
            self.count(sql!("SELECT COUNT(*) FROM delivery_items")).await,
            all,
            "round {round}: every book was delivered"
        );
        let mut mailed: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for mail in self.mail.mails() {
            let id = mail.header("Message-ID").unwrap().to_owned();
            for isbn in isbns(&mail) {
                mailed.entry(isbn).or_default().insert(id.clone());
            }
        }
        for number in (round * 1000)..(round * 1000 + FOUND) {
            let mails = mailed.get(&isbn(number)).map_or(0, BTreeSet::len);
            assert_eq!(mails, 1, "round {round}: book {number} stands in exactly one mail");
        }
        for (id, copies) in self.copies() {
            let excused = self.excused.get(&id).copied().unwrap_or(0);
            assert!(copies <= 1 + excused, "round {round}: {id} came {copies} times, {excused} excused");
        }
    }
}

/// The ISBNs in the text part of a mail.
fn isbns(mail: &Kept) -> BTreeSet<String> {
    let (_, plain) = mail.data.split_once("Content-Transfer-Encoding: base64").unwrap();
    let plain: String = plain.split("--").next().unwrap().split_whitespace().collect();
    let plain = String::from_utf8(BASE64.decode(plain).unwrap()).unwrap();
    plain
        .split(|letter: char| !letter.is_ascii_digit())
        .filter(|word| word.len() == 13 && word.starts_with("9784"))
        .map(str::to_owned)
        .collect()
}

on_both_databases! {
    async fn kills_at_random_instants_lose_no_book_and_mail_none_twice(fixture) {
        let mut world = World::new(fixture).await;
        let mut dice = Dice(20_261_116);
        world.begin(0);
        let span = world.run();
        world.fixture.clock.advance(Duration::from_secs(600));
        world.run();
        world.check_done(0).await;
        let (mut while_reading, mut while_mailing) = (0, 0);
        for round in 1..=ROUNDS {
            world.begin(round);
            let before = i64::from(round * FOUND);
            for kill in 0..KILLS {
                world.kill(&mut dice, span, kill == 0).await;
                world.drain().await;
                world.check_always(round).await;
                let read = world.count(sql!("SELECT COUNT(*) FROM books")).await - before;
                let mailed = world.count(sql!("SELECT COUNT(*) FROM delivery_items")).await - before;
                while_reading += u32::from((0..i64::from(FOUND)).contains(&read));
                while_mailing += u32::from(read == i64::from(FOUND) && mailed < read);
            }
            let all = before + i64::from(FOUND);
            for _ in 0..6 {
                if world.count(sql!("SELECT COUNT(*) FROM delivery_items")).await < all {
                    // A mail whose second sender was killed, too, waits for a person.
                    world.fixture.db.write(|tx| outbox::approve_job(tx, "shelf", tx.now())).await.unwrap();
                    world.run();
                    world.drain().await;
                }
            }
            world.check_always(round).await;
            world.check_done(round).await;
        }
        assert!(while_reading >= 5, "only {while_reading} kills fell while pages were read");
        assert!(while_mailing >= 5, "only {while_mailing} kills fell between the last page and the last record");
    }
}
