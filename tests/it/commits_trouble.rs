//! A Git host in trouble: broken projects beside healthy ones, and answers that do not come from GitLab.

use std::path::Path;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tsuzuki::commits::host;
use tsuzuki::commits::run::decide::Sharing;
use tsuzuki::commits::run::{self, Bulk, Ended, RunStatus, Target};
use tsuzuki::commits::store::projects;
use tsuzuki::config::{self, Env};
use tsuzuki::demo::gitlab::{Fault, GitLab};
use tsuzuki::engine::Failure;
use tsuzuki::id::{Owner, RunId};

use crate::commits::world::{TOKEN, World, config_text};
use crate::commits_runs::tick;
use crate::test_env::{TestEnv, err};

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
        // The clock is fixed: nothing waits.
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

    async fn what_is_no_answer_of_gitlab_says_so_and_no_project_is_taken_for_gone(fixture) {
        let world = World::new(&fixture.db, GROUP).await;
        world.gitlab.add_synthetic(1, "team/app", 150);
        world.start().await.unwrap();
        let page = "<!DOCTYPE html><html><body>Sign in</body></html>";
        let pages = [200, 401, 403, 404, 410].map(|status| (status, page));
        for (status, page) in pages.into_iter().chain([(404, "default backend - 404")]) {
            world.gitlab.set_fault(move |_| Some(Fault::Status(status, vec![("content-type", "text/html".into())], page)));
            let outcome = world.start().await.unwrap();
            assert_eq!((outcome.run.run.success_count, outcome.run.run.failed_count), (0, 1), "{outcome:?}");
            let message = format!("HTTP {status}): check `gitlab`");
            assert!(outcome.problems.iter().all(|why| why.to_string().contains(&message)), "{:?}", outcome.problems);
            let known = fixture.db.read(|tx| projects::list(tx, None)).await.unwrap();
            assert!(known[0].removed_at.is_none(), "a page of a proxy removes no project");
        }
        world.gitlab.reset_fault();
        assert_eq!(world.start().await.unwrap().run.run.success_count, 1);
    }

    async fn a_user_who_is_blocked_is_told_as_one_and_not_of_each_project(fixture) {
        let world = World::new(&fixture.db, "projects = [\"team/a\", \"team/b\"]").await;
        world.gitlab.set_fault(|_| {
            Some(Fault::Status(403, vec![], "{\"message\":\"403 Forbidden - Your account has been blocked.\"}"))
        });
        let failure = world.start().await.unwrap_err();
        let Failure::Credentials(why) = &failure else { panic!("{failure:?}") };
        assert!(why.to_string().contains("Your account has been blocked"), "{why}");
    }

    async fn a_redirect_to_another_origin_is_named_and_the_token_is_not_blamed(fixture) {
        let world = World::new(&fixture.db, "projects = [\"team/app\"]").await;
        let other = GitLab::start().await.unwrap();
        other.set_token("of another");
        let (there, origin) = (format!("{}/api/v4/projects/1", other.url()), other.url());
        world.gitlab.set_fault(move |_| Some(Fault::Status(301, vec![("location", there.clone())], "")));
        let ended = world.bulk(&CancellationToken::new()).start(None, Sharing::Alone).await.unwrap();
        let Ended::Nothing(problems) = ended else { panic!("{ended:?}") };
        let message = problems[0].to_string();
        assert!(message.contains(&format!("redirects to {origin}, where the token is not sent")), "{message}");
        assert!(other.requests().iter().all(|asked| asked.token.is_none()));
    }

    async fn branches_that_fail_for_one_reason_are_one_line_of_status(fixture) {
        let gitlab = GitLab::start().await.unwrap();
        for id in 1..=7 {
            gitlab.add_synthetic(id, &format!("team/p{id}"), 3);
        }
        // Six reasons, one of them twice.
        gitlab.set_fault(|asked| {
            let id: u16 = asked.segments.get(1)?.parse().ok()?;
            let status = 428 + id.max(2);
            (asked.segments.len() > 3).then(|| Fault::Status(status, vec![], "{\"message\":\"no\"}"))
        });
        let test_env = TestEnv::on(&fixture, &config_text(&gitlab.url(), TOKEN, "group = \"team\""));
        // As a run of the job it would be a failure of the job, too.
        test_env.ends("bulk start --branch main", 3);
        let message = err(&test_env.run(&["status"]));
        let lines: Vec<&str> = message.lines().filter(|line| line.contains("cannot be collected since")).collect();
        assert_eq!(lines.len(), 5, "{message}");
        assert!(lines.iter().filter(|line| line.contains(" and 1 more ")).all(|line| line.contains("HTTP 430") && line.contains("`tsuzuki branch ls`")), "{message}");
        assert!(message.contains("… and 1 more"), "{message}");
        assert!(!message.contains("--failing"), "that lists jobs, and none fails: {message}");
        assert!(test_env.ends("status --failing", 0).contains("No job fails or waits."));
        for name in ["team/p3/main", "team/p3 main"] {
            assert!(test_env.run(&["why", name]).status.success(), "{name}");
        }
    }

    async fn whoever_stays_collects_what_a_lost_worker_had(fixture) {
        let world = World::new(&fixture.db, GROUP).await;
        for id in 1..=3 {
            world.gitlab.add_synthetic(id, &format!("team/p{id}"), 3);
        }
        world.start().await.unwrap();
        let (run_id, host) = (RunId::random(), world.sources[0].host.clone());
        let target = |project_id| Target { project_id, branch_name: "main".into(), host: host.clone(), job_name: Some("code".into()) };
        let targets: Vec<Target> = (1..=3).map(target).collect();
        fixture.db.write(move |tx| run::register(tx, run_id, None, &targets)).await.unwrap().unwrap();
        // A process claims a target and dies.
        let elsewhere = Owner::this_process();
        fixture.db.claim(move |tx| run::claim(tx, &run_id, &host, "code", &elsewhere)).await.unwrap().unwrap();
        let join = async |bulk: Bulk| match bulk.start(None, Sharing::Join).await.unwrap() {
            Ended::Worked(outcome) => outcome.run,
            other => panic!("{other:?}"),
        };
        let stop = CancellationToken::new();
        let left = join(world.bulk(&stop)).await;
        assert_eq!((left.run.success_count, left.pending_count), (2, 1), "a job does not wait for others");
        let ticking = tick(&fixture.clock);
        let ended = join(world.bulk(&stop).staying()).await;
        ticking.abort();
        assert_eq!((ended.run.status, ended.run.success_count), (RunStatus::Completed, 3));
    }
}

#[test]
fn the_address_of_the_api_is_not_that_of_gitlab() {
    for (address, base) in [
        ("https://gitlab.com/api/v4", "https://gitlab.com/"),
        ("https://git.example/gitlab/api/v4/", "https://git.example/gitlab/"),
    ] {
        let text = config_text(address, TOKEN, "group = \"team\"");
        let config = config::parse(&text, Path::new("t.toml"), tsuzuki::app::kinds(), &Env::of([])).unwrap();
        let problems = tsuzuki::commits::GitSource::read(&config.jobs[0]).err().unwrap();
        let message = problems.render(config::Colour::Never);
        assert!(message.contains(&format!("without `api/v4`: {base}")), "{message}");
    }
}
