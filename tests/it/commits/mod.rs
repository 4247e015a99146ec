//! Branches collected from a GitLab over real git repositories: what is stored equals git's own output, step by step.

pub(crate) mod world;

use std::collections::BTreeSet;

use tokio_util::sync::CancellationToken;
use tsuzuki::commits::run::RunStatus;
use tsuzuki::commits::run::decide::Sharing;
use tsuzuki::commits::stats::{self, By, Counting};
use tsuzuki::commits::store::reading::Scope;
use tsuzuki::demo::gitlab::{Fault, UnknownRevision};
use tsuzuki::engine::Failure;

use world::{Repo, World, rows};

const PROJECT: &str = "projects = [\"team/app\"]\nbranches = [\"main\"]";

/// Collects, and compares the stored commits with git's: equal sets, exact counts, complete history.
async fn collect_and_compare(world: &World, repo: &Repo, step: &str) {
    let before: BTreeSet<String> = rows(&world.db).await.into_iter().map(|row| row.sha).collect();
    let outcome = world.start().await.unwrap();
    assert_eq!(outcome.problems, Vec::<String>::new(), "{step}");
    assert_eq!(outcome.run.run.status, RunStatus::Completed, "{step}");
    let listed = repo.rev_list("main");
    assert_eq!(world.stored("main").await, listed, "{step}: stored and reachable is what git lists");
    let new = listed.difference(&before).count();
    assert_eq!(outcome.run.new_commits_count, new as i64, "{step}: the count is exact");
    let branch = world.branch("main").await;
    assert_eq!(branch.closed, Some(true), "{step}");
    assert!(!branch.walking, "{step}");
    assert_eq!(branch.complete_head.unwrap(), repo.git(&["rev-parse", "main"]).trim(), "{step}");
    let all = rows(&world.db).await.len() as i64;
    assert_eq!(branch.unreachable, all - listed.len() as i64, "{step}: the rest is marked, not deleted");
}

on_both_databases! {
    async fn every_kind_of_history_is_collected_step_by_step(fixture) {
        let (repo, world) = World::over_repo(&fixture, PROJECT).await;

        let root = repo.commit("2024-01-01T00:00:00Z");
        repo.commit("2024-01-02T00:00:00+09:00");
        collect_and_compare(&world, &repo, "the first commits").await;

        repo.commit_many(250);
        collect_and_compare(&world, &repo, "three pages").await;
        collect_and_compare(&world, &repo, "nothing new").await;

        repo.git(&["checkout", "--quiet", "-b", "old-feature", &root]);
        repo.commit("2019-03-01T00:00:00Z");
        repo.commit("2019-03-02T00:00:00Z");
        repo.git(&["checkout", "--quiet", "main"]);
        repo.git(&["merge", "--quiet", "--no-ff", "old-feature", "-m", "Merge what is older than everything"]);
        collect_and_compare(&world, &repo, "a merge of an older branch").await;

        repo.commit("2001-01-01T00:00:00Z");
        repo.commit("2038-01-19T03:14:08Z");
        repo.commit("2025-01-01T00:00:00-11:00");
        collect_and_compare(&world, &repo, "wrong dates").await;

        repo.git(&["branch", "before-rewrite"]);
        repo.git(&["reset", "--quiet", "--hard", "HEAD~4"]);
        repo.commit("2025-02-01T00:00:00Z");
        collect_and_compare(&world, &repo, "a force push").await;
        assert!(world.branch("main").await.unreachable > 3);

        repo.git(&["reset", "--quiet", "--hard", "before-rewrite"]);
        collect_and_compare(&world, &repo, "and back").await;

        repo.git(&["reset", "--quiet", "--hard", "HEAD~3"]);
        collect_and_compare(&world, &repo, "back to an ancestor").await;

        repo.git(&["checkout", "--quiet", "--orphan", "other"]);
        repo.commit("2025-03-01T00:00:00Z");
        repo.git(&["checkout", "--quiet", "main"]);
        repo.git(&["merge", "--quiet", "--allow-unrelated-histories", "other", "-m", "Merge a stranger"]);
        collect_and_compare(&world, &repo, "a second root").await;

        // An octopus.
        for (name, date) in [("arm-a", "2025-03-02T00:00:00Z"), ("arm-b", "2018-03-02T00:00:00Z")] {
            repo.git(&["checkout", "--quiet", "-b", name, &root]);
            repo.commit(date);
        }
        repo.git(&["checkout", "--quiet", "main"]);
        repo.git(&["merge", "--quiet", "arm-a", "arm-b", "-m", "Octopus"]);
        collect_and_compare(&world, &repo, "an octopus").await;
    }

    async fn a_large_rewind_is_written_in_steps_that_let_others_write(fixture) {
        let (repo, world) = World::over_repo(&fixture, PROJECT).await;
        let root = repo.commit("2024-01-01T00:00:00Z");
        repo.commit_many(2_300);
        world.start().await.unwrap();
        let mut writes = Vec::new();
        for (to, step) in [("HEAD~2", "a small rewind"), (root.as_str(), "a large one")] {
            repo.git(&["reset", "--quiet", "--hard", to]);
            let before = fixture.db.stats().writes();
            collect_and_compare(&world, &repo, step).await;
            writes.push(fixture.db.stats().writes() - before);
        }
        assert!(writes[1] >= writes[0] + 2, "2,298 commits are marked in three steps instead of one: {writes:?}");
    }

    async fn parents_that_the_version_before_kept_in_a_table_are_found_beside_their_commits(fixture) {
        let (repo, world) = World::over_repo(&fixture, &format!("{PROJECT}\nsince = \"2020-01-01\"")).await;
        let root = repo.commit("2024-01-01T00:00:00Z");
        let before_since = repo.commit("2019-01-01T00:00:00Z");
        repo.git(&["checkout", "--quiet", "-b", "side", &root]);
        repo.commit("2024-02-01T00:00:00Z");
        repo.git(&["checkout", "--quiet", "main"]);
        repo.git(&["merge", "--quiet", "side", "-m", "Merge"]);
        repo.commit("2024-03-01T00:00:00Z");
        world.start().await.unwrap();
        fixture.execute_batch(
            "CREATE TABLE commit_parents (project_id BIGINT NOT NULL, sha TEXT NOT NULL, parent_sha TEXT NOT NULL);
             INSERT INTO commit_parents
               SELECT project_id, sha, substr(parents, 1, 40) FROM commits WHERE length(parents) >= 40
               UNION ALL SELECT project_id, sha, substr(parents, 42) FROM commits WHERE length(parents) > 40
               UNION ALL SELECT project_id, sha, parents FROM commits_left_out;
             ALTER TABLE commits DROP COLUMN parents;
             ALTER TABLE commits_left_out DROP COLUMN parents;
             DELETE FROM schema_migrations WHERE version >= 12;",
        );
        fixture.open_again().await.close().await;
        repo.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
        world.start().await.unwrap();
        let mut wanted = repo.rev_list("main");
        assert!(wanted.remove(&before_since));
        assert_eq!(world.stored("main").await, wanted, "both ways to the root go through the old graph");
        assert_eq!(world.branch("main").await.unreachable, 1);
    }

    async fn an_old_head_that_gitlab_has_forgotten_means_the_whole_history(fixture) {
        for (number, answer) in [(1, UnknownRevision::NotFound), (2, UnknownRevision::Empty)] {
            let repo = Repo::create(fixture.dir.path(), &format!("app{number}"));
            let world = World::new(&fixture.db, PROJECT).await;
            world.gitlab.add_repository(number, "team/app", &repo.dir);
            world.gitlab.set_unknown_revision(answer);
            let root = repo.commit("2024-01-01T00:00:00Z");
            repo.commit_many(120);
            world.start().await.unwrap();
            repo.git(&["reset", "--quiet", "--hard", &root]);
            repo.commit_many(130);
            repo.git(&["reflog", "expire", "--expire=now", "--all"]);
            repo.git(&["gc", "--quiet", "--prune=now"]);
            let outcome = world.start().await.unwrap();
            assert_eq!(outcome.run.new_commits_count, 130, "{answer:?}");
            let project_id = world.branch("main").await.project_id;
            let _ = project_id;
            let mine: BTreeSet<String> = rows(&fixture.db).await.into_iter()
                .filter(|row| row.reachable && repo.rev_list("main").contains(&row.sha)).map(|row| row.sha).collect();
            assert_eq!(mine, repo.rev_list("main"));
        }
    }

    async fn a_head_that_was_lost_before_its_first_page_was_read_is_not_asked_for_again(fixture) {
        for (number, answer) in [(1, UnknownRevision::NotFound), (2, UnknownRevision::Empty)] {
            let repo = Repo::create(fixture.dir.path(), &format!("app{number}"));
            let world = World::new(&fixture.db, PROJECT).await;
            world.gitlab.add_repository(number, "team/app", &repo.dir);
            world.gitlab.set_unknown_revision(answer);
            let root = repo.commit("2024-01-01T00:00:00Z");
            repo.commit("2024-01-02T00:00:00Z");
            let stop = CancellationToken::new();
            let cancelled = stop.clone();
            world.gitlab.set_fault(move |asked| {
                asked.is_for_commits().then(|| {
                    cancelled.cancel();
                    Fault::Hang
                })
            });
            assert!(matches!(world.bulk(&stop).start(None, Sharing::Alone).await, Err(Failure::Interrupted)));
            world.gitlab.reset_fault();
            repo.git(&["reset", "--quiet", "--hard", &root]);
            repo.commit("2024-01-03T00:00:00Z");
            repo.git(&["reflog", "expire", "--expire=now", "--all"]);
            repo.git(&["gc", "--quiet", "--prune=now"]);
            let outcome = world.start().await.unwrap();
            assert_eq!(outcome.problems, Vec::<String>::new(), "{answer:?}");
            assert_eq!(outcome.run.new_commits_count, 2, "{answer:?}");
        }
    }

    async fn a_deleted_branch_is_told_once_and_found_again_when_it_comes_back(fixture) {
        let (repo, world) = World::over_repo(&fixture, PROJECT).await;
        repo.commit("2024-01-01T00:00:00Z");
        repo.commit("2024-01-02T00:00:00Z");
        world.start().await.unwrap();
        repo.git(&["checkout", "--quiet", "--detach"]);
        repo.git(&["branch", "-D", "main"]);
        let ended = world.start().await.unwrap();
        assert_eq!((ended.run.run.failed_count, ended.run.run.status), (1, RunStatus::Completed));
        assert!(ended.problems[0].to_string().contains("was deleted"), "{:?}", ended.problems);
        assert!(world.branch("main").await.deleted_at.is_some());
        assert_eq!(world.start().await.unwrap().problems, Vec::<String>::new(), "told once");
        assert_eq!(rows(&fixture.db).await.len(), 2, "kept");

        repo.git(&["checkout", "--quiet", "--orphan", "main"]);
        repo.commit("2024-05-01T00:00:00Z");
        collect_and_compare(&world, &repo, "recreated with another history").await;
        assert_eq!(world.branch("main").await.deleted_at, None);
        assert_eq!(world.branch("main").await.unreachable, 2);
    }

    async fn empty_missing_and_forbidden_projects_do_not_stop_the_others(fixture) {
        let (empty, app) = (Repo::create(fixture.dir.path(), "empty"), Repo::create(fixture.dir.path(), "app"));
        let keys = "projects = [\"team/empty\", \"team/app\", \"team/nowhere\", 9]\nbranches = [\"main\", \"rel/*\"]";
        let world = World::new(&fixture.db, keys).await;
        world.gitlab.add_repository(1, "team/empty", &empty.dir);
        world.gitlab.add_repository(2, "team/app", &app.dir);
        world.gitlab.add_repository(9, "team/secret", &app.dir);
        app.commit("2024-01-01T00:00:00Z");
        app.git(&["branch", "rel/1.0"]);
        app.git(&["branch", "wip"]);
        world.gitlab.set_fault(|asked| {
            let secret = asked.segments.get(1).is_some_and(|id| id == "9") && asked.segments.len() > 2;
            secret.then(|| Fault::Status(403, vec![], "{\"message\":\"403 Forbidden\"}"))
        });
        let outcome = world.start().await.unwrap();
        let row = &outcome.run.run;
        // team/empty main, team/app main and rel/1.0 end well; both wishes for team/secret fail.
        assert_eq!((row.success_count, row.failed_count, row.total_targets), (3, 1, 4), "{:?}", outcome.problems);
        assert_eq!(row.completed_count, row.success_count);
        assert!(outcome.problems.iter().any(|line| line.to_string().contains("team/nowhere") && line.to_string().contains("404")));
        assert!(outcome.problems.iter().any(|line| line.to_string().contains("team/secret") && line.to_string().contains("Reporter")));
        assert_eq!(outcome.run.new_commits_count, 2);
    }

    async fn since_filters_what_is_stored_and_never_what_is_walked(fixture) {
        let repo = Repo::create(fixture.dir.path(), "app");
        let keys = format!("{PROJECT}\nsince = \"2024-01-01\"");
        let mut world = World::new(&fixture.db, &keys).await;
        world.gitlab.add_repository(7, "team/app", &repo.dir);
        let _old = repo.commit("2020-01-01T00:00:00Z");
        let under_old = repo.commit("2024-03-01T00:00:00Z");
        let _dated_back = repo.commit("2019-01-01T00:00:00Z");
        let new = repo.commit("2024-06-01T00:00:00Z");
        let outcome = world.start().await.unwrap();
        assert_eq!(outcome.run.new_commits_count, 2);
        assert_eq!(world.stored("main").await, BTreeSet::from([under_old.clone(), new.clone()]));
        assert_eq!(world.branch("main").await.closed, Some(true), "what is before `since` is accounted for");
        assert!(world.gitlab.requests().iter().all(|asked| asked.parameter("since").is_none()));

        // A force push before an old commit: reachability includes commits that are not stored.
        let next = repo.commit("2024-07-01T00:00:00Z");
        world.start().await.unwrap();
        repo.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
        world.start().await.unwrap();
        assert_eq!(world.stored("main").await, BTreeSet::from([under_old, new]));
        repo.git(&["reset", "--quiet", "--hard", &next]);

        world.set_keys(world::TOKEN, &format!("{PROJECT}\nsince = \"2019-06-01\""));
        world.start().await.unwrap();
        assert_eq!(world.stored("main").await.len(), 4, "a lowered `since` brings in what is older");
        world.set_keys(world::TOKEN, PROJECT);
        collect_and_compare(&world, &repo, "without `since`").await;
    }

    async fn what_gitlab_leaves_out_is_flagged_and_what_cannot_be_read_is_told(fixture) {
        let (repo, world) = World::over_repo(&fixture, PROJECT).await;
        repo.commit("2024-01-01T00:00:00Z");
        let unreadable = repo.commit("2024-01-02T00:00:00Z");
        repo.commit("2024-01-03T00:00:00Z");
        world.gitlab.set_fault(|asked| {
            if asked.is_for_one_commit() {
                return Some(Fault::Status(404, vec![], "{\"message\":\"404 Commit Not Found\"}"));
            }
            asked.is_for_commits().then_some(Fault::Edit(|page| {
                let Some(commits) = page.as_array_mut() else { return };
                commits[0].as_object_mut().unwrap().remove("stats");
                commits[0]["author_email"] = "".into();
                commits[1]["committed_date"] = "the day before yesterday".into();
            }))
        });
        let outcome = world.start().await.unwrap();
        assert_eq!((outcome.run.run.failed_count, outcome.run.new_commits_count), (1, 2));
        assert!(outcome.problems[0].to_string().contains(&unreadable), "{:?}", outcome.problems);
        let branch = world.branch("main").await;
        assert_eq!((branch.stats_missing, branch.unreadable, branch.closed), (1, 1, Some(true)));
        let stored = rows(&fixture.db).await;
        assert_eq!(stored.len(), 2);
        let flagged = stored.iter().find(|row| row.stats_missing).unwrap();
        assert_eq!((flagged.additions, flagged.author_email.as_str()), (0, "Ann Author"));
        assert!(stored.iter().all(|row| !row.committed.starts_with("2026")), "never the present moment");
        assert_eq!(world.start().await.unwrap().problems, Vec::<String>::new(), "told once");
    }

    async fn two_gitlabs_never_share_a_number(fixture) {
        let (first, second) = (Repo::create(fixture.dir.path(), "a"), Repo::create(fixture.dir.path(), "b"));
        first.commit("2024-01-01T00:00:00Z");
        second.commit("2024-01-02T00:00:00Z");
        let one = World::new(&fixture.db, PROJECT).await;
        one.gitlab.add_repository(7, "team/app", &first.dir);
        one.start().await.unwrap();
        let other = World::new(&fixture.db, PROJECT).await;
        other.gitlab.add_repository(7, "team/app", &second.dir);
        other.start().await.unwrap();
        other.start().await.unwrap();
        let ids: Vec<i64> = rows(&fixture.db).await.into_iter().map(|row| row.project_id).collect();
        assert_eq!(ids, [7, 1_000_000_001]);
    }

    async fn a_commit_on_two_branches_and_in_a_fork_counts_once(fixture) {
        let repo = Repo::create(fixture.dir.path(), "app");
        repo.commit("2024-01-31T20:00:00Z");
        repo.commit("2024-02-01T00:00:00Z");
        repo.git(&["branch", "stable"]);
        repo.commit("2024-02-02T00:00:00Z");
        let world = World::new(&fixture.db, "projects = [\"team/app\", \"fork/app\"]\nbranches = [\"*\"]").await;
        world.gitlab.add_repository(1, "team/app", &repo.dir);
        world.gitlab.add_repository(2, "fork/app", &repo.dir);
        world.start().await.unwrap();
        assert_eq!(rows(&fixture.db).await.len(), 10);
        let count = |scope: Scope, by: By, zone: &str| {
            let (db, counting) = (fixture.db.clone(), Counting::new(scope, zone.parse().unwrap(), Default::default()));
            async move { db.read(move |tx| stats::count(tx, &counting, by)).await.unwrap() }
        };
        let all = count(Scope::default(), By::Month, "UTC").await;
        let lines: Vec<_> = all.rows.iter().map(|row| (row.period.as_deref().unwrap(), row.author.as_deref().unwrap(), row.sum.commits, row.sum.additions)).collect();
        assert_eq!(lines, [("2024-01", "Ann Author", 1, 2), ("2024-02", "Ann Author", 2, 4)]);
        let tokyo = count(Scope::default(), By::Month, "Asia/Tokyo").await;
        assert_eq!(tokyo.rows.len(), 1, "the last evening of January in UTC is February in Tokyo");
        assert_eq!(tokyo.timezone, "Asia/Tokyo");
        let project = count(Scope { project_id: Some(1), ..Scope::default() }, By::Person, "UTC").await;
        assert_eq!((project.total.commits, project.rows.len()), (3, 1));
        let branch = Scope { project_id: Some(2), branch_name: Some("stable".into()), ..Scope::default() };
        assert_eq!(count(branch, By::Day, "UTC").await.total.commits, 2);
        let shown = serde_json::to_string(&all).unwrap() + &all.columns().concat() + &format!("{:?}", all.fields(&all.rows[0]));
        assert!(!shown.contains('@'), "{shown}");
        assert!(shown.contains("month (UTC)"));
        // The same, whichever of its rows GitLab gave no lines for.
        for project in [1_i64, 2] {
            fixture.db.write(move |tx| {
                let forget = tsuzuki::sql!(
                    "UPDATE commits SET stats_missing = CASE WHEN project_id = ?1 AND branch_name = 'stable' THEN 0 ELSE 1 END,
                       additions = CASE WHEN project_id = ?1 AND branch_name = 'stable' THEN 2 ELSE 0 END"
                );
                tx.execute(forget, tsuzuki::params![project])
            }).await.unwrap();
            let all = count(Scope::default(), By::Person, "UTC").await;
            assert_eq!((all.total.commits, all.stats_missing, all.rows[0].sum.additions), (3, 1, 4), "{all:?}");
        }
    }

    async fn hidden_addresses_are_never_stored_and_people_stay_the_same(fixture) {
        let (repo, mut world) = World::over_repo(&fixture, PROJECT).await;
        repo.commit("2024-01-01T00:00:00Z");
        world.start().await.unwrap();
        world.set_keys(world::TOKEN, &format!("{PROJECT}\nhide_emails = true"));
        repo.commit("2024-01-02T00:00:00Z");
        world.start().await.unwrap();
        let stored = rows(&fixture.db).await;
        assert_eq!(stored.iter().filter(|row| row.author_email.contains('@')).count(), 1);
        assert!(stored.iter().all(|row| row.author_name == "Ann Author"));
        let counting = Counting::new(Scope::default(), "UTC".parse().unwrap(), Default::default());
        let stats = fixture.db.read(move |tx| stats::count(tx, &counting, By::Person)).await.unwrap();
        assert_eq!((stats.rows.len(), stats.rows[0].sum.commits), (1, 2), "one person, however stored");
    }
}
