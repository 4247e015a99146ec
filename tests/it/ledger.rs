//! Leases, quotas, cursors, pauses and events on both databases.

use std::time::Duration;

use tsuzuki::db::Tx;
use tsuzuki::id::Owner;
use tsuzuki::ledger::lease::{self, Claim, Lease, LeasedError};
use tsuzuki::ledger::quota::{Grant, Quota};
use tsuzuki::ledger::{Subject, cursor, event, pause, quota};
use tsuzuki::{params, sql};

const MINUTE: Duration = Duration::from_secs(60);
const DECADE: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

async fn claim(fixture: &crate::databases::Fixture, owner: &Owner) -> Claim {
    claim_named(fixture, "job:x", owner).await
}

async fn claim_named(fixture: &crate::databases::Fixture, name: &'static str, owner: &Owner) -> Claim {
    let owner = owner.clone();
    fixture.db.claim(move |tx| lease::claim(tx, name, &owner, MINUTE)).await.unwrap()
}

fn taken(claim: Claim) -> Lease {
    match claim {
        Claim::Taken(lease) => lease,
        Claim::Held(holder) => panic!("held by {holder:?}"),
    }
}

fn books_quota(per_day: u32) -> Quota {
    let rule = tsuzuki::config::Quota {
        per_day,
        day_starts: "00:00".parse().unwrap(),
        zone: "Asia/Tokyo".parse().unwrap(),
    };
    Quota { provider: "google_books".into(), rule }
}

on_both_databases! {
    async fn an_event_is_waited_for_whose_transaction_may_not_have_ended(fixture) {
        let (db, clock) = (&fixture.db, &fixture.clock);
        let add = |name: &'static str| db.write(move |tx| {
            let now = tx.now();
            event::add(tx, None, &Subject::new("t", name), name, &serde_json::Value::Null, now)
        });
        for name in ["a", "b", "c"] {
            add(name).await.unwrap();
        }
        let all = db.read(|tx| event::list_settled_after(tx, 0, 10)).await.unwrap();
        assert_eq!(all.len(), 3);
        // As if the transaction with the second number had not committed yet.
        let (first, second) = (all[0].id, all[1].id);
        db.write(move |tx| tx.execute(sql!("DELETE FROM events WHERE id = ?1"), params![second])).await.unwrap();
        let seen = || db.read(move |tx| event::list_settled_after(tx, first - 1, 10));
        assert_eq!(seen().await.unwrap().iter().map(|one| one.event.code.as_str()).collect::<Vec<_>>(), ["a"]);
        clock.advance(Duration::from_secs(11));
        assert_eq!(seen().await.unwrap().iter().map(|one| one.event.code.as_str()).collect::<Vec<_>>(), ["a", "c"]);
    }

    async fn a_lease_is_held_by_one_owner_until_it_ends(fixture) {
        let (first, second) = (Owner::this_process(), Owner::this_process());
        let lease = taken(claim(&fixture, &first).await);
        assert_eq!(lease.fence(), 1);
        match claim(&fixture, &second).await {
            Claim::Held(holder) => assert_eq!(holder.owner, first.as_str()),
            Claim::Taken(_) => panic!("two owners at once"),
        }
        fixture.clock.advance(MINUTE);
        assert_eq!(taken(claim(&fixture, &second).await).fence(), 2);
        assert!(!fixture.db.write(move |tx| lease.renew(tx, MINUTE)).await.unwrap());
    }

    async fn a_stalled_owner_can_no_longer_write(fixture) {
        let lease = taken(claim(&fixture, &Owner::this_process()).await);
        let write = |tx: &mut Tx<'_>| event::add(tx, None, &Subject::verbatim("stalled"), "x", &serde_json::Value::Null, tx.now());
        lease.write(&fixture.db, write).await.unwrap();
        fixture.clock.advance(MINUTE + MINUTE);
        // Nobody else has claimed it, but it has expired.
        assert!(matches!(lease.write(&fixture.db, write).await, Err(LeasedError::Lost(_))));
        let successor = taken(claim(&fixture, &Owner::this_process()).await);
        assert!(matches!(lease.write(&fixture.db, write).await, Err(LeasedError::Lost(_))));
        successor.write(&fixture.db, write).await.unwrap();
        let stored = fixture.db.read(|tx| event::list_about(tx, &Subject::verbatim("stalled"), 10)).await.unwrap();
        assert_eq!(stored.len(), 2);
    }

    async fn the_lease_of_a_dead_process_of_this_machine_is_taken_at_once(fixture) {
        let me = Owner::this_process();
        let lease = taken(claim(&fixture, &me).await);
        let pid = std::process::id().to_string();
        for (owner, is_free) in [
            (me.as_str().replacen(&format!("/{pid}/"), "/4294967295/", 1), true),
            (format!("elsewhere-{}", me.as_str().replacen(&format!("/{pid}/"), "/4294967295/", 1)), false),
            (me.as_str().replacen(&format!("/{pid}/"), &format!("/{pid}/other"), 1), false),
        ] {
            let put = owner.clone();
            let put = move |tx: &mut Tx<'_>| tx.execute(sql!("UPDATE leases SET owner = ?1"), params![put]);
            fixture.db.write(put).await.unwrap();
            match (claim(&fixture, &Owner::this_process()).await, is_free) {
                (Claim::Taken(next), true) => assert!(next.fence() > lease.fence(), "the fence rises"),
                (Claim::Held(holder), false) => assert_eq!(holder.owner, owner),
                (other, _) => panic!("{owner}: {other:?}"),
            }
        }
    }

    async fn a_lease_taken_under_a_clock_that_was_ahead_is_free_once_the_clock_is_right(fixture) {
        let (first, second) = (Owner::this_process(), Owner::this_process());
        let right = fixture.clock.now();
        fixture.clock.set(right.plus(DECADE));
        let (ahead, kept) = (taken(claim(&fixture, &first).await), taken(claim_named(&fixture, "kept", &first).await));
        fixture.clock.set(right);
        // A live worker renews its lease and keeps it.
        assert!(fixture.db.write({ let kept = kept.clone(); move |tx| kept.renew(tx, MINUTE) }).await.unwrap());
        assert!(matches!(claim_named(&fixture, "kept", &second).await, Claim::Held(_)));
        assert_eq!(fixture.db.read(lease::list_held).await.unwrap().len(), 1);
        assert_eq!(taken(claim(&fixture, &second).await).fence(), 2);
        assert!(!fixture.db.write(move |tx| ahead.is_held(tx)).await.unwrap());
    }

    async fn a_released_lease_is_free_and_its_fence_still_rises(fixture) {
        let owner = Owner::this_process();
        let lease = taken(claim(&fixture, &owner).await);
        let released = lease.clone();
        fixture.db.write(move |tx| released.release(tx)).await.unwrap();
        let again = taken(claim(&fixture, &owner).await);
        assert_eq!(again.fence(), 2);
        // Releasing the old one a second time does not free the new one.
        fixture.db.write(move |tx| lease.release(tx)).await.unwrap();
        assert!(fixture.db.write(move |tx| again.is_held(tx)).await.unwrap());
        assert_eq!(fixture.db.read(lease::list_held).await.unwrap().len(), 1);
    }

    async fn a_quota_is_counted_before_and_never_overrun(fixture) {
        let quota = books_quota(3);
        let now = fixture.clock.now();
        let mut grants = Vec::new();
        for _ in 0..5 {
            let quota = quota.clone();
            grants.push(fixture.db.write(move |tx| quota.reserve(tx, 1, now)).await.unwrap());
        }
        let resets_at = quota.resets_at(now);
        assert_eq!(grants, [
            Grant::Granted { left: 2 }, Grant::Granted { left: 1 }, Grant::Granted { left: 0 },
            Grant::Exhausted { resets_at }, Grant::Exhausted { resets_at },
        ]);
        let tomorrow = { let quota = quota.clone(); fixture.db.write(move |tx| quota.reserve(tx, 2, resets_at)).await.unwrap() };
        assert_eq!(tomorrow, Grant::Granted { left: 1 });
        let none = books_quota(0);
        assert!(matches!(fixture.db.write(move |tx| none.reserve(tx, 1, now)).await.unwrap(), Grant::Exhausted { .. }));
        let usage = fixture.db.read(|tx| quota::list_usage(tx, None, 10)).await.unwrap();
        assert_eq!(usage.iter().map(|day| (day.date.as_str(), day.count)).collect::<Vec<_>>(), [("2026-01-16", 2), ("2026-01-15", 3)]);
        let forgotten = fixture.db.write(|tx| quota::reset_usage(tx, "google_books", "2026-01-15")).await.unwrap();
        assert_eq!(forgotten, Some(3));
    }

    async fn a_cursor_is_found_put_listed_and_reset_as_in_the_seed(fixture) {
        let start = fixture.clock.now();
        assert_eq!(fixture.db.read(|tx| cursor::find(tx, "a", "h1")).await.unwrap(), None);
        fixture.db.write(move |tx| {
            cursor::put(tx, "a", "h1", 40, false, start)?;
            cursor::put(tx, "a", "h2", 0, true, start)?;
            cursor::put(tx, "b", "h1", 1, false, start)
        }).await.unwrap();
        let found = fixture.db.read(|tx| cursor::find(tx, "a", "h1")).await.unwrap().unwrap();
        assert_eq!((found.start_index, found.is_exhausted, found.last_updated_at), (40, false, start));

        fixture.clock.advance(MINUTE);
        let later = fixture.clock.now();
        fixture.db.write(move |tx| cursor::put(tx, "a", "h1", 40, false, later)).await.unwrap();
        let found = fixture.db.read(|tx| cursor::find(tx, "a", "h1")).await.unwrap().unwrap();
        assert_eq!(found.last_updated_at, later, "an update moves last_updated_at too");

        assert_eq!(fixture.db.write(|tx| cursor::reset_by_job(tx, "a")).await.unwrap(), 2);
        assert_eq!(fixture.db.write(|tx| cursor::reset_by_job(tx, "a")).await.unwrap(), 0);
        assert_eq!(fixture.db.read(|tx| cursor::list(tx, None)).await.unwrap().len(), 1);
    }

    async fn a_rest_ends_by_itself_or_by_hand(fixture) {
        let now = fixture.clock.now();
        let later = now.plus(MINUTE);
        let first = fixture.db.write(move |tx| pause::put(tx, &Subject::provider("x"), Some(later), &"quota".into(), now)).await.unwrap();
        let again = fixture.db.write(move |tx| pause::put(tx, &Subject::provider("x"), Some(later), &"quota".into(), now)).await.unwrap();
        assert_eq!((first, again), (true, false), "an alert is raised once");
        assert!(fixture.db.read(move |tx| pause::find(tx, &Subject::provider("x"), now)).await.unwrap().is_some());
        assert!(fixture.db.read(move |tx| pause::find(tx, &Subject::provider("x"), later)).await.unwrap().is_none());
        fixture.db.write(move |tx| pause::put(tx, &Subject::job("x"), None, &"by hand".into(), now)).await.unwrap();
        assert_eq!(fixture.db.read(move |tx| pause::list(tx, later)).await.unwrap().len(), 1);
        assert!(fixture.db.write(|tx| pause::reset(tx, &Subject::job("x"))).await.unwrap());
        assert!(!fixture.db.write(|tx| pause::reset(tx, &Subject::job("x"))).await.unwrap());
    }

    async fn events_are_told_oldest_first_and_pruned_in_small_batches(fixture) {
        let start = fixture.clock.now();
        for number in 0..5_u64 {
            let at = start.plus(MINUTE * u32::try_from(number).unwrap());
            fixture.db.write(move |tx| {
                let job = "j".parse().unwrap();
                event::add(tx, Some(&job), &Subject::new("item", "u"), "step", &serde_json::json!({ "number": number }), at)
            }).await.unwrap();
        }
        let recorded = fixture.db.read(|tx| event::list_about(tx, &Subject::new("item", "u"), 3)).await.unwrap();
        assert_eq!(recorded.iter().map(|event| event.detail["number"].as_u64().unwrap()).collect::<Vec<_>>(), [2, 3, 4]);
        assert_eq!(fixture.db.read(|tx| event::list_of_job(tx, "j", 9)).await.unwrap().len(), 5);
        let before = start.plus(MINUTE * 3);
        assert_eq!(fixture.db.write(move |tx| event::prune(tx, before, 2)).await.unwrap(), 2);
        assert_eq!(fixture.db.write(move |tx| event::prune(tx, before, 2)).await.unwrap(), 1);
        assert_eq!(fixture.db.write(move |tx| event::prune(tx, before, 2)).await.unwrap(), 0);
    }
}
