//! A channel or a provider: whether it can be used, and if not, why.

use crate::channel::outbox::{self, ChannelStatus, WaitCause, list_statuses};
use crate::config::{Config, MissingAt, TableKind};
use crate::db::{self, Tx};
use crate::engine::Finder;
use crate::engine::action::{ActionOutcome, Deed, Verb};
use crate::engine::pages;
use crate::engine::pipeline::Thing;
use crate::engine::view::{self, State, View};
use crate::ledger::pause::{self, Pause};
use crate::ledger::{Subject, quota};
use crate::phrase;
use crate::phrase::Phrase;
use crate::text::shell_word;

/// A channel, by its name.
pub(super) const CHANNEL: Thing = Thing {
    word: "channel",
    find: |finder, tx, name| {
        let status =
            list_statuses(tx, &finder.channels, finder.now)?.into_iter().find(|of| of.channel == name);
        let is_known = list_channels(&finder.config).iter().any(|known| known == name);
        let title = phrase!("channel {name}", "チャンネル {name}");
        let mut views = find(finder, tx, "channel", &Subject::channel(name), title, is_known)?;
        if let (Some(view), Some(status)) = (views.first_mut(), &status) {
            add_status(view, status, finder);
        }
        Ok(views)
    },
    list_configured: list_channels,
    list_stored: |_| Ok(Vec::new()),
    listed_by: "channel ls",
    resume: Some("delivery retry --channel"),
    act: act_on_channel,
};

/// A provider, by its name: a model, or a search that has a quota.
pub(super) const PROVIDER: Thing = Thing {
    list_configured: list_providers,
    list_stored: quota::list_providers,
    ..Thing::new("provider", find_provider, "quota ls")
};

fn find_provider(finder: &Finder, tx: &mut Tx<'_>, name: &str) -> db::Result<Vec<View>> {
    // A job may count against a provider that has no table of its own.
    let is_used = finder.jobs.iter().any(|job| job.collector.relies_on().contains(&Subject::provider(name)));
    let is_known = is_used || list_providers(&finder.config).iter().any(|known| known == name);
    let title = phrase!("provider {name}", "プロバイダー {name}");
    let mut views = find(finder, tx, "provider", &Subject::provider(name), title, is_known)?;
    if let Some(view) = views.first_mut() {
        let of_models = format!("{name}/");
        for pause in pause::list(tx, finder.now)? {
            if pause.name.name_of("provider").is_some_and(|model| model.starts_with(&of_models)) {
                view.state = Some(State::Paused);
                add_pause(view, &pause, finder);
            }
        }
    }
    Ok(views)
}

/// The state of a channel, and why it cannot send: its pause, failed attempts, or a secret that is `missing`.
pub fn judge_channel(status: &ChannelStatus, missing: &[MissingAt]) -> (State, Option<Phrase>) {
    let is_its =
        |missing: &&MissingAt| missing.place == TableKind::Channel && missing.owner == status.channel;
    if let Some(missing) = missing.iter().find(is_its) {
        return (State::Setup, Some(missing.why.clone()));
    }
    let (state, why) = match (&status.wait, &status.retry) {
        (Some(wait), _) => match wait.cause {
            WaitCause::Locked | WaitCause::Missing => (State::Setup, &wait.why),
            WaitCause::Paused => (State::Paused, &wait.why),
            WaitCause::Quiet => (State::Waiting, &wait.why),
            WaitCause::MaxPerDay => (State::Quota, &wait.why),
        },
        (None, Some(retry)) if retry.is_failing() => (State::Failing, &retry.why),
        (None, Some(retry)) => (State::Waiting, &retry.why),
        (None, None) => return (State::Ok, None),
    };
    (state, Some(why.clone()))
}

fn add_status(view: &mut View, status: &ChannelStatus, finder: &Finder) {
    let (state, why) = judge_channel(status, &finder.config.list_missing_secrets());
    view.state = Some(state);
    view.fact(phrase!("kind", "種類"), status.kind);
    // A pause has its own line, which names the command to resume.
    if !view.facts.iter().any(|fact| fact.label == "paused") {
        view.fact(phrase!("why", "理由"), why);
    }
    view.fact(phrase!("last sent", "最終送信"), status.last_sent_at);
    view.fact(phrase!("waiting", "送信待ち"), status.messages);
    let name = &status.channel;
    view.command(phrase!("list its messages", "メッセージの一覧"), format!("delivery ls --channel {name}"));
    view.command(phrase!("send a test message", "テストメッセージを送る"), format!("channel test {name}"));
}

/// Resumes a channel and makes its waiting messages due.
fn act_on_channel(finder: &Finder, tx: &mut Tx<'_>, name: &str, deed: Deed) -> db::Result<ActionOutcome> {
    let is_known = list_channels(&finder.config).iter().any(|known| known == name);
    if deed.verb != Verb::Resume || !is_known {
        return Ok(ActionOutcome::Unknown);
    }
    let (was_paused, due) = outbox::resume_channel(tx, name, finder.now)?;
    Ok(ActionOutcome::Done(resumed_phrase(name, was_paused, due)))
}

/// The outcome of resuming a channel, in words.
fn resumed_phrase(name: &str, was_paused: bool, due: u64) -> Phrase {
    let outcome = if was_paused {
        phrase!("was resumed", "を再開しました")
    } else {
        phrase!("was not paused", "は一時停止していません")
    };
    phrase!("{name} {outcome}; {due message} became due", "{name} {outcome}（{due} 件を送信します）")
}

fn list_channels(config: &Config) -> Vec<String> {
    config.channels.iter().map(|section| section.name.clone()).collect()
}

fn list_providers(config: &Config) -> Vec<String> {
    config.llms.iter().map(|section| section.name.clone()).chain(config.quotas.keys().cloned()).collect()
}

fn find(
    finder: &Finder,
    tx: &mut Tx<'_>,
    word: &'static str,
    subject: &Subject,
    title: Phrase,
    is_known: bool,
) -> db::Result<Vec<View>> {
    let paused = pause::find(tx, subject, finder.now)?;
    let events = finder.list_events(tx, subject)?;
    if !is_known && paused.is_none() && events.is_empty() {
        return Ok(Vec::new());
    }
    let data = view::with_events(&serde_json::json!({ "name": subject, "paused": paused }), &events);
    let mut view = View::new(word, subject, title, data);
    match &paused {
        Some(pause) => add_pause(&mut view, pause, finder),
        None => view.state = Some(State::Ok),
    }
    if let Some(quota) = subject.name_of("provider").and_then(|name| finder.quotas.get(name)) {
        let used = quota.used(tx, finder.now)?;
        view.facts.extend(pages::quotas::list_facts(quota, used, finder.now));
    }
    finder.add_events(&mut view, &events);
    Ok(vec![view])
}

/// Adds a fact about a pause of the thing or of something that it needs: until when, why, and how to resume it.
pub fn add_pause(view: &mut View, pause: &Pause, finder: &Finder) {
    let (name, why) = (&pause.name.phrase(), &pause.reason);
    let channel = pause.name.name_of("channel");
    let text = match (pause.paused_until, channel) {
        (Some(until), _) => {
            phrase!("{name} until {until}: {why}", "{name}：{until} まで（{why}）")
        }
        (None, Some(_)) => {
            phrase!("{name} until its credentials change: {why}", "{name}：認証情報が変わるまで（{why}）")
        }
        (None, None) => {
            phrase!("{name} until it is resumed: {why}", "{name}：再開されるまで（{why}）")
        }
    };
    view.state.get_or_insert(State::Paused);
    view.fact(phrase!("paused", "一時停止"), text);
    let thing = finder.things.iter().find(|thing| thing.word == pause.name.word());
    if let Some(command) = thing.and_then(|thing| thing.resume) {
        let target = pause.name.as_str().split_once(':').map_or("", |(_, name)| name);
        let label = phrase!("resume {name}", "{name} を再開する");
        view.act(Verb::Resume, &pause.name, label, format!("{command} {}", shell_word(target)));
    }
}
