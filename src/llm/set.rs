//! The configured model providers, and their pauses.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::json;

use super::budget::{Budget, Reserved};
use super::call::{ProviderPause, TokenUsage};
use super::config::Tuning;
use super::events::ProviderCode;
use super::provider::Opened;
use super::refusal::{self, Blame, FailingAt};
use super::{KINDS, Llm, PauseReason, Purpose, Unavailable, store};
use crate::config::value::Zone;
use crate::config::{self, Problems, Section};
use crate::db::{self, Db};
use crate::fetch::{AllowPrivate, Clients};
use crate::ledger::quota::Quota;
use crate::ledger::{Subject, event, pause};
use crate::phrase;

/// Pauses after failures in a row, shortest first; the last one repeats.
const PAUSES: [Duration; 4] = [
    Duration::from_secs(60),
    Duration::from_secs(5 * 60),
    Duration::from_secs(15 * 60),
    Duration::from_secs(3600),
];
/// How long to pause a provider that rejects our key or our requests, unless the settings change.
const LOCKED: Duration = Duration::from_secs(6 * 3600);

/// The configured model providers.
#[derive(Default)]
pub struct LlmSet {
    llms: Vec<Llm>,
    /// Includes providers with problems, so that jobs that use them are not reported, too.
    names: Vec<String>,
}

impl LlmSet {
    /// Reads every `[llm.NAME]` table and adds what is wrong to `problems`; `zone` is that of `[app]`.
    pub fn read(
        sections: &[Section],
        quotas: &BTreeMap<String, Quota>,
        zone: &Zone,
        db: &Db,
        clients: &Clients,
        problems: &mut Problems,
    ) -> Self {
        let whole = sections.iter().filter(|section| section.is_whole());
        let llms =
            whole.filter_map(|section| problems.note(read_one(section, quotas, zone, db, clients))).collect();
        Self { llms, names: sections.iter().map(|section| section.name.clone()).collect() }
    }

    /// The provider of that name.
    pub fn find(&self, name: &str) -> Option<&Llm> {
        self.llms.iter().find(|llm| llm.name == name)
    }

    /// All providers, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = &Llm> {
        self.llms.iter()
    }

    /// In the order of the file.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }
}

fn read_one(
    section: &Section,
    quotas: &BTreeMap<String, Quota>,
    zone: &Zone,
    db: &Db,
    clients: &Clients,
) -> Result<Llm, Problems> {
    let Some(kind) = KINDS.iter().find(|kind| kind.keys.name == section.kind) else {
        let known = KINDS.iter().map(|kind| kind.keys.name);
        return Err(section
            .unknown_name("kind", phrase!("kind of LLM", "LLM の種類"), &section.kind, known)
            .into());
    };
    let Opened { provider, screen_model, summary_model, shared } = (kind.open)(section)?;
    let own = |model: &String| Some((model.clone(), quotas.get(model)?.clone()));
    let model_quotas = [&screen_model, &summary_model].into_iter().filter_map(own).collect();
    let keys = shared.budget;
    let theirs = kind.zone.and_then(|zone| zone.parse().ok());
    let zone = theirs.as_ref().unwrap_or(zone);
    Ok(Llm {
        name: section.name.clone(),
        kind,
        provider,
        screen_model,
        summary_model,
        tuning: check_tuning(section, shared.tuning)?,
        budget: Budget { keys, model_quotas, ..budget(section, shared.quota.as_deref(), quotas, zone)? },
        db: db.clone(),
        clock: db.clock().clone(),
        clients: clients.clone(),
        allow_private: AllowPrivate::parse(&shared.allow_private)
            .map_err(|error| section.problem("allow_private", error.phrase()))?,
    })
}

fn check_tuning(section: &Section, tuning: Tuning) -> Result<Tuning, Problems> {
    if tuning.temperature.is_some_and(|value| !(0.0..=2.0).contains(&value)) {
        return Err(section
            .problem(
                "temperature",
                phrase!("a temperature is between 0 and 2", "temperature は 0 から 2 までです"),
            )
            .into());
    }
    if tuning.max_output_tokens.is_some_and(|tokens| tokens == 0) {
        return Err(section
            .problem(
                "max_output_tokens",
                phrase!("an answer needs at least 1 token", "回答には 1 トークン以上が必要です"),
            )
            .into());
    }
    Ok(tuning)
}

/// The budget without its own keys: the quota, and when the provider's day begins.
fn budget(
    section: &Section,
    quota: Option<&str>,
    quotas: &BTreeMap<String, Quota>,
    zone: &Zone,
) -> Result<Budget, Problems> {
    let quota = match quota {
        Some(name) => Some(
            quotas
                .get(name)
                .ok_or_else(|| {
                    let known = quotas.keys().map(String::as_str);
                    Problems::from(section.unknown_name(
                        "quota",
                        config::TableKind::Quota.noun(),
                        name,
                        known,
                    ))
                })?
                .clone(),
        ),
        None => quotas.get(&section.name).cloned(),
    };
    let day = quota
        .as_ref()
        .map_or_else(|| config::Quota::from_midnight(u32::MAX, zone.clone()), |quota| quota.rule.clone());
    Ok(Budget { quota, model_quotas: BTreeMap::new(), day, keys: super::BudgetKeys::default() })
}

impl Llm {
    /// What is paused when the limit of a model is reached: the model, or the provider if its models share a limit.
    fn limited(&self, model: &str) -> String {
        if self.kind.limits_each_model && self.screen_model != self.summary_model {
            format!("{}/{model}", self.name)
        } else {
            self.name.clone()
        }
    }

    /// Everything of this provider that may be paused.
    pub fn subjects(&self) -> Vec<Subject> {
        let models = [&self.screen_model, &self.summary_model].map(|model| self.limited(model));
        let names = BTreeSet::from_iter(models.into_iter().chain([self.name.clone()]));
        names.iter().map(|name| Subject::provider(name)).collect()
    }

    /// The pause of the provider or of this model, if any. It ends early when the key, a model, the address or a
    /// request setting changes.
    pub(super) async fn find_pause(&self, model: &str) -> db::Result<Option<Unavailable>> {
        let (names, fingerprint, now) =
            ([self.name.clone(), self.limited(model)], self.fingerprint(), self.clock.now());
        let found = self
            .db
            .read(move |tx| {
                for name in &names {
                    let Some(pause) = pause::find(tx, &Subject::provider(name), now)? else { continue };
                    let health = store::find_health(tx, name)?;
                    if health.paused_with.is_none_or(|with| with == fingerprint) {
                        return Ok(Some((name.clone(), pause, health.pause_reason)));
                    }
                }
                Ok(None)
            })
            .await?;
        Ok(found.map(|(name, pause, because)| Unavailable {
            until: pause.paused_until.unwrap_or_else(|| now.plus(LOCKED)),
            why: phrase!(
                "`{name}` is paused: {why}",
                "`{name}` は一時停止中です：{why}",
                name = &name,
                why = &pause.reason
            ),
            because: because.unwrap_or(PauseReason::Down),
        }))
    }

    /// Pauses the provider, or the model that has reached its limit. The reservation is returned unless it may have
    /// been used.
    pub(super) async fn pause(
        &self,
        reserved: Reserved,
        model: &str,
        pause: ProviderPause,
    ) -> db::Result<Unavailable> {
        let (name, fingerprint, now) = (self.name.clone(), self.fingerprint(), self.clock.now());
        let paused = match pause {
            ProviderPause::Busy { .. } | ProviderPause::UsedUp { .. } => self.limited(model),
            ProviderPause::Down { .. } | ProviderPause::Locked { .. } | ProviderPause::Refused { .. } => {
                self.name.clone()
            }
        };
        let shown = paused.clone();
        let day_ends = self.budget.day.next_day_at(now);
        let (until, why, because) = self
            .db
            .write(move |tx| {
                if !pause.may_have_counted() {
                    store::add_usage(tx, &name, &reserved.date, &reserved.job, 0, -reserved.tokens)?;
                }
                let failures = store::find_health(tx, &paused)?.failures_in_a_row;
                let growing = PAUSES[usize::try_from(failures).unwrap_or(0).min(PAUSES.len() - 1)];
                let (until, because, why) = match &pause {
                    ProviderPause::Busy { why, after, .. } => {
                        (now.plus(*after), PauseReason::Busy, why.clone())
                    }
                    ProviderPause::UsedUp { why } => (
                        day_ends,
                        PauseReason::UsedUp,
                        phrase!("used up for today: {why}", "本日の上限に達しました：{why}"),
                    ),
                    ProviderPause::Down { why, after, .. } => {
                        (now.plus(after.unwrap_or(growing).max(growing)), PauseReason::Down, why.clone())
                    }
                    ProviderPause::Locked { why } => (now.plus(LOCKED), PauseReason::Locked, why.clone()),
                    ProviderPause::Refused { why } => (now.plus(LOCKED), PauseReason::Refused, why.clone()),
                };
                let failed = i64::from(because == PauseReason::Down);
                store::put_health(tx, &paused, failures + failed, Some((&fingerprint, because)))?;
                pause::put(tx, &Subject::provider(&paused), Some(until), &why, now)?;
                let detail = json!({ "why": why.to_stored(), "until": until });
                let code = ProviderCode::from(because);
                event::add(tx, Some(&reserved.job), &Subject::provider(&paused), code, &detail, now)?;
                Ok((until, why, because))
            })
            .await?;
        tracing::warn!(provider = self.name, %until, "`{shown}` is paused: {why}");
        Ok(Unavailable { until, why, because })
    }

    /// Replaces the reservation by the actual use, saves the answer if there is one, and clears failures and pauses of
    /// the provider, which has just answered about `about`.
    pub(super) async fn record_usage(
        &self,
        reserved: Reserved,
        (purpose, about): (Purpose, &str),
        usage: TokenUsage,
        answer: Option<store::NewAnswer>,
    ) -> db::Result<()> {
        let (name, about, now) = (self.name.clone(), about.to_owned(), self.clock.now());
        let well = BTreeSet::from([self.name.clone(), self.limited(self.model_for(purpose))]);
        self.db
            .write(move |tx| {
                let used = match usage {
                    TokenUsage::Unreported => reserved.tokens,
                    usage => {
                        let (input, output) = usage.counts();
                        i64::try_from(input + output).unwrap_or(i64::MAX)
                    }
                };
                store::add_usage(tx, &name, &reserved.date, &reserved.job, 0, used - reserved.tokens)?;
                if let Some(answer) = &answer {
                    store::put_answer(tx, answer, now)?;
                }
                let known = store::find_refusals(tx, &name)?;
                let mut refusals = known.clone();
                refusals.failing = refusals.failing.filter(|failing| failing.about != about);
                // The model has processed it, so requests for this purpose are accepted in general.
                if usage != TokenUsage::Nothing {
                    refusals.by_purpose.remove(purpose.word());
                }
                if refusals != known {
                    store::put_refusals(tx, &name, &refusals)?;
                }
                for name in &well {
                    store::put_health(tx, name, 0, None)?;
                    pause::reset(tx, &Subject::provider(name))?;
                }
                Ok(())
            })
            .await?;
        Ok(())
    }

    /// Decides what a refusal without a stated cause is about, given the last one for the same purpose.
    pub(super) async fn blame(&self, purpose: Purpose, about: &str, why: &str) -> db::Result<Blame> {
        let (name, about, why) = (self.name.clone(), about.to_owned(), why.to_owned());
        self.db
            .write(move |tx| {
                let mut refusals = store::find_refusals(tx, &name)?;
                let (blame, next) = refusal::judge(refusals.by_purpose.get(purpose.word()), &why, &about);
                refusals.by_purpose.insert(purpose.word().to_owned(), next);
                store::put_refusals(tx, &name, &refusals)?;
                Ok(blame)
            })
            .await
    }

    /// Records that the provider has failed at `about`; returns whether `about` may be the cause.
    pub(super) async fn suspects(&self, about: &str) -> db::Result<bool> {
        let (name, about) = (self.name.clone(), about.to_owned());
        self.db
            .write(move |tx| {
                let mut refusals = store::find_refusals(tx, &name)?;
                let failing = FailingAt::again(refusals.failing.take(), &about);
                let is_suspect = failing.is_suspect();
                refusals.failing = Some(failing);
                store::put_refusals(tx, &name, &refusals)?;
                Ok(is_suspect)
            })
            .await
    }

    /// Shows whether key, models, address or request settings have changed without revealing them: 16 bits of a hash.
    fn fingerprint(&self) -> String {
        let request_settings = format!("{:?}{}", self.tuning, self.provider.request_settings());
        let whole = crate::hash::sha256_parts(&[
            &self.name,
            &self.provider.key_text(),
            self.provider.address(),
            &self.screen_model,
            &self.summary_model,
            &request_settings,
        ]);
        whole.get(..4).unwrap_or_default().to_owned()
    }
}
