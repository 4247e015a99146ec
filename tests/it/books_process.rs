//! Books with real processes: killed at any point, or several at once.
//!
//! The test binary starts itself again as the program: a child runs one job of a config file and empties the outbox.

use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tsuzuki::app::App;
use tsuzuki::db::{Db, Open};
use tsuzuki::demo::google_books::volumes;
use tsuzuki::engine::{Progress, Runner, Selection};
use tsuzuki::sql;
use tsuzuki::time::Clock;

use crate::books_world::{self, World};
use crate::databases::{Fixture, place_at};
use crate::test_env::read_config;

/// Runs every job of `$BOOKS_CHILD_CONFIG` once, sends due messages, and exits.
#[test]
#[ignore = "the program of the tests below, which start it"]
fn the_program() {
    let Ok(path) = std::env::var("BOOKS_CHILD_CONFIG") else { panic!("started by hand") };
    let text = std::fs::read_to_string(path).unwrap();
    let place = place_at(&std::env::var("BOOKS_CHILD_DB").unwrap());
    let start = std::env::var("BOOKS_CHILD_NOW").unwrap().parse().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let db = Db::open(place, Open::Existing, Clock::starting_at(start)).await.unwrap();
        let app = App::new(&read_config(&text), db.clone()).unwrap();
        let runner = Runner::new(db, Progress::default());
        std::io::stderr().write_all(b"!").unwrap();
        runner.run(app.jobs.clone(), Selection::Forced, &CancellationToken::new()).await;
        books_world::send(&app).await;
    });
}

/// The program with `config` at the fixture's time; it prints `!` when its work begins.
pub(crate) fn command(fixture: &Fixture, config: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "books_process::the_program", "--ignored", "--test-threads=1"])
        .env("BOOKS_CHILD_CONFIG", config)
        .env("BOOKS_CHILD_DB", fixture.address())
        .env("BOOKS_CHILD_NOW", fixture.clock.now().to_string())
        .env_remove("TSUZUKI_FAIL_AT")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

fn start(fixture: &Fixture, config: &Path, fail_at: Option<&str>) -> Child {
    let mut command = command(fixture, config);
    if let Some(point) = fail_at {
        command.env("TSUZUKI_FAIL_AT", point);
    }
    command.spawn().unwrap()
}

async fn end(mut child: Child) -> bool {
    tokio::task::spawn_blocking(move || child.wait().unwrap().success()).await.unwrap()
}

on_both_databases! {
    async fn a_crash_at_any_point_loses_no_book_and_repeats_none(fixture) {
        // Three pages, a digest, a message: the points of a run, each with the pages passed before.
        let points = [
            "books.page_fetched", "books.page_fetched:1", "books.page_saved", "books.page_saved:1", "books.page_saved:2",
            "books.digest_queued", "outbox.claimed", "outbox.sent", "outbox.recorded",
        ];
        let config = fixture.dir.path().join("kill.toml");
        let mut delivered = 0;
        for (round, point) in points.iter().enumerate() {
            let first = u32::try_from(round).unwrap() * 1000;
            let world = World::new(&fixture, volumes(first, 100)).await;
            let keys = format!("queries = [\"round {round}\"]\nmax_per_run = 100\nmail_limit = 50\nfallback_limit = 0");
            std::fs::write(&config, world.text(&keys)).unwrap();
            assert!(!end(start(&fixture, &config, Some(point))).await, "{point} was not reached");
            // Leases of dead processes expire; then later runs complete the work by themselves.
            for _ in 0..4 {
                fixture.clock.advance(Duration::from_secs(300));
                assert!(end(start(&fixture, &config, None)).await);
            }
            delivered += 100;
            let books = world.count(sql!("SELECT COUNT(*) FROM delivery_items")).await;
            assert_eq!(books, delivered, "{point}: every book is delivered");
            let posts = world.hook.posts();
            // Only a death between the acceptance and its record may repeat a message; the key shows that it is the same.
            let expected = if *point == "outbox.sent" { 3 } else { 2 };
            assert_eq!(posts.len(), expected, "{point}: messages");
            let all: String = posts.iter().map(|post| post.body.as_str()).collect();
            let links = all.matches("/p/").count();
            assert_eq!(links, expected * 50, "{point}: every message is whole");
            // Three pages, one that was requested when the process died, and the empty one at the end.
            assert!(world.google.asked().len() <= 5, "{point}: {:?}", world.google.asked());
        }
    }

    async fn no_number_of_processes_makes_request_101(fixture) {
        let world = World::new(&fixture, volumes(0, 4000)).await;
        let config = fixture.dir.path().join("quota.toml");
        let mut text = String::new();
        // Six jobs that want 30 pages each, in four processes: 180 requests wanted, 100 allowed.
        for job in 0..6 {
            let keys = format!("queries = [\"job {job}\"]\nmax_per_run = 1200\nfallback_limit = 0\ndeliver = []\n");
            let table = world.text(&keys).replace("name = \"shelf\"", &format!("name = \"shelf-{job}\""));
            let jobs = table.find("[[job]]").unwrap();
            text += if job == 0 { &table } else { &table[jobs..] };
        }
        std::fs::write(&config, text).unwrap();
        let children: Vec<Child> = (0..4).map(|_| start(&fixture, &config, None)).collect();
        for child in children {
            assert!(end(child).await);
        }
        assert_eq!(world.google.asked().len(), 100);
        assert_eq!(world.count(sql!("SELECT count FROM api_usage WHERE provider = 'google_books'")).await, 100);
        fixture.clock.advance(Duration::from_secs(60));
        assert!(end(start(&fixture, &config, None)).await);
        assert_eq!(world.google.asked().len(), 100, "nor does a later one, on the same day");
    }
}
