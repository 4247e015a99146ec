//! The keys of a `books` job, named as in the seeds.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::decide::MOST_RETRIES;
use super::{google, prompt};
use crate::config::value::{BadValue, HttpUrl, Span, checked};
use crate::config::{Config, EnvOverride, Job, Problems, Secret, Section, UnusedKey, Web};
use crate::phrase;
use crate::phrase::Phrase;
use crate::word_enum;

/// Common keys that have no effect here, with the reason.
pub const UNUSED: &[UnusedKey] = &[("hold_above", || {
    phrase!("`mail_limit` bounds what is sent at once", "一度に通知する件数は `mail_limit` で決まります")
})];

/// The variables of the seed.
pub const ENV: &[EnvOverride] = &[
    EnvOverride::secret("GOOGLE_BOOKS_API_KEY", "google_books.api_key"),
    EnvOverride::new("DAILY_BOOKS_API_LIMIT", "quota.google_books.per_day", |value, _| {
        let bad = |_| {
            BadValue::new(phrase!(
                "`{value}` is not a number of requests a day",
                "`{value}` は 1 日のリクエスト数ではありません"
            ))
        };
        let per_day = value.trim().parse::<u32>().map_err(bad);
        per_day.map(Into::into).map_err(|bad| bad.with_hint(phrase!("write for example 100", "例：100")))
    })
    .from_top(),
];

/// The keys of a `books` job.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Keys {
    /// What to search for. Several queries are one search that finds what any of them finds.
    pub queries: Vec<String>,
    /// How many volumes a run takes at most.
    #[serde(default = "max_per_run", deserialize_with = "read_max_per_run")]
    pub max_per_run: u32,
    /// How many books a digest has at most.
    #[serde(default = "mail_limit")]
    pub mail_limit: u32,
    /// How many books are sent again when none is left, of those sent a week ago or longer; 0 sends none.
    #[serde(default = "fallback_limit")]
    pub fallback_limit: u32,
    /// How Google Books is queried.
    #[serde(default)]
    pub google_books: GoogleBooks,
    /// The name of the `[quota.NAME]` that requests count against; without such a table, 100 a day.
    /// `DAILY_BOOKS_API_LIMIT` overrides that of `google_books`.
    #[serde(default = "quota")]
    pub quota: String,
    /// How often a request is repeated in a run when Google is out of order (5xx) or does not answer in time, after 15 and
    /// 45 s. Each counts against the quota.
    #[serde(default = "retries")]
    pub retries: u32,
    /// How many days the link to a prompt works.
    #[serde(default = "token_days")]
    pub token_days: u32,
    /// When a search that was read to its end is read again from its beginning; 0 is only by hand.
    #[serde(default)]
    pub recheck_after: Recheck,
    /// Read one page of the newest volumes in every run beside the search, also when that was read to its end: this is how
    /// new books are found. It costs one request a run.
    #[serde(default)]
    pub also_newest: bool,
    /// Only books that match are sent: of every list that is not empty, one entry must be found in the book.
    #[serde(default)]
    pub include: Words,
    /// Books in which any of these is found are not sent.
    #[serde(default)]
    pub exclude: Words,
    /// Books published before this year, month or day ("2024", "2024-04") are not sent, nor those without a date.
    #[serde(default, deserialize_with = "read_earliest")]
    pub earliest: Option<String>,
    /// A file with a template of the prompt, relative to the config file (`"book.txt"` or `"${file:book.txt}"`). It knows
    /// `title`, `authors`, `publisher`, `published_date` and `isbn13`.
    #[schemars(extend("x-file" = true))]
    pub prompt: Option<String>,
}

/// What is looked for in a book, whatever the case of its letters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Words {
    /// In its title or description.
    pub words: Vec<String>,
    /// In the names of its authors.
    pub authors: Vec<String>,
    /// In the name of its publisher.
    pub publishers: Vec<String>,
}

fn read_earliest<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let is_date = |text: &Option<String>| {
        let whole =
            text.as_ref().map(|text| format!("{text}{}", "-01".repeat(2 - text.matches('-').count().min(2))));
        if whole.is_none_or(|whole| whole.len() == 10 && whole.parse::<jiff::civil::Date>().is_ok()) {
            Ok(())
        } else {
            Err(BadValue::new(phrase!(
                "this is not a year, month or day",
                "年、月、日のいずれでもありません"
            ))
            .with_hint(phrase!(
                "write for example \"2024\" or \"2024-04-01\"",
                "例：\"2024\"、\"2024-04-01\""
            )))
        }
    };
    checked(deserializer, is_date)
}

/// How Google Books is asked; the names are those of its API.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct GoogleBooks {
    /// Books, magazines or both.
    pub print_type: Option<PrintType>,
    /// Only volumes in this language, by its two letters.
    pub lang_restrict: Option<String>,
    /// What comes first.
    #[serde(alias = "order_by")]
    pub order_by: Option<OrderBy>,
    /// Only volumes that can be read or bought in this way.
    pub filter: Option<EbookFilter>,
    /// The country whose offers count, by its two letters such as JP; default: that of the address we ask from.
    pub country: Option<String>,
    /// Where the API is. Default: that of Google.
    #[serde(rename = "api_url")]
    pub api_url: Option<HttpUrl>,
    /// The key of your project; Google allows no requests without one. `GOOGLE_BOOKS_API_KEY` overrides it.
    #[serde(rename = "api_key")]
    pub api_key: Option<Secret>,
}

word_enum! {
    /// What is searched for.
    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum PrintType {
        /// Both.
        All = "all",
        /// Books.
        Books = "books",
        /// Magazines.
        Magazines = "magazines",
    }
}

word_enum! {
    /// What comes first.
    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum OrderBy {
        /// What fits best.
        Relevance = "relevance",
        /// What was published last.
        Newest = "newest",
    }
}

word_enum! {
    /// How a volume can be read or bought.
    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum EbookFilter {
        /// Some of its text can be read.
        Partial = "partial",
        /// All of its text can be read.
        Full = "full",
        /// It is a free e-book.
        FreeEbooks = "free-ebooks",
        /// It is an e-book with a price.
        PaidEbooks = "paid-ebooks",
        /// It is an e-book.
        Ebooks = "ebooks",
    }
}

/// A duration, or 0 for never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recheck(pub Option<Duration>);

impl<'de> Deserialize<'de> for Recheck {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ZeroOrSpan;
        impl serde::de::Visitor<'_> for ZeroOrSpan {
            type Value = Recheck;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let what = phrase!("0 or a duration such as \"30d\"", "0 または期間（例：\"30d\"）");
                f.write_str(&what.to_stored())
            }

            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Recheck, E> {
                match number {
                    0 => Ok(Recheck(None)),
                    number => Err(E::custom(
                        BadValue::new(phrase!("`{number}` has no unit", "`{number}` に単位がありません"))
                            .with_hint(phrase!("write for example \"{number}d\"", "例：\"{number}d\""))
                            .for_serde(),
                    )),
                }
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Recheck, E> {
                match text.trim() {
                    "0" => Ok(Recheck(None)),
                    text => {
                        let span: Result<Span, _> =
                            Span::deserialize(serde::de::value::StrDeserializer::new(text));
                        span.map(|span| Recheck(Some(span.duration())))
                    }
                }
            }
        }
        deserializer.deserialize_any(ZeroOrSpan)
    }
}

impl JsonSchema for Recheck {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Recheck".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "description": "a duration, or 0 for never", "examples": ["30d", 0] })
    }
}

fn max_per_run() -> u32 {
    20
}

fn read_max_per_run<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    checked(deserializer, |count| {
        (*count > 0).then_some(()).ok_or_else(|| BadValue::new(at_least_one("max_per_run")))
    })
}

fn mail_limit() -> u32 {
    5
}

fn fallback_limit() -> u32 {
    3
}

fn quota() -> String {
    super::model::GOOGLE_BOOKS.to_owned()
}

fn retries() -> u32 {
    2
}

fn token_days() -> u32 {
    30
}

/// The most books that a digest may have: mail readers cut longer ones off.
const MAX_MAIL_LIMIT: u32 = 50;
/// The longest that a link may work.
const MAX_TOKEN_DAYS: u32 = 3650;

/// Checks the table of a books job beyond what serde can.
pub fn check(section: &Section) -> Problems {
    section.keys::<Keys>().map(|keys| keys.list_problems(section)).unwrap_or_default()
}

/// Warnings about a valid books job.
pub fn list_warnings(job: &Job, config: &Config) -> Problems {
    let mut warnings = Problems::default();
    if lacks_key(&job.section) {
        let message = phrase!(
            "this job has no key for Google Books, which allows no requests without one",
            "このジョブには Google ブックスの API キーがありません。キーなしのリクエストは許可されません"
        );
        warnings.push(job.section.header_problem(message).as_warning().with_hint(google::key_hint()));
    }
    if !job.deliver.is_empty() && config.web.keys::<Web>().is_ok_and(Web::links_are_local) {
        let warning = job.section.header_problem(local_links()).as_warning();
        warnings.push(warning.with_hint(local_links_hint()));
    }
    warnings
}

/// The warning about links that lead to this machine.
pub fn local_links() -> Phrase {
    phrase!(
        "the links to prompts point to this machine: readers of mails elsewhere cannot open them",
        "プロンプトへのリンクはこのマシンを指しており、ほかの端末でメールを読む人は開けません"
    )
}

/// The hint for it.
pub fn local_links_hint() -> Phrase {
    phrase!(
        "set `public_url` in [web] to the address under which `prompt_listen` can be reached, e.g. \"https://books.example.com\"",
        "[web] の `public_url` に `prompt_listen` へ外から届くアドレスを設定してください（例：\"https://books.example.com\"）"
    )
}

fn at_least_one(key: &str) -> Phrase {
    phrase!("`{key}` is at least 1", "`{key}` は 1 以上です")
}

fn at_most(key: &str, most: u32) -> Phrase {
    phrase!("`{key}` is at most {most}", "`{key}` は {most} 以下です")
}

/// Whether the key for Google is missing; another service at `api_url` may need none.
pub fn lacks_key(section: &Section) -> bool {
    let Ok(keys) = section.keys::<Keys>() else { return false };
    let url = google::volumes_url(keys.google_books.api_url.as_deref());
    keys.google_books.api_key.is_none() && google::is_google(&url)
}

fn is_two_letters(code: &str) -> bool {
    code.len() == 2 && code.bytes().all(|byte| byte.is_ascii_alphabetic())
}

impl Keys {
    /// All filter words, each with its key.
    fn list_words(&self) -> impl Iterator<Item = (String, &Vec<String>)> {
        [("include", &self.include), ("exclude", &self.exclude)].into_iter().flat_map(|(key, of)| {
            [("words", &of.words), ("authors", &of.authors), ("publishers", &of.publishers)]
                .map(|(list, words)| (format!("{key}.{list}"), words))
        })
    }

    /// Checks them beyond what serde can.
    pub(super) fn list_problems(&self, section: &Section) -> Problems {
        let mut problems = Problems::default();
        if self.queries.is_empty() {
            problems.push(
                section
                    .problem("queries", phrase!("there is nothing to search for", "検索語がありません"))
                    .with_hint(phrase!("write for example queries = [\"rust\"]", "例：queries = [\"rust\"]")),
            );
        }
        for (number, query) in self.queries.iter().enumerate() {
            if query.trim().is_empty() {
                let message = phrase!("the query is empty", "検索語が空です");
                problems.push(section.problem(&format!("queries.{number}"), message));
            }
        }
        for (name, list) in self.list_words() {
            for (number, word) in list.iter().enumerate().filter(|(_, word)| word.trim().is_empty()) {
                let message = phrase!("`{word}` is in every book", "`{word}` はすべての本に当てはまります");
                problems.push(section.problem(&format!("{name}.{number}"), message));
            }
        }
        if self.google_books.country.as_deref().is_some_and(|country| !is_two_letters(country)) {
            let message = phrase!("this is not the code of a country", "国コードではありません");
            let hint = phrase!("write its two letters, e.g. \"JP\"", "2 文字で書いてください（例：\"JP\"）");
            problems.push(section.problem("google_books.country", message).with_hint(hint));
        }
        if self.google_books.lang_restrict.as_deref().is_some_and(|language| {
            // Google tags Chinese and Portuguese with a region: `zh-TW`.
            !is_two_letters(language.split('-').next().unwrap_or_default())
        }) {
            let message = phrase!("this is not the code of a language", "言語コードではありません");
            let hint = phrase!("write its two letters, e.g. \"ja\"", "2 文字で書いてください（例：\"ja\"）");
            problems.push(section.problem("google_books.langRestrict", message).with_hint(hint));
        }
        for (key, value, most) in
            [("mail_limit", self.mail_limit, MAX_MAIL_LIMIT), ("token_days", self.token_days, MAX_TOKEN_DAYS)]
        {
            if value == 0 {
                problems.push(section.problem(key, at_least_one(key)));
            } else if value > most {
                problems.push(section.problem(key, at_most(key, most)));
            }
        }
        if self.retries > MOST_RETRIES {
            problems.push(section.problem("retries", at_most("retries", MOST_RETRIES)));
        }
        if let Err(why) = prompt::load(self, section) {
            problems.push(section.problem("prompt", why));
        }
        if self.fallback_limit > MAX_MAIL_LIMIT {
            problems.push(section.problem("fallback_limit", at_most("fallback_limit", MAX_MAIL_LIMIT)));
        }
        problems
    }
}
