//! The servers and jobs for tests of books: a search, and a webhook as the receiver.

use std::cell::RefCell;
use std::sync::Once;

use serde_json::json;
use tokio_util::sync::CancellationToken;
use tsuzuki::app::App;
use tsuzuki::channel::outbox::SendReport;
use tsuzuki::config;
use tsuzuki::db::{Db, Tx};
use tsuzuki::demo::google_books::{GoogleBooks, Reply};
use tsuzuki::demo::webhook::WebhookServer;
use tsuzuki::engine::{DeliveryMode, Finished, Progress, Report, RunContext, Runner, Selection};
use tsuzuki::id::{JobName, Owner};
use tsuzuki::ledger::lease::{self, Claim};
use tsuzuki::ledger::quota::Quota;
use tsuzuki::{params, sql};

use crate::databases::Fixture;
use crate::test_env::read_config;

/// The search and the reader.
pub(crate) struct World {
    pub(crate) google: GoogleBooks,
    pub(crate) hook: WebhookServer,
    pub(crate) db: Db,
}

impl World {
    pub(crate) async fn new(fixture: &Fixture, volumes: Vec<serde_json::Value>) -> Self {
        Self {
            google: GoogleBooks::start(volumes).await.unwrap(),
            hook: WebhookServer::start().await.unwrap(),
            db: fixture.db.clone(),
        }
    }

    /// A config file with one job `shelf` and the channel `hook`.
    pub(crate) fn text(&self, keys: &str) -> String {
        let mut keys = keys.to_owned();
        for (key, usual) in [("queries", "[\"rust\"]"), ("deliver", "[\"hook\"]")] {
            if !keys.contains(&format!("{key} =")) {
                keys = format!("{key} = {usual}\n{keys}");
            }
        }
        format!(
            "[channel.hook]\nkind = \"webhook\"\nurl = \"{}\"\nallow_private = [\"127.0.0.1\"]\n\n\
             [[job]]\nname = \"shelf\"\nkind = \"books\"\nallow_private = [\"127.0.0.1\"]\n\
             google_books = {{ api_url = \"{}\", printType = \"books\" }}\n{keys}\n",
            self.hook.url, self.google.url
        )
    }

    pub(crate) fn app(&self, keys: &str) -> App {
        App::new(&read_config(&self.text(keys)), self.db.clone()).unwrap()
    }

    /// Runs the job once, whatever its schedule says.
    pub(crate) async fn run(&self, keys: &str) -> Report {
        match self.finish(keys).await {
            Finished::Ran(report) => report,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn finish(&self, keys: &str) -> Finished {
        let app = self.app(keys);
        let runner = Runner::new(self.db.clone(), Progress::default());
        runner.run(app.jobs, Selection::Forced, &CancellationToken::new()).await.remove(0).1
    }

    /// Sends the messages in the outbox.
    pub(crate) async fn send(&self) -> SendReport {
        let app = self.app("");
        send(&app).await
    }

    /// One number from the database.
    pub(crate) async fn count(&self, sql: &'static tsuzuki::db::Sql) -> i64 {
        self.db.read(move |tx| tx.count(sql, params![])).await.unwrap()
    }

    pub(crate) async fn cursors(&self) -> Vec<(i64, bool)> {
        let list = |tx: &mut Tx<'_>| tsuzuki::ledger::cursor::list(tx, Some("shelf"));
        let cursors = self.db.read(list).await.unwrap();
        cursors.into_iter().map(|cursor| (cursor.start_index, cursor.is_exhausted)).collect()
    }

    /// The ISBNs in the state that delivery has left behind, oldest delivery first.
    pub(crate) async fn delivered(&self) -> Vec<String> {
        self.db
            .read(|tx| {
                tx.list(sql!("SELECT isbn13 FROM delivery_items ORDER BY id"), params![], |row| row.get(0))
            })
            .await
            .unwrap()
    }
}

/// Sends the messages in the outbox, as `serve` does.
pub(crate) async fn send(app: &App) -> SendReport {
    app.sender().send_due(&CancellationToken::new()).await.unwrap()
}

/// Runs a phase under its own lease.
pub(crate) async fn turn(fixture: &Fixture, job: &str) -> RunContext {
    let job: JobName = job.parse().unwrap();
    let name = format!("job:{job}:{}", uuid::Uuid::new_v4());
    let claim = fixture
        .db
        .write(move |tx| {
            lease::claim(tx, &name, &Owner::this_process(), std::time::Duration::from_secs(3600))
        })
        .await
        .unwrap();
    let Claim::Taken(lease) = claim else { panic!("{claim:?}") };
    RunContext {
        job,
        db: fixture.db.clone(),
        clock: fixture.clock.clone(),
        lease,
        stop: CancellationToken::new(),
        progress: Progress::default(),
        delivery: DeliveryMode::Queue,
    }
}

pub(crate) fn quota(provider: &str, per_day: u32) -> Quota {
    let rule =
        config::Quota { per_day, day_starts: "00:00".parse().unwrap(), zone: "Asia/Tokyo".parse().unwrap() };
    Quota { provider: provider.into(), rule }
}

thread_local! {
    static LINES: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

/// Captures the log of this thread while the value exists.
///
/// One subscriber for the whole binary: with one per test, a log statement first reached by another thread may stay
/// disabled.
pub(crate) struct Logged(());

impl Logged {
    pub(crate) fn new() -> Self {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            let subscriber = tracing_subscriber::fmt()
                .with_writer(ThisThread)
                .with_ansi(false)
                .without_time()
                .with_target(false)
                .finish();
            tracing::subscriber::set_global_default(subscriber).unwrap();
        });
        LINES.with_borrow_mut(|lines| *lines = Some(Vec::new()));
        Self(())
    }

    pub(crate) fn text(&self) -> String {
        LINES.with_borrow(|lines| String::from_utf8(lines.clone().unwrap()).unwrap())
    }
}

impl Drop for Logged {
    fn drop(&mut self) {
        LINES.with_borrow_mut(|lines| *lines = None);
    }
}

#[derive(Clone, Copy)]
struct ThisThread;

impl std::io::Write for ThisThread {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LINES.with_borrow_mut(|lines| lines.iter_mut().for_each(|lines| lines.extend_from_slice(bytes)));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl tracing_subscriber::fmt::MakeWriter<'_> for ThisThread {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        *self
    }
}

/// Google's error for `reason`.
pub(crate) fn refusal(status: u16, reason: &str) -> Reply {
    let error = json!({ "code": status, "message": reason, "errors": [{ "domain": "usageLimits", "reason": reason }] });
    Reply::Raw { status, headers: Vec::new(), body: json!({ "error": error }).to_string() }
}

/// Google's answer during an outage.
pub(crate) fn outage() -> Reply {
    let message = "Service temporarily unavailable.";
    let errors = json!([{ "message": message, "domain": "global", "reason": "backendFailed" }]);
    let error = json!({ "code": 503, "message": message, "errors": errors });
    Reply::Raw { status: 503, headers: Vec::new(), body: json!({ "error": error }).to_string() }
}

/// Google's answer when a limit is reached: all limits have the same status and reasons and differ only in the
/// metadata. `limit` is the name, `unit` the unit, `value` the number.
pub(crate) fn over_limit(limit: &str, unit: &str, value: &str) -> Reply {
    let message = format!(
        "Quota exceeded for quota metric 'Queries' and limit '{limit}' of service 'books.googleapis.com'."
    );
    let info = json!({
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "RATE_LIMIT_EXCEEDED",
        "domain": "googleapis.com",
        "metadata": {
            "service": "books.googleapis.com",
            "consumer": "projects/1",
            "quota_metric": "books.googleapis.com/default",
            "quota_limit": limit,
            "quota_unit": unit,
            "quota_limit_value": value,
            "quota_location": "global",
        },
    });
    let error = json!({
        "code": 429,
        "message": message,
        "errors": [{ "message": message, "domain": "global", "reason": "rateLimitExceeded" }],
        "status": "RESOURCE_EXHAUSTED",
        "details": [info],
    });
    Reply::Raw { status: 429, headers: Vec::new(), body: json!({ "error": error }).to_string() }
}
