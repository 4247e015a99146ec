//! A Git host in trouble: broken projects beside sound ones, and what is no answer of GitLab at all.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tsuzuki::commits::host;
use tsuzuki::demo::gitlab::Fault;

use crate::commits::world::World;
use crate::commits_runs::tick;

const GROUP: &str = "group = \"team\"";

on_both_databases! {
    async fn a_project_that_gitlab_cannot_read_keeps_no_other_waiting_nor_takes_its_lines(fixture) {
        let world = World::new(&fixture.db, GROUP).await;
        world.gitlab.add_synthetic(1, "team/broken", 3);
        world.gitlab.add_synthetic(2, "team/sound", 3);
        world.gitlab.set_fault(|asked| {
            let is_broken = asked.segments.get(1).is_some_and(|id| id == "1");
            is_broken.then(|| Fault::Status(500, vec![], "{\"message\":\"500 Internal Server Error\"}"))
        });
        let (client, stop) = (world.sources[0].client(&world.env).unwrap(), CancellationToken::new());
        let asked = || world.gitlab.requests().len();
        let broken = async || {
            let (began, before) = (fixture.clock.now(), asked());
            let Err(host::Error::Failed(why)) = client.fetch_head(1, "main", &stop).await else { panic!("no failure") };
            assert_eq!(why.to_string(), "HTTP 500 from GitLab", "the same words every time");
            (asked() - before, fixture.clock.now().since(began))
        };
        let ticking = tick(&fixture.clock);
        let (tries, took) = broken().await;
        assert!(tries == 8 && took > Duration::from_secs(120) && took < Duration::from_secs(200), "{tries} {took:?}");
        assert_eq!(broken().await.0, 1, "once, while nothing else is answered");
        ticking.abort();
        // The clock stands still: nobody waits.
        let before = asked();
        let head = client.fetch_head(2, "main", &stop).await.unwrap();
        assert_eq!((asked() - before, client.find_pause()), (1, None));
        let range = |head| host::Range { base: None, head };
        let ticking = tick(&fixture.clock);
        assert!(client.fetch_commits(1, range(&head), 1, &stop).await.is_err());
        ticking.abort();
        let page = client.fetch_commits(2, range(&head), 1, &stop).await.unwrap();
        assert!(page.commits.iter().all(|commit| commit.lines.is_some()), "what fails without lines, too, says nothing about lines");
    }
}
