//! The table of everything that happens to a site, for every kind of site: what is announced, and what is an error.

use std::collections::BTreeMap;

use tsuzuki::demo::faults::Fault;
use tsuzuki::demo::site::{Content, Site, Versions};
use tsuzuki::time::Timestamp;

use super::{DAY, World, config_text, feed_only, html_only, site, sitemap_only};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Feed,
    Sitemap,
    Html,
    Mixed,
}

/// A row of the table: an event, and what two checks, an hour apart, have to announce.
struct Step {
    what: &'static str,
    happens: fn(&mut Content, Timestamp),
    announced: &'static [&'static str],
    fails: fn(Kind) -> bool,
}

const fn step(
    what: &'static str,
    happens: fn(&mut Content, Timestamp),
    announced: &'static [&'static str],
) -> Step {
    Step { what, happens, announced, fails: |_| false }
}

const fn failing(what: &'static str, happens: fn(&mut Content, Timestamp), fails: fn(Kind) -> bool) -> Step {
    Step { what, happens, announced: &[], fails }
}

fn nothing(_: &mut Content, _: Timestamp) {}

/// Moves the source in use to another address.
fn move_away(content: &mut Content) {
    let place = match (&mut content.feed, &mut content.sitemap) {
        (Some(feed), _) => feed,
        (None, Some(sitemap)) => sitemap,
        (None, None) => &mut content.page,
    };
    let from = std::mem::replace(place, "/moved".into());
    content.redirects.insert(from, (301, "/moved".into()));
}

/// An HTML error page, with status 200, where the deciding document was.
fn put_error_page(content: &mut Content) {
    let at = content.feed.as_ref().or(content.sitemap.as_ref()).unwrap_or(&content.page).clone();
    let page = "<html><body><h1>Please log in</h1><a href=\"/login\">Log in</a></body></html>";
    content.instead.insert(at, (200, "text/html".into(), page.into()));
}

/// Every scenario begins with the silent first checks.
fn scenarios() -> Vec<(&'static str, Vec<Step>)> {
    vec![
        ("same", vec![step("nothing happens", nothing, &[]), step("again", nothing, &[])]),
        (
            "one new entry",
            vec![
                step("an article appears", |c, now| c.publish("brand-new", "brand-new", now), &["brand-new"]),
                step("it stays", nothing, &[]),
                step("a second one appears", |c, now| c.publish("second", "second", now), &["second"]),
            ],
        ),
        (
            "moved",
            vec![
                step("it moves", |c, _| move_away(c), &[]),
                step(
                    "an article appears there",
                    |c, now| c.publish("elsewhere", "elsewhere", now),
                    &["elsewhere"],
                ),
                step("it stays", nothing, &[]),
            ],
        ),
        (
            "reordered",
            vec![
                step("the order is turned around", |c, _| c.articles.reverse(), &[]),
                step("an article is removed", |c, _| drop(c.articles.remove(2)), &[]),
                step("titles are edited", |c, _| c.articles.iter_mut().for_each(|a| a.title.push('!')), &[]),
            ],
        ),
        (
            "server error",
            vec![
                failing("it answers 500", |c, _| c.fault = Some(Fault::Status(500, vec![])), |_| true),
                failing(
                    "an article appears meanwhile",
                    |c, now| c.publish("meanwhile", "meanwhile", now),
                    |_| true,
                ),
                step("it recovers", |c, _| c.fault = None, &["meanwhile"]),
                step("it stays", nothing, &[]),
            ],
        ),
        (
            "304 for ever",
            vec![
                step("it says 304 for ever", |c, _| c.versions = Versions::Always304, &[]),
                step("an article appears behind it", |c, now| c.publish("hidden", "hidden", now), &[]),
                // The clock is a week on by now: everything is read in full.
                step("a week later it is found", nothing, &["hidden"]),
                step("it stays", nothing, &[]),
            ],
        ),
        (
            "error page",
            vec![
                failing("an error page is there instead", |c, _| put_error_page(c), |_| true),
                step(
                    "it is back, with an article",
                    |c, now| {
                        c.instead.clear();
                        c.publish("after-error", "after-error", now);
                    },
                    &["after-error"],
                ),
            ],
        ),
        (
            "redesign",
            vec![
                step("the design changes", |c, _| c.design = 1, &[]),
                step(
                    "links get tracking parameters",
                    |c, _| c.link_suffix = "?utm_source=blog&fbclid=1".into(),
                    &[],
                ),
                step(
                    "some guids are rewritten",
                    |c, _| c.articles.iter_mut().take(3).for_each(|a| a.guid = format!("tag:new:{}", a.slug)),
                    &[],
                ),
                step(
                    "an article appears",
                    |c, now| c.publish("redesigned", "redesigned", now),
                    &["redesigned"],
                ),
            ],
        ),
        (
            "empty",
            vec![
                failing("all articles are gone", |c, _| c.articles.clear(), |_| true),
                step(
                    "they are back",
                    |c, _| c.articles = Content::with_articles(6, super::newest()).articles,
                    &[],
                ),
            ],
        ),
        (
            "shrunken",
            vec![
                failing(
                    "one article is left",
                    |c, _| c.articles.truncate(1),
                    |kind| matches!(kind, Kind::Sitemap | Kind::Html),
                ),
                // The third time it is believed; nothing on it is new.
                step("it stays", nothing, &[]),
                step("an article appears", |c, now| c.publish("regrown", "regrown", now), &["regrown"]),
            ],
        ),
        ("no validators", {
            vec![
                step("it sends no validators", |c, _| c.versions = Versions::Nothing, &[]),
                step(
                    "an article appears",
                    |c, now| c.publish("unversioned", "unversioned", now),
                    &["unversioned"],
                ),
                step("it stays", nothing, &[]),
            ]
        }),
    ]
}

on_both_databases! {
    async fn every_scenario_tells_what_is_new_once_on_every_kind_of_site(fixture) {
        let table = scenarios();
        let mut sites: BTreeMap<(usize, &str), (Kind, Site)> = BTreeMap::new();
        let mut blogs = Vec::new();
        for (number, _) in table.iter().enumerate() {
            for (name, kind, make) in [
                ("feed", Kind::Feed, feed_only as fn(&mut Content)),
                ("sitemap", Kind::Sitemap, sitemap_only),
                ("html", Kind::Html, html_only),
                ("mixed", Kind::Mixed, |_: &mut Content| {}),
                ("permalinks", Kind::Mixed, |content: &mut Content| content.permalinks = true),
            ] {
                let site = site(make).await;
                blogs.push(format!("id = \"{number}-{name}\"\nurl = \"{}\"", site.url));
                sites.insert((number, name), (kind, site));
            }
        }
        let world = World::new(&fixture, &config_text("", &blogs));

        world.run_times(2).await;
        assert!(world.changes().await.is_empty(), "the first checks are silent: {:?}", world.changes().await);
        for (number, name) in sites.keys() {
            let checks = world.checks(&format!("{number}-{name}"), 9).await;
            assert_eq!(checks.iter().map(|check| check.error_message.clone()).collect::<Vec<_>>(), [None, None]);
            assert!(checks[0].skipped && !checks[1].skipped, "the second finds nothing changed: {number}-{name}");
        }

        let longest = table.iter().map(|(_, steps)| steps.len()).max().unwrap();
        let mut announced: BTreeMap<(usize, &str), usize> = BTreeMap::new();
        let mut wrong = Vec::new();
        for round in 0..longest {
            if round == 2 {
                fixture.clock.advance(DAY * 8);
            }
            let now = fixture.clock.now();
            for ((number, _), (_, site)) in &sites {
                if let Some(step) = table[*number].1.get(round) {
                    site.edit(|content| (step.happens)(content, now));
                }
            }
            world.run_times(2).await;
            for ((number, name), (kind, _)) in &sites {
                let (scenario, steps) = &table[*number];
                let blog = format!("{number}-{name}");
                let all = world.announced(&blog).await;
                let before = announced.insert((*number, name), all.len()).unwrap_or(0);
                let Some(step) = steps.get(round) else {
                    assert_eq!(all.len(), before, "{scenario}, {name}: told after the end");
                    continue;
                };
                let at = format!("{scenario} on {name}: {}", step.what);
                if all[before..] != *step.announced {
                    wrong.push(format!("{at}: told {:?}, not {:?}", &all[before..], step.announced));
                }
                let failed = world.checks(&blog, 2).await.iter().filter(|c| c.error_message.is_some()).count();
                if failed != if (step.fails)(*kind) { 2 } else { 0 } {
                    let checks = world.checks(&blog, 2).await;
                    wrong.push(format!("{at}: {failed} of two checks failed: {checks:?}"));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));

        // One digest per run that found something, each change in exactly one, nothing held.
        let changes = world.changes().await;
        let digests: std::collections::BTreeSet<_> =
            changes.iter().filter(|change| change.code == tsuzuki::blogs::decide::Code::New).map(|change| change.digest.clone().expect("it was queued")).collect();
        let messages = world.messages().await;
        assert_eq!(messages.len(), digests.len());
        assert!(messages.iter().all(|message| message.state == tsuzuki::channel::outbox::State::Ready));

        // The new address was adopted; the failure and the recovery were reported once.
        for name in ["feed", "mixed", "permalinks"] {
            let feed = world.state(&format!("2-{name}")).await.feed_url.unwrap();
            assert_eq!(feed.path(), "/moved");
        }
        assert_eq!(world.state("2-sitemap").await.sitemap_url.unwrap().path(), "/moved");
        for name in ["feed", "sitemap", "html", "mixed", "permalinks"] {
            assert_eq!(world.alerts(&format!("4-{name}")).await, ["failing", "recovered"], "{name}");
        }
    }
}
