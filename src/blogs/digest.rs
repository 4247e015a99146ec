//! Queues changes in the outbox: one digest per run and channel, and a separate message for each held change.
//!
//! A check writes its finds as unannounced changes. Here the messages and the marks of the changes are written in one
//! transaction. A crash before it leaves the changes to the next run; a crash after it leaves them announced. Nothing
//! is lost, nothing is announced twice.

use std::collections::BTreeMap;

use super::store::{self, ChangeRow};
use super::{Blogs, TOPIC, message};
use crate::channel::outbox::{self, Batch, Provenance};
use crate::channel::{NotRendered, Notice, Rendered};
use crate::engine::{DeliveryMode, Failure, RunContext};
use crate::fail;
use crate::ledger::Subject;
use crate::phrase::Phrase;

/// The most changes of one digest.
const AT_ONCE: usize = 1_000;

/// Messages to be queued, with their changes.
struct DigestDraft {
    subject: String,
    held: bool,
    ids: Vec<i64>,
    rendered: Vec<Rendered>,
    failed: Vec<NotRendered>,
}

/// Queues all unannounced changes of the job; returns the problems of channels that could not render them.
///
/// A run without delivery leaves them unannounced.
pub(super) async fn queue(ctx: &RunContext, blogs: &Blogs) -> Result<Vec<Phrase>, Failure> {
    if ctx.delivery == DeliveryMode::NoDeliver {
        return Ok(Vec::new());
    }
    let mut problems = Vec::new();
    loop {
        let job = ctx.job.clone();
        let unannounced = ctx.db.read(move |tx| store::list_unannounced(tx, job.as_str(), AT_ONCE)).await?;
        if unannounced.is_empty() {
            return Ok(problems);
        }
        let mut digests = Vec::new();
        for ChangeNotice { subject, held, changes, notice, deliver } in notices(unannounced, blogs) {
            let news = notice.into();
            let (rendered, failed) = blogs.channels.render(&deliver, &blogs.channel_env, &news).await;
            problems.extend(failed.iter().map(|failed| Phrase::verbatim(failed.to_string())));
            let ids = changes.iter().map(|change| change.id).collect();
            digests.push(DigestDraft { subject, held, ids, rendered, failed });
        }
        write(ctx, digests).await?;
        fail::point("blogs.queued");
    }
}

/// The content of one message and its channels.
struct ChangeNotice {
    subject: String,
    held: bool,
    changes: Vec<ChangeRow>,
    notice: Notice,
    deliver: Vec<String>,
}

fn notices(unannounced: Vec<ChangeRow>, blogs: &Blogs) -> Vec<ChangeNotice> {
    let (held, fresh): (Vec<_>, Vec<_>) = unannounced.into_iter().partition(|change| change.held);
    let news = |word: &str, held: bool, changes: Vec<ChangeRow>| {
        let deliver = changes.first().map_or(&*blogs.deliver, |change| blogs.deliver_of(&change.blog_id));
        ChangeNotice {
            subject: subject(word, &changes),
            held,
            notice: message::news(&changes, |id| blogs.find(id), blogs.language),
            deliver: deliver.to_owned(),
            changes,
        }
    };
    let mut notices: Vec<ChangeNotice> =
        held.into_iter().map(|change| news("change", true, vec![change])).collect();
    if blogs.rules.digest {
        // One digest for each set of channels.
        let mut groups: BTreeMap<Vec<String>, Vec<ChangeRow>> = BTreeMap::new();
        for change in fresh {
            groups.entry(blogs.deliver_of(&change.blog_id).to_owned()).or_default().push(change);
        }
        notices.extend(groups.into_values().map(|changes| news("digest", false, changes)));
    } else {
        notices.extend(fresh.into_iter().map(|change| news("change", false, vec![change])));
    }
    notices
}

/// Derived from the numbers of its changes, so that the same digest is the same message.
fn subject(word: &str, changes: &[ChangeRow]) -> String {
    match changes {
        [only] => format!("{word}:{}", only.id),
        [first, .., last] => format!("{word}:{}-{}", first.id, last.id),
        [] => word.to_owned(),
    }
}

async fn write(ctx: &RunContext, digests: Vec<DigestDraft>) -> Result<(), Failure> {
    let (job, now) = (ctx.job.clone(), ctx.now());
    let about = Subject::job(&job);
    ctx.write(move |tx| {
        for digest in &digests {
            // The lease excludes other processes. If one announced some changes all the same, the remaining ones are
            // grouped again.
            if !store::are_unannounced(tx, &digest.ids)? {
                continue;
            }
            for id in &digest.ids {
                store::mark_digest(tx, *id, &digest.subject)?;
            }
            let batch = Batch {
                job: &job,
                topic: TOPIC,
                subject: &digest.subject,
                generation: 0,
                hold: digest.held,
                found: Provenance::Since(store::find_found_since(tx, &digest.ids)?),
                about: &about,
            };
            outbox::add_all(tx, &batch, &digest.rendered, &digest.failed, now)?;
        }
        Ok(())
    })
    .await
}
