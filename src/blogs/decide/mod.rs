//! What a check means: given what is remembered and what was seen, what is new, what is wrong, what to remember. Pure.

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

/// After this long everything is read even if the server says that nothing changed.
pub const FULL_READ_EVERY: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// After this long a feed or sitemap that was not found is searched for again.
pub const SEARCH_EVERY: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Where a detector looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// At this address.
    At(Url),
    /// It must be searched for first.
    Search,
    /// Nowhere: it was searched for not long ago and not found.
    Nowhere,
}

/// Whether a blog is paused, by a person or because it is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PauseFlag {
    /// It is checked when its time has come.
    None,
    /// It is left alone, unless its settings have changed since.
    Paused,
}

/// Whether a blog is to be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    Now,
    /// Not now: it is paused, or its own `every` is not over.
    NotNow,
    /// Not before this moment: its server asked for it. Nobody may ask earlier, a person neither.
    NotBefore(Timestamp),
}

/// Until when the server has sent us away, if it still does.
pub fn waits_until(state: &State, now: Timestamp) -> Option<Timestamp> {
    let (until, checked) = (state.not_before?, state.last_check_at?);
    // A clock that was set back must not silence a blog for longer than its server asked.
    (checked <= now && now < until).then_some(until)
}

/// Whether the blog is to be checked now.
pub fn due(blog: &Blog, state: Option<&State>, pause: PauseFlag, now: Timestamp) -> Due {
    if pause == PauseFlag::Paused && state.is_none_or(|state| same_settings(blog, state)) {
        return Due::NotNow;
    }
    let Some(state) = state else { return Due::Now };
    if let Some(until) = waits_until(state, now) {
        return Due::NotBefore(until);
    }
    // A clock that was set back must not silence a blog for longer than its own span.
    let waits = |from: Option<Timestamp>, span: Duration| {
        from.is_some_and(|from| from <= now && now.since(from) < span)
    };
    let Some(every) = blog.every.map(Span::duration) else { return Due::Now };
    // Runs do not begin on the dot: a little too early is better than a whole run too late.
    if waits(state.last_check_at, every.saturating_sub((every / 10).min(Duration::from_secs(300)))) {
        Due::NotNow
    } else {
        Due::Now
    }
}

/// Whether what is remembered was found under the settings of today.
pub fn same_settings(blog: &Blog, state: &State) -> bool {
    state.settings_hash.as_deref().is_none_or(|known| known == blog.settings_hash())
}

/// Where `detector` looks in this check.
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

/// Whether the document of `detector` was lost and not found again: it is still asked for, and when it does not answer, the
/// detectors behind it are. It may be back at any moment.
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

/// Whether the server may be asked for changes only, instead of for everything.
pub fn may_skip(blog: &Blog, state: &State, detector: Detector, now: Timestamp) -> bool {
    state.decided_by == Some(detector)
        && state.unconfirmed.is_none()
        && state.last_full_read_at.is_some_and(|at| at <= now && now.since(at) < FULL_READ_EVERY)
        && same_settings(blog, state)
}

/// Whether the long memory must be asked before [`decide_check`] can tell what is new.
pub fn needs_memory(state: &State, sighting: &Sighting) -> bool {
    let Ok(DetectorResult::Entries { detector, entries, .. }) = &sighting.outcome else { return false };
    if state.last_success_at.is_none() || entries.is_empty() {
        return false;
    }
    !list::is_plainly_known(state, *detector, entries)
}

/// What the check means.
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
    /// Begins with what is known, and takes over what was searched for and where redirects lead.
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

    /// A document that is read in part is worth an event when that begins and when it is over.
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
            // What decided until now is asked for a while longer: a site under maintenance names no feed.
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

    /// A permanent redirect is followed at once but believed only when it was seen often enough.
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

    /// What the sitemap beside a feed that has stopped means; answers who decides instead of the feed, if so.
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

    /// The blog could be read: whatever was wrong is over.
    fn succeed(&mut self, detector: Detector) {
        let now = self.now;
        let state = &mut *self.state;
        match detector {
            Detector::Feed => (state.feed_stopped_at, state.next_feed_discovery_at) = (None, None),
            Detector::Sitemap => {
                state.next_sitemap_discovery_at = None;
                // As good as the feed that was lost; links of a page are not, for it may be that of somebody else for a while.
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

/// The settings of today become those that the state was found under.
fn adopt_settings(state: &mut State, blog: &Blog) {
    if !same_settings(blog, state) || state.settings_hash.is_none() {
        state.settings_hash = Some(blog.settings_hash());
    }
}

/// Whether two addresses are one, whatever the scheme.
fn same_address(one: &Url, other: &Url) -> bool {
    comparison_key(one) == comparison_key(other)
}

/// Links that wait to be seen again.
fn unconfirmed_links(state: &State) -> HashSet<&str> {
    match &state.unconfirmed {
        Some(Unconfirmed::Links(keys)) => keys.iter().map(String::as_str).collect(),
        _ => HashSet::new(),
    }
}

#[cfg(test)]
mod tests;
