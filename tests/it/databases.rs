//! Fresh databases for tests: every store test is stamped on SQLite and on PostgreSQL.

use std::future::Future;

use tempfile::TempDir;
use tsuzuki::db::{Db, DbUrl, Dialect, Open};
use tsuzuki::time::{Clock, Timestamp};

/// A database for one test, and a clock moved by the test.
pub(crate) struct Fixture {
    pub(crate) db: Db,
    pub(crate) clock: Clock,
    pub(crate) place: DbUrl,
    /// Contains the SQLite file; also for other files of the test.
    pub(crate) dir: TempDir,
    schema: Option<Schema>,
}

impl Fixture {
    /// The address of the database, for another process.
    pub(crate) fn address(&self) -> String {
        match &self.place {
            DbUrl::Server(url) => url.clone(),
            file => file.to_string(),
        }
    }

    /// Runs SQL that the program itself would not.
    pub(crate) fn execute_batch(&self, text: &str) {
        match &self.place {
            DbUrl::File(path) => rusqlite::Connection::open(path).unwrap().execute_batch(text).unwrap(),
            _ => on_server(&self.address(), text),
        }
    }

    /// Another connection to the same database, as in another process.
    pub(crate) async fn open_again(&self) -> Db {
        Db::open(self.place.clone(), Open::Existing, self.clock.clone()).await.unwrap()
    }
}

/// The default start time of tests.
pub(crate) fn test_start() -> Timestamp {
    "2026-01-15T00:02:11.123Z".parse().unwrap()
}

/// Runs `test` on a fresh database of the given kind.
pub(crate) fn run<F: Future<Output = ()>>(dialect: Dialect, test: impl FnOnce(Fixture) -> F) {
    run_with_clock(dialect, Clock::manual(test_start()), test);
}

/// The `DbUrl` with the address of a schema, to be passed to a child process.
pub(crate) fn place_at(address: &str) -> DbUrl {
    match address.strip_prefix("sqlite:") {
        Some(path) => DbUrl::File(path.into()),
        None => DbUrl::Server(address.to_owned()),
    }
}

/// The same with a clock given by the test.
pub(crate) fn run_with_clock<F: Future<Output = ()>>(
    dialect: Dialect,
    clock: Clock,
    test: impl FnOnce(Fixture) -> F,
) {
    let dir = tempfile::tempdir().unwrap();
    let (place, schema) = match dialect {
        Dialect::Sqlite => (DbUrl::File(dir.path().join("tsuzuki.db")), None),
        Dialect::Postgres => {
            let schema = Schema::create();
            (DbUrl::Server(schema.url.clone()), Some(schema))
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let db = Db::open(place.clone(), Open::Create, clock.clone()).await.unwrap();
        test(Fixture { db, clock, place, dir, schema }).await;
    });
}

/// A PostgreSQL schema that exists as long as this value.
pub(crate) struct Schema {
    pub(crate) url: String,
    server: String,
    name: String,
}

impl Schema {
    /// Makes an empty schema on the server that `scripts/test` started.
    pub(crate) fn create() -> Self {
        let server = std::env::var("TSUZUKI_TEST_POSTGRES").expect(
            "TSUZUKI_TEST_POSTGRES is not set: run the tests with ./scripts/test, which starts a PostgreSQL",
        );
        let name = format!("t_{}", uuid::Uuid::new_v4().simple());
        on_server(&server, &format!("CREATE SCHEMA {name}"));
        let url = format!("{server}?options=-csearch_path%3D{name}");
        Self { url, server, name }
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        on_server(&self.server, &format!("DROP SCHEMA IF EXISTS {} CASCADE", self.name));
    }
}

/// The client blocks, also when it is dropped, so it has its own thread.
fn on_server(server: &str, text: &str) {
    let (server, text) = (server.to_owned(), text.to_owned());
    std::thread::spawn(move || {
        postgres::Client::connect(&server, postgres::NoTls).unwrap().batch_execute(&text).unwrap();
    })
    .join()
    .unwrap();
}

impl Drop for Fixture {
    fn drop(&mut self) {
        // The schema must outlive the connections only for the sake of a quiet server log.
        self.schema.take();
    }
}

/// Stamps a test on both databases: `on_both_databases! { async fn name(fixture) { … } }`.
macro_rules! on_both_databases {
    ($($(#[$attribute:meta])* async fn $name:ident($fixture:ident) $body:block)+) => {$(
        mod $name {
            #[allow(unused_imports)]
            use super::*;

            async fn check($fixture: $crate::databases::Fixture) $body

            $(#[$attribute])*
            #[test]
            fn on_sqlite() {
                $crate::databases::run(tsuzuki::db::Dialect::Sqlite, check);
            }

            $(#[$attribute])*
            #[test]
            fn on_postgres() {
                $crate::databases::run(tsuzuki::db::Dialect::Postgres, check);
            }
        }
    )+};
}
