//! Calls models: is a page worth a notification, and what is its summary? Two kinds of providers, one set of
//! guarantees.
//!
//! ```text
//! Document ─ prompt ─▶ cache? ─▶ paused?  ─▶ reserve ─▶ provider ─▶ checked? ─▶ stored with its cost
//!                        │           │          │           │           │ no: once more, saying why
//!                        ▼           ▼          ▼           ▼           ▼
//!                      answer      wait       wait        pause      rejected
//! ```
//!
//! A provider that is down, busy or over its quota is paused; callers are asked to wait and lose nothing. Text from
//! pages is data in every prompt, and the answer of a model is data for us.

mod answer;
mod budget;
mod call;
mod check;
mod config;
mod control;
pub mod events;
mod gemini;
mod models;
mod openai;
mod prompt;
mod provider;
mod refusal;
mod schema;
mod set;
pub mod store;

use std::path::PathBuf;

#[cfg(fuzzing)]
pub use answer::fuzz_answer;
pub use answer::{Summary, Verdict, Worth, cut_at_sentence, plain};
pub use budget::Budget;
pub use config::{BudgetKeys, Thinking};
pub use provider::ProviderKind;
pub use set::LlmSet;

use crate::db::{self, Db};
use crate::fail;
use crate::fetch::{AllowPrivate, Clients};
use crate::hash;
use crate::id::JobName;
use crate::parse::pdf;
use crate::phrase;
use crate::phrase::Phrase;
use crate::text::Language;
use crate::time::{Clock, Timestamp};
use crate::word_enum;
use budget::Reserved;
use call::{CallError, ProviderPause, Question, Repair, Reply, TokenUsage};
use config::Tuning;
use prompt::Prompt;
use provider::Provider;
use refusal::Blame;

/// The kinds of model providers: each is a file or a folder, and a line here.
pub const KINDS: &[ProviderKind] = &[gemini::KIND, openai::KIND];

/// A configured model provider.
pub struct Llm {
    pub name: String,
    kind: &'static ProviderKind,
    provider: Box<dyn Provider>,
    screen_model: String,
    summary_model: String,
    tuning: Tuning,
    budget: Budget,
    db: Db,
    clock: Clock,
    clients: Clients,
    allow_private: AllowPrivate,
}

/// What the model is shown. All of it comes from outside and is treated as data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelInput {
    pub title: String,
    /// The main text of the page.
    pub text: String,
    /// Files linked from the page.
    pub files: Vec<File>,
}

/// A file of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its name on the page.
    pub name: String,
    pub bytes: Option<u64>,
    pub content: Content,
}

/// The content of a file, as far as it is available.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Not fetched: only its name is known.
    Named,
    /// Larger than the job allows.
    TooLarge,
    /// Fetching failed.
    Missing,
    /// On disk.
    Saved {
        path: PathBuf,
        media_type: &'static str,
        /// SHA-256 of its bytes.
        hash: String,
    },
    /// Extracted for a model that accepts only text.
    Read {
        /// As much of its text as is shown.
        text: String,
        /// Whether there is more text.
        is_cut: bool,
    },
    /// A PDF from which no text could be extracted, for a model that accepts only text.
    Unreadable { why: pdf::Error },
}

/// Options of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskOptions {
    /// What the question is about, by a name that stays when the content changes.
    pub about: String,
    pub language: Language,
    /// Custom instructions in place of the default ones.
    pub instructions: Option<String>,
    /// The longest summary, in characters.
    pub max_chars: usize,
    /// Calls the model even if its answer is cached; the new answer replaces the old one.
    pub bypass_cache: bool,
}

/// A parsed answer and what it cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered<T> {
    pub answer: T,
    /// Whether it came from the cache, without a call.
    pub is_cached: bool,
    /// Input tokens; 0 if the provider does not report them.
    pub tokens_in: u64,
    /// Output tokens; 0 if the provider does not report them.
    pub tokens_out: u64,
}

/// Why there is no answer; each variant is what the caller does next.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Wait: the provider is paused. The document is not to blame.
    #[error("{}", .0.why)]
    Paused(Unavailable),
    /// The provider answered, but the answer for this document cannot be used.
    #[error("{why}")]
    Rejected { why: Phrase },
    /// It needs more tokens than the budget of a whole day: nothing was sent, and waiting does not help.
    #[error("{why}")]
    TooMuch { why: Phrase },
    /// The database failed.
    #[error(transparent)]
    Db(#[from] db::Error),
}

/// Why a provider cannot be called now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unavailable {
    pub until: Timestamp,
    /// In words.
    pub why: Phrase,
    /// For programs.
    pub because: PauseReason,
}

word_enum! {
    /// Kinds of reasons why a provider cannot be called now.
    pub enum PauseReason {
        /// Too many requests now.
        Busy = "busy",
        /// Our own budget or the provider's quota is used up.
        UsedUp = "used_up",
        /// It fails or cannot be reached.
        Down = "down",
        /// It rejects our key; waiting alone does not help.
        Locked = "locked",
        /// It rejects our requests as such; the config has to change.
        Refused = "refused",
    }
}

word_enum! {
    /// The purpose of a question.
    pub enum Purpose {
        /// Whether a page is worth a notification.
        Screen = "screen",
        Summary = "summary",
    }
}

impl Llm {
    /// Asks whether a page is worth a notification, or not, or not finished yet.
    pub async fn screen(
        &self,
        job: &JobName,
        document: &ModelInput,
        options: &AskOptions,
    ) -> Result<Answered<Verdict>, AskError> {
        let prompt = prompt::screening(document, options);
        self.ask(job, &self.screen_model, &prompt, &[], options, answer::read_verdict).await
    }

    /// The prompt of [`Llm::screen`]: the instructions, and the page as the model sees it.
    pub fn screening_prompt(&self, document: &ModelInput, options: &AskOptions) -> (String, String) {
        let prompt = prompt::screening(document, options);
        (prompt.system, prompt.text)
    }

    /// Asks for a summary of a page and its files.
    pub async fn summarize(
        &self,
        job: &JobName,
        document: &ModelInput,
        options: &AskOptions,
    ) -> Result<Answered<Summary>, AskError> {
        let document = self.provider.prepare(document).await;
        let prompt = prompt::summary(&document, options, |media_type| self.takes(media_type));
        let read = |text: &str| answer::read_summary(text, options);
        self.ask(job, &self.summary_model, &prompt, &document.files, options, read).await
    }

    fn model_for(&self, purpose: Purpose) -> &str {
        match purpose {
            Purpose::Screen => &self.screen_model,
            Purpose::Summary => &self.summary_model,
        }
    }

    /// Whether the summarising model reads files of this media type; of others it gets only name and size.
    pub fn takes(&self, media_type: &str) -> bool {
        self.provider.takes(media_type)
    }

    /// Why the provider cannot be called now, if so: it is paused, or the budget does not allow a request of that size.
    ///
    /// Check it before fetching anything for a question; `sizes` are those of the files, in bytes.
    pub async fn find_obstacle(
        &self,
        job: &JobName,
        purpose: Purpose,
        sizes: &[u64],
    ) -> db::Result<Option<Unavailable>> {
        let model = self.model_for(purpose).to_owned();
        if let Some(obstacle) = self.find_pause(&model).await? {
            return Ok(Some(obstacle));
        }
        let (budget, name, job, now) =
            (self.budget.clone(), self.name.clone(), job.clone(), self.clock.now());
        let tokens = |sizes| budget::estimate_from_sizes(purpose, sizes, self.tuning.max_output_tokens);
        // These files exceed the budget of any day, so do not wait for the next one: the call itself will report that.
        let sizes = if budget.day_without(tokens(sizes)).is_some() { &[] } else { sizes };
        let tokens = tokens(sizes);
        self.db.read(move |tx| budget.find_obstacle(tx, (&name, &model), &job, tokens, now)).await
    }

    async fn ask<T>(
        &self,
        job: &JobName,
        model: &str,
        prompt: &Prompt,
        files: &[File],
        options: &AskOptions,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Answered<T>, AskError> {
        let read = |text: &str| {
            answer::check_leaks(text, &prompt.system)?;
            read(text)
        };
        let key = hash::sha256_parts(&[&prompt.content_hash, &prompt.version, model]);
        let wanted = key.clone();
        let known = if options.bypass_cache {
            None
        } else {
            self.db.read(move |tx| store::find_answer(tx, &wanted)).await?
        };
        if let Some(known) = known
            && let Ok(answer) = read(&known.answer_json)
        {
            let store::StoredAnswer { tokens_in, tokens_out, .. } = known;
            return Ok(Answered { answer, is_cached: true, tokens_in, tokens_out });
        }
        if let Some(obstacle) = self.find_pause(model).await? {
            return Err(AskError::Paused(obstacle));
        }
        let mut tuning = self.tuning;
        let mut complaint: Option<String> = None;
        let (mut is_repair, mut others_are_answered) = (false, false);
        let asked_about = (prompt.purpose, options.about.as_str());
        loop {
            let question = Question { model, prompt, files, tuning, complaint: complaint.as_deref() };
            let reserved = self.reserve(job, &question).await?;
            fail::point("llm.reserved");
            let called = self.provider.call(&self.line(), &question).await;
            fail::point("llm.answered");
            let why = match called {
                Ok(Reply { text, usage }) => match read(&text) {
                    Ok(answer) => {
                        let (tokens_in, tokens_out) = usage.counts();
                        let stored = store::NewAnswer {
                            key: key.clone(),
                            provider: self.name.clone(),
                            model: model.to_owned(),
                            purpose: prompt.purpose,
                            answer_json: text,
                            tokens_in,
                            tokens_out,
                            job_name: job.clone(),
                        };
                        self.record_usage(reserved, asked_about, usage, Some(stored)).await?;
                        fail::point("llm.stored");
                        return Ok(Answered { answer, is_cached: false, tokens_in, tokens_out });
                    }
                    Err(why) => {
                        self.record_usage(reserved, asked_about, usage, None).await?;
                        complaint = Some(why.clone());
                        Phrase::verbatim(why)
                    }
                },
                Err(CallError::Unusable { why, usage, repair }) => {
                    self.record_usage(reserved, asked_about, usage, None).await?;
                    match (repair, tuning.with_more_room()) {
                        (Repair::None, _) => return Err(AskError::Rejected { why }),
                        (Repair::MoreRoom, Some(roomy)) => tuning = roomy,
                        (Repair::MoreRoom | Repair::Complain, _) => complaint = Some(why.to_string()),
                    }
                    why
                }
                Err(CallError::Refused { why }) => {
                    self.record_usage(reserved, asked_about, TokenUsage::Nothing, None).await?;
                    if self.blame(prompt.purpose, &options.about, &why.to_string()).await? == Blame::Request
                        && let Some(reserved) = self.ask_control(job, &question, options).await?
                    {
                        let pause = ProviderPause::Refused { why };
                        return Err(AskError::Paused(self.pause(reserved, model, pause).await?));
                    }
                    return Err(AskError::Rejected { why });
                }
                Err(CallError::ProviderPause(pause))
                    if others_are_answered && pause.may_be_about_the_document() =>
                {
                    let has_counted = pause.may_have_counted();
                    let usage = if has_counted { TokenUsage::Unreported } else { TokenUsage::Nothing };
                    self.record_usage(reserved, asked_about, usage, None).await?;
                    return Err(AskError::Rejected {
                        why: phrase!(
                            "{why} (again and again, and only about this document)",
                            "{why}（この文書でだけ繰り返し失敗しています）",
                            why = pause.into_why()
                        ),
                    });
                }
                Err(CallError::ProviderPause(pause)) => {
                    let paused = AskError::Paused(self.pause(reserved, model, pause.clone()).await?);
                    if !pause.may_be_about_the_document() || !self.suspects(&options.about).await? {
                        return Err(paused);
                    }
                    // If the control question is answered, the pause is over, and the document gets one more attempt.
                    if let Some(reserved) = self.ask_control(job, &question, options).await? {
                        return Err(AskError::Paused(self.pause(reserved, model, pause).await?));
                    }
                    others_are_answered = true;
                    continue;
                }
            };
            if is_repair {
                return Err(AskError::Rejected {
                    why: phrase!("{why} (tried twice)", "{why}（2 回試しました）"),
                });
            }
            is_repair = true;
        }
    }

    fn line(&self) -> call::Line<'_> {
        call::Line { clients: &self.clients, allow_private: &self.allow_private, clock: &self.clock }
    }

    async fn reserve(&self, job: &JobName, question: &Question<'_>) -> Result<Reserved, AskError> {
        let (budget, name, job) = (self.budget.clone(), self.name.clone(), job.clone());
        let Question { model, prompt, files, tuning, .. } = *question;
        let model = model.to_owned();
        let (tokens, now) = (budget::estimate(prompt, files, tuning.max_output_tokens), self.clock.now());
        self.db.write(move |tx| budget.reserve(tx, (&name, &model), &job, tokens, now)).await?
    }
}
