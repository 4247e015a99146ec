//! Senders that are killed and stopped at any moment: what arrives at Mastodon and the mail server nevertheless.
//!
//! The servers live in this process and log every effect; the sender is this test binary, started again as a process
//! of its own and killed. Its clock is shifted from round to round, so that leases end without waiting for them.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tsuzuki::channel::outbox::{self, DeliveryFilter, Row, Sender, State, Topics};
use tsuzuki::channel::{ChannelEnv, ChannelSet, News, Notice};
use tsuzuki::db::{Db, DbUrl, Dialect, Open, Tx};
use tsuzuki::demo::mastodon::{MastodonServer, TOKEN};
use tsuzuki::demo::smtp::SmtpServer;
use tsuzuki::ledger::{Subject, event};
use tsuzuki::text::Language;
use tsuzuki::time::Clock;

use crate::databases::{self, Fixture, place_at};
use crate::outbox::{add_rendered, channels, clients};
use crate::test_env::Stopped;

/// Every point that a sender passes on its way; named in the code with `fail::point`.
const POINTS: [&str; 10] = [
    "outbox.claiming",
    "outbox.claimed",
    "http.before",
    "http.after",
    "email.connected",
    "email.before_text",
    "email.before_end",
    "email.after_end",
    "outbox.sent",
    "outbox.recording",
];
/// Kills at random moments, per database.
const KILLS: u32 = 150;
/// Messages that are added before each of them, per channel.
const PER_ROUND: u32 = 2;

/// The work of a child process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// As the program does it.
    MarkThenSend,
    /// A wrong order, which the test must detect.
    SendThenMark,
}

/// The child process of the tests; does nothing unless its variables are set.
#[test]
#[ignore = "started as a process of its own by the other tests"]
fn sender_process() {
    let var = |name: &str| std::env::var(name).unwrap_or_default();
    let Ok(place) = std::env::var("KILL_PLACE") else { return };
    let clock = match var("KILL_CLOCK").as_str() {
        "system" => Clock::system(),
        start => Clock::starting_at(start.parse().unwrap()),
    };
    let channels = channels(&std::fs::read_to_string(var("KILL_CONFIG")).unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let db = Db::open(place_at(&place), Open::Existing, clock.clone()).await.unwrap();
        let stop = CancellationToken::new();
        // The parent waits for this byte: the work begins now.
        std::io::stderr().write_all(b"!").unwrap();
        if var("KILL_ORDER") == "SendThenMark" {
            loop {
                send_then_mark(&db, &channels, &clock).await;
            }
        }
        let topics = Topics::new().on("test", |tx, row, _| {
            event::add(
                tx,
                None,
                &Subject::verbatim(format!("owner:{}", row.key)),
                "notified",
                &serde_json::Value::Null,
                tx.now(),
            )
        });
        let sender = Sender::new(db, channels, clients(), clock, topics);
        loop {
            let report = sender.send_due(&stop).await.unwrap();
            if var("KILL_ONCE") == "1" {
                std::fs::write(var("KILL_REPORT"), serde_json::to_string(&report).unwrap()).unwrap();
                return;
            }
        }
    });
}

/// The fault without the outbox's order: a crash between the two steps sends twice.
async fn send_then_mark(db: &Db, channels: &ChannelSet, clock: &Clock) {
    let ready = DeliveryFilter { state: Some(State::Ready), ..DeliveryFilter::default() };
    let rows = db.read(move |tx| outbox::list(tx, &ready, 1000)).await.unwrap();
    let channel_env = ChannelEnv { clients: clients(), clock: clock.clone() };
    for row in rows.into_iter().rev() {
        let channel = channels.find(&row.channel).unwrap();
        if channel.send(&channel_env, &row, &tsuzuki::channel::Progress::unlimited()).await.is_ok() {
            let id = row.id;
            let sql =
                tsuzuki::sql!("UPDATE outbox SET state = 'sent', settled_at = created_at WHERE id = ?1");
            db.write(move |tx| tx.execute(sql, tsuzuki::params![id])).await.unwrap();
        }
    }
}

/// Two Mastodon servers, one of which ignores keys, and a mail server, with the outbox that sends to them.
struct World {
    fixture: Fixture,
    keys: MastodonServer,
    no_keys: MastodonServer,
    mail: SmtpServer,
    channels: Arc<ChannelSet>,
    channel_env: ChannelEnv,
    added: u32,
    /// Copies of a mail that were kept although the commit of their result was cut off.
    excused: BTreeMap<String, usize>,
}

const GET: &[u8] = b"GET /api/v2/instance HTTP/1.1\r\nhost: loopback\r\nconnection: close\r\n\r\n";

impl World {
    async fn new(fixture: Fixture, more: &str) -> Self {
        let keys = MastodonServer::start(fixture.clock.clone()).await.unwrap();
        let no_keys = MastodonServer::start(fixture.clock.clone()).await.unwrap();
        no_keys.ignore_keys();
        let mail = SmtpServer::start().await.unwrap();
        let common = format!("allow_private = [\"127.0.0.1\"]\nmax_attempts = 1000\n{more}\n");
        let config = format!(
            "[channel.keys]\nkind = \"mastodon\"\ninstance = \"{}\"\ntoken = \"{TOKEN}\"\n{common}\
             [channel.no_keys]\nkind = \"mastodon\"\ninstance = \"{}\"\ntoken = \"{TOKEN}\"\n{common}\
             [channel.mail]\nkind = \"email\"\nsmtp = \"{}\"\ntls = \"none\"\nfrom = \"a@example.com\"\n\
             to = [\"b@example.com\"]\n{common}",
            keys.url, no_keys.url, mail.address
        );
        std::fs::write(fixture.dir.path().join("tsuzuki.toml"), &config).unwrap();
        let channel_env = ChannelEnv { clients: clients(), clock: fixture.clock.clone() };
        let channels = channels(&config);
        Self { fixture, keys, no_keys, mail, channels, channel_env, added: 0, excused: BTreeMap::new() }
    }

    /// Adds messages to one channel or to all, each with its own link.
    async fn add(&mut self, count: u32, only: Option<&str>) {
        let mut new = Vec::new();
        for _ in 0..count {
            self.added += 1;
            let news: News = Notice {
                link: Some(format!("https://example.com/{}", self.added).parse().unwrap()),
                ..Notice::new(format!("M{}", self.added), Language::En)
            }
            .into();
            for channel in self.channels.iter().filter(|channel| only.is_none_or(|only| channel.name == only))
            {
                new.push((
                    self.added.to_string(),
                    channel.render(&self.channel_env, &news).await.unwrap().remove(0),
                ));
            }
        }
        let add_all = move |tx: &mut Tx<'_>| {
            new.iter().try_for_each(|(subject, rendered)| add_rendered(tx, rendered, subject).map(drop))
        };
        self.fixture.db.write(add_all).await.unwrap();
    }

    fn process(&self, order: Order, clock: &str) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "kill::sender_process", "--ignored", "--quiet"])
            .env("KILL_PLACE", self.fixture.address())
            .env("KILL_CONFIG", self.fixture.dir.path().join("tsuzuki.toml"))
            .env("KILL_REPORT", self.fixture.dir.path().join("report.json"))
            .env("KILL_CLOCK", clock)
            .env("KILL_ORDER", format!("{order:?}"))
            // Reading the system's certificates would take longer than everything else.
            .env("SSL_CERT_FILE", "/dev/null")
            .env("SSL_CERT_DIR", "/dev/null")
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        command
    }

    fn start(&self, order: Order) -> Child {
        self.process(order, &self.fixture.clock.now().to_string()).spawn().unwrap()
    }

    /// A sender that makes one pass.
    fn once(&self) -> Command {
        let mut command = self.process(Order::MarkThenSend, &self.fixture.clock.now().to_string());
        command.env("KILL_ONCE", "1");
        command
    }

    /// Runs a sender to its end, which is a crash if `point` is set.
    fn run_once(&self, point: Option<&str>) {
        let mut command = self.once();
        if let Some(point) = point {
            command.env("TSUZUKI_FAIL_AT", point);
        }
        let status = command.stderr(Stdio::null()).status().unwrap();
        assert_eq!(status.success(), point.is_none(), "{point:?} {status}");
    }

    /// Lets senders work undisturbed until nothing is left: deferred messages may wait for half a day.
    async fn finish(&mut self) {
        for _ in 0..20 {
            self.run_once(None);
            let is_open = |row: &Row| matches!(row.state, State::Ready | State::Sending | State::Unknown);
            if !self.rows().await.iter().any(is_open) {
                break;
            }
            self.drain(Duration::from_secs(5 * 3600)).await;
        }
        self.drain(Duration::ZERO).await;
    }

    /// Waits until the servers have dealt with everything that dead senders sent, then lets leases run out.
    async fn drain(&mut self, on: Duration) {
        let address = |url: &url::Url| SocketAddr::from(([127, 0, 0, 1], url.port().unwrap()));
        self.keys.open.drain(address(&self.keys.url), GET).await.unwrap();
        self.no_keys.open.drain(address(&self.no_keys.url), GET).await.unwrap();
        self.mail.open.drain(self.mail.address, b"").await.unwrap();
        // A mail that was accepted while its row still says `sending` is sent a second time.
        let kept = self.copies_of_mails();
        for row in self.rows().await {
            if row.channel == "mail" && row.state == State::Sending {
                self.excused.insert(row.subject.clone(), kept.get(&row.subject).copied().unwrap_or(0));
            }
        }
        self.fixture.clock.advance(on);
    }

    async fn rows(&self) -> Vec<Row> {
        self.fixture.db.read(|tx| outbox::list(tx, &DeliveryFilter::default(), 100_000)).await.unwrap()
    }

    fn copies_of_toots(server: &MastodonServer) -> BTreeMap<String, usize> {
        let mut copies = BTreeMap::new();
        for toot in server.toots() {
            let text = toot.request["status"].as_str().unwrap().to_owned();
            let number = text.rsplit('/').next().unwrap().trim().to_owned();
            *copies.entry(number).or_default() += 1;
        }
        copies
    }

    fn copies_of_mails(&self) -> BTreeMap<String, usize> {
        let mut copies = BTreeMap::new();
        for mail in self.mail.mails() {
            let number = mail.header("Subject").unwrap().strip_prefix('M').unwrap().to_owned();
            *copies.entry(number).or_default() += 1;
        }
        copies
    }

    /// Nothing lost, nothing twice; mails twice only where the commit was cut off, and then with one Message-ID. A mail
    /// whose second sender was killed, too, waits for a person.
    async fn check(&self, what: &str) {
        let rows = self.rows().await;
        let sql = tsuzuki::sql!(
            "SELECT subject, CAST(COUNT(*) AS BIGINT) FROM events WHERE code = 'notified' GROUP BY subject"
        );
        let notified =
            move |tx: &mut Tx<'_>| tx.list(sql, tsuzuki::params![], |row| Ok((row.get(0)?, row.get(1)?)));
        let notified: BTreeMap<String, i64> =
            self.fixture.db.read(notified).await.unwrap().into_iter().collect();
        for row in &rows {
            if row.channel == "mail" && row.state == State::Held && row.resent_at.is_some() {
                continue;
            }
            assert_eq!(
                row.state,
                State::Sent,
                "{what}: {} of {} {:?}",
                row.subject,
                row.channel,
                row.last_error
            );
            assert_eq!(
                notified.get(&format!("owner:{}", row.key)),
                Some(&1),
                "{what}: the owner of {}",
                row.subject
            );
        }
        let of = |channel: &str| rows.iter().filter(|row| row.channel == channel).count();
        for (name, server) in [("keys", &self.keys), ("no_keys", &self.no_keys)] {
            let copies = Self::copies_of_toots(server);
            assert_eq!(copies.len(), of(name), "{what}: {name} lost posts");
            let twice: Vec<_> = copies.iter().filter(|(_, count)| **count != 1).collect();
            assert!(twice.is_empty(), "{what}: {name} has posts more than once: {twice:?}");
        }
        let copies = self.copies_of_mails();
        for row in rows.iter().filter(|row| row.channel == "mail" && row.state == State::Sent) {
            assert!(copies.contains_key(&row.subject), "{what}: mail {} is said to be sent", row.subject);
        }
        for (number, count) in &copies {
            let excused = self.excused.get(number).copied().unwrap_or(0).min(1);
            assert!(*count <= 1 + excused, "{what}: mail {number} came {count} times, {excused} excused");
        }
        let mut ids: BTreeMap<String, String> = BTreeMap::new();
        for mail in self.mail.mails() {
            let id = mail.header("Message-ID").unwrap().to_owned();
            let known = ids.entry(mail.header("Subject").unwrap().to_owned()).or_insert_with(|| id.clone());
            assert_eq!(*known, id, "{what}: two copies, two names");
        }
    }
}

/// Small, repeatable dice.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

/// Starts a sender and kills it at some moment of its work, now and then while it is still starting.
///
/// `span` is how long the work takes. On a machine that is busy now and idle later that changes: it shrinks when a sender
/// was through before its kill, and grows otherwise.
async fn kill_at_random(world: &World, dice: &mut Dice, order: Order, span: &mut Duration) {
    let mut child = world.start(order);
    if dice.roll(20) > 0 {
        wait_for_work(&mut child);
    }
    let micros = dice.roll(u64::try_from(span.as_micros()).unwrap().max(1));
    tokio::time::sleep(Duration::from_micros(micros)).await;
    child.kill().unwrap();
    child.wait().unwrap();
    let is_open = |row: &Row| matches!(row.state, State::Ready | State::Sending | State::Unknown);
    let was_cut_off = world.rows().await.iter().any(is_open);
    *span = span.mul_f64(if was_cut_off { 1.05 } else { 0.8 });
}

fn wait_for_work(child: &mut Child) {
    child.stderr.as_mut().unwrap().read_exact(&mut [0]).unwrap();
}

/// How long the sender of a round works: kills are spread over this time.
async fn measure(world: &mut World) -> Duration {
    world.add(PER_ROUND, None).await;
    let mut child = world.once().spawn().unwrap();
    wait_for_work(&mut child);
    let began = std::time::Instant::now();
    assert!(child.wait().unwrap().success());
    began.elapsed().mul_f64(0.8)
}

fn random_kills(dialect: Dialect) {
    databases::run(dialect, async move |fixture: Fixture| {
        let mut world = World::new(fixture, "").await;
        let mut dice = Dice(20_260_115);
        let mut span = measure(&mut world).await;
        for round in 0..KILLS {
            world.add(PER_ROUND, None).await;
            kill_at_random(&world, &mut dice, Order::MarkThenSend, &mut span).await;
            // Mostly within the hour in which keys count, sometimes long after.
            world.drain(Duration::from_secs(if round % 7 == 6 { 7200 } else { 600 })).await;
        }
        world.finish().await;
        let interrupted = world.rows().await.iter().filter(|row| row.attempts > 1).count();
        assert!(interrupted > 20, "only {interrupted} sends were cut off: the kills miss the work");
        world.check("random kills").await;
    });
}

#[test]
fn three_hundred_kills_lose_nothing_and_repeat_nothing_on_sqlite() {
    random_kills(Dialect::Sqlite);
}

#[test]
fn three_hundred_kills_lose_nothing_and_repeat_nothing_on_postgres() {
    random_kills(Dialect::Postgres);
}

/// The same kills against the wrong order: if this does not show duplicates, the tests above prove nothing.
#[test]
fn the_kills_find_duplicates_when_a_message_is_sent_before_it_is_marked() {
    databases::run(Dialect::Sqlite, async |fixture: Fixture| {
        let mut world = World::new(fixture, "").await;
        let mut dice = Dice(20_260_115);
        let mut span = measure(&mut world).await;
        for _ in 0..KILLS {
            world.add(PER_ROUND * 5, Some("no_keys")).await;
            kill_at_random(&world, &mut dice, Order::SendThenMark, &mut span).await;
            world.drain(Duration::from_secs(600)).await;
            let copies = World::copies_of_toots(&world.no_keys);
            if copies.values().any(|count| *count > 1) {
                return;
            }
        }
        panic!("{KILLS} kills of a sender in the wrong order caused no duplicate");
    });
}

on_both_databases! {
    async fn a_kill_at_any_step_loses_nothing_and_repeats_nothing(fixture) {
        let mut world = World::new(fixture, "").await;
        for point in POINTS {
            let only = if point.starts_with("email") { "mail" } else if point.starts_with("http") { "no_keys" } else { "" };
            let targets = if only.is_empty() { vec!["keys", "no_keys", "mail"] } else if only == "no_keys" { vec!["keys", "no_keys"] } else { vec!["mail"] };
            for target in targets {
                world.add(1, Some(target)).await;
                world.run_once(Some(point));
                world.drain(Duration::from_secs(600)).await;
                world.run_once(None);
                world.drain(Duration::from_secs(600)).await;
                world.check(&format!("{point} {target}")).await;
            }
        }
        // Killed while it checks the outcome of a message, and again before it sends it again.
        for (first, second) in [("http.after", "outbox.looked"), ("http.before", "outbox.again"), ("outbox.claimed", "outbox.looked")] {
            for target in ["keys", "no_keys"] {
                world.add(1, Some(target)).await;
                world.run_once(Some(first));
                world.drain(Duration::from_secs(600)).await;
                world.run_once(Some(second));
                world.drain(Duration::from_secs(600)).await;
                world.finish().await;
                world.check(&format!("{first} {second} {target}")).await;
            }
        }
    }
}

/// A sender that is stopped past its lease and continued starts no send and writes nothing.
fn stopped_sender(dialect: Dialect, point: &'static str) {
    while !is_stopped_sender_shown(dialect, point) {}
}

/// Returns false if the process was stopped while renewing its lease: then it holds a lock that prevents others from
/// taking over.
/// So it does if its threads stopped a moment too late, when the result had left for the database.
fn is_stopped_sender_shown(dialect: Dialect, point: &'static str) -> bool {
    let is_shown = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let shown = Arc::clone(&is_shown);
    databases::run_with_clock(dialect, Clock::system(), async move |fixture: Fixture| {
        // Real time, so that the stopped process and its successor live by the same clock.
        let mut world = World::new(fixture, "timeout = \"600ms\"").await;
        world.add(2, Some("no_keys")).await;
        let mut command = world.process(Order::MarkThenSend, "system");
        let stopped = tokio::task::block_in_place(|| Stopped::at(point, command.env("KILL_ONCE", "1")));
        if holds_a_lock(&world.fixture) || world.rows().await.iter().any(|row| row.state == State::Sent) {
            return;
        }
        let sender = Sender::new(
            world.fixture.db.clone(),
            Arc::clone(&world.channels),
            clients(),
            Clock::system(),
            Topics::new(),
        );
        let stop = CancellationToken::new();
        // Its successor waits for the lease and twice the time-out, then checks and sends.
        let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
        while world.rows().await.iter().any(|row| row.state != State::Sent) {
            assert!(tokio::time::Instant::now() < deadline, "{:?}", world.rows().await);
            sender.send_due(&stop).await.unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let (rows, toots) = (world.rows().await, world.no_keys.toots().len());
        assert_eq!(toots, 2, "{point}");
        let woken = tokio::task::block_in_place(|| stopped.wake());
        assert!(woken.status.success(), "{woken:?}");
        let report = std::fs::read_to_string(world.fixture.dir.path().join("report.json")).unwrap();
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        assert_eq!((&report["lost"], &report["sent"]), (&1.into(), &0.into()), "{point}: {report}");
        assert_eq!(world.rows().await, rows, "{point}: it wrote something");
        assert_eq!(world.no_keys.toots().len(), 2, "{point}: it sent something");
        shown.store(true, std::sync::atomic::Ordering::SeqCst);
    });
    is_shown.load(std::sync::atomic::Ordering::SeqCst)
}

/// Whether a process is in the middle of a write.
fn holds_a_lock(fixture: &Fixture) -> bool {
    match fixture.db.place() {
        DbUrl::File(path) => {
            let other = rusqlite::Connection::open(path).unwrap();
            other.busy_timeout(Duration::from_secs(2)).unwrap();
            other.execute_batch("BEGIN IMMEDIATE; ROLLBACK").is_err()
        }
        _ => tokio::task::block_in_place(|| {
            let mut other = postgres::Client::connect(&fixture.address(), postgres::NoTls).unwrap();
            let lock = "BEGIN; SET LOCAL lock_timeout = '2s'; LOCK TABLE outbox, outbox_channels IN EXCLUSIVE MODE; ROLLBACK";
            other.batch_execute(lock).is_err()
        }),
    }
}

#[test]
fn a_sender_stopped_before_it_sends_does_not_send_when_it_wakes_on_sqlite() {
    stopped_sender(Dialect::Sqlite, "outbox.claimed");
}

#[test]
fn a_sender_stopped_before_it_sends_does_not_send_when_it_wakes_on_postgres() {
    stopped_sender(Dialect::Postgres, "outbox.claimed");
}

#[test]
fn a_sender_stopped_after_it_sent_does_not_write_when_it_wakes_on_sqlite() {
    stopped_sender(Dialect::Sqlite, "outbox.sent");
}

#[test]
fn a_sender_stopped_after_it_sent_does_not_write_when_it_wakes_on_postgres() {
    stopped_sender(Dialect::Postgres, "outbox.sent");
}
