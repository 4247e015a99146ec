//! The view of an entry: where and when it was seen, and in which message it was sent or why not.

use serde::Serialize;

use super::decide::Code;
use super::events::subject;
use super::model::url_key;
use super::store::{self, ChangeFilter, EntryRow};
use super::view::{self, ListedChange, change_line};
use crate::channel::outbox::State;
use crate::db::{self, Tx};
use crate::engine::finder::read_address;
use crate::engine::things::delivery;
use crate::engine::{Finder, View};
use crate::ledger::event::{self, Event};
use crate::phrase;
use crate::phrase::{Phrase, Value};

/// The word before the address of an entry.
pub(super) const ENTRY: &str = "entry";
/// How many changes and events of a blog are searched for an entry, newest first.
const SEARCHED: usize = 1_000;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EntryDetails {
    #[serde(flatten)]
    pub entry: EntryRow,
    /// The changes that contain it; empty when it was not new.
    pub changes: Vec<ListedChange>,
    /// The events of its blog when it was first seen, oldest first.
    pub events: Vec<Event>,
}

/// Finds all entries at an address.
pub(super) fn find(finder: &Finder, tx: &mut Tx<'_>, name: &str) -> db::Result<Vec<View>> {
    let Some(url) = read_address(name) else { return Ok(Vec::new()) };
    let entries = store::list_entries_at(tx, &url_key(&url))?;
    entries.into_iter().map(|entry| Ok(view(finder, &find_details(tx, entry)?))).collect()
}

fn find_details(tx: &mut Tx<'_>, entry: EntryRow) -> db::Result<EntryDetails> {
    let filter =
        ChangeFilter { blog: Some(entry.blog_id.clone()), code: Some(Code::New), ..ChangeFilter::default() };
    let mut changes = view::list_changes(tx, &filter, SEARCHED)?;
    changes.retain(|listed| {
        let detail = &listed.change.detail;
        let is_named = detail.entries.iter().any(|named| named.key == entry.key);
        // A change lists its first entries only; the others were written at the same moment.
        is_named || (detail.more > 0 && listed.change.found_at == entry.first_seen_at)
    });
    changes.reverse();
    let mut events = event::list_about(tx, &subject(&entry.blog_id), SEARCHED)?;
    events.retain(|event| event.at == entry.first_seen_at);
    Ok(EntryDetails { entry, changes, events })
}

fn view(finder: &Finder, details: &EntryDetails) -> View {
    let EntryDetails { entry, changes, events } = details;
    let title = phrase!(
        "entry of blog {blog}: {title}",
        "ブログ {blog} の記事：{title}",
        blog = &entry.blog_id,
        title = entry.title.as_deref().unwrap_or("-")
    );
    let data = serde_json::to_value(details).unwrap_or_default();
    let mut view = View::new(ENTRY, entry.url.as_deref().unwrap_or_default(), title, data);
    view.fact(phrase!("address", "アドレス"), entry.url.as_ref().map(Value::link));
    view.fact(phrase!("published", "公開"), entry.published_at);
    view.fact(phrase!("first seen", "初回確認"), entry.first_seen_at);
    let deliveries: Vec<_> = changes.iter().flat_map(|listed| &listed.deliveries).collect();
    let sent = match changes.first() {
        None => phrase!(
            "no: it was not new when it was first seen",
            "いいえ：初回確認時に新着ではありませんでした"
        ),
        Some(first) => {
            let states: Vec<State> = deliveries.iter().map(|delivery| delivery.state).collect();
            let is_queued = changes.iter().all(|listed| listed.change.digest.is_some());
            let job = finder.config.find_job(&first.change.job_name);
            whether_sent(&states, is_queued, job.map(|job| !job.deliver.is_empty()))
        }
    };
    view.fact(phrase!("sent", "通知"), sent);
    view.section(phrase!("changes", "変更"), changes.iter().map(|listed| change_line(&listed.change)));
    let line = |sent: &&store::ChangeDelivery| delivery::line(sent.id, &sent.channel, sent.state, None);
    view.section(phrase!("messages", "メッセージ"), deliveries.iter().map(line));
    finder.add_events(&mut view, events);
    for sent in deliveries {
        delivery::add_actions(&mut view, sent.id, sent.state);
    }
    view
}

/// Whether the entry was sent: by the states of its messages or, if there are none, why not.
fn whether_sent(states: &[State], is_queued: bool, has_channel: Option<bool>) -> Phrase {
    let any = |wanted: &[State]| states.iter().any(|state| wanted.contains(state));
    match has_channel {
        _ if any(&[State::Sent]) => phrase!("yes, see below", "はい（下記）"),
        _ if any(&[State::Held]) => phrase!("needs approval, see below", "確認待ち（下記）"),
        _ if any(&[State::Unknown]) => {
            phrase!(
                "perhaps: it is not known whether the message arrived, see below",
                "不明：届いたか確認できていません（下記）"
            )
        }
        _ if any(&[State::Ready, State::Sending]) => {
            phrase!("not yet: the message is queued, see below", "まだ：送信待ちです（下記）")
        }
        _ if any(&[State::Failed]) => {
            phrase!("no: the message failed, see below", "いいえ：送信に失敗しました（下記）")
        }
        _ if any(&[State::Skipped]) => {
            phrase!("no: the message was discarded, see below", "いいえ：送信しないことにしました（下記）")
        }
        Some(false) => phrase!(
            "no: the job has no channel in `deliver`, so the result is only kept",
            "いいえ：ジョブの `deliver` にチャンネルがないため、記録のみです"
        ),
        Some(true) if !is_queued => {
            phrase!("not yet: the next run of the job sends it", "まだ：次回の実行で送信します")
        }
        Some(true) => phrase!(
            "no: the job had no channel in `deliver` when it was found",
            "いいえ：見つかったとき、ジョブの `deliver` にチャンネルがありませんでした"
        ),
        None => phrase!(
            "no: there was no message, and the config no longer names the job",
            "いいえ：メッセージはなく、ジョブは設定にもありません"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn news_counts_as_sent_only_when_a_message_was() {
        use State::{Failed, Held, Ready, Sending, Sent, Skipped, Unknown};
        for (states, is_queued, has_channel, begins) in [
            (&[Sent][..], true, Some(true), "yes"),
            (&[Failed, Sent], true, Some(true), "yes"),
            (&[Sent], true, Some(false), "yes"),
            (&[Sent], true, None, "yes"),
            (&[Held, Failed], true, Some(true), "needs approval"),
            (&[Unknown, Ready], true, Some(true), "perhaps"),
            (&[Ready], true, Some(true), "not yet: the message"),
            (&[Sending], true, Some(false), "not yet: the message"),
            (&[Failed, Skipped], true, Some(true), "no: the message failed"),
            (&[Skipped], true, Some(true), "no: the message was discarded"),
            (&[], true, Some(false), "no: the job has no channel"),
            (&[], false, Some(false), "no: the job has no channel"),
            (&[], false, Some(true), "not yet: the next run"),
            (&[], true, Some(true), "no: the job had no channel"),
            (&[], true, None, "no: there was no message"),
        ] {
            let said = whether_sent(states, is_queued, has_channel).to_string();
            assert!(said.starts_with(begins), "{states:?} {is_queued} {has_channel:?}: {said}");
        }
    }
}
