//! Paging against the loopback API: requests, position, stop reason, rows and counter, as in the seed.

use std::time::Duration;

use serde_json::Value as Json;
use tsuzuki::books::collect::{self, CollectContext, Collected, Wrong};
use tsuzuki::books::config::GoogleBooks as Options;
use tsuzuki::books::decide::StopReason::{self, Error, Exhausted, MaxPerRun, Quota};
use tsuzuki::books::google::Search;
use tsuzuki::books::store;
use tsuzuki::config::value::FirstRun;
use tsuzuki::demo::google_books::{GoogleBooks, Reply, volume, volume_without_isbn, volumes};
use tsuzuki::fetch::{AllowPrivate, FetchConfig, Fetcher, Limits};
use tsuzuki::ledger::{Subject, cursor, pause};

use crate::books_world::{self, Logged, quota};
use crate::databases::Fixture;

const KEY: &str = "abc123def4567890ffffffffffffffffffffffffffffffffffffffffffffffff";

/// A run and its expected results.
struct Case {
    name: &'static str,
    volumes: Vec<Json>,
    replies: Vec<Reply>,
    start: i64,
    max_per_run: u32,
    per_day: u32,
    retries: u32,
    patience: Duration,
    asked: Vec<(i64, i64)>,
    cursor: (i64, bool),
    stop: StopReason,
    books: i64,
}

impl Case {
    fn usual(name: &'static str) -> Self {
        Self {
            name,
            volumes: volumes(0, 150),
            replies: Vec::new(),
            start: 0,
            max_per_run: 80,
            per_day: 100,
            // The clock of these tests is fixed: a wait would not end.
            retries: 0,
            patience: Limits::default().to_headers,
            asked: vec![(0, 40), (40, 40)],
            cursor: (80, false),
            stop: MaxPerRun,
            books: 80,
        }
    }
}

fn raw(status: u16, headers: &[(&'static str, &str)], body: &str) -> Reply {
    let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    Reply::Raw { status, headers, body: body.to_owned() }
}

/// A faulty answer, and how a run stops at it.
fn faults() -> Vec<(&'static str, Reply, StopReason)> {
    vec![
        ("html", raw(200, &[("content-type", "text/html")], "<html>captive portal</html>"), Error),
        ("half", raw(200, &[], "{\"totalItems\": 150, \"items\": [{"), Error),
        ("cut", Reply::Cut, Error),
        ("500", raw(500, &[], "oops"), Error),
        ("redirect", raw(302, &[("location", "/books/v1/volumes?startIndex=0&maxResults=40")], ""), Error),
        ("404", raw(404, &[], ""), Error),
        ("403", books_world::refusal(403, "forbidden"), Error),
        ("empty", raw(200, &[], ""), Error),
        ("nameless", raw(200, &[], "{\"kind\": \"books#volumes\"}"), Error),
        ("429-reset", raw(429, &[("retry-after", "120")], ""), Quota),
        ("429", raw(429, &[], "slow down"), Quota),
        ("403-quota", books_world::refusal(403, "dailyLimitExceeded"), Quota),
    ]
}

fn cases() -> Vec<Case> {
    let mut cases = vec![
        Case::usual("many-pages"),
        Case {
            max_per_run: 10,
            asked: vec![(0, 10)],
            cursor: (10, false),
            books: 10,
            ..Case::usual("below-forty")
        },
        Case {
            max_per_run: 40,
            asked: vec![(0, 40)],
            cursor: (40, false),
            books: 40,
            ..Case::usual("forty")
        },
        Case {
            max_per_run: 41,
            asked: vec![(0, 40), (40, 1)],
            cursor: (41, false),
            books: 41,
            ..Case::usual("above-forty")
        },
        Case {
            start: 100,
            max_per_run: 30,
            asked: vec![(100, 30)],
            cursor: (130, false),
            books: 30,
            ..Case::usual("continued")
        },
        Case {
            volumes: volumes(0, 50),
            asked: vec![(0, 40), (40, 40)],
            cursor: (50, true),
            stop: Exhausted,
            books: 50,
            ..Case::usual("read-to-the-end")
        },
        Case {
            volumes: volumes(0, 80),
            cursor: (80, false),
            books: 80,
            ..Case::usual("full-and-at-the-end-is-not-exhausted")
        },
        Case {
            volumes: volumes(0, 80),
            start: 80,
            asked: vec![(80, 40)],
            cursor: (80, true),
            stop: Exhausted,
            books: 0,
            ..Case::usual("an-empty-page-stays-where-it-is")
        },
        Case {
            volumes: Vec::new(),
            asked: vec![(0, 40)],
            cursor: (0, true),
            stop: Exhausted,
            books: 0,
            ..Case::usual("nothing-from-the-start")
        },
        Case {
            replies: vec![Reply::Total(Some(150)), Reply::Total(Some(60))],
            max_per_run: 120,
            asked: vec![(0, 40), (40, 40)],
            cursor: (80, true),
            stop: Exhausted,
            ..Case::usual("a-total-that-shrinks")
        },
        Case {
            replies: vec![Reply::Total(Some(41)), Reply::Total(Some(900))],
            max_per_run: 120,
            asked: vec![(0, 40), (40, 40), (80, 40)],
            cursor: (120, false),
            books: 120,
            ..Case::usual("a-total-that-grows")
        },
        Case {
            replies: vec![Reply::Total(None), Reply::Total(None)],
            ..Case::usual("no-total-proves-nothing")
        },
        Case {
            volumes: volumes(0, 40).into_iter().chain(volumes(0, 40)).chain(volumes(0, 5)).collect(),
            max_per_run: 100,
            asked: vec![(0, 40), (40, 40), (80, 20)],
            cursor: (85, true),
            stop: Exhausted,
            books: 40,
            ..Case::usual("volumes-that-repeat-count-and-are-stored-once")
        },
        Case {
            volumes: (0..80).map(volume_without_isbn).chain([volume(7)]).collect(),
            max_per_run: 81,
            asked: vec![(0, 40), (40, 40), (80, 1)],
            cursor: (81, false),
            books: 1,
            ..Case::usual("volumes-without-isbn-count-and-are-dropped")
        },
        Case {
            per_day: 0,
            asked: Vec::new(),
            cursor: (0, false),
            stop: Quota,
            books: 0,
            ..Case::usual("no-quota-at-all")
        },
        Case {
            per_day: 1,
            volumes: volumes(0, 20),
            asked: vec![(0, 40)],
            cursor: (20, false),
            stop: Quota,
            books: 20,
            ..Case::usual("quota-goes-before-exhausted")
        },
    ];
    // Quota and every fault at each page of four.
    for page in 0..4u32 {
        let before = i64::from(page) * 40;
        let asked = |pages: u32| (0..pages).map(|page| (i64::from(page) * 40, 40)).collect::<Vec<_>>();
        cases.push(Case {
            max_per_run: 160,
            volumes: volumes(0, 400),
            per_day: page + 1,
            asked: asked(page + 1),
            cursor: (before + 40, false),
            stop: Quota,
            books: before + 40,
            ..Case::usual("quota-at-a-page")
        });
        for (name, fault, stop) in faults() {
            let mut replies = vec![Reply::Volumes; page as usize];
            replies.push(fault);
            cases.push(Case {
                max_per_run: 160,
                volumes: volumes(0, 400),
                replies,
                asked: asked(page + 1),
                cursor: (before, false),
                stop,
                books: before,
                ..Case::usual(name)
            });
        }
    }
    cases
}

async fn collect_once(fixture: &Fixture, case: &Case, job: &str) -> (GoogleBooks, Collected) {
    let google = GoogleBooks::start(case.volumes.clone()).await.unwrap();
    case.replies.iter().for_each(|reply| google.reply(reply.clone()));
    let options = Options { api_url: Some(google.url.as_str().parse().unwrap()), ..Options::default() };
    let private = AllowPrivate::parse(&["127.0.0.1"]).unwrap();
    let plan = CollectContext {
        also_newest: false,
        wanted: Default::default(),
        search: Search::new(&["rust".to_owned()], &options, None, private),
        query_set_hash: KEY.to_owned(),
        max_per_run: case.max_per_run,
        recheck_after: None,
        first_run: FirstRun::All,
        retries: case.retries,
        quota: quota(job, case.per_day),
    };
    let limits = Limits { to_headers: case.patience, ..Limits::default() };
    let fetcher =
        Fetcher::new(FetchConfig { limits, ..FetchConfig::default() }, fixture.clock.clone()).unwrap();
    let turn = books_world::turn(fixture, job).await;
    if case.start > 0 {
        let (job, start, now) = (job.to_owned(), case.start, turn.now());
        fixture.db.write(move |tx| cursor::put(tx, &job, KEY, start, false, now)).await.unwrap();
    }
    let collected = collect::collect(&plan, &fetcher, &turn).await.unwrap();
    (google, collected)
}

on_both_databases! {
    async fn every_run_asks_saves_and_stops_as_the_seed_says(fixture) {
        let cases = cases();
        assert!(cases.len() > 60);
        for (number, case) in cases.iter().enumerate() {
            let name = format!("{number}-{}", case.name);
            let (google, collected) = collect_once(&fixture, case, &name).await;
            let asked: Vec<_> = google.asked().iter().map(|asked| (asked.start_index, asked.max_results)).collect();
            assert_eq!(asked, case.asked, "{name}: requests");
            assert_eq!(collected.stop, Some(case.stop), "{name}: stop reason");
            assert_eq!(collected.trouble.is_some(), case.stop == Error, "{name}: {:?}", collected.trouble);
            let now = fixture.clock.now();
            let (saved, books, used, rests) = fixture.db.read(move |tx| {
                let job = name.parse().unwrap();
                Ok((
                    cursor::find(tx, &name, KEY)?.unwrap(),
                    store::count_books(tx, &job)?,
                    quota(&name, 100).used(tx, now)?,
                    pause::find(tx, &Subject::provider(&name), now)?,
                ))
            }).await.unwrap();
            let name = &saved.job_name;
            assert_eq!((saved.start_index, saved.is_exhausted), case.cursor, "{name}: position");
            assert_eq!(books, case.books, "{name}: rows");
            assert_eq!(used, i64::try_from(case.asked.len()).unwrap(), "{name}: every request is counted, and nothing else");
            let complained = case.stop == Quota && !case.replies.is_empty();
            assert_eq!(rests.is_some(), complained, "{name}: {rests:?}");
            assert_eq!(collected.resumes_at.is_some(), case.stop == Quota, "{name}");
        }
        let books = fixture.db.read(|tx| tx.count(tsuzuki::sql!("SELECT COUNT(*) FROM books"), tsuzuki::params![])).await.unwrap();
        assert_eq!(books, 160, "a book is one row, whichever jobs found it");
    }

    async fn the_log_has_the_lines_of_the_seed(fixture) {
        let logged = Logged::new();
        collect_once(&fixture, &Case::usual("max"), "job-name").await;
        collect_once(&fixture, &Case { volumes: volumes(0, 120), start: 80, max_per_run: 60, ..Case::usual("end") }, "end").await;
        collect_once(&fixture, &Case { per_day: 1, ..Case::usual("quota") }, "quota").await;
        collect_once(&fixture, &Case { replies: vec![Reply::Volumes, raw(500, &[], "")], ..Case::usual("error") }, "error").await;
        let (google, skipped) = collect_once(&fixture, &Case::usual("end"), "end").await;
        assert_eq!((google.asked().len(), skipped), (0, Collected::default()), "an exhausted search is left alone");
        let text = logged.text();
        for (level, line) in [
            ("INFO", "[google-books][job-name] Page 1: startIndex=0, returned=40, totalItems=150"),
            ("INFO", "[google-books][job-name] Page 2: startIndex=40, returned=40, totalItems=150"),
            ("INFO", "[google-books][job-name] Stopped: max_per_run reached (80/80), next startIndex=80"),
            ("WARN", "[WARN][google-books][end] Exhausted: startIndex=120 >= totalItems=120 (query_set_hash=abc123def4567890)"),
            ("WARN", "[end] Skipped: exhausted (query_set_hash=abc123def4567890)"),
            ("INFO", "[google-books][quota] Stopped: quota limit reached, next startIndex=40"),
            ("INFO", "[google-books][error] Stopped: API error, preserving startIndex=40"),
        ] {
            let found = text.lines().any(|have| have.contains(line) && have.trim_start().starts_with(level));
            assert!(found, "{level} {line}\n{text}");
        }
    }

    async fn an_outage_is_waited_for_within_the_run_and_every_request_counts(fixture) {
        let retries = 2;
        for (name, replies, per_day, stop, asked) in [
            ("two", vec![books_world::outage(), books_world::outage()], 100, MaxPerRun, vec![0, 0, 0, 40]),
            ("second-page", vec![Reply::Volumes, books_world::outage(), Reply::Volumes], 100, MaxPerRun, vec![0, 40, 40]),
            ("each-page", vec![books_world::outage(), books_world::outage(), Reply::Volumes, books_world::outage()], 100, MaxPerRun, vec![0, 0, 0, 40, 40]),
            ("three", vec![books_world::outage(); 3], 100, Error, vec![0, 0, 0]),
            ("nothing-left", vec![books_world::outage(); 2], 1, Error, vec![0]),
            ("quota-meanwhile", vec![books_world::outage(), raw(429, &[], "")], 100, Quota, vec![0, 0]),
            ("too-slow", vec![Reply::Silence], 100, MaxPerRun, vec![0, 0, 40]),
            ("no-outage", vec![raw(404, &[], "")], 100, Error, vec![0]),
        ] {
            let patience = if name == "too-slow" { Duration::from_secs(3) } else { Limits::default().to_headers };
            let case = Case { replies, per_day, retries, patience, ..Case::usual(name) };
            let clock = fixture.clock.clone();
            let ticking = tokio::spawn(async move {
                loop {
                    clock.advance(Duration::from_secs(1));
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            });
            let began_at = fixture.clock.now();
            let (google, collected) = collect_once(&fixture, &case, name).await;
            ticking.abort();
            let have: Vec<i64> = google.asked().iter().map(|asked| asked.start_index).collect();
            assert_eq!((have, collected.stop), (asked.clone(), Some(stop)), "{name}");
            let now = fixture.clock.now();
            let used = fixture.db.read(move |tx| quota(name, 100).used(tx, now)).await.unwrap();
            assert_eq!(used, i64::try_from(asked.len()).unwrap(), "{name}: every request is counted");
            if name == "three" {
                assert!(now.since(began_at) >= Duration::from_secs(60), "15 s and 45 s lie between them");
            }
        }
    }

    async fn a_refused_key_is_told_apart_from_a_failure(fixture) {
        let case = Case { replies: vec![books_world::refusal(400, "API_KEY_INVALID")], ..Case::usual("key") };
        let (_, collected) = collect_once(&fixture, &case, "key").await;
        assert!(matches!(collected.trouble, Some(Wrong::Credentials(_))), "{:?}", collected.trouble);
    }
}
