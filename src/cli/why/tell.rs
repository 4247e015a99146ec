//! Stories in words: what the thing is, where it stands, and how it got there.

use super::find::{Entry, External, Thing, WithEvents};
use super::job::{self, tell_rest, way_out};
use super::page::Page;
use super::words;
use crate::blogs::decide::Code;
use crate::blogs::store::{ChangeRow, CheckRow};
use crate::blogs::view::{BlogView, Listed};
use crate::books::prompt;
use crate::books::view::BookView;
use crate::channel::outbox::{Row, State};
use crate::commits::model::Project;
use crate::commits::run::Summary;
use crate::commits::store::branches::BranchRow;
use crate::ledger::event::Event;
use crate::press::Reason;
use crate::press::view::ItemView;
use crate::text::{Language, counted};

pub(super) fn tell(story: &Thing, page: &mut Page<'_>) {
    match story {
        Thing::Item(story) => tell_item(story, page),
        Thing::Entry(story) => tell_entry(story, page),
        Thing::Blog(story) => tell_blog(story, page),
        Thing::Book(story) => tell_book(story, page),
        Thing::Branch(story) => tell_branch(story, page),
        Thing::Project(story) => tell_project(story, page),
        Thing::Run(story) => tell_run(story, page),
        Thing::Delivery(story) => tell_delivery(story, page),
        Thing::External(story) => tell_external(story, page),
        Thing::Job(story) => job::tell(story, page),
        Thing::Other(story) => {
            page.title(story.thing.subject.as_str());
            tell_events(&story.events, page);
        }
    }
}

fn tell_events(events: &[Event], page: &mut Page<'_>) {
    let times = page.times;
    page.section("story", events.iter().map(|event| words::line(event, times)));
}

fn tell_item(story: &ItemView, page: &mut Page<'_>) {
    let (item, times) = (&story.item, page.times);
    page.title(format!("item {} of job {}: {}", item.id, item.job_name, item.title));
    page.fact("address", item.url.clone());
    let reason = item.reason.filter(|reason| *reason != Reason::None);
    let reason = reason.map_or_else(String::new, |reason| format!(", {}", reason.word().replace('_', " ")));
    page.fact("state", format!("{}{reason}", item.status.word()));
    if item.retry_count > 0 {
        page.fact("failed attempts", item.retry_count.to_string());
    }
    page.fact("published", times.line(item.published_at));
    page.fact("last checked", times.line(item.last_checked_at));
    page.fact("not before", item.not_before.map(|at| times.line(at)));
    page.fact("verdict", item.verdict.clone());
    page.fact("summary", item.summary.clone());
    page.section(
        "messages",
        story.deliveries.iter().map(|delivery| {
            let why = delivery
                .last_error
                .as_deref()
                .map_or_else(String::new, |why| format!(": {}", times.told(why)));
            message(delivery.id, &delivery.channel, &delivery.state, &why)
        }),
    );
    tell_events(&story.events, page);
}

fn times_over(count: u32) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

/// One message, and what to do about it.
fn message(id: i64, channel: &str, state: &str, why: &str) -> String {
    let way_out = way_out(state, id).map_or_else(String::new, |way_out| format!(" ({way_out})"));
    format!("delivery {id} through {channel}: {state}{why}{way_out}")
}

fn tell_entry(Entry { story, has_channel }: &Entry, page: &mut Page<'_>) {
    let (entry, times) = (&story.entry, page.times);
    page.title(format!("entry of blog {}: {}", entry.blog_id, entry.title.as_deref().unwrap_or("-")));
    page.fact("address", entry.url.clone());
    page.fact("published", entry.published_at.map(|at| times.line(at)));
    page.fact("first seen", times.line(entry.first_seen_at));
    let sent = match story.changes.is_empty() {
        true => "no: it was not news when it was seen first",
        false => {
            let deliveries = story.changes.iter().flat_map(|listed| &listed.deliveries);
            let states: Vec<State> = deliveries.filter_map(|sent| State::parse(&sent.state)).collect();
            let is_queued = story.changes.iter().all(|listed| listed.change.digest.is_some());
            whether_sent(&states, is_queued, *has_channel)
        }
    };
    page.fact("sent", sent.to_owned());
    page.section(
        "changes",
        story.changes.iter().map(|Listed { change, .. }| {
            format!("{}  change {}: {}", times.line(change.found_at), change.id, change_words(change))
        }),
    );
    let deliveries = story.changes.iter().flat_map(|listed| &listed.deliveries);
    page.section(
        "messages",
        deliveries.map(|delivery| message(delivery.id, &delivery.channel, &delivery.state, "")),
    );
    tell_events(&story.events, page);
}

/// Whether news has reached anybody: as its messages say or, if there are none, why not.
fn whether_sent(states: &[State], is_queued: bool, has_channel: Option<bool>) -> &'static str {
    let any = |wanted: &[State]| states.iter().any(|state| wanted.contains(state));
    match has_channel {
        _ if any(&[State::Sent]) => "yes, see below",
        _ if any(&[State::Held]) => "held for a decision, see below",
        _ if any(&[State::Unknown]) => "perhaps: it is not known whether the message arrived, see below",
        _ if any(&[State::Ready, State::Sending]) => "not yet: the message is waiting, see below",
        _ if any(&[State::Failed]) => "no: the message failed, see below",
        _ if any(&[State::Skipped]) => "no: the message was discarded, see below",
        Some(false) => "no: the job has no channel in `deliver`, so the result is only kept",
        Some(true) if !is_queued => "not yet: the next run of the job sends it",
        Some(true) => "no: the job had no channel in `deliver` when it was found",
        None => "no: there was no message, and the config does not name the job any more",
    }
}

fn tell_blog(story: &BlogView, page: &mut Page<'_>) {
    let times = page.times;
    page.title(format!("blog {}", story.blog_id));
    page.fact("read by", story.decided_by.map(|detector| detector.word().to_owned()));
    let searched = |found: &Option<String>, again| match (found, again) {
        (Some(url), _) => Some(url.clone()),
        (None, Some(again)) => Some(format!("none was found; searched for again {}", times.line(again))),
        (None, None) => None,
    };
    page.fact("feed", searched(&story.feed_url, story.next_feed_discovery_at));
    if !story.other_feeds.is_empty() {
        let others = story.other_feeds.join(" ");
        page.fact(
            "other feeds",
            format!("{others} (named by its page, not read; `feed` in the config chooses one)"),
        );
    }
    page.fact("sitemap", searched(&story.sitemap_url, story.next_sitemap_discovery_at));
    page.fact("last check", story.last_check_at.map(|at| times.line(at)));
    page.fact(
        "next check",
        story.not_before.map(|at| format!("not before {}: its server asked for it", times.line(at))),
    );
    page.fact("last change", story.last_change_at.map(|at| times.line(at)));
    if story.failures_in_a_row > 0 {
        page.fact("in a row", counted(story.failures_in_a_row, "failure"));
    }
    if let Some(why) = &story.paused {
        page.fact("paused", format!("{why} (`tsuzuki change resume {}` ends it)", story.blog_id));
    }
    if story.unconfirmed > 0 {
        page.fact("unconfirmed", format!("{} links were seen once; sent if they stay", story.unconfirmed));
    }
    page.section(
        "checks",
        story
            .checks
            .iter()
            .rev()
            .map(|check| format!("{}  {}", times.line(check.checked_at), check_words(check))),
    );
    page.section(
        "changes",
        story.changes.iter().rev().map(|change| {
            format!("{}  change {}: {}", times.line(change.found_at), change.id, change_words(change))
        }),
    );
    tell_events(&story.events, page);
}

fn check_words(check: &CheckRow) -> String {
    let status = check.http_status.map_or_else(String::new, |status| format!(" (HTTP {status})"));
    match (&check.error_message, check.changed, check.skipped) {
        (Some(error), ..) => format!("failed{status}: {error}"),
        (None, true, _) => format!("something new{status}"),
        (None, _, true) => format!("unchanged, nothing had to be read{status}"),
        (None, ..) => format!("unchanged{status}"),
    }
}

fn change_words(change: &ChangeRow) -> String {
    let detail = &change.detail;
    let held = match (&detail.held_because, change.held) {
        (Some(why), _) => format!(", held: {why}"),
        (None, true) => ", held".to_owned(),
        _ => String::new(),
    };
    let said = match (&detail.error, detail.entries.first()) {
        (Some(error), _) => format!(": {error}"),
        (None, Some(entry)) => match entry.title.as_ref().or(entry.url.as_ref()) {
            Some(first) => format!(": {first}"),
            None => String::new(),
        },
        (None, None) => String::new(),
    };
    match change.code {
        Code::New => format!("{} new{held}{said}", detail.count()),
        code => format!("{}{held}{said}", code.word()),
    }
}

fn tell_book(story: &BookView, page: &mut Page<'_>) {
    let times = page.times;
    page.title(format!("book {}: {}", story.book.isbn13, story.book.title));
    for (name, value) in prompt::facts(&story.book, Language::En).into_iter().skip(1) {
        page.fact(&name.to_lowercase(), value);
    }
    page.section(
        "jobs",
        story.jobs.iter().map(|job| {
            let delivered = match job.delivered_at {
                Some(at) => format!("delivered {}", times.line(at)),
                None => "not delivered".to_owned(),
            };
            let rest = story.rests.iter().find(|rest| rest.job_name == job.job_name);
            let delivered = match rest {
                Some(rest) => format!(
                    "{delivered}, in no digest before {} ({} with it refused)",
                    times.line(rest.rests_until),
                    counted(rest.refusals, "digest")
                ),
                None => delivered,
            };
            format!("{}: found {}, {delivered}", job.job_name, times.line(job.first_seen_at))
        }),
    );
    page.section(
        "deliveries",
        story
            .deliveries
            .iter()
            .map(|sent| format!("{}  by {}", times.line(sent.delivered_at), sent.job_name)),
    );
    tell_events(&story.events, page);
}

fn tell_branch(story: &WithEvents<BranchRow>, page: &mut Page<'_>) {
    let (branch, times) = (&story.thing, page.times);
    page.title(format!("branch {} of project {}", branch.branch_name, branch.project));
    page.fact("commits", branch.commits.to_string());
    page.fact("newest commit", branch.last_commit_at.map(|at| times.line(at)));
    page.fact("read up to", branch.complete_head.clone());
    page.fact("last read", branch.last_walk_at.map(|at| times.line(at)));
    page.fact(
        "history",
        branch.closed.map(|closed| {
            if closed { "complete: every parent is stored" } else { "has a gap: some parents are not stored" }
                .to_owned()
        }),
    );
    for (count, what) in [
        (branch.unreachable, "are no longer on the branch"),
        (branch.stats_missing, "have no line counts"),
        (branch.unreadable, "could not be read"),
    ] {
        if count > 0 {
            page.fact("of these", format!("{count} {what}"));
        }
    }
    if branch.walking {
        page.fact("now", "being read; the next run goes on".to_owned());
    }
    page.fact("gone since", branch.deleted_at.map(|at| times.line(at)));
    page.fact("left since", branch.ignored_at.map(|at| format!("{}, by `branch rm`", times.line(at))));
    tell_events(&story.events, page);
}

fn tell_project(story: &WithEvents<Project>, page: &mut Page<'_>) {
    let (project, times) = (&story.thing, page.times);
    page.title(format!("project {} ({}) on {}", project.path, project.project_id, project.host));
    page.fact("default branch", project.default_branch.clone());
    page.fact("gone since", project.removed_at.map(|at| times.line(at)));
    tell_events(&story.events, page);
    page.fact("branches", format!("`tsuzuki branch ls {}` lists them", project.path));
}

fn tell_run(story: &WithEvents<Summary>, page: &mut Page<'_>) {
    let (run, times) = (&story.thing.run, page.times);
    page.title(format!("run {}: {}", run.run_id, story.thing.state));
    page.fact("job", run.job_name.clone());
    page.fact("started", times.line(run.started_at_utc));
    page.fact("ended", run.completed_at_utc.map(|at| times.line(at)));
    page.fact(
        "branches",
        format!(
            "{} of {} up to date, {} failed, {} pending",
            run.success_count, run.total_targets, run.failed_count, story.thing.pending_count
        ),
    );
    page.fact("commits", format!("{} new, counted per branch", story.thing.new_commits_count));
    tell_events(&story.events, page);
    if run.failed_count > 0 {
        page.fact("failed", format!("`tsuzuki bulk show {}` says why", run.run_id));
    }
}

fn tell_delivery(story: &WithEvents<Row>, page: &mut Page<'_>) {
    let (row, times) = (&story.thing, page.times);
    page.title(format!("delivery {}: {}", row.id, row.state.as_str()));
    page.fact("about", row.subject.clone());
    page.fact("job", row.job_name.to_string());
    page.fact("through", format!("{} to {}", row.channel, row.recipient));
    page.fact("added", times.line(row.created_at));
    page.fact(
        "tried",
        match (row.attempts, row.last_attempt_at) {
            (0, _) | (_, None) => "not yet".to_owned(),
            (count, Some(last)) => format!("{}, last {}", times_over(count), times.line(last)),
        },
    );
    if matches!(row.state, State::Ready | State::Unknown) {
        page.fact("next", times.line(row.not_before));
    }
    page.fact("known there as", row.remote_id.clone());
    page.fact("because", row.last_error.as_deref().map(|why| times.told(why)));
    page.fact("to do", way_out(row.state.as_str(), row.id));
    tell_events(&story.events, page);
}

fn tell_external(story: &WithEvents<External>, page: &mut Page<'_>) {
    let times = page.times;
    page.title(story.thing.name.spoken());
    let state =
        story.thing.paused.as_ref().map_or_else(|| "in use".to_owned(), |rest| tell_rest(rest, times));
    page.fact(if story.thing.paused.is_some() { "paused" } else { "now" }, state);
    tell_events(&story.events, page);
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
            (&[Held, Failed], true, Some(true), "held"),
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
            let said = whether_sent(states, is_queued, has_channel);
            assert!(said.starts_with(begins), "{states:?} {is_queued} {has_channel:?}: {said}");
        }
    }
}
