//! Decides a check: from the stored state and the result, which entries are new, what is wrong and what to store. Pure.

mod beside;
mod decision;
mod list;
mod news;
mod replaced;
mod trouble;

use std::collections::HashSet;
use std::time::Duration;

pub use self::beside::{has_resumed, should_cross_check};
pub use self::decision::{Change, Check, Code, Decision, Detail, HoldReason, Record, SeenEntries};
pub use self::replaced::{find_replacing, list_vanished};
use super::config::{Blog, Rules};
use super::events::{BlogEvent, Discovery, Loss};
pub use super::model::SURE_AFTER;
use super::model::{Detector, DetectorResult, Moved, Sighting, State, Unconfirmed};
use crate::config::value::Span;
use crate::parse::Cut;
use crate::parse::url::{Url, comparison_key};
use crate::time::Timestamp;

/// How often a full check is made even if the server answers 304.
pub const FULL_READ_EVERY: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// How often a feed or sitemap that was not found is searched for again.
pub const SEARCH_EVERY: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The document of a detector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// At this address.
    At(Url),
    /// It must be searched for first.
    Search,
    /// None: a recent search did not find it.
    Nowhere,
}

/// Whether a blog is paused, by a user or because it is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PauseFlag {
    None,
    /// Not checked, unless its settings have changed since.
    Paused,
}

/// Whether a blog is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    Now,
    /// It is paused, or its own `every` is not over.
    NotNow,
    /// Its server asked us to wait until this moment, which also applies to runs by hand.
    NotBefore(Timestamp),
}

/// The end of the wait that the server asked for, if it is not over.
pub fn waits_until(state: &State, now: Timestamp) -> Option<Timestamp> {
    let (until, checked) = (state.not_before?, state.last_check_at?);
    // After the clock was set back, a blog must not wait longer than its server asked.
    (checked <= now && now < until).then_some(until)
}

/// Whether the blog is due now.
pub fn due(blog: &Blog, state: Option<&State>, pause: PauseFlag, now: Timestamp) -> Due {
    if pause == PauseFlag::Paused && state.is_none_or(|state| same_settings(blog, state)) {
        return Due::NotNow;
    }
    let Some(state) = state else { return Due::Now };
    if let Some(until) = waits_until(state, now) {
        return Due::NotBefore(until);
    }
    // After the clock was set back, a blog must not wait longer than its own interval.
    let waits = |from: Option<Timestamp>, span: Duration| {
        from.is_some_and(|from| from <= now && now.since(from) < span)
    };
    let Some(every) = blog.every.map(Span::duration) else { return Due::Now };
    // Runs do not begin exactly on time: a little too early is better than a whole run too late.
    if waits(state.last_check_at, every.saturating_sub((every / 10).min(Duration::from_secs(300)))) {
        Due::NotNow
    } else {
        Due::Now
    }
}

/// Whether the state was found under the current settings.
pub fn same_settings(blog: &Blog, state: &State) -> bool {
    state.settings_hash.as_deref().is_none_or(|known| known == blog.settings_hash())
}

/// The document of `detector` in this check.
pub fn target(blog: &Blog, state: &State, detector: Detector, now: Timestamp) -> Target {
    let (named, known, next_search) = match detector {
        Detector::Html => return Target::At(blog.url.clone().into()),
        Detector::Feed => (&blog.feed, &state.feed_url, state.next_feed_discovery_at),
        Detector::Sitemap => (&blog.sitemap, &state.sitemap_url, state.next_sitemap_discovery_at),
    };
    if let Some(url) = named {
        return Target::At(url.clone().into());
    }
    let search_is_due = match next_search {
        Some(at) => at <= now || at.since(now) > SEARCH_EVERY,
        None => known.is_none(),
    };
    if detector == Detector::Feed && beside::is_stopped(blog, state) {
        return match known {
            Some(url) if search_is_due => Target::At(url.clone()),
            _ => Target::Nowhere,
        };
    }
    match known {
        _ if search_is_due || !same_settings(blog, state) => Target::Search,
        Some(url) => Target::At(url.clone()),
        None => Target::Nowhere,
    }
}

/// Whether the document of `detector` was lost and not found again: it is still requested, because it may be back at
/// any moment, and the next detectors are used when it does not respond.
pub fn is_lost(blog: &Blog, state: &State, detector: Detector) -> bool {
    match detector {
        Detector::Feed => {
            blog.feed.is_none()
                && state.feed_url.is_some()
                && state.next_feed_discovery_at.is_some()
                && state.feed_stopped_at.is_none()
        }
        Detector::Sitemap => {
            blog.sitemap.is_none() && state.sitemap_url.is_some() && state.next_sitemap_discovery_at.is_some()
        }
        Detector::Html => false,
    }
}

/// Whether a conditional request is allowed instead of a full one.
pub fn may_skip(blog: &Blog, state: &State, detector: Detector, now: Timestamp) -> bool {
    state.decided_by == Some(detector)
        && state.unconfirmed.is_none()
        && state.last_full_read_at.is_some_and(|at| at <= now && now.since(at) < FULL_READ_EVERY)
        && same_settings(blog, state)
}

/// Whether [`decide_check`] needs a query for the entries seen before.
pub fn needs_memory(state: &State, sighting: &Sighting) -> bool {
    let Ok(DetectorResult::Entries { detector, entries, .. }) = &sighting.outcome else { return false };
    if state.last_success_at.is_none() || entries.is_empty() {
        return false;
    }
    !list::is_plainly_known(state, *detector, entries)
}

pub fn decide_check(
    blog: &Blog,
    rules: &Rules,
    state: &State,
    sighting: &Sighting,
    seen: &SeenEntries,
) -> Decision {
    let now = sighting.checked_at;
    match &sighting.outcome {
        Err(what) => trouble::decide_check(blog, rules, state, sighting, what),
        Ok(DetectorResult::Unchanged { detector, known }) => {
            let check = Check { http_status: sighting.http_status, skipped: true, ..Check::default() };
            let mut next = Next::new(blog, state, sighting, check);
            if next.state.known != *known {
                next.state.known.clone_from(known);
            }
            let decider = next.cross_check(blog, rules, state, sighting, seen).unwrap_or(*detector);
            next.succeed(decider);
            next.finish(state, now)
        }
        Ok(DetectorResult::Entries { detector, entries, known, total, cut }) => {
            match list::suspicion(state, blog, *detector, entries, *total) {
                Err(suspected) => {
                    let mut decision =
                        trouble::decide_check(blog, rules, state, sighting, &suspected.trouble);
                    if let Some(next) = &mut decision.state {
                        next.unconfirmed = suspected.unconfirmed;
                    }
                    decision
                }
                Ok(()) => {
                    let mut next = Next::new(blog, state, sighting, Check::default());
                    next.state.known.clone_from(known);
                    next.note_cut(*cut);
                    list::read(&mut next, blog, rules, state, (*detector, entries.as_slice(), *total), seen);
                    let decider = next.cross_check(blog, rules, state, sighting, seen).unwrap_or(*detector);
                    next.succeed(decider);
                    next.state.last_full_read_at = Some(now);
                    next.finish(state, now)
                }
            }
        }
    }
}

/// A decision in the making.
struct Next {
    now: Timestamp,
    state: Box<State>,
    check: Check,
    record: Record,
    changes: Vec<Change>,
    events: Vec<BlogEvent>,
}

impl Next {
    /// Begins with the stored state, and takes over the results of searches and redirects.
    fn new(blog: &Blog, state: &State, sighting: &Sighting, check: Check) -> Self {
        let check = Check { http_status: sighting.http_status, ..check };
        let mut next = Self {
            now: sighting.checked_at,
            state: Box::new(state.clone()),
            check,
            record: Record::These(Vec::new()),
            changes: Vec::new(),
            events: Vec::new(),
        };
        next.note_searches(sighting);
        if sighting.still_stopped {
            next.state.next_feed_discovery_at = Some(next.now.plus(SEARCH_EVERY));
        }
        next.note_redirect(blog, sighting);
        next
    }

    /// Adds an event when a document begins or ceases to exceed a limit.
    fn note_cut(&mut self, cut: Option<Cut>) {
        self.check.cut = cut;
        if std::mem::replace(&mut self.state.cut, cut) != cut {
            self.events.push(cut.map_or(BlogEvent::ReadWhole, |cut| BlogEvent::ReadInPart { cut }));
        }
    }

    fn note_searches(&mut self, sighting: &Sighting) {
        let again = self.now.plus(SEARCH_EVERY);
        let decided_by = self.state.decided_by;
        for (detector, search, known, next, found, lost, others) in [
            (
                Detector::Feed,
                &sighting.feed_search,
                &mut self.state.feed_url,
                &mut self.state.next_feed_discovery_at,
                BlogEvent::FeedFound as fn(Discovery) -> BlogEvent,
                BlogEvent::FeedNotFound as fn(Loss) -> BlogEvent,
                sighting.other_feeds.clone(),
            ),
            (
                Detector::Sitemap,
                &sighting.sitemap_search,
                &mut self.state.sitemap_url,
                &mut self.state.next_sitemap_discovery_at,
                BlogEvent::SitemapFound,
                BlogEvent::SitemapNotFound,
                Vec::new(),
            ),
        ] {
            let Some(answer) = search else { continue };
            let before = known.as_ref().map(|url| url.as_str().to_owned());
            match answer {
                Some(url) if known.as_ref() != Some(url) => {
                    self.events.push(found(Discovery { url: url.as_str().to_owned(), before, others }));
                }
                None if known.is_some() || next.is_none() => {
                    self.events.push(lost(Loss { before, search_again_at: again }));
                }
                _ => {}
            }
            *next = answer.is_none().then_some(again);
            // Keep requesting the previous document for a while: a site under maintenance names no feed.
            if answer.is_some() || decided_by != Some(detector) {
                known.clone_from(answer);
            }
        }
        if sighting.feed_search.is_some() {
            self.state.other_feeds.clone_from(&sighting.other_feeds);
            let own = self.state.feed_url.as_ref().map(Url::as_str);
            self.state.other_feeds.retain(|feed| Some(feed.as_str()) != own);
        }
    }

    /// A permanent redirect is followed at once, but adopted only after it was seen several times.
    fn note_redirect(&mut self, blog: &Blog, sighting: &Sighting) {
        let state = &mut *self.state;
        let Ok(DetectorResult::Unchanged { detector, .. } | DetectorResult::Entries { detector, .. }) =
            &sighting.outcome
        else {
            return;
        };
        let Some(to) = state.moved.sight(sighting.moved_to.as_ref()) else { return };
        let (named, known) = match detector {
            Detector::Feed => (blog.feed.is_some(), &mut state.feed_url),
            Detector::Sitemap => (blog.sitemap.is_some(), &mut state.sitemap_url),
            Detector::Html => (true, &mut state.sitemap_url),
        };
        let event = BlogEvent::Moved { what: *detector, to: to.as_str().to_owned(), adopted: !named };
        if !named {
            *known = Some(to);
            state.moved = Moved::default();
        }
        self.events.push(event);
    }

    /// Evaluates the sitemap read in addition to a stopped feed; returns the detector to use instead of the feed, if
    /// any.
    fn cross_check(
        &mut self,
        blog: &Blog,
        rules: &Rules,
        state: &State,
        sighting: &Sighting,
        seen: &SeenEntries,
    ) -> Option<Detector> {
        let Some(DetectorResult::Entries { detector, entries, known, .. }) = &sighting.beside else {
            return None;
        };
        beside::read(self, blog, rules, state, (entries, known), seen).then_some(*detector)
    }

    /// The blog could be read: ends a failure.
    fn succeed(&mut self, detector: Detector) {
        let now = self.now;
        let state = &mut *self.state;
        match detector {
            Detector::Feed => (state.feed_stopped_at, state.next_feed_discovery_at) = (None, None),
            Detector::Sitemap => {
                state.next_sitemap_discovery_at = None;
                // It replaces the lost feed. Links of a page do not, because the page may be another one for a while.
                if state.next_feed_discovery_at.is_some() && state.feed_stopped_at.is_none() {
                    state.feed_url = None;
                }
            }
            Detector::Html => {}
        }
        if state.last_success_at.is_some()
            && let Some(notice) = state.silence.check(self.check.changed, now)
        {
            self.events.push(notice.into());
        }
        if state.decided_by.is_some_and(|before| before != detector) {
            self.events.push(BlogEvent::DetectorChanged { before: state.decided_by, now: detector });
        }
        if state.warned_at.is_some() {
            let (failures, since) = (Some(state.failures_in_a_row), state.failing_since);
            self.events.push(BlogEvent::Recovered { failures, since });
            self.changes.push(Change {
                code: Code::Recovered,
                held: false,
                detail: Detail { failures, since, ..Detail::default() },
            });
        }
        state.decided_by = Some(detector);
        state.first_read_at_mut(detector).get_or_insert(now);
        state.last_success_at = Some(now);
        state.failures_in_a_row = 0;
        (state.failing_since, state.warned_at, state.not_before) = (None, None, None);
    }

    fn finish(mut self, before: &State, now: Timestamp) -> Decision {
        let state = &mut *self.state;
        state.last_check_at = before.last_check_at;
        state.last_success_at = before.last_success_at;
        let only_time = *state == *before && before.last_success_at.is_some();
        state.last_check_at = Some(now);
        state.last_success_at = Some(now);
        Decision {
            state: (!only_time).then_some(self.state),
            check: self.check,
            record: self.record,
            changes: self.changes,
            events: self.events,
            pause: None,
        }
    }
}

/// Stores the hash of the current settings.
fn adopt_settings(state: &mut State, blog: &Blog) {
    if !same_settings(blog, state) || state.settings_hash.is_none() {
        state.settings_hash = Some(blog.settings_hash());
    }
}

/// Whether two addresses are equal except for the scheme.
fn same_address(one: &Url, other: &Url) -> bool {
    comparison_key(one) == comparison_key(other)
}

/// Links that need a second sighting.
fn unconfirmed_links(state: &State) -> HashSet<&str> {
    match &state.unconfirmed {
        Some(Unconfirmed::Links(keys)) => keys.iter().map(String::as_str).collect(),
        _ => HashSet::new(),
    }
}

#[cfg(test)]
mod tests;
