//! Counts of many commits for the page: computed in the background, stored, and computed again after changes.

use std::sync::Arc;
use std::time::Duration;

use tsuzuki::commits::model::Commit;
use tsuzuki::commits::people::People;
use tsuzuki::commits::pipeline::PIPELINE;
use tsuzuki::commits::stats::{self, By, Counting};
use tsuzuki::commits::store::pages::{self, BranchRef};
use tsuzuki::commits::store::reading::Scope;
use tsuzuki::commits::store::unreachable;
use tsuzuki::config::{self, Config, Env};
use tsuzuki::db::{Db, Tx};
use tsuzuki::id::RunId;
use tsuzuki::time::Clock;
use tsuzuki::{params, sql};

use crate::site::{CONFIG, NOW, Site};

/// More than are counted for each reader.
const MANY: i64 = 20_400;

/// Statistics identify commits by the first half of their SHAs.
fn sha(number: i64) -> String {
    format!("{number:08x}{:032x}", 0)
}

/// One project: `main` with many commits of two years, and `next` with the newer half of them and a few more.
fn add_many(tx: &mut Tx<'_>) -> tsuzuki::db::Result<()> {
    tx.execute(sql!("INSERT INTO projects (project_id, host, remote_id, path, name, first_seen_at, last_seen_at) VALUES (7, 'h', 7, 'team/app', 'app', ?1, ?1)"), params![NOW])?;
    for branch in ["main", "next"] {
        tx.execute(sql!("INSERT INTO branches (project_id, branch_name) VALUES (7, ?1)"), params![branch])?;
    }
    let commit = |number: i64| {
        let author = ["Ann", "Bob", "renovate[bot]"][usize::try_from(number % 3).unwrap_or(0)];
        let (year, month, day, hour) = (2025 + number % 2, 1 + number % 12, 1 + number % 28, number % 24);
        let at = format!("{year}-{month:02}-{day:02}T{hour:02}:30:00.000Z");
        let is_merge = number % 10 == 0;
        Commit {
            sha: sha(number).into(),
            author_name: author.into(),
            author_email: format!("{author}@x").into(),
            committed_at: Ok(at.parse().unwrap()),
            lines: Some((3, 1)),
            parents: (0..=i64::from(is_merge))
                .map(|back| sha(number + 1_000_000 * (back + 1)).into())
                .collect(),
            title: "t".into(),
        }
    };
    for (branch_name, numbers) in [("main", 0..MANY), ("next", MANY / 2..MANY + 10)] {
        let place = BranchRef { project_id: 7, branch_name };
        let commits: Vec<Commit> = numbers.map(commit).collect();
        for page in commits.chunks(100) {
            pages::add_commits(tx, place, page, None, &RunId::random())?;
        }
    }
    Ok(())
}

fn read_config() -> Config {
    config::parse(CONFIG, "test.toml".as_ref(), tsuzuki::app::kinds(), &Env::of([])).unwrap()
}

/// The table of the page, and the expected one, counted from the rows.
async fn compare(site: &Site, db: &Db, query: &str, scope: Scope) -> (i64, i64) {
    let csv = site.get(&format!("/commits?format=csv&year=all&show=commits&{query}"), "en").await;
    assert_eq!(csv.status, 200);
    let total = csv.text().trim_end().rsplit(',').next().unwrap().parse().unwrap();
    let config = read_config();
    let counting = Counting::new(scope, config.app.timezone.clone(), Arc::new(People::of(&config).unwrap()));
    let stats = db.read(move |tx| stats::count(tx, &counting, By::Month)).await.unwrap();
    (total, stats.total.commits + stats.total.merges)
}

on_both_databases! {
    async fn many_commits_are_counted_in_the_background_and_again_when_they_change(fixture) {
        let db = &fixture.db;
        db.write(add_many).await.unwrap();
        let site = Site::serve(&fixture).await;
        let refresh = async |clock: &Clock| (PIPELINE.refresh)(&read_config(), &fixture.db, clock).await.unwrap();
        let html = site.read("/commits", "en").await;
        assert!(html.contains("being counted for the first time") && !html.contains("<svg"), "{html}");

        let clock = Clock::manual(NOW.parse().unwrap());
        refresh(&clock).await;
        let html = site.read("/commits", "en").await;
        assert!(html.contains("<svg") && !html.contains("is being counted again"), "{html}");
        assert!(html.contains("6,803 by author") || html.contains("6803 by author"), "{html}");
        let (all, next) = (Scope::default(), Scope { branch_name: Some("next".into()), ..Scope::default() });
        let (shown, counted) = compare(&site, db, "", all.clone()).await;
        assert_eq!((shown, shown), (counted, 13_607), "each commit once, on however many branches; robots left out");
        // Few commits are counted on request.
        let (shown, counted) = compare(&site, db, "branch=next", next).await;
        assert_eq!((shown, shown), (counted, 6_807));

        let lost: Vec<String> = (0..100).map(sha).collect();
        let marked = db.write(move |tx| {
            let (place, now) = (BranchRef { project_id: 7, branch_name: "main" }, tx.now());
            unreachable::mark(tx, place, &lost, now)
        });
        assert_eq!(marked.await.unwrap(), 100);
        let html = site.read("/commits", "en").await;
        assert!(html.contains("it is being counted again"), "an old count says so: {html}");
        refresh(&clock).await;
        assert_eq!(compare(&site, db, "", all.clone()).await.0, 13_607, "not again and again");
        clock.advance(Duration::from_secs(60));
        refresh(&clock).await;
        let (shown, counted) = compare(&site, db, "", all).await;
        assert_eq!((shown, shown), (counted, 13_607 - 67));
        assert!(!site.read("/commits", "en").await.contains("is being counted again"));
        // Another zone or another robot needs a new count, at once.
        let other = CONFIG.replace("*[bot]*", "Bob");
        let other = config::parse(&other, "test.toml".as_ref(), tsuzuki::app::kinds(), &Env::of([])).unwrap();
        (PIPELINE.refresh)(&other, db, &clock).await.unwrap();
        assert!(site.read("/commits", "en").await.contains("it is being counted again"));
    }
}
