//! Many workers and many processes on one database: nothing is taken twice, no quota is overrun.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tsuzuki::db::{Db, Open};
use tsuzuki::id::Owner;
use tsuzuki::ledger::lease::{self, Claim};
use tsuzuki::ledger::quota::{Grant, Quota};
use tsuzuki::time::Clock;

use crate::databases::{place_at, test_start};

/// The process that the test below starts eight times; it reserves until the quota is used up.
#[test]
#[ignore = "started as a process of its own by another test"]
fn reserving_process() {
    let Ok(place) = std::env::var("RESERVE_PLACE") else { return };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let granted = runtime.block_on(async {
        let clock = Clock::manual(test_start());
        let db = Db::open(place_at(&place), Open::Existing, clock.clone()).await.unwrap();
        let mut granted = 0;
        loop {
            let (quota, now) = (hundred_a_day(), clock.now());
            match db.write(move |tx| quota.reserve(tx, 1, now)).await.unwrap() {
                Grant::Granted { .. } => granted += 1,
                Grant::Exhausted { .. } => break granted,
            }
        }
    });
    std::fs::write(std::env::var("RESERVE_REPORT").unwrap(), granted.to_string()).unwrap();
}

fn hundred_a_day() -> Quota {
    let rule = tsuzuki::config::Quota {
        per_day: 100,
        day_starts: "00:00".parse().unwrap(),
        zone: "Asia/Tokyo".parse().unwrap(),
    };
    Quota { provider: "google_books".into(), rule }
}

on_both_databases! {
    async fn eight_processes_are_granted_exactly_the_quota(fixture) {
        let place = fixture.address();
        let mut children = Vec::new();
        for number in 0..8 {
            let report = fixture.dir.path().join(format!("granted-{number}"));
            let child = Command::new(std::env::current_exe().unwrap())
                .args(["concurrency::reserving_process", "--exact", "--ignored"])
                .env("RESERVE_PLACE", &place)
                .env("RESERVE_REPORT", &report)
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            children.push((child, report));
        }
        let mut granted = 0;
        for (mut child, report) in children {
            assert!(child.wait().unwrap().success());
            granted += std::fs::read_to_string(report).unwrap().parse::<u32>().unwrap();
        }
        assert_eq!(granted, 100);
        let used = fixture.db.read(|tx| hundred_a_day().used(tx, test_start())).await.unwrap();
        assert_eq!(used, 100);
    }

    async fn eight_workers_never_take_the_same_lease(fixture) {
        let taken: Arc<Mutex<BTreeMap<usize, u32>>> = Arc::default();
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let (db, taken) = (fixture.open_again().await, Arc::clone(&taken));
            tasks.spawn(async move {
                let owner = Owner::this_process();
                for number in 0..2_000 {
                    let owner = owner.clone();
                    let claim = db.claim(move |tx| {
                        lease::claim(tx, &format!("unit:{number}"), &owner, Duration::from_secs(3600))
                    });
                    if let Claim::Taken(_) = claim.await.unwrap() {
                        *taken.lock().unwrap().entry(number).or_default() += 1;
                    }
                }
            });
        }
        tasks.join_all().await;
        let taken = taken.lock().unwrap();
        assert_eq!(taken.len(), 2_000);
        assert!(taken.values().all(|times| *times == 1), "double claims: {:?}", taken.values().filter(|n| **n > 1).count());
    }

    async fn four_processes_may_open_a_new_database_at_once(fixture) {
        // The fixture's database exists already; a new one is made beside it.
        let schema;
        let place = match &fixture.place {
            tsuzuki::db::DbUrl::File(_) => tsuzuki::db::DbUrl::File(fixture.dir.path().join("fresh.db")),
            _ => {
                schema = tokio::task::spawn_blocking(crate::databases::Schema::create).await.unwrap();
                place_at(&schema.url)
            }
        };
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..4 {
            let (place, clock) = (place.clone(), fixture.clock.clone());
            tasks.spawn(async move { tsuzuki::db::Db::open(place, tsuzuki::db::Open::Create, clock).await.map(drop) });
        }
        for outcome in tasks.join_all().await {
            outcome.unwrap();
        }
    }
}
