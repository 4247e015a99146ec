//! Many workers and many processes on one database: nothing is taken twice, no quota is overrun.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tsuzuki::id::Owner;
use tsuzuki::ledger::lease::{self, Claim};

on_both_databases! {
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
            tsuzuki::db::Place::File(_) => tsuzuki::db::Place::File(fixture.dir.path().join("fresh.db")),
            _ => {
                schema = tokio::task::spawn_blocking(crate::databases::Schema::create).await.unwrap();
                tsuzuki::db::Place::parse(&schema.url).unwrap()
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
