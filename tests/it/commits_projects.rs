//! Which projects and branches are collected, how others are reported, and the progress of a run.

use std::path::Path;
use std::sync::{Arc, Mutex};

use tokio_util::sync::CancellationToken;
use tsuzuki::channel::outbox::{self, DeliveryFilter};
use tsuzuki::commits::run::decide::Sharing;
use tsuzuki::commits::run::{self, Ended, Only, RunProgress};
use tsuzuki::commits::store::{branches, projects};
use tsuzuki::config::{self, Env};
use tsuzuki::demo::gitlab::{Fault, GitLab};

use crate::commits::world::{Repo, TOKEN, World, config_text, rows};
use crate::test_env::TestEnv;

/// The paths of the projects that were found.
async fn found(world: &World) -> Vec<String> {
    let all = world.db.read(|tx| projects::list(tx, None)).await.unwrap();
    all.into_iter().map(|project| project.path).collect()
}

/// Two groups, an archived project, one that is shared, and one outside.
fn add_projects(gitlab: &GitLab) {
    for (id, path) in
        [(1, "a/one"), (2, "a/sandbox"), (3, "a/old"), (4, "b/two"), (5, "c/guest"), (6, "d/three")]
    {
        gitlab.add_synthetic(id, path, 3);
    }
    gitlab.set_archived(3);
    gitlab.share(5, "b");
}

on_both_databases! {
    async fn projects_come_from_several_groups_and_memberships_by_choice(fixture) {
        for (number, (keys, expected)) in [
            ("group = \"a\"", vec!["a/old", "a/one", "a/sandbox"]),
            ("group = [\"a\", \"b\"]", vec!["a/old", "a/one", "a/sandbox", "b/two"]),
            ("group = [\"a\", \"b\"]\narchived = false\nshared = true", vec!["a/one", "a/sandbox", "b/two", "c/guest"]),
            ("group = [\"a\"]\nexclude = [\"*/sandbox\", \"a/o?d\"]\nprojects = [\"a/old\"]", vec!["a/old", "a/one"]),
            ("membership = true\ninclude = [\"*/t*\", \"a/one\"]", vec!["a/one", "b/two", "d/three"]),
        ].into_iter().enumerate() {
            let world = World::new(&fixture.db, keys).await;
            add_projects(&world.gitlab);
            let outcome = world.start().await.unwrap();
            assert_eq!(outcome.problems, Vec::<String>::new(), "{keys}");
            let mut here = found(&world).await;
            here.dedup();
            assert_eq!(outcome.run.run.total_targets, expected.len() as i64, "{number}: {keys}");
            assert!(expected.iter().all(|path| here.contains(&(*path).to_owned())), "{keys}: {here:?}");
        }
    }

    async fn branches_are_left_out_by_pattern(fixture) {
        let repo = Repo::create(fixture.dir.path(), "app");
        repo.commit("2024-01-01T00:00:00Z");
        for name in ["feature/a", "wip/b", "release/1"] {
            repo.git(&["branch", name]);
        }
        let keys = "projects = [\"team/app\"]\nbranches = [\"*\"]\nexclude_branches = [\"wip/*\", \"feature/*\"]";
        let mut world = World::new(&fixture.db, keys).await;
        world.gitlab.add_repository(1, "team/app", &repo.dir);
        world.start().await.unwrap();
        let names: Vec<String> = rows(&fixture.db).await.into_iter().map(|row| row.branch).collect();
        assert_eq!(names, ["main", "release/1"]);
        // Projects collected before are left out, too, unless they are added explicitly.
        for (keys, added, expected) in [
            ("projects = [\"team/app\"]\nexclude = [\"team/*\"]", None, vec!["main", "release/1"]),
            ("projects = [\"team/app\"]\nexclude_branches = [\"release/*\"]\nexclude = [\"team/*\"]", None, vec!["main"]),
            ("group = \"team\"\nexclude = [\"team/*\"]", Some("release/1"), vec!["release/1"]),
        ] {
            world.set_keys(TOKEN, keys);
            let now = fixture.clock.now();
            if let Some(branch) = added {
                let job = "code".parse().unwrap();
                fixture.db.write(move |tx| branches::put_added(tx, 1, branch, &job, now)).await.unwrap();
            }
            let run_id = world.start().await.unwrap().run.run.run_id;
            let targets = fixture.db.read(move |tx| run::list_results(tx, &run_id)).await.unwrap();
            assert_eq!(targets.iter().map(|target| target.branch_name.as_str()).collect::<Vec<_>>(), expected, "{keys}");
        }
    }

    async fn patterns_that_leave_nothing_over_are_a_line(fixture) {
        for (keys, message) in [
            ("group = [\"a\", \"b\"]\ninclude = [\"b/*\"]", Some("group `a`: `include` and `exclude` leave out 3 projects")),
            ("membership = true\nexclude = [\"*\"]\nprojects = [1]", Some("memberships: `include` and `exclude` leave out 6 projects")),
            ("group = \"a\"\nbranches = [\"nothing/*\"]\nprojects = [1]", Some("fit no branch of 3 projects")),
            ("group = \"a\"\nbranches = [\"ma*\"]", None),
        ] {
            let world = World::new(&fixture.db, keys).await;
            add_projects(&world.gitlab);
            let problems = match world.bulk(&CancellationToken::new()).start(None, Sharing::Alone).await.unwrap() {
                Ended::Worked(outcome) => outcome.problems,
                Ended::Nothing(problems) => problems,
                other => panic!("{other:?}"),
            };
            let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
            assert_eq!(lines.len(), usize::from(message.is_some()), "{keys}: {lines:?}");
            assert!(message.is_none_or(|message| lines[0].contains(message)), "{keys}: {lines:?}");
        }
    }

    async fn every_kind_of_token_stands_where_gitlab_looks_for_it(fixture) {
        for (kind, header) in [
            ("private", "private-token"), ("bearer", "authorization"), ("job", "job-token"), ("deploy", "deploy-token"),
        ] {
            let world = World::new(&fixture.db, &format!("group = \"a\"\ntoken_kind = \"{kind}\"")).await;
            add_projects(&world.gitlab);
            assert_eq!(world.start().await.unwrap().run.run.failed_count, 0, "{kind}");
            let asked = world.gitlab.requests();
            assert!(asked.iter().all(|asked| asked.token_by == Some(header) && asked.token.as_deref() == Some(TOKEN)), "{kind}");
        }
    }

    async fn a_project_that_the_token_cannot_see_into_is_a_line(fixture) {
        let world = World::new(&fixture.db, "projects = [\"a/one\", \"d/three\"]").await;
        add_projects(&world.gitlab);
        // A guest sees neither the default branch nor whether there is a repository.
        world.gitlab.set_fault(|asked| {
            let is_hidden = asked.segments == ["projects", "d/three"];
            is_hidden.then_some(Fault::Edit(|project| {
                let fields = project.as_object_mut().unwrap();
                fields.remove("default_branch");
                fields.remove("empty_repo");
            }))
        });
        for _ in 0..2 {
            let outcome = world.start().await.unwrap();
            assert_eq!(outcome.problems.len(), 1, "{:?}", outcome.problems);
            assert!(outcome.problems[0].to_string().contains("d/three") && outcome.problems[0].to_string().contains("Reporter"), "{:?}", outcome.problems);
        }
    }

    async fn progress_moves_within_a_branch(fixture) {
        let world = World::new(&fixture.db, "projects = [\"big/app\"]").await;
        world.gitlab.add_synthetic(1, "big/app", 450);
        world.gitlab.set_fault(|asked| asked.is_for_commits().then(|| Fault::Headers(vec![("x-total", Some("450".into()))])));
        let steps: Arc<Mutex<Vec<RunProgress>>> = Arc::default();
        let sink = Arc::clone(&steps);
        let bulk = world.bulk(&CancellationToken::new()).watched(Arc::new(move |step| sink.lock().unwrap().push(step.clone())));
        bulk.start(None, Sharing::Alone).await.unwrap();
        let steps = steps.lock().unwrap();
        let reading: Vec<_> = steps.iter().filter_map(|step| step.reading.as_ref()).collect();
        let so_far: Vec<_> = reading.iter().map(|reading| (reading.pages, reading.commits)).collect();
        assert_eq!(so_far, [(1, 100), (2, 200), (3, 300), (4, 400), (5, 450)]);
        assert!(reading.iter().all(|reading| reading.rate > 0.0 && reading.left_secs.is_some()));
        assert_eq!(reading.last().unwrap().left_secs, Some(0));
        assert!(steps.last().unwrap().reading.is_none() && steps.last().unwrap().done == 1);
    }

    async fn a_target_that_fails_the_same_way_is_told_once(fixture) {
        let channel = "deliver = [\"hook\"]\n[channel.hook]\nkind = \"webhook\"\nurl = \"https://hook.example/x\"";
        let world = World::new(&fixture.db, &format!("group = \"a\"\n{channel}")).await;
        add_projects(&world.gitlab);
        let refuse = |message: &'static str| world.gitlab.set_fault(move |asked| {
            let is_one = asked.segments.get(1).is_some_and(|id| id == "1") && asked.segments.len() > 2;
            is_one.then(|| Fault::Status(403, vec![], message))
        });
        let messages = || async { fixture.db.read(|tx| outbox::list(tx, &DeliveryFilter::default(), 50)).await.unwrap().len() };
        let needs = || async {
            let needs = fixture.db.read(|tx| (tsuzuki::commits::pipeline::PIPELINE.list_needs)(tx)).await.unwrap();
            needs.iter().map(|need| need.text.to_string()).collect::<Vec<_>>()
        };
        refuse("{\"message\":\"403 Forbidden\"}");
        let mut counts = Vec::new();
        for _ in 0..3 {
            assert_eq!(world.start().await.unwrap().run.run.failed_count, 1);
            counts.push(messages().await);
        }
        assert_eq!(counts, [1, 1, 1]);
        let waiting = needs().await;
        assert!(waiting.len() == 1 && waiting[0].contains("a/one main") && waiting[0].contains("Reporter"), "{waiting:?}");
        refuse("{\"message\":\"403 For another reason\"}");
        world.start().await.unwrap();
        assert_eq!(messages().await, 2, "another reason is news");
        world.gitlab.reset_fault();
        world.start().await.unwrap();
        assert_eq!((messages().await, needs().await.len()), (3, 0), "its commits are");
        refuse("{\"message\":\"403 Forbidden\"}");
        world.start().await.unwrap();
        assert_eq!(messages().await, 4, "and it fails anew");
    }

    async fn a_run_can_be_of_one_project_or_branch(fixture) {
        let world = World::new(&fixture.db, "group = \"a\"").await;
        add_projects(&world.gitlab);
        let start = |project: &str, branch: Option<&str>| {
            let only = Only { project: Some(project.to_owned()), branch: branch.map(str::to_owned) };
            let bulk = world.bulk(&CancellationToken::new()).only(only);
            async move { bulk.start(None, Sharing::Alone).await.unwrap() }
        };
        let Ended::Worked(outcome) = start("a/one", None).await else { panic!() };
        assert_eq!((outcome.run.run.total_targets, rows(&fixture.db).await.len()), (1, 3));
        let Ended::Nothing(why) = start("a/one", Some("nowhere")).await else { panic!() };
        assert!(why[0].to_string().contains("a/one nowhere"), "{why:?}");
        assert_eq!(world.start().await.unwrap().run.run.total_targets, 3);
    }
}

#[test]
fn what_is_wrong_with_the_keys_is_told_with_its_place() {
    for (line, message) in [
        ("branches = [\"a b\"]", "`a b` is not a branch or a pattern"),
        ("exclude_branches = [\"\"]", "`` is not a branch or a pattern"),
        ("include = [\" \"]", "the pattern is empty"),
        ("exclude = [\"\"]", "the pattern is empty"),
        ("exclude_authors = [\"\"]", "the pattern is empty"),
        ("exclude_titles = [\"\"]", "the pattern is empty"),
        ("group = 0", "numbers begin at 1"),
        ("group = \"https://gitlab.com/team\"", "is not the path or number"),
        ("projects = [\"\"]", "is not the path or number"),
        ("token_kind = \"oauth\"", "bearer"),
        ("concurrency = 17", "`concurrency` is 1 to 16"),
        ("since = \"yesterday\"", "yesterday"),
        ("mailmap = \"nowhere\"", "nowhere cannot be read"),
        ("[[job.person]]\nname = \"Ann\"", "a person has a `name` and"),
        ("github = \"https://github.com\"", "unknown key `github`"),
    ] {
        let text = config_text("https://gitlab.example", TOKEN, line);
        let problems = match config::parse(&text, Path::new("test.toml"), tsuzuki::app::kinds(), &Env::of([]))
        {
            Err(problems) => problems,
            Ok(config) => tsuzuki::commits::GitSource::read(&config.jobs[0]).err().unwrap(),
        };
        let rendered = problems.render(config::Colour::Never);
        assert!(rendered.contains(message) && rendered.contains("test.toml:"), "{line}: {rendered}");
    }
}

on_both_databases! {
    async fn a_branch_is_forgotten_after_a_preview_and_an_unknown_run_is_refused(fixture) {
        let gitlab = GitLab::start().await.unwrap();
        gitlab.add_synthetic(1, "team/app", 2_500);
        let test_env = TestEnv::on(&fixture, &config_text(&gitlab.url(), TOKEN, "group = \"team\""));
        test_env.ends("bulk start --project app --branch main", 0);
        for again in ["retry-failed", "resume", "cancel", "show"] {
            let message = test_env.ends(&format!("bulk {again} 550e8400-e29b-41d4-a716-446655440000"), 2);
            assert!(message.contains("there is no run 550e8400"), "{message}");
        }
        let message = test_env.ends("branch rm team/app main --data", 2);
        assert!(message.contains("2500 commits") && message.contains("--yes"), "{message}");
        assert!(test_env.ends("branch rm team/app main --data --yes", 0).contains("Deleted 2500 commits"));
        assert!(test_env.ends("commits stats", 0).contains("0 commits"));
        // It is not collected any more.
        test_env.ends("bulk start", 1);
        test_env.ends("branch add team/app main", 0);
        test_env.ends("bulk start", 0);
        assert!(test_env.ends("commits stats", 0).contains("2250 commits, 250 merges"));
    }
}
