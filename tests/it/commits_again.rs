//! Runs resumed from a page and by the API: exactly the targets that the commands would take.

use std::collections::BTreeSet;

use tsuzuki::commits::commands;
use tsuzuki::commits::run::{self, RunStatus, Target};
use tsuzuki::demo::gitlab::Fault;
use tsuzuki::id::RunId;

use crate::commits::world::{TOKEN, World, config_text};
use crate::site::{FORM, Site};

const KEYS: &str = "group = \"team\"";

/// Three projects, and pages over them; the third project cannot be read.
async fn serve(fixture: &crate::databases::Fixture) -> (World, Site) {
    let world = World::new(&fixture.db, KEYS).await;
    for id in 1..=3 {
        world.gitlab.add_synthetic(id, &format!("team/p{id}"), 5);
    }
    let is_third = |segments: &[String]| segments.get(1).is_some_and(|id| id == "3");
    world.gitlab.set_fault(move |asked| {
        let forbidden = || Fault::Status(403, Vec::new(), "{\"message\":\"403 Forbidden\"}");
        (asked.is_for_commits() && is_third(&asked.segments)).then(forbidden)
    });
    let config =
        format!("[web]\nlisten = \"127.0.0.1:0\"\n{}", config_text(&world.gitlab.url(), TOKEN, KEYS));
    let mut site = Site::serve_with(fixture, &config).await;
    // There is no daemon beside the pages, so a start request is rejected at once.
    drop(site.requests.take());
    (world, site)
}

async fn act(site: &Site, about: &str, verb: &str) -> u16 {
    site.ask("POST", "/act", FORM, &format!("about={about}&verb={verb}&next=%2Fcommits")).await.status
}

async fn targets(world: &World, run_id: RunId) -> BTreeSet<i64> {
    let results = world.db.read(move |tx| run::list_results(tx, &run_id)).await.unwrap();
    results.iter().map(|target| target.project_id).collect()
}

on_both_databases! {
    async fn what_failed_is_tried_again_from_the_page_and_nothing_else(fixture) {
        let (world, site) = serve(&fixture).await;
        let first = world.start().await.unwrap().run.run;
        assert_eq!((first.success_count, first.failed_count), (2, 1));
        let html = site.read("/commits", "ja").await;
        assert!(html.contains("アクセスを拒否されました") && html.contains("失敗分を再試行する"), "in the language of the reader: {html}");
        assert!(html.contains(&format!("bulk retry-failed {}", first.run_id)), "{html}");

        world.gitlab.reset_fault();
        assert_eq!(act(&site, &format!("run:{}", first.run_id), "retry").await, 303);
        let open = fixture.db.read(run::find_running).await.unwrap().expect("a run of its own");
        assert_eq!((open.total_targets, open.job_name.as_deref()), (1, Some("code")));
        assert_eq!(targets(&world, open.run_id).await, BTreeSet::from([3]));
        // The job that is started next does it, and nothing beside it.
        let again = world.start().await.unwrap().run.run;
        assert_eq!((again.run_id, again.success_count, again.failed_count), (open.run_id, 1, 0));
        assert_eq!(world.stored("main").await.len(), 15);

        let headers = "Sec-Fetch-Site: same-origin\r\nAccept-Language: en\r\n";
        let answer = site.ask("POST", &format!("/api/v1/things/run/{}/retry", again.run_id), headers, "").await;
        assert!(answer.status == 409 && answer.text().contains("nothing is left to do"), "{}", answer.text());
        let unknown = site.ask("POST", &format!("/api/v1/things/run/{}/retry", RunId::random()), headers, "").await;
        assert_eq!(unknown.status, 404);
    }

    async fn a_cancelled_run_is_resumed_from_the_page_in_a_new_one(fixture) {
        let (world, site) = serve(&fixture).await;
        world.gitlab.reset_fault();
        world.start().await.unwrap();
        let host = world.sources[0].host.clone();
        let target = |project_id| Target { project_id, branch_name: "main".into(), host: host.clone(), job_name: Some("code".into()) };
        let (id, wanted) = (RunId::random(), vec![target(1), target(2)]);
        fixture.db.write(move |tx| run::register(tx, id, None, &wanted)).await.unwrap().unwrap();
        fixture.db.write(move |tx| commands::cancel(tx, Some(id))).await.unwrap().unwrap();
        assert_eq!(act(&site, &format!("run:{id}"), "resume").await, 303);
        let open = fixture.db.read(run::find_running).await.unwrap().expect("a run of its own");
        assert_eq!(targets(&world, open.run_id).await, BTreeSet::from([1, 2]));
        // A run without a worker is continued, not created a second time.
        assert_eq!(act(&site, &format!("run:{}", open.run_id), "resume").await, 303);
        let again = world.start().await.unwrap().run.run;
        assert_eq!((again.run_id, again.status, again.total_targets), (open.run_id, RunStatus::Completed, 2));
    }
}
