//! robots.txt: a site's rules for crawlers (RFC 9309, as lenient as Google's reference parser).
//!
//! Parsing never fails: unknown lines are ignored.

mod pattern;

use std::time::Duration;

use self::pattern::{Marks, Pattern, comparable};

/// Bytes of a file that are read; RFC 9309 requires at least 500 KiB.
pub const MAX_BYTES: usize = 500 * 1024;

/// Bytes of one line that are read.
const MAX_LINE_BYTES: usize = 16 * 1024;

/// The longest delay between requests that is respected.
const MAX_CRAWL_DELAY: Duration = Duration::from_hours(24);

/// The rules of a robots.txt for all agents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Robots {
    groups: Vec<Group>,
    delays: Vec<Delay>,
    sitemaps: Vec<String>,
}

/// Rules for the agents named above them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Group {
    agents: Vec<String>,
    rules: Vec<Rule>,
}

/// A delay for the agents directly above it.
///
/// Kept apart from the groups: a delay is not a rule and does not end a group of rules, but a file may set a delay for
/// each of several agents.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Delay {
    agents: Vec<String>,
    pause: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    verdict: RobotsVerdict,
    pattern: Pattern,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum RobotsVerdict {
    Disallow,
    /// Greater on purpose: of two matches of equal length, the allowing one wins.
    Allow,
}

/// Parses a robots.txt; of a file above [`MAX_BYTES`], only whole lines within the limit are read.
pub fn parse(bytes: &[u8]) -> Robots {
    let mut robots = Robots::default();
    let mut group = Group::default();
    let mut group_has_rules = false;
    let mut latest_agents: Vec<String> = Vec::new();
    let mut after_agent_line = false;
    for line in whole_lines(without_bom(bytes)) {
        let Some((key, value)) = key_and_value(line) else { continue };
        let key = Key::read(key);
        let was_after_agent_line = std::mem::replace(&mut after_agent_line, matches!(key, Key::UserAgent));
        match key {
            Key::UserAgent => {
                if !was_after_agent_line {
                    latest_agents.clear();
                }
                latest_agents.extend(agent_names(value));
                if group_has_rules {
                    robots.groups.push(std::mem::take(&mut group));
                    group_has_rules = false;
                }
                group.agents.extend(agent_names(value));
            }
            Key::Rule(verdict) if !group.agents.is_empty() => {
                group_has_rules = true;
                group.rules.extend(rules(verdict, value));
            }
            Key::CrawlDelay => {
                // Only the first delay below a list of agents is used.
                if let Some(pause) = pause(value).filter(|_| !latest_agents.is_empty()) {
                    robots.delays.push(Delay { agents: std::mem::take(&mut latest_agents), pause });
                }
            }
            Key::Sitemap => {
                let address = String::from_utf8_lossy(value).into_owned();
                if !address.is_empty() && !robots.sitemaps.contains(&address) && robots.sitemaps.len() < 1000
                {
                    robots.sitemaps.push(address);
                }
            }
            Key::Rule(_) | Key::Other => {}
        }
    }
    robots.groups.push(group);
    robots
}

impl Robots {
    /// Whether `agent` may fetch `url`: the longest matching rule decides, an allowing one in a tie.
    ///
    /// `agent` is a product name (`tsuzuki`) or a whole User-Agent header (`tsuzuki/1.0 (+https://…)`). The robots.txt
    /// itself may always be fetched (RFC 9309).
    pub fn allows(&self, agent: &str, url: &str) -> bool {
        let path = comparable(path_and_query(url).as_bytes(), Marks::Literal);
        if path == "/robots.txt" {
            return true;
        }
        let name = self.name_of(agent);
        self.groups
            .iter()
            .filter(|group| group.agents.contains(&name))
            .flat_map(|group| &group.rules)
            .filter(|rule| rule.pattern.matches(&path))
            .map(|rule| (rule.pattern.weight, rule.verdict))
            .max()
            .is_none_or(|(_, verdict)| verdict == RobotsVerdict::Allow)
    }

    /// The delay between two requests for `agent`.
    pub fn crawl_delay(&self, agent: &str) -> Option<Duration> {
        let name = self.name_of(agent);
        self.delays.iter().find(|delay| delay.agents.contains(&name)).map(|delay| delay.pause)
    }

    /// The sitemaps of the site, as written, in order.
    pub fn sitemaps(&self) -> &[String] {
        &self.sitemaps
    }

    /// The group name for `agent`: its own if there is such a group, else `*`.
    fn name_of(&self, agent: &str) -> String {
        let product = agent.split('/').next().unwrap_or_default().trim().to_ascii_lowercase();
        let is_named = !product.is_empty() && self.groups.iter().any(|group| group.agents.contains(&product));
        if is_named { product } else { "*".to_owned() }
    }
}

enum Key {
    UserAgent,
    Rule(RobotsVerdict),
    CrawlDelay,
    Sitemap,
    Other,
}

impl Key {
    /// Parses a key by its prefix, with common misspellings.
    fn read(key: &[u8]) -> Key {
        let starts = |names: &[&str]| {
            names.iter().any(|name| {
                key.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name.as_bytes()))
            })
        };
        if starts(&["user-agent", "useragent", "user agent"]) {
            Key::UserAgent
        } else if starts(&["allow"]) {
            Key::Rule(RobotsVerdict::Allow)
        } else if starts(&["disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"]) {
            Key::Rule(RobotsVerdict::Disallow)
        } else if starts(&["sitemap", "site-map"]) {
            Key::Sitemap
        } else if starts(&["crawl-delay", "crawldelay"]) {
            Key::CrawlDelay
        } else {
            Key::Other
        }
    }
}

/// The names of a `User-agent` line: `*`, the product token, and the first word as written.
fn agent_names(value: &[u8]) -> Vec<String> {
    if value.first() == Some(&b'*') && value.get(1).is_none_or(u8::is_ascii_whitespace) {
        return vec!["*".to_owned()];
    }
    let text = String::from_utf8_lossy(value).to_ascii_lowercase();
    let token_end =
        text.find(|c: char| !(c.is_ascii_alphabetic() || matches!(c, '-' | '_'))).unwrap_or(text.len());
    let word_end = text.find(|c: char| c.is_whitespace() || c == '/').unwrap_or(text.len());
    // A name that matches no agent still opens a group: its rules must not apply to the agents before it.
    let mut names = vec![text[..token_end].to_owned()];
    if word_end > token_end {
        names.push(text[..word_end].to_owned());
    }
    names
}

/// A rule; `Allow: /dir/index.html` also allows the directory itself, which is the same page.
fn rules(verdict: RobotsVerdict, value: &[u8]) -> Vec<Rule> {
    if value.is_empty() {
        return Vec::new();
    }
    let mut rules = vec![Rule { verdict, pattern: Pattern::read(value) }];
    let slash = value.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
    if verdict == RobotsVerdict::Allow && value[slash..].starts_with(b"/index.htm") {
        let mut directory = value[..=slash].to_vec();
        directory.push(b'$');
        rules.push(Rule { verdict, pattern: Pattern::read(&directory) });
    }
    rules
}

/// Path and query of an address, always with a leading slash.
fn path_and_query(url: &str) -> String {
    let url = url.split('#').next().unwrap_or_default();
    let start = if url.starts_with("//") { 2 } else { 0 };
    let first_path = url[start..].find(['/', '?', ';']).map_or(url.len(), |at| at + start);
    let authority = match url[start..].find("://").map(|at| at + start) {
        Some(at) if at < first_path => at + 3,
        _ => start,
    };
    let path = url[authority..].find(['/', '?', ';']).map_or("", |at| &url[authority + at..]);
    if path.starts_with('/') { path.to_owned() } else { format!("/{path}") }
}

fn without_bom(bytes: &[u8]) -> &[u8] {
    // Skip also a truncated byte order mark.
    let marks: [&[u8]; 3] = [b"\xEF\xBB\xBF", b"\xEF\xBB", b"\xEF"];
    marks.iter().find_map(|mark| bytes.strip_prefix(*mark)).unwrap_or(bytes)
}

fn whole_lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
    let read = match bytes.get(..MAX_BYTES) {
        Some(start) if bytes.len() > MAX_BYTES && !is_end(&bytes[MAX_BYTES]) => {
            start.iter().rposition(is_end).map_or(&[][..], |end| &start[..end])
        }
        Some(start) => start,
        None => bytes,
    };
    read.split(is_end).map(|line| line.get(..MAX_LINE_BYTES).unwrap_or(line))
}

/// Splits `key: value` without comment; a missing colon is accepted if there are exactly two words.
fn key_and_value(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = line.split(|byte| *byte == b'#').next()?.trim_ascii();
    let at = line.iter().position(|byte| *byte == b':').or_else(|| {
        let is_gap = |byte: &u8| matches!(byte, b' ' | b'\t');
        let gap = line.iter().position(is_gap)?;
        (!line[gap..].trim_ascii().iter().any(is_gap)).then_some(gap)
    })?;
    let key = line[..at].trim_ascii();
    (!key.is_empty()).then(|| (key, line[at + 1..].trim_ascii()))
}

fn pause(value: &[u8]) -> Option<Duration> {
    let seconds: f64 = std::str::from_utf8(value).ok()?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok().map(|delay| delay.min(MAX_CRAWL_DELAY))
}

#[cfg(test)]
mod tests;
