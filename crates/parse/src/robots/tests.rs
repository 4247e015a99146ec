//! The meaning of rules, case by case.

use std::time::Duration;

use proptest::prelude::*;

use super::*;

fn allows(text: &str, agent: &str, path: &str) -> bool {
    parse(text.as_bytes()).allows(agent, &format!("https://example.com{path}"))
}

#[test]
fn the_longest_match_wins_and_allowing_wins_a_tie() {
    let text = "User-agent: *\nDisallow: /private\nAllow: /private/open\nDisallow: /same\nAllow: /same\n";
    assert!(!allows(text, "a", "/private/x"));
    assert!(allows(text, "a", "/private/open/x"));
    assert!(allows(text, "a", "/same"));
    assert!(allows(text, "a", "/Private"));
    assert!(allows("User-agent: *\nAllow: /p\nDisallow: /\n", "a", "/page"));
    assert!(!allows("User-agent: *\nAllow: /page\nDisallow: /*.html\n", "a", "/page.html"));
}

#[test]
fn the_file_itself_may_always_be_fetched() {
    let text = "User-agent: *\nDisallow: *\n";
    assert!(allows(text, "a", "/robots.txt"));
    assert!(!allows(text, "a", "/robots.txt.html"));
}

#[test]
fn stars_match_anything_and_a_final_dollar_the_end() {
    for (pattern, path, matches) in [
        ("/fish", "/fish.html", true),
        ("/fish", "/Fish", false),
        ("/fish*", "/fishheads", true),
        ("/fish/", "/fish", false),
        ("/*.php", "/a/index.php?x", true),
        ("/*.php$", "/a.php", true),
        ("/*.php$", "/a.php?x", false),
        ("/*.php$", "/a.php/b.php", true),
        ("/a*b*c", "/a-c-b-c", true),
        ("/a*b*c$", "/a-b-c-d", false),
        ("/a$b", "/a$bc", true),
        ("/a$", "/a$", false),
        ("*/x", "/deep/x", true),
        ("x", "/x", false),
        ("$", "/", false),
        ("/$", "/", true),
        ("/***", "/", true),
        ("/file-%2A.html", "/file-*.html", true),
        ("/file-%2A.html", "/file-x.html", false),
        ("/price-%24", "/price-$", true),
        ("/?q=", "?q=1", true),
    ] {
        let allowed = allows(&format!("User-agent: *\nDisallow: {pattern}"), "a", path);
        assert_eq!(allowed, !matches, "{pattern} {path}");
    }
}

#[test]
fn escaped_and_plain_spellings_are_equal() {
    for (pattern, path) in [
        ("/日本", "/%E6%97%A5%E6%9C%AC"),
        ("/日本", "/%e6%97%a5%e6%9c%ac"),
        ("/%e6%97%a5", "/日"),
        ("/%7Ejoe", "/~joe"),
        ("/~joe", "/%7ejoe"),
    ] {
        assert!(!allows(&format!("User-agent: *\nDisallow: {pattern}"), "a", path), "{pattern} {path}");
    }
    // An escaped slash is not a path separator.
    assert!(allows("User-agent: *\nDisallow: /a/b", "a", "/a%2Fb"));
}

#[test]
fn an_agent_obeys_all_groups_that_name_it_and_only_else_the_star() {
    let text = "User-agent: *\nDisallow: /\n\nUser-agent: Tsuzuki/2.0 reader\nUser-agent: other\nDisallow: /one\n\n\
                User-agent: nobody\nDisallow: /two\n\nuser-agent: TSUZUKI\nDisallow: /three\n";
    for agent in ["tsuzuki", "Tsuzuki", "tsuzuki/1.0 (+https://example.com/bot)"] {
        assert!(allows(text, agent, "/"), "{agent}");
        assert!(!allows(text, agent, "/one"), "{agent}");
        assert!(allows(text, agent, "/two"), "{agent}");
        assert!(!allows(text, agent, "/three"), "{agent}");
    }
    assert!(!allows(text, "stranger", "/x"));
    assert!(!allows(text, "tsu", "/x"), "a name matches as a whole");
    assert!(!allows(text, "", "/x"));
}

#[test]
fn an_empty_group_frees_its_agent_and_an_unknown_name_keeps_its_rules_to_itself() {
    assert!(allows("User-agent: *\nDisallow: /\nUser-agent: mine\nDisallow:\n", "mine", "/x"));
    assert!(allows("User-agent: *\nDisallow: /\nUser-agent: mine", "mine", "/x"));
    assert!(allows("User-agent: mine\nDisallow: /a\nUser-agent: 123\nDisallow: /b\n", "mine", "/b"));
    assert!(allows("Disallow: /\n", "mine", "/x"), "rules before any agent say nothing");
    assert!(!allows("User-agent: mj12bot\nDisallow: /\n", "MJ12bot", "/x"));
}

#[test]
fn other_lines_do_not_end_a_group() {
    let text = "User-agent: one\nSitemap: https://example.com/s.xml\nHost: x\nCrawl-delay: 2.5\nUser-agent: two\nDisallow: /\n";
    let robots = parse(text.as_bytes());
    assert!(!allows(text, "one", "/x") && !allows(text, "two", "/x"));
    assert_eq!(robots.sitemaps(), ["https://example.com/s.xml"]);
    assert_eq!(robots.crawl_delay("one"), Some(Duration::from_millis(2500)));
    assert_eq!(robots.crawl_delay("three"), None);
}

#[test]
fn common_mistakes_are_forgiven() {
    for text in [
        "\u{feff}User-agent: a\nDisallow: /\n",
        "USERAGENT:a\rDISALLOW:/",
        "user agent : a # who\r\n  dissallow :\t/ # what\r\n",
        "User-agent a\nDisallow /",
        "User-agent: a\n\n\nunknown\nDisalow: /\n",
    ] {
        assert!(!allows(text, "a", "/x"), "{text:?}");
    }
    assert!(allows("User-agent: a\nDisallow / x\n", "a", "/x"), "three words are no rule");
    assert!(!allows("User-agent: * everyone\nDisallow: /\n", "a", "/x"));
    assert!(allows("User-agent: *everyone\nDisallow: /\n", "a", "/x"));
    assert!(parse(b"\xEF\xBBUser-agent: a\nDisallow: /").allows("a", "/x").eq(&false));
}

#[test]
fn an_allowed_index_page_allows_its_directory() {
    let text = "User-agent: *\nAllow: /dir/index.html\nDisallow: /\n";
    assert!(allows(text, "a", "/dir/"));
    assert!(allows(text, "a", "/dir/index.html"));
    assert!(!allows(text, "a", "/dir/other"));
}

#[test]
fn only_path_and_query_of_an_address_count() {
    let robots = parse(b"User-agent: *\nDisallow: /a\nDisallow: /?q\nDisallow: /;p\n");
    for (url, allowed) in [
        ("https://example.com/a", false),
        ("//example.com/a", false),
        ("/a", false),
        ("https://user@example.com:80/a?b#c", false),
        ("https://example.com?q=https://x/b", false),
        ("https://example.com;p", false),
        ("https://example.com#/a", true),
        ("https://example.com/b?u=https://x/a", true),
        ("example.com", true),
        ("", true),
    ] {
        assert_eq!(robots.allows("x", url), allowed, "{url}");
    }
}

#[test]
fn only_whole_lines_below_the_limit_count() {
    let mut text = "User-agent: *\nDisallow: /first\n".to_owned();
    text.push_str(&"#\n".repeat((MAX_BYTES - text.len()) / 2 - 4));
    text.push_str("Disallow: /cut\n");
    text.push_str("Disallow: /after\n");
    assert!(!allows(&text, "a", "/first"));
    assert!(allows(&text, "a", "/cut"));
    assert!(allows(&text, "a", "/after"));
    let exact = format!("User-agent: *\n{}Disallow: /x", "#\n".repeat((MAX_BYTES - 14 - 12) / 2));
    assert_eq!(exact.len(), MAX_BYTES);
    assert!(!allows(&exact, "a", "/x"));
}

#[test]
fn hostile_patterns_end_quickly() {
    let pattern = "*a".repeat(8_000);
    let text = format!("User-agent: *\n{}", format!("Disallow: /{pattern}b$\n").repeat(30));
    assert!(allows(&text, "a", &format!("/{}", "a".repeat(100_000))));
}

#[test]
fn delays_are_numbers_of_seconds_below_a_day() {
    let delay =
        |value: &str| parse(format!("User-agent: *\nCrawl-delay: {value}").as_bytes()).crawl_delay("x");
    assert_eq!(delay("10"), Some(Duration::from_secs(10)));
    assert_eq!(delay("1e9"), Some(MAX_CRAWL_DELAY));
    let each = parse(b"User-agent: a\nCrawl-delay: 1\n\nUser-agent: b\nUser-agent: c\nCrawl-delay: 2\nDisallow: /x\n\nUser-agent: *\nCrawl-delay: 3\n");
    let pauses = ["a", "b", "c", "d"].map(|agent| each.crawl_delay(agent).unwrap().as_secs());
    assert_eq!(pauses, [1, 2, 2, 3]);
    for refused in ["-1", "soon", "NaN", "inf", ""] {
        assert_eq!(delay(refused), None, "{refused}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..600), url in ".{0,40}") {
        let mut text = b"User-agent: *\nDisallow: ".to_vec();
        text.extend(bytes);
        let _ = parse(&text).allows("a", &url);
    }

    #[test]
    fn a_literal_rule_matches_exactly_its_prefixes(rule in "/[a-c/]{0,6}", path in "/[a-c/]{0,6}") {
        prop_assert_eq!(allows(&format!("User-agent: *\nDisallow: {rule}"), "x", &path), !path.starts_with(&rule));
    }
}
