//! Every page that links lead to, in both languages and both themes.

use std::collections::{BTreeMap, BTreeSet};

use url::Url;

use crate::browser::Browser;
use crate::program::Program;

/// Pages that must be among those that were found.
const KNOWN: &[&str] =
    &["/", "/commits", "/deliveries", "/job", "/quotas", "/settings", "/settings?kind", "/why/delivery"];

const PHONE: (u32, u32) = (390, 844);
const DESKTOP: (u32, u32) = (1_280, 900);
const IS_TOO_WIDE: &str =
    "return document.documentElement.scrollWidth > document.documentElement.clientWidth";

#[tokio::test(flavor = "multi_thread")]
async fn every_page_is_quiet_stays_at_home_and_keeps_nobody_out() {
    let program = Program::demo();
    let browser = Browser::open().await;
    let pages = list_pages(&program, &browser).await;
    for known in KNOWN {
        assert!(pages.contains_key(*known), "no link leads to {known}: {:?}", pages.keys());
    }
    let mut faults = Vec::new();
    for (language, theme) in [("en", "light"), ("ja", "dark"), ("en", "dark"), ("ja", "light")] {
        browser
            .run(&format!(
                "document.cookie = 'lang={language}; path=/'; document.cookie = 'theme={theme}; path=/'"
            ))
            .await;
        for page in pages.values() {
            browser.go(page.as_str()).await;
            let at = format!("{} ({language}, {theme})", page.path());
            let lang = browser.run("return document.documentElement.lang").await;
            // Whoever follows a link in a mail has chosen no language here.
            assert!(lang == language || page.path().starts_with("/p/"), "{at}: {lang}");
            for (width, height) in [PHONE, DESKTOP] {
                browser.resize(width, height).await;
                if browser.run(IS_TOO_WIDE).await == true {
                    faults.push(format!("{at}: wider than a window of {width} pixels"));
                }
            }
            faults
                .extend(browser.complaints().await.into_iter().map(|said| format!("{at}: console: {said}")));
            let strangers = browser.asked().await.into_iter().filter(|asked| is_strange(asked, &program));
            faults.extend(strangers.map(|asked| format!("{at}: asked {asked}")));
            faults.extend(browser.violations().await.into_iter().map(|found| format!("{at}: axe: {found}")));
        }
    }
    browser.close().await;
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn long_names_make_no_page_wider_than_a_phone() {
    let (channel, job) = ("announcements-".repeat(4), "watch-of-companies-".repeat(3));
    let (channel, job) = (channel.trim_end_matches('-'), job.trim_end_matches('-'));
    let program = Program::serve(&format!(
        "[web]\nlisten = \"127.0.0.1:0\"\n[channel.{channel}]\nkind = \"slack\"\nurl = \"https://127.0.0.1:1/x\"\n\
         [[job]]\nname = \"{job}\"\nkind = \"blogs\"\nenabled = false\ndeliver = [\"{channel}\"]\n\
         blog = [{{ id = \"a\", url = \"https://127.0.0.1:1\" }}]\n",
    ));
    let browser = Browser::open().await;
    browser.resize(360, 800).await;
    for path in ["/", "/deliveries", "/changes", "/settings?kind=blogs", &format!("/job/{job}")] {
        browser.go(&program.at(path)).await;
        assert_eq!(browser.run(IS_TOO_WIDE).await, false, "{path}");
    }
    // The names of channels are in buttons, too.
    let stretch = format!("document.querySelector('.act button').textContent = 'resume {channel}'");
    browser.run(&stretch).await;
    assert_eq!(browser.run(IS_TOO_WIDE).await, false, "a button with a long name");
    browser.close().await;
}

fn is_strange(asked: &Url, program: &Program) -> bool {
    matches!(asked.scheme(), "http" | "https") && asked.origin().ascii_serialization() != program.origin()
}

/// One page of each sort, by what tells the sort.
async fn list_pages(program: &Program, browser: &Browser) -> BTreeMap<String, Url> {
    let start: Url = program.at("/").parse().unwrap();
    let mut pages = BTreeMap::from([("/".to_owned(), start.clone())]);
    let mut open = vec![start];
    while let Some(page) = open.pop() {
        browser.go(page.as_str()).await;
        let links = "return [...document.querySelectorAll('a[href]:not([download])')].map(link => link.href)";
        let links: Vec<String> = serde_json::from_value(browser.run(links).await).unwrap();
        for link in links.iter().filter_map(|link| link.parse::<Url>().ok()) {
            let Some(sort) = sort_of(&link, program) else { continue };
            if let std::collections::btree_map::Entry::Vacant(vacant) = pages.entry(sort) {
                vacant.insert(link.clone());
                open.push(link);
            }
        }
    }
    pages
}

/// What pages of a sort have in common: the names in their address, without those of single things.
fn sort_of(link: &Url, program: &Program) -> Option<String> {
    if link.origin().ascii_serialization() != program.origin() {
        return None;
    }
    let parts: Vec<&str> = link.path_segments()?.collect();
    let names: BTreeSet<String> = link.query_pairs().map(|(name, _)| name.into_owned()).collect();
    let path = match parts.as_slice() {
        ["feeds" | "api" | "badge", ..] => return None,
        ["why", word, _] => format!("/why/{word}"),
        [first @ ("p" | "job"), _] => format!("/{first}"),
        parts => format!("/{}", parts.join("/")),
    };
    Some(names.iter().fold(path, |path, name| format!("{path}?{name}")))
}
