//! Renders phrases, values, moments and states as HTML: everything is escaped, and untrusted text cannot change the
//! direction of the text around it.

use std::fmt::Write as _;
use std::time::Duration;

use askama::Template;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

pub(in crate::web) use super::markup::Markup;
use crate::engine::view::{Line, Section, Stage};
use crate::engine::{Action, Standing, State, Verb, View};
use crate::phrase;
use crate::phrase::{Phrase, Piece, Speech, Value};
use crate::text::{Language, width};
use crate::time::Timestamp;
use crate::web::chart::grouped;

/// Moments nearer than this are shown relative to now.
const NEAR: Duration = Duration::from_secs(48 * 60 * 60);
/// Columns of text that fit into a cell of a grid.
const LONG: usize = 80;
/// The characters that are not escaped in a path segment.
const IN_PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b':');

/// Renders for one reader. Its functions take references, because templates pass references.
pub(in crate::web) struct Renderer {
    pub(in crate::web) speech: Speech,
    pub(in crate::web) now: Timestamp,
    /// The page to return to after an action.
    pub(in crate::web) address: String,
    /// Whether to show actions.
    pub(in crate::web) may_act: bool,
}

impl Renderer {
    /// A fixed text in the reader's language.
    pub(in crate::web) fn say<'a>(&self, en: &'a str, ja: &'a str) -> &'a str {
        self.speech.choose(en, ja)
    }

    pub(in crate::web) fn language(&self) -> Language {
        self.speech.language
    }

    /// Whether it is English, for plural forms.
    pub(in crate::web) fn is_english(&self) -> bool {
        self.language() == Language::En
    }

    /// A phrase as a heading: its first letter is a capital.
    pub(in crate::web) fn heading(&self, phrase: &Phrase) -> String {
        let text = self.plain(phrase);
        let mut chars = text.chars();
        chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
    }

    /// A phrase without markup, for attributes and titles.
    pub(in crate::web) fn plain(&self, phrase: &Phrase) -> String {
        self.speech.phrase(phrase)
    }

    /// A phrase; moments and links in it are elements of their own.
    pub(in crate::web) fn phrase(&self, phrase: &Phrase) -> Markup {
        let mut out = Markup::default();
        self.push_phrase(&mut out, phrase);
        out
    }

    fn push_phrase(&self, out: &mut Markup, phrase: &Phrase) {
        for piece in self.speech.pieces(phrase) {
            match piece {
                Piece::Words(words) => out.push_text(words),
                Piece::Counted(counted) => out.push_text(&counted),
                // "not due before in 5 min" is not a sentence.
                Piece::Value(Value::Moment(at)) => self.push_time(out, *at, &self.clock_time(*at)),
                Piece::Value(value) => self.push_value(out, value),
            }
        }
    }

    pub(in crate::web) fn value(&self, value: &Value) -> Markup {
        let mut out = Markup::default();
        self.push_value(&mut out, value);
        out
    }

    fn push_value(&self, out: &mut Markup, value: &Value) {
        match value {
            Value::Text(text) => out.push_foreign(text),
            Value::Moment(at) => self.push_moment(out, *at),
            Value::Link { href, text } => push_link(out, href, text.as_deref().unwrap_or(href)),
            Value::Phrase(phrase) => self.push_phrase(out, phrase),
            Value::List(values) => self.push_list(out, values, self.say(", ", "、")),
            Value::Sentences(values) => self.push_list(out, values, self.say("; ", "。")),
            Value::Count(count) => out.push_text(&self.count(count)),
            Value::Nothing | Value::Duration(_) | Value::Bytes(_) => {
                out.push_text(&self.speech.value(value));
            }
        }
    }

    fn push_list(&self, out: &mut Markup, values: &[Value], between: &str) {
        for (index, value) in values.iter().enumerate() {
            if index > 0 {
                out.push_text(between);
            }
            self.push_value(out, value);
        }
    }

    /// A number with separators; a year or the number of an issue has none.
    pub(in crate::web) fn count(&self, count: &i64) -> String {
        if count.unsigned_abs() < 10_000 { count.to_string() } else { grouped(*count) }
    }

    /// A moment: relative if it is near, with the exact moment as a tooltip.
    pub(in crate::web) fn moment(&self, at: &Timestamp) -> Markup {
        let mut out = Markup::default();
        self.push_moment(&mut out, *at);
        out
    }

    fn push_moment(&self, out: &mut Markup, at: Timestamp) {
        let shown = self.relative(at).unwrap_or_else(|| self.clock_time(at));
        self.push_time(out, at, &shown);
    }

    fn push_time(&self, out: &mut Markup, at: Timestamp, shown: &str) {
        let _ = write!(out.0, "<time datetime=\"{}\" title=\"{}\">", at.to_text(), self.speech.moment(at));
        out.push_text(shown);
        out.push_html("</time>");
    }

    /// The time of a day, with the day if it is another than today.
    fn clock_time(&self, at: Timestamp) -> String {
        let Some(zone) = &self.speech.zone else { return at.to_text() };
        let is_today = at.date_in(zone) == self.now.date_in(zone);
        let format = if is_today { "%H:%M" } else { "%Y-%m-%d %H:%M" };
        at.to_jiff().to_zoned(zone.clone()).strftime(format).to_string()
    }

    fn relative(&self, at: Timestamp) -> Option<String> {
        let is_past = at <= self.now;
        let span = if is_past { self.now.since(at) } else { at.since(self.now) };
        let secs = span.as_secs();
        if span > NEAR {
            return None;
        }
        if secs < 5 {
            return Some(self.say("now", "今").to_owned());
        }
        // One unit is enough to know how old something is.
        let rounded = match secs {
            0..60 => secs,
            60..3_600 => secs / 60 * 60,
            _ => secs / 3_600 * 3_600,
        };
        let span = self.speech.duration(Duration::from_secs(rounded));
        Some(match (self.language(), is_past) {
            (Language::En, true) => format!("{span} ago"),
            (Language::En, false) => format!("in {span}"),
            (Language::Ja, true) => format!("{span}前"),
            (Language::Ja, false) => format!("{span}後"),
        })
    }

    /// How long something takes.
    pub(in crate::web) fn duration(&self, span: &Duration) -> String {
        self.speech.duration(*span)
    }

    /// A state: a mark, a word and a colour.
    pub(in crate::web) fn state(&self, state: &State) -> Markup {
        self.state_with(*state, &state.phrase())
    }

    /// The same, with its reason.
    pub(in crate::web) fn standing(&self, standing: &Standing) -> Markup {
        self.state_with(standing.state, &standing.phrase())
    }

    fn state_with(&self, state: State, words: &Phrase) -> Markup {
        let mut out = self.mark(&state);
        out.push_html(" ");
        self.push_phrase(&mut out, words);
        let mut whole = Markup::default();
        let _ = write!(whole.0, "<span class=\"state is-{}\">{}</span>", state.word(), out.0);
        whole
    }

    /// Only its mark, where the word is elsewhere.
    pub(in crate::web) fn mark(&self, state: &State) -> Markup {
        let class = state.word();
        Markup(format!("<span class=\"mark is-{class}\" aria-hidden=\"true\">{}</span>", state.mark()))
    }

    /// A stage of a thing, and whether it was reached.
    pub(in crate::web) fn stage(&self, stage: &Stage) -> Markup {
        let reached = match stage.state {
            State::Ok => phrase!("reached", "完了"),
            State::New => phrase!("not reached yet", "未到達"),
            state => state.phrase(),
        };
        let mut out = Markup(format!("<span class=\"state is-{}\">", stage.state.word()));
        out.0.push_str(self.mark(&stage.state).as_str());
        out.push_html(" ");
        self.push_phrase(&mut out, &stage.name);
        out.push_html("<span class=\"visually-hidden\"> (");
        self.push_phrase(&mut out, &reached);
        out.push_html(")</span></span>");
        out
    }

    /// The headline of the page of a thing.
    pub(in crate::web) fn headline(&self, view: &View) -> Markup {
        match &view.headline {
            Some(headline) => self.value(&Value::from(headline)),
            None => self.phrase(&view.title),
        }
    }

    /// Lines in display order: oldest first for things that end, newest first for others.
    pub(in crate::web) fn lines<'a>(&self, view: &View, section: &'a Section) -> Vec<&'a Line> {
        let mut lines: Vec<&Line> = section.lines.iter().collect();
        if view.stages.is_empty() {
            lines.reverse();
            lines.sort_by_key(|line| std::cmp::Reverse(line.at));
        }
        lines
    }

    /// Whether a value needs the whole width.
    pub(in crate::web) fn is_long(&self, value: &Value) -> bool {
        matches!(value, Value::Text(text) if width(text) > LONG)
    }

    /// A button for an action, or the command that shows more; nothing without the permission.
    pub(in crate::web) fn action(&self, action: &Action) -> Markup {
        let Some((verb, about)) = &action.deed else {
            let mut command = Markup::default();
            command.push_html("<code>tsuzuki ");
            command.push_text(&action.command);
            command.push_html("</code>");
            return command;
        };
        if !self.may_act {
            return Markup::default();
        }
        let same =
            phrase!("same as `tsuzuki {command}`", "`tsuzuki {command}` と同じ", command = &action.command);
        let form =
            ActionForm { r: self, action, about: about.as_str(), verb: *verb, same: self.plain(&same) };
        Markup::from_template(&form).unwrap_or_default()
    }

    /// The page of a thing; `about` is `WORD:NAME`.
    pub(in crate::web) fn path(&self, about: &str) -> String {
        why_path(about)
    }

    /// A link to it.
    pub(in crate::web) fn about(&self, about: &str, text: &str) -> Markup {
        let mut out = Markup::default();
        let _ = write!(out.0, "<a href=\"{}\">", why_path(about));
        out.push_foreign(text);
        out.push_html("</a>");
        out
    }
}

/// A button that does something to a thing.
#[derive(Template)]
#[template(path = "pages/action.html")]
struct ActionForm<'a> {
    r: &'a Renderer,
    action: &'a Action,
    about: &'a str,
    verb: Verb,
    /// The command that does the same.
    same: String,
}

/// A name as a path segment.
pub(in crate::web) fn path_part(text: &str) -> String {
    utf8_percent_encode(text, IN_PATH).to_string()
}

/// The page of a thing: `/job/…` for a job, `/why/…` for everything else.
pub(in crate::web) fn why_path(about: &str) -> String {
    match about.split_once(':') {
        Some(("job", name)) => format!("/job/{}", path_part(name)),
        Some((word, name)) => format!("/why/{}/{}", path_part(word), path_part(name)),
        None => format!("/why/other/{}", path_part(about)),
    }
}

/// Only addresses of the web become links; anything else stays text.
fn push_link(out: &mut Markup, href: &str, text: &str) {
    if !(href.starts_with("https://") || href.starts_with("http://")) {
        return out.push_foreign(text);
    }
    out.push_html("<a rel=\"noreferrer noopener\" href=\"");
    out.push_text(href);
    out.push_html("\">");
    out.push_foreign(text);
    out.push_html("</a>");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn renderer(language: Language) -> Renderer {
        let zone = Some(jiff::tz::TimeZone::get("Asia/Tokyo").unwrap());
        Renderer {
            speech: Speech { language, zone },
            now: "2026-01-15T00:02:11.123Z".parse().unwrap(),
            address: "/".to_owned(),
            may_act: true,
        }
    }

    #[test]
    fn what_others_wrote_is_inert() {
        let hostile = "<script>alert(1)</script>\u{202e}{{ 7*7 }}\"'&";
        let said = phrase!("found {title}", "{title} を発見", title = hostile);
        let html = renderer(Language::En).phrase(&said).to_string();
        assert_eq!(
            html,
            "found <bdi>&#60;script&#62;alert(1)&#60;/script&#62;\u{202e}{{ 7*7 }}&#34;&#39;&#38;</bdi>"
        );
        for href in ["javascript:alert(1)", "data:text/html,x", " https://a.example", "//a.example"] {
            let html = renderer(Language::En).value(&Value::link(href)).to_string();
            assert!(!html.contains("<a"), "{html}");
        }
        let html = renderer(Language::En).value(&Value::link("https://a.example/?a=\"b")).to_string();
        assert!(html.contains("href=\"https://a.example/?a=&#34;b\""), "{html}");
    }

    #[test]
    fn near_moments_are_told_by_how_far_away_they_are() {
        for (at, en, ja) in [
            ("2026-01-15T00:02:10.000Z", "now", "今"),
            ("2026-01-15T00:01:11.123Z", "1 min ago", "1 分前"),
            ("2026-01-15T00:06:50.123Z", "in 4 min", "4 分後"),
            ("2026-01-14T20:01:00.000Z", "4 h ago", "4 時間前"),
            ("2026-01-01T00:00:00.000Z", "2026-01-01 09:00", "2026-01-01 09:00"),
        ] {
            let at: Timestamp = at.parse().unwrap();
            for (language, text) in [(Language::En, en), (Language::Ja, ja)] {
                let html = renderer(language).moment(&at).to_string();
                assert!(html.ends_with(&format!(">{text}</time>")), "{html}");
                assert!(html.contains(&format!("datetime=\"{}\"", at.to_text())), "{html}");
            }
        }
    }

    #[test]
    fn a_moment_in_a_sentence_is_a_time_of_day() {
        let at: Timestamp = "2026-01-15T00:06:50.123Z".parse().unwrap();
        let html = renderer(Language::En).phrase(&phrase!("not before {at}", "{at} まで待機")).to_string();
        assert_eq!(
            html,
            "not before <time datetime=\"2026-01-15T00:06:50.123Z\" title=\"2026-01-15 09:06 +09:00\">09:06</time>"
        );
    }

    #[test]
    fn things_have_addresses_whatever_they_are_called() {
        assert_eq!(why_path("job:日報"), "/job/%E6%97%A5%E5%A0%B1");
        assert_eq!(why_path("branch:group/app/main"), "/why/branch/group%2Fapp%2Fmain");
        assert_eq!(why_path("entry:https://a.example/?b#c"), "/why/entry/https:%2F%2Fa.example%2F%3Fb%23c");
    }

    #[test]
    fn large_numbers_have_separators() {
        let en = renderer(Language::En);
        let shown: Vec<String> = [0, 2026, 12_345, 1_000_000, -54_321].map(|n| en.count(&n)).to_vec();
        assert_eq!(shown, ["0", "2026", "12,345", "1,000,000", "-54,321"]);
    }
}
