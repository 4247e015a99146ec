//! Statistics that can be defended: merges apart, people brought together, robots left out, and the commits behind a number.

use std::path::Path;
use std::sync::Arc;

use tsuzuki::commits::people::People;
use tsuzuki::commits::stats::{self, By, Counting, Stats, cumulative};
use tsuzuki::commits::store::reading::Scope;
use tsuzuki::config::{self, Env};
use tsuzuki::demo::gitlab::{Change, Fault, GitLab, History};

use crate::commits::world::{TOKEN, World, config_text, rows};
use crate::test_env::{TestEnv, err, out};

const PROJECT: &str = "projects = [\"team/app\"]\nbranches = [\"*\"]";

fn change(author: &'static str, at: &str, lines: (u32, u32)) -> Change {
    Change { author, title: format!("Work of {author}"), at: at.parse().unwrap(), lines }
}

/// Ann and Bob on `main`; Ann's branch of 500 lines, merged by Bob; a robot, and a release.
fn history() -> History {
    let history = History::new(1);
    history.commit("main", change("Ann", "2026-01-05T00:00:00Z", (10, 1)));
    history.branch("side", "main");
    history.commit("side", change("Ann", "2026-01-06T00:00:00Z", (500, 0)));
    history.commit("main", change("Bob", "2026-01-07T00:00:00Z", (20, 2)));
    history.merge("side", "main", change("Bob", "2026-01-08T00:00:00Z", (500, 0)));
    history.commit("main", change("renovate[bot]", "2026-01-09T00:00:00Z", (7, 7)));
    let release =
        Change { title: "chore(release): 1.0".into(), ..change("Bob", "2026-02-02T00:00:00Z", (9, 9)) };
    history.commit("main", release);
    history.commit("main", change("Ann Other", "2026-02-03T16:00:00Z", (3, 0)));
    history
}

async fn world(db: &tsuzuki::db::Db) -> World {
    let world = World::new(db, PROJECT).await;
    world.gitlab.add_history(7, "team/app", history());
    world.start().await.unwrap();
    world
}

fn people(keys: &str) -> Arc<People> {
    let text = config_text("https://gitlab.example", TOKEN, keys);
    let config = config::parse(&text, Path::new("test.toml"), tsuzuki::app::kinds(), &Env::of([])).unwrap();
    Arc::new(People::of(&config).unwrap())
}

async fn count(world: &World, counting: &Counting, by: By) -> Stats {
    let counting = counting.clone();
    world.db.read(move |tx| stats::count(tx, &counting, by)).await.unwrap()
}

/// Name, commits, merges and lines of each row.
fn lines(stats: &Stats) -> Vec<(&str, i64, i64, i64)> {
    let line = |row: &stats::StatRow| (row.sum.commits, row.sum.merges, row.sum.additions);
    let named = |row| {
        let (commits, merges, additions) = line(row);
        (
            row.author.as_deref().or(row.branch.as_deref()).or(row.project.as_deref()).unwrap(),
            commits,
            merges,
            additions,
        )
    };
    stats.rows.iter().map(named).collect()
}

fn all_in_utc(people: Arc<People>) -> Counting {
    Counting::new(Scope::default(), "UTC".parse().unwrap(), people)
}

on_both_databases! {
    async fn merges_count_apart_and_their_lines_only_on_request(fixture) {
        let world = world(&fixture.db).await;
        let mut counting = all_in_utc(Arc::default());
        let stats = count(&world, &counting, By::Person).await;
        assert_eq!(lines(&stats), [("Ann", 2, 0, 510), ("Ann Other", 1, 0, 3), ("Bob", 2, 1, 29), ("renovate[bot]", 1, 0, 7)]);
        assert_eq!((stats.total.commits, stats.total.merges), (6, 1));
        counting.with_merges = true;
        let with = count(&world, &counting, By::Person).await;
        assert_eq!(lines(&with)[2], ("Bob", 2, 1, 529));
        // Rows of another program get it when a walk reaches them.
        fixture.db.write(|tx| tx.execute(
            tsuzuki::sql!("UPDATE commits SET is_merge = 0, title = NULL"), tsuzuki::params![])).await.unwrap();
        fixture.db.write(|tx| tx.execute(
            tsuzuki::sql!("UPDATE branches SET complete_head = NULL"), tsuzuki::params![])).await.unwrap();
        world.start().await.unwrap();
        counting.with_merges = false;
        assert_eq!(count(&world, &counting, By::Person).await, stats);
    }

    async fn people_come_together_and_what_is_left_out_is_counted(fixture) {
        let world = world(&fixture.db).await;
        let file = fixture.dir.path().join("mailmap");
        std::fs::write(&file, "Robert <bob@example.com>\n").unwrap();
        let keys = format!(
            "{PROJECT}\nmailmap = {file:?}\nexclude_authors = [\"*[bot]*\"]\nexclude_titles = [\"chore(release)*\"]\n\
             [[job.person]]\nname = \"Ann Author\"\nemails = [\"ann@example.com\"]\nnames = [\"ann other\"]"
        );
        let counting = all_in_utc(people(&keys));
        let stats = count(&world, &counting, By::Person).await;
        assert_eq!(lines(&stats), [("Ann Author", 3, 0, 513), ("Robert", 1, 1, 20)]);
        assert_eq!((stats.left_out.authors, stats.left_out.titles), (1, 1));
        // Without titles to check, PostgreSQL groups by itself: the same people.
        let keys = keys.replace("exclude_titles = [\"chore(release)*\"]\n", "");
        let stats = count(&world, &all_in_utc(people(&keys)), By::Month).await;
        assert_eq!(lines(&stats), [("Ann Author", 2, 0, 510), ("Robert", 1, 1, 20), ("Ann Author", 1, 0, 3), ("Robert", 1, 0, 9)]);
        assert_eq!((stats.left_out.authors, stats.left_out.titles), (1, 0));
    }

    async fn rows_are_by_week_project_and_branch_too(fixture) {
        let world = world(&fixture.db).await;
        let counting = all_in_utc(Arc::default());
        let weeks = count(&world, &counting, By::Week).await;
        let labels: Vec<_> = weeks.rows.iter().map(|row| row.period.as_deref().unwrap()).collect();
        assert_eq!(labels, ["2026-W02", "2026-W02", "2026-W02", "2026-W06", "2026-W06"]);
        let projects = count(&world, &counting, By::Project).await;
        assert_eq!(lines(&projects), [("team/app", 6, 1, 549)]);
        assert_eq!(projects.rows[0].people, Some(4));
        let branches = count(&world, &counting, By::Branch).await;
        assert_eq!(lines(&branches), [("main", 6, 1, 549)]);
        let january = stats::period_bounds("2026-01", &counting.zone).unwrap();
        let scope = Scope { from: Some(january.0), until: Some(january.1), ..Scope::default() };
        assert_eq!(count(&world, &Counting { scope, ..counting }, By::Person).await.total.commits, 4);
    }

    async fn who_has_no_commit_that_counts_is_nobody(fixture) {
        let world = world(&fixture.db).await;
        let people = people(&format!("{PROJECT}\nexclude_titles = [\"chore(release)*\", \"Work of Ann Other\"]"));
        for by in [By::Project, By::Branch] {
            let stats = count(&world, &all_in_utc(Arc::clone(&people)), by).await;
            assert_eq!((stats.rows[0].people, stats.left_out.titles), (Some(3), 2), "Ann, Bob and the robot");
        }
        let february = stats::period_bounds("2026-02", &"UTC".parse().unwrap()).unwrap();
        let scope = Scope { from: Some(february.0), until: Some(february.1), ..Scope::default() };
        let nobody = count(&world, &Counting { scope, ..all_in_utc(people) }, By::Project).await;
        assert_eq!((nobody.rows.len(), nobody.left_out.titles), (0, 2));
    }

    async fn series_are_there_for_charts(fixture) {
        let _world = world(&fixture.db).await;
        let mut counting = all_in_utc(people("exclude_authors = [\"*[bot]*\"]"));
        let read = |counting: Counting| fixture.db.read(move |tx| stats::find_series(tx, &counting));
        let series = read(counting.clone()).await.unwrap();
        assert_eq!(series.months, ["2026-01", "2026-02"]);
        let ann = &series.people[0];
        assert_eq!((ann.name.as_str(), ann.months.len(), ann.months[0].1.additions), ("Ann", 1, 510));
        assert_eq!(cumulative([510, 0]), [510, 510]);
        let bob = series.people.iter().find(|person| person.name == "Bob").unwrap().months[0].1;
        assert_eq!((bob.merges, bob.additions, bob.with_merges().additions), (1, 20, 520), "lines of merges stand apart");
        for one in [series.in_year(2026), series.over_all_years()] {
            let text = serde_json::to_string(&one).unwrap();
            let back: stats::Series = serde_json::from_str(&text).unwrap();
            assert_eq!((&back.months, back.days(), back.week_hours()), (&one.months, one.days(), one.week_hours()), "{text}");
            let totals = |series: &stats::Series| series.people.iter().map(|one| (one.name.clone(), one.total())).collect::<Vec<_>>();
            assert_eq!(totals(&back), totals(&one), "{text}");
        }
        assert_eq!(series.days().len(), 6);
        let hours = series.week_hours();
        assert_eq!((hours.iter().flatten().sum::<i64>(), series.commits()), (6, 6), "merges are activity, robots are not");
        assert_eq!((hours[0][0], hours[1][16]), (2, 1), "two on Mondays at 0, one on Tuesday at 16");
        assert_eq!(series.years(), [2026]);
        let year = series.in_year(2026);
        assert_eq!((year.months.len(), year.people[0].total().additions, year.week_hours()), (12, 510, hours));
        assert_eq!((series.in_year(2025).people.len(), series.in_year(2025).commits()), (0, 0));
        counting.zone = "Asia/Tokyo".parse().unwrap();
        let tokyo = read(counting).await.unwrap();
        assert_eq!((tokyo.week_hours()[0][9], tokyo.week_hours()[2][1]), (2, 1), "the next day in Tokyo");
        assert_eq!(tokyo.days().last().unwrap(), &("2026-02-04".parse().unwrap(), 1));
    }

    async fn a_page_that_comes_again_brings_the_lines_that_were_missing(fixture) {
        let world = World::new(&fixture.db, PROJECT).await;
        world.gitlab.add_history(7, "team/app", history());
        world.gitlab.set_fault(|asked| match asked.is_for_commits() {
            false if asked.is_for_one_commit() => {
                Some(Fault::Status(404, vec![], "{\"message\":\"404 Commit Not Found\"}"))
            }
            true => Some(Fault::Edit(|page| {
                for commit in page.as_array_mut().unwrap() {
                    commit.as_object_mut().unwrap().remove("stats");
                }
            })),
            _ => None,
        });
        world.start().await.unwrap();
        assert_eq!(world.branch("main").await.stats_missing, 7);
        let asked = world.gitlab.requests().len();
        world.gitlab.reset_fault();
        world.start().await.unwrap();
        let singles = world.gitlab.requests()[asked..].iter().filter(|asked| asked.is_for_one_commit()).count();
        assert_eq!((singles, world.branch("main").await.stats_missing), (0, 7), "what has none is not asked for each hour");
        fixture.clock.advance(std::time::Duration::from_secs(25 * 60 * 60));
        world.start().await.unwrap();
        assert_eq!(world.branch("main").await.stats_missing, 0, "but the next day");
        assert_eq!(rows(&fixture.db).await.iter().map(|row| row.additions).sum::<i64>(), 1049);
    }
}

on_both_databases! {
    async fn a_number_is_explained_and_leaves_in_every_format(fixture) {
        let gitlab = GitLab::start().await.unwrap();
        gitlab.add_history(7, "team/app", history());
        let keys = format!("{PROJECT}\nexclude_authors = [\"*[bot]*\"]");
        let test_env = TestEnv::on(&fixture, &config_text(&gitlab.url(), TOKEN, &keys));
        test_env.ends("bulk start", 0);
        let ended = test_env.run(&["commits", "stats", "--by", "person", "--format", "csv"]);
        let (csv, words) = (out(&ended), err(&ended));
        assert_eq!(csv, "author,commits,merges,additions,deletions\r\nAnn,2,0,510,1\r\nAnn Other,1,0,3,0\r\nBob,2,1,29,11\r\n");
        assert!(words.contains("5 commits, 1 merge (lines left out), 1 left out by author; days begin in UTC"), "{words}");
        for line in ["why person:Bob 2026-01", "why person:bob@2026-01", "why Bob 2026-01"] {
            let printed = test_env.ends(line, 0);
            assert!(printed.contains("Bob in 2026-01 (UTC)") && printed.contains("+20 -2"), "{printed}");
            assert!(printed.contains("+20 -2 Work of Bob") && printed.contains("merge Work of Bob"), "{printed}");
            assert!(!printed.contains("chore(release)") && !printed.contains('@'), "{printed}");
        }
        let json = test_env.json("why person:Ann@2026-W02");
        assert_eq!((&json[0]["person"]["commits"].as_array().unwrap().len(), &json[0]["person"]["additions"]), (&2, &510.into()));
        test_env.ends("why person:Nobody 2026-01", 1);
        let listed = test_env.json("commits ls");
        let sha = listed[0]["sha"].as_str().unwrap();
        for name in [sha, &sha[..7], &format!("commit:{sha}")] {
            let printed = test_env.ends(&format!("why {name}"), 0);
            assert!(printed.starts_with(&format!("● commit {}: ", &sha[..8])) && printed.contains("team/app main"), "{printed}");
            assert!(!printed.contains('@'), "{printed}");
        }
        let too_short = &sha[..6];
        test_env.ends(&format!("why {too_short}"), 1);
        test_env.ends("commits stats --output stats.xlsx", 0);
        let book = std::fs::read(test_env.file("stats.xlsx")).unwrap();
        let has = |text: &str| book.windows(text.len()).any(|window| window == text.as_bytes());
        assert!(book.starts_with(b"PK") && has("xl/worksheets/sheet1.xml"), "{} bytes", book.len());
        assert!(test_env.ends("commits stats --output stats.xlsx", 2).contains("--force"));
        assert!(test_env.ends("commits stats --by week --timezone Asia/Tokyo", 0).starts_with("WEEK (Asia/Tokyo)  AUTHOR"));
        for (by, columns) in [
            ("month", "month (UTC),author"), ("week", "week (UTC),author"), ("day", "day (UTC),author"),
            ("person", "author"), ("project", "project,people"), ("branch", "project,branch,people"),
        ] {
            let columns = format!("{columns},commits,merges,additions,deletions");
            let ask = |format: &str| test_env.run(&["commits", "stats", "--by", by, "--format", format]);
            let csv = out(&ask("csv"));
            assert_eq!(csv.lines().next(), Some(columns.as_str()), "{csv}");
            assert_eq!(out(&ask("tsv")).replace('\r', ""), csv.replace(',', "\t").replace('\r', ""), "{by}");
            let json: serde_json::Value = serde_json::from_str(&out(&ask("json"))).unwrap();
            let rows = json["rows"].as_array().unwrap().len();
            assert_eq!((&json["by"], &json["timezone"], rows), (&by.into(), &"UTC".into(), csv.lines().count() - 1), "{json}");
            assert!(ask("xlsx").stdout.starts_with(b"PK"), "{by}");
        }
    }
}
