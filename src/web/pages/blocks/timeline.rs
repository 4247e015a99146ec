//! Events by days of the reader's zone.

use askama::Template;
use jiff::ToSpan;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::BlockContext;
use crate::engine::page::{Timeline, TimelineEntry};
use crate::time::Timestamp;
use crate::web::pages::render::{Markup, Renderer};

#[derive(Template)]
#[template(path = "pages/blocks/timeline.html")]
pub(super) struct TimelinePart<'a> {
    r: &'a Renderer,
    timeline: &'a Timeline,
    days: Vec<Day<'a>>,
}

struct Day<'a> {
    label: String,
    entries: Vec<(&'a TimelineEntry, Markup)>,
}

impl<'a> TimelinePart<'a> {
    pub(super) fn new(context: &BlockContext<'a>, timeline: &'a Timeline) -> Self {
        let r = context.r;
        let zone = r.speech.zone.clone().unwrap_or(TimeZone::UTC);
        let mut days: Vec<(Date, Day<'a>)> = Vec::new();
        for entry in &timeline.entries {
            let day = entry.at.date_in(&zone);
            if days.last().is_none_or(|(last, _)| *last != day) {
                days.push((day, Day { label: label(day, r, &zone), entries: Vec::new() }));
            }
            if let Some((_, day)) = days.last_mut() {
                day.entries.push((entry, context.actions(&entry.actions)));
            }
        }
        Self { r, timeline, days: days.into_iter().map(|(_, day)| day).collect() }
    }

    /// The time of day; the day is in the heading.
    fn time(&self, at: &Timestamp) -> String {
        let zone = self.r.speech.zone.clone().unwrap_or(TimeZone::UTC);
        at.to_jiff().to_zoned(zone).strftime("%H:%M").to_string()
    }
}

fn label(day: Date, r: &Renderer, zone: &TimeZone) -> String {
    let today = r.now.date_in(zone);
    if day == today {
        return r.say("Today", "今日").to_owned();
    }
    if day == today.saturating_sub(1.day()) {
        return r.say("Yesterday", "昨日").to_owned();
    }
    let weekdays = r.say("Mon Tue Wed Thu Fri Sat Sun", "月 火 水 木 金 土 日");
    let offset = usize::try_from(day.weekday().to_monday_zero_offset()).unwrap_or(0);
    let weekday = weekdays.split(' ').nth(offset).unwrap_or_default();
    format!("{day}{}{weekday}{}", r.say(" (", "（"), r.say(")", "）"))
}
