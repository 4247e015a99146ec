//! The charts and the table of the page, from one series.

use jiff::ToSpan;
use jiff::civil::Date;

use crate::commits::stats::{PersonSeries, Series, Sum, cumulative};
use crate::engine::chart::{Bars, Calendar, Chart, Figure, Mirror, Scale, Series as Drawn};
use crate::engine::page::{Block, Sheet};
use crate::engine::table::Cell;
use crate::phrase;
use crate::phrase::Phrase;

/// The most people with a separate colour; the others are one series together.
const MAX_DRAWN: usize = 7;
/// More months than that are shown as years.
const MAX_MONTHS: usize = 24;

/// What the bars and the table count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    Lines,
    Commits,
}

impl Measure {
    pub(super) fn of(self, sum: &Sum) -> i64 {
        match self {
            Measure::Lines => sum.additions + sum.deletions,
            Measure::Commits => sum.commits + sum.merges,
        }
    }

    pub(super) fn phrase(self) -> Phrase {
        match self {
            Measure::Lines => phrase!("changed lines", "変更行数"),
            Measure::Commits => phrase!("commits", "コミット数"),
        }
    }
}

/// The data of the charts.
pub(super) struct Figures {
    pub(super) series: Series,
    pub(super) year: Option<i16>,
    pub(super) measure: Measure,
    pub(super) scale: Scale,
}

impl Figures {
    pub(super) fn blocks(&self) -> Vec<Block> {
        vec![
            Block::Charts(vec![self.bars()]),
            Block::Charts(vec![self.mirror(), self.punch_card()]),
            Block::Charts(vec![self.calendar()]),
            Block::Sheet(self.sheet()),
        ]
    }

    /// Months, or years where there are many months.
    fn periods(&self) -> Vec<String> {
        let mut periods: Vec<String> = self.series.months.iter().map(|month| self.period_of(month)).collect();
        periods.dedup();
        periods
    }

    fn period_of(&self, month: &str) -> String {
        let has_many = self.series.months.len() > MAX_MONTHS;
        let year = || month.split('-').next().unwrap_or(month);
        if has_many { year().to_owned() } else { month.to_owned() }
    }

    /// The index of the period of each month.
    fn places(&self) -> Vec<usize> {
        let periods = self.periods();
        let place = |month: &String| periods.binary_search(&self.period_of(month)).unwrap_or(0);
        self.series.months.iter().map(place).collect()
    }

    /// All people with a value for each period, the most active first.
    fn ranked(&self) -> Vec<(&PersonSeries, Vec<i64>)> {
        let (places, count) = (self.places(), self.periods().len());
        let values = |person: &PersonSeries| {
            let mut values = vec![0; count];
            for (month, sum) in &person.months {
                values[places[usize::from(*month)]] += self.measure.of(sum);
            }
            values
        };
        let mut ranked: Vec<_> = self.series.people.iter().map(|person| (person, values(person))).collect();
        ranked.sort_by_key(|(_, values)| std::cmp::Reverse(values.iter().sum::<i64>()));
        ranked
    }

    fn bars(&self) -> Chart {
        let ranked = self.ranked();
        let (drawn, others) = ranked.split_at(ranked.len().min(MAX_DRAWN));
        let mut series: Vec<Drawn> = drawn
            .iter()
            .map(|(person, values)| Drawn { name: person.name.as_str().into(), values: values.clone() })
            .collect();
        if !others.is_empty() {
            let mut sums = vec![0; self.periods().len()];
            for values in others.iter().map(|(_, values)| values) {
                sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
            }
            let count = others.len();
            series.push(Drawn { name: phrase!("{count other person}", "ほか {count} 人"), values: sums });
        }
        let what = self.measure.phrase();
        Chart {
            title: phrase!("Per person: {what}", "メンバー別：{what}", what = &what),
            about: phrase!(
                "Bars for each person in each period: {what}",
                "期間ごと・メンバーごとの棒グラフ：{what}"
            ),
            figure: Figure::Bars(Bars { labels: self.periods(), series, scale: self.scale }),
        }
    }

    fn mirror(&self) -> Chart {
        let sum = |value: fn(&Sum) -> i64| {
            let mut sums = vec![0; self.series.months.len()];
            for (month, figures) in self.series.people.iter().flat_map(|person| &person.months) {
                sums[usize::from(*month)] += value(figures);
            }
            cumulative(sums)
        };
        Chart {
            title: phrase!("Lines added and deleted, added up", "追加・削除行数の累計"),
            about: phrase!(
                "Lines added so far upwards, lines deleted so far downwards, month by month",
                "上が追加行数、下が削除行数の累計（月ごと）"
            ),
            figure: Figure::Mirror(Mirror {
                labels: self.series.months.clone(),
                up: Drawn { name: phrase!("added", "追加"), values: sum(|month| month.additions) },
                down: Drawn { name: phrase!("deleted", "削除"), values: sum(|month| month.deletions) },
            }),
        }
    }

    fn calendar(&self) -> Chart {
        let mut days = self.series.days();
        let bounds = |year| Some((Date::new(year, 1, 1).ok()?, Date::new(year, 12, 31).ok()?));
        // With all years, the last one is drawn.
        let newest = || days.last().map(|(last, _)| (last.saturating_sub(1.year()), *last));
        let (first, last) = self.year.and_then(bounds).or_else(newest).unwrap_or((Date::ZERO, Date::ZERO));
        days.retain(|(day, _)| *day >= first);
        Chart {
            title: phrase!("Commits per day", "日ごとのコミット数"),
            about: phrase!(
                "A square for each day, darker the more commits it has",
                "1 日 1 マス。コミットが多いほど濃い色です"
            ),
            figure: Figure::Calendar(Calendar { first, last, days }),
        }
    }

    fn punch_card(&self) -> Chart {
        let zone = self.series.timezone.as_str();
        Chart {
            title: phrase!("Weekday and hour ({zone})", "曜日と時刻（{zone}）"),
            about: phrase!(
                "A dot for each hour of the week, larger the more commits it has",
                "曜日・時刻ごとの点。コミットが多いほど大きくなります"
            ),
            figure: Figure::PunchCard(Box::new(self.series.week_hours())),
        }
    }

    /// Name, periods and total, the most active first, and the sum of all.
    pub(super) fn sheet(&self) -> Sheet {
        let what = self.measure.phrase();
        let mut columns = vec![phrase!("name", "名前")];
        columns.extend(self.periods().into_iter().map(Phrase::from));
        columns.push(phrase!("total", "合計"));
        let row = |name: Cell, values: &[i64]| {
            let numbers = values.iter().copied().chain([values.iter().sum()]);
            std::iter::once(name).chain(numbers.map(Cell::Int)).collect::<Vec<_>>()
        };
        let ranked = self.ranked();
        let mut rows: Vec<_> =
            ranked.iter().map(|(person, values)| row(Cell::text(&person.name), values)).collect();
        if ranked.len() > 1 {
            let mut sums = vec![0; self.periods().len()];
            for (_, values) in &ranked {
                sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
            }
            rows.push(row(Cell::Null, &sums));
        }
        let title = phrase!("Table: {what}", "一覧：{what}");
        Sheet { name: "commits", title, columns, rows }
    }
}
