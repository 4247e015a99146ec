//! The keys of a `press` job.

use schemars::JsonSchema;
use serde::Deserialize;

use super::decide::{NotValuable, RetryLimits};
use crate::config::value::{BadValue, ByteSize, HttpUrl, Pattern, Patterns, Several, Span, checked};
use crate::config::{Job, NO_LLM, Problems};
use crate::llm::LlmSet;
use crate::parse::html;
use crate::phrase;

/// A `press` job: a feed whose entries are screened, summarised and posted.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Keys {
    /// The feed, or a list of feeds.
    pub feed: Several<HttpUrl>,
    /// The `[llm.NAME]` to ask, or `"none"`: every entry is posted with its title and an excerpt. Default: the only one there is.
    pub llm: Option<String>,
    /// Only entries that match one of these are processed: a word in title or excerpt, `/…/` for a regular expression, an address
    /// with `*`.
    #[serde(default)]
    pub include: Vec<Pattern>,
    /// Entries that match one of these are left out before the model is asked.
    #[serde(default)]
    pub exclude: Vec<Pattern>,
    /// A CSS selector of the main block of a page; default: detected.
    pub content: Option<String>,
    /// The endings of files that belong to a page.
    #[serde(default = "attachments")]
    pub attachments: Vec<String>,
    /// Larger files are not fetched; the model is told their names and sizes.
    #[serde(default = "max_file")]
    pub max_file: ByteSize,
    /// An item is closed after more failed attempts than this.
    #[serde(default = "max_retries")]
    pub max_retries: u32,
    /// An item whose page does not change is checked again for this long, at most once a day.
    #[serde(default = "wait_for_page")]
    pub wait_for_page: Span,
    /// How many steps a run takes; a step is one screening or one summary.
    #[serde(default = "one", deserialize_with = "read_items_per_run")]
    pub items_per_run: u32,
    /// What becomes of an item that is not worth a summary: `"defer"` (check again later), `"close"`, or `"post_title"` (post
    /// title and link).
    #[serde(default)]
    pub not_valuable: NotValuable,
    /// Posts title and link of an item that the model has no usable summary for, instead of deferring it.
    #[serde(default)]
    pub post_rejected: bool,
    /// What to do with an entry whose date lies more than an hour ahead: `"ignore"` leaves it in the feed until its date
    /// comes, `"wait"` records it at once and processes it when its date comes, `"now"` counts it as published today.
    #[serde(default)]
    pub future: Future,
    /// When the budget of the model is used up: `"wait"`, or `"post_without_summary"` for items already found worth it.
    #[serde(default)]
    pub on_budget: OnBudget,
    /// The most characters of a summary.
    #[serde(default = "summary_chars", deserialize_with = "read_summary_chars")]
    pub summary_chars: u32,
    /// Instructions for screening in place of ours; the wanted form of the answer is added by us.
    pub screen_prompt: Option<String>,
    /// Instructions for the summary in place of ours; `{max_chars}` stands for `summary_chars`.
    pub summary_prompt: Option<String>,
    /// The text of a post between headline and link, as a template over `title`, `summary` and `published`.
    pub post: Option<String>,
    /// Hashtags for every post of this job, without `#`.
    #[serde(default)]
    pub tags: Vec<String>,
}

/// What to do with an entry that is dated in the future.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Future {
    /// The entry is ignored until its date comes.
    #[default]
    Ignore,
    /// The entry is recorded at once and processed when its date comes.
    Wait,
    /// The date is ignored: the entry counts as published when it was first seen.
    Now,
}

/// What to do when the budget is used up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnBudget {
    /// Items wait.
    #[default]
    Wait,
    /// Items that were found worth a summary are posted without one.
    PostWithoutSummary,
}

fn attachments() -> Vec<String> {
    vec!["pdf".to_owned()]
}

fn max_file() -> ByteSize {
    ByteSize::mib(50)
}

fn max_retries() -> u32 {
    3
}

fn wait_for_page() -> Span {
    const { Span::from_secs(30 * 24 * 3600).unwrap() }
}

fn one() -> u32 {
    1
}

fn summary_chars() -> u32 {
    300
}

fn read_items_per_run<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let bad = || {
        BadValue::new(phrase!("0 would look at nothing at all", "0 では何も処理されません")).with_hint(
            phrase!(
                "write `enabled = false` to stop the job",
                "ジョブを止めるには `enabled = false` と書きます"
            ),
        )
    };
    checked(deserializer, |count| (*count > 0).then_some(()).ok_or_else(bad))
}

fn read_summary_chars<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let bad = || {
        BadValue::new(phrase!("a summary has 20 to 5000 characters", "要約は 20 文字から 5000 文字までです"))
    };
    checked(deserializer, |count| (20..=5000).contains(count).then_some(()).ok_or_else(bad))
}

impl Keys {
    /// Reads a job's table and checks what serde cannot. Returns the name of its LLM, too, if it has one.
    pub fn read(job: &Job, llms: &LlmSet) -> Result<(Self, Option<String>), Problems> {
        let mut keys: Self = job.section.keys().cloned()?;
        let mut problems = Problems::default();
        let section = &job.section;
        let names: Vec<&str> = llms.names().collect();
        let llm = match (&keys.llm, names.as_slice()) {
            (Some(name), _) if name == NO_LLM => None,
            (Some(name), known) if known.contains(&name.as_str()) => Some(name.clone()),
            (Some(name), known) => {
                problems.push(section.unknown_name(
                    "llm",
                    crate::config::TableKind::Llm.noun(),
                    name,
                    known.iter().copied(),
                ));
                None
            }
            (None, [only]) => Some((*only).to_owned()),
            (None, []) => {
                let problem = section.problem(
                    "llm",
                    phrase!(
                        "a press job needs a model to ask, and the file defines none",
                        "press ジョブには問い合わせるモデルが必要ですが、設定ファイルにありません"
                    ),
                );
                let hint = phrase!(
                    "add `[llm.gemini]` with `kind` and `api_key`, or write `llm = \"none\"` to post titles and excerpts",
                    "`kind` と `api_key` を書いた `[llm.gemini]` を追加するか、`llm = \"none\"` と書いてタイトルと抜粋を投稿してください"
                );
                problems.push(problem.with_hint(hint));
                None
            }
            (None, known) => {
                let problem = section
                    .problem("llm", phrase!("which model should be used?", "どのモデルに問い合わせますか？"));
                problems.push(problem.with_hint(phrase!(
                    "write {keys}",
                    "{keys} と書きます",
                    keys = format!("`llm = \"{}\"`", known.join("\"` or `llm = \""))
                )));
                None
            }
        };
        if let Some(selector) = &keys.content
            && let Err(bad) = html::check_selector(selector)
        {
            problems.push(section.problem("content", bad.phrase()));
        }
        if let Some(template) = &keys.post
            && let Err(why) = super::post::check_template(template)
        {
            problems.push(section.problem("post", why));
        }
        for extension in &mut keys.attachments {
            *extension = extension.trim_start_matches('.').to_ascii_lowercase();
        }
        if problems.is_empty() { Ok((keys, llm)) } else { Err(problems) }
    }

    /// The filters on entries.
    pub fn patterns(&self) -> Patterns<'_> {
        Patterns { include: &self.include, exclude: &self.exclude }
    }

    pub fn limits(&self) -> RetryLimits {
        RetryLimits {
            max_retries: self.max_retries,
            not_valuable: self.not_valuable,
            wait_for_page: self.wait_for_page.duration(),
        }
    }
}
