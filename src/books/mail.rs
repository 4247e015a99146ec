//! The digest as a mail: a subject, a plain part and an HTML part, each complete by itself.

use std::fmt::Write as _;
use std::sync::LazyLock;

use minijinja::{Environment, Value, context};

use super::model::Book;
use super::prompt;
use crate::id::JobName;
use crate::text::{self, Language};

/// Columns of a description in a mail.
const DESCRIPTION_COLUMNS: usize = 280;
/// Columns of a title in a subject line or a short message.
const TITLE_COLUMNS: usize = 120;

static TEMPLATES: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut templates = Environment::new();
    // The default escaping writes every slash of an address as a character reference, which some mail readers show
    // literally.
    templates.set_formatter(|out, _, value| {
        if value.is_safe() {
            Ok(write!(out, "{value}")?)
        } else {
            Ok(out.write_str(&text::escape_html(&value.to_string()))?)
        }
    });
    templates.add_template("mail.html", include_str!("mail.html")).expect("our own template is well formed");
    templates
});

/// The content of a digest.
#[derive(Clone, Debug)]
pub struct Digest<'a> {
    pub job: &'a JobName,
    /// The day on which it was made, formatted.
    pub date: String,
    /// Whether its books were sent before.
    pub is_repeat: bool,
    /// Its books, each with the address of its prompt.
    pub books: Vec<(Book, String)>,
    /// When the links to prompts expire, formatted.
    pub links_until: String,
    pub language: Language,
}

/// A rendered mail.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Mail {
    pub subject: String,
    pub text: String,
    pub html: String,
}

impl Digest<'_> {
    /// The subject line: which job, how many books, which day.
    pub fn subject(&self) -> String {
        let (job, count, date) = (self.job, self.books.len(), &self.date);
        match (self.language, self.is_repeat) {
            (Language::Ja, false) => format!("【{job}】新着の本 {count}冊（{date}）"),
            (Language::Ja, true) => format!("【{job}】もう一度紹介する本 {count}冊（{date}）"),
            (Language::En, false) if count == 1 => format!("[{job}] 1 new book ({date})"),
            (Language::En, false) => format!("[{job}] {count} new books ({date})"),
            (Language::En, true) if count == 1 => format!("[{job}] 1 book worth a second look ({date})"),
            (Language::En, true) => format!("[{job}] {count} books worth a second look ({date})"),
        }
    }

    /// One sentence above the books.
    pub fn introduction(&self) -> String {
        let job = self.job;
        match (self.language, self.is_repeat) {
            (Language::Ja, false) => format!("「{job}」で見つかった、まだお届けしていない本です。"),
            (Language::Ja, true) => {
                format!("「{job}」に新しい本はありませんでした。以前お届けした本をもう一度ご紹介します。")
            }
            (Language::En, false) => format!("New books found by “{job}”."),
            (Language::En, true) => {
                format!("“{job}” found nothing new. These books were sent to you before.")
            }
        }
    }

    /// The whole mail.
    pub fn render(&self) -> Mail {
        Mail { subject: self.subject(), text: self.render_text(), html: self.render_html() }
    }

    fn render_text(&self) -> String {
        let mut out = format!("{}\n", self.introduction());
        for (number, (book, prompt_url)) in self.books.iter().enumerate() {
            let _ = write!(out, "\n{}\n{}. {}\n\n", "─".repeat(24), number + 1, book.title);
            for (name, value) in prompt::facts(book, self.language).into_iter().skip(1) {
                let _ = writeln!(out, "{name}: {value}");
            }
            if let Some(description) = short_description(book) {
                let _ = write!(out, "\n{description}\n");
            }
            let _ = write!(out, "\n{}:\n{prompt_url}\n", self.button());
            for link in &book.links {
                let _ = write!(out, "\n{}: {}", link.label, link.url);
            }
            if !book.links.is_empty() {
                out.push('\n');
            }
        }
        let _ = write!(out, "\n{}\n{}\n", "─".repeat(24), self.footer());
        out
    }

    fn render_html(&self) -> String {
        let cards: Vec<Value> =
            self.books.iter().map(|(book, prompt_url)| self.card(book, prompt_url)).collect();
        let template = TEMPLATES.get_template("mail.html").expect("it was added above");
        template
            .render(context! {
                lang => self.language.word(),
                subject => self.subject(),
                introduction => self.introduction(),
                button => self.button(),
                badge => self.is_repeat.then(|| self.badge()),
                cover_of => self.language.choose("Cover", "表紙"),
                footer => self.footer(),
                cards => cards,
            })
            .expect("the template uses only what it is given")
    }

    fn card(&self, book: &Book, prompt_url: &str) -> Value {
        let facts = prompt::facts(book, self.language).into_iter().skip(1);
        let links = book.links.iter().map(|link| context! { label => &*link.label, url => &*link.url });
        context! {
            title => &*book.title,
            cover_url => book.cover_url.as_deref(),
            facts => facts.map(|(name, value)| vec![name.to_owned(), value]).collect::<Vec<_>>(),
            description => short_description(book),
            links => links.collect::<Vec<_>>(),
            prompt_url => prompt_url,
        }
    }

    fn button(&self) -> &'static str {
        self.language.choose("Open the research prompt", "調査プロンプトを開く")
    }

    fn badge(&self) -> &'static str {
        self.language.choose("sent before", "再紹介")
    }

    fn footer(&self) -> String {
        let until = &self.links_until;
        match self.language {
            Language::Ja => {
                format!("書誌情報は Google Books によるものです。プロンプトのリンクは {until} まで有効です。")
            }
            Language::En => format!("Book data by Google Books. The links to prompts work until {until}."),
        }
    }

    /// One line about a book for channels with short messages.
    pub fn short_title(&self, book: &Book) -> String {
        let title = text::shorten(&book.title, TITLE_COLUMNS);
        if self.is_repeat { format!("{title} ({})", self.badge()) } else { title }
    }
}

fn short_description(book: &Book) -> Option<String> {
    book.description.as_deref().map(|text| text::shorten(&text::one_line(text), DESCRIPTION_COLUMNS))
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::model::BookLink;
    use super::*;

    pub(crate) fn sample(number: u32) -> Book {
        Book {
            isbn13: ["9784101010014", "9780804429573", "9791034304455"][number as usize % 3].parse().unwrap(),
            title: format!("本の題 {number} <script>"),
            authors: vec!["著者 & 一郎".into()],
            publisher: Some("架空書房".into()),
            published_date: Some("2026-01-15".into()),
            description: Some(format!("説明\"'<img src=x onerror=alert(1)> {}", "長い。".repeat(300))),
            cover_url: Some("https://books.example/cover?id=1&zoom=1".into()),
            links: vec![BookLink {
                label: "Google Books".into(),
                url: "https://books.example/info?id=1&x=2".into(),
            }],
        }
    }

    fn digest(job: &JobName, language: Language, is_repeat: bool) -> Digest<'_> {
        let books =
            (0..2).map(|number| (sample(number), format!("https://x.example/p/{number:032x}"))).collect();
        let links_until = "2026-02-14 07:00".into();
        Digest { job, date: "2026-01-15".into(), is_repeat, books, links_until, language }
    }

    #[test]
    fn both_parts_say_everything_in_both_languages() {
        let job: JobName = "ai-books".parse().unwrap();
        for language in [Language::Ja, Language::En] {
            let mail = digest(&job, language, false).render();
            assert!(mail.subject.contains("2026-01-15") && mail.subject.contains('2'), "{}", mail.subject);
            for fact in [
                "著者 & 一郎",
                "架空書房",
                "2026-01-15",
                "9784101010014",
                "9780804429573",
                "本の題 1 <script>",
                "https://x.example/p/00000000000000000000000000000001",
                "https://books.example/info?id=1&x=2",
                "2026-02-14 07:00",
            ] {
                assert!(mail.text.contains(fact), "{fact}\n{}", mail.text);
                let escaped = fact.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
                assert!(mail.html.contains(&escaped), "{escaped}\n{}", mail.html);
            }
            assert!(mail.html.contains("color-scheme") && mail.html.contains("prefers-color-scheme: dark"));
            assert!(mail.text.lines().all(|line| text::width(line) < 400), "descriptions are shortened");
        }
    }

    #[test]
    fn nothing_from_outside_becomes_markup() {
        let job: JobName = "j".parse().unwrap();
        let html = digest(&job, Language::Ja, true).render().html;
        assert!(!html.contains("<script") && !html.contains("<img src=x"), "{html}");
        assert!(html.contains("再紹介"), "repeats are marked");
    }
}
