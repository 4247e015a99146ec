//! Daily limits: how much is used, when each resets, whether it will last, and the calls to models.

use crate::db::{self, Tx};
use crate::engine::Finder;
use crate::engine::chart::{Bars, Chart, Figure, Meter, Scale, Series};
use crate::engine::page::{Block, Page, PageQuery, PageView, TableBlock, TableRow};
use crate::engine::view::Fact;
use crate::ledger::quota::{self, Quota, QuotaUsage};
use crate::ledger::{Subject, pause};
use crate::llm::store::{self, ModelUse};
use crate::phrase;
use crate::phrase::{Phrase, Value};
use crate::time::Timestamp;

const DAYS: usize = 30;
const DAY: std::time::Duration = std::time::Duration::from_secs(24 * 60 * 60);

pub(super) static PAGE: Page =
    Page { slug: "quotas", title: || phrase!("Quotas", "上限"), load, sheet: None };

fn load(finder: &Finder, tx: &mut Tx<'_>, _: &PageQuery) -> db::Result<PageView> {
    let mut page = PageView::new(phrase!("Quotas", "上限"));
    for quota in finder.quotas.values() {
        let usage = quota::list_usage(tx, Some(&quota.provider), DAYS)?;
        let used = quota.used(tx, finder.now)?;
        let paused = pause::find(tx, &Subject::provider(&quota.provider), finder.now)?;
        let mut facts = list_facts(quota, used, finder.now);
        if let Some(pause) = paused {
            let until = Value::from(pause.paused_until);
            let fact = |label, value| Fact { label, value };
            facts.push(fact(phrase!("paused", "一時停止"), pause.reason.into()));
            facts.extend((until != Value::Nothing).then(|| fact(phrase!("paused until", "再開"), until)));
        }
        let charts = draw(quota, used, &usage, finder.now);
        page.blocks.push(Block::Facts { title: Phrase::verbatim(&quota.provider), facts, charts });
    }
    if page.blocks.is_empty() {
        let text = phrase!(
            "No daily limits. A [quota.NAME] table in the config sets one.",
            "1 日の上限は設定されていません。設定ファイルの [quota.NAME] で設定できます。"
        );
        page.blocks.push(Block::Empty { text, command: Some("quota ls".to_owned()) });
    }
    let models = store::list_model_use(tx, finder.now.minus(DAY * DAYS as u32))?;
    if !models.is_empty() {
        page.blocks.push(Block::Table(model_table(&models)));
    }
    Ok(page)
}

/// How much of a limit is used today, when it resets, and whether it will last.
pub(in crate::engine) fn list_facts(quota: &Quota, used: i64, now: Timestamp) -> Vec<Fact> {
    let per_day = i64::from(quota.rule.per_day);
    let resets_at = quota.resets_at(now);
    let forecast = match forecast(used, per_day, began_at(quota, now), now) {
        Forecast::Full => phrase!("used up; waits for the reset", "使い切りました（リセット待ち）"),
        Forecast::FullAt(at) if at < resets_at => {
            phrase!("at this pace full at {at}", "このペースでは {at} に使い切ります")
        }
        Forecast::FullAt(_) | Forecast::Unused => {
            phrase!("lasts the day at this pace", "このペースなら足ります")
        }
    };
    vec![
        Fact {
            label: phrase!("used today", "本日の使用"),
            value: phrase!("{used} of {per_day}", "{used}/{per_day}").into(),
        },
        Fact { label: phrase!("resets", "リセット"), value: resets_at.into() },
        Fact { label: phrase!("forecast", "見込み"), value: forecast.into() },
    ]
}

/// When the present day of the provider began.
fn began_at(quota: &Quota, now: Timestamp) -> Timestamp {
    // A day has 25 hours at most.
    let mut began_at = quota.resets_at(now.minus(DAY * 2));
    while quota.resets_at(began_at) <= now {
        began_at = quota.resets_at(began_at);
    }
    began_at
}

/// Whether a limit will last for the day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Forecast {
    Unused,
    Full,
    FullAt(Timestamp),
}

/// When a limit is used up if the day continues as it began.
fn forecast(used: i64, per_day: i64, began_at: Timestamp, now: Timestamp) -> Forecast {
    if used >= per_day {
        return Forecast::Full;
    }
    if used <= 0 {
        return Forecast::Unused;
    }
    let passed = i64::try_from(now.since(began_at).as_millis()).unwrap_or(i64::MAX);
    let left = passed.saturating_mul(per_day - used) / used;
    Forecast::FullAt(now.plus(std::time::Duration::from_millis(left.unsigned_abs())))
}

fn draw(quota: &Quota, used: i64, usage: &[QuotaUsage], now: Timestamp) -> Vec<Chart> {
    let limit = i64::from(quota.rule.per_day);
    let meter = Chart {
        title: phrase!("today", "本日"),
        about: phrase!("{used} of {limit} requests used", "{used}/{limit} 件を使用"),
        figure: Figure::Meter(Meter { used, limit }),
    };
    let day = |back: usize| quota.day(now.minus(DAY * u32::try_from(back).unwrap_or(0)));
    let days: Vec<String> = (0..DAYS).rev().map(day).collect();
    let count = |day: &String| usage.iter().find(|usage| usage.date == *day).map_or(0, |usage| usage.count);
    let bars = Bars {
        series: vec![Series {
            name: phrase!("requests", "リクエスト"),
            values: days.iter().map(count).collect(),
        }],
        labels: days.iter().map(|day| day.get(5..).unwrap_or(day).to_owned()).collect(),
        scale: Scale::Linear,
    };
    let history = Chart {
        title: phrase!("the last 30 days", "直近 30 日"),
        about: phrase!("requests of each day", "日ごとのリクエスト数"),
        figure: Figure::Bars(bars),
    };
    vec![meter, history]
}

fn model_table(models: &[ModelUse]) -> TableBlock {
    let row = |of: &ModelUse| TableRow {
        cells: vec![
            Value::from(of.provider.as_str()),
            Value::from(of.model.as_str()),
            Value::from(of.answers),
            Value::from(of.tokens_in),
            Value::from(of.tokens_out),
        ],
        about: Some(Subject::provider(&of.provider).to_string()),
        ..TableRow::default()
    };
    TableBlock {
        title: phrase!("Models, the last 30 days", "モデルの使用（直近 30 日）"),
        columns: vec![
            phrase!("provider", "プロバイダー"),
            phrase!("model", "モデル"),
            phrase!("answers", "回答"),
            phrase!("tokens in", "入力トークン"),
            phrase!("tokens out", "出力トークン"),
        ],
        rows: models.iter().map(row).collect(),
        next: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_of_the_day_tells_when_a_limit_is_used_up() {
        let at = |text: &str| -> Timestamp { text.parse().unwrap() };
        let (began_at, noon) = (at("2026-01-15T00:00:00Z"), at("2026-01-15T12:00:00Z"));
        for (used, expected) in [
            (0, Forecast::Unused),
            (100, Forecast::Full),
            (120, Forecast::Full),
            (75, Forecast::FullAt(at("2026-01-15T16:00:00Z"))),
            (50, Forecast::FullAt(at("2026-01-16T00:00:00Z"))),
        ] {
            assert_eq!(forecast(used, 100, began_at, noon), expected, "{used}");
        }
    }

    #[test]
    fn the_day_of_the_provider_began_at_its_last_reset() {
        let rule = crate::config::Quota {
            per_day: 100,
            day_starts: "00:00".parse().unwrap(),
            zone: "Asia/Tokyo".parse().unwrap(),
        };
        let quota = Quota { provider: "x".to_owned(), rule };
        for (now, began) in [
            ("2026-01-15T00:00:00Z", "2026-01-14T15:00:00.000Z"),
            ("2026-01-15T14:59:59Z", "2026-01-14T15:00:00.000Z"),
            ("2026-01-15T15:00:00Z", "2026-01-15T15:00:00.000Z"),
        ] {
            assert_eq!(began_at(&quota, now.parse().unwrap()).to_string(), began);
        }
    }
}
