//! The page of commits: statistics per person and month, and the runs that collected them.

mod figures;
mod runs;

use self::figures::{Figures, Measure};
use super::counts::{self, PageCounts, WantedYear};
use super::store::projects;
use super::store::reading::{self, Scope};
use crate::db::{self, Tx};
use crate::engine::Finder;
use crate::engine::chart::Scale;
use crate::engine::page::{Block, Choice, FilterInput, Page, PageFilter, PageQuery, PageView, Sheet};
use crate::phrase;
use crate::phrase::Phrase;

/// The most people that can be selected.
const MAX_CHOICES: usize = 40;

pub(super) static PAGE: Page =
    Page { slug: "commits", title: || phrase!("Commits", "コミット"), load, sheet: Some(load_sheet) };

fn load(finder: &Finder, tx: &mut Tx<'_>, query: &PageQuery) -> db::Result<PageView> {
    let selected = Selected::find(finder, tx, query)?;
    let mut view = PageView::new(phrase!("Commits", "コミット"));
    let runs = runs::find(tx, query)?;
    if !selected.is_counted || selected.counts.years.is_empty() {
        view.blocks.extend(runs);
        view.blocks.push(if selected.is_counted {
            Block::Empty {
                text: phrase!(
                    "No commits yet. A run collects them.",
                    "コミットはまだありません。収集を実行すると表示されます。"
                ),
                command: Some("bulk start".to_owned()),
            }
        } else {
            Block::Empty {
                text: phrase!(
                    "These commits are being counted for the first time. Charts appear here within a minute.",
                    "はじめての集計中です。1 分ほどでグラフが表示されます。"
                ),
                command: Some("commits stats".to_owned()),
            }
        });
        return Ok(view);
    }
    view.filters = selected.filters();
    view.blocks.extend(selected.figures().blocks());
    view.blocks.push(Block::Notes(selected.notes()));
    view.blocks.extend(runs);
    Ok(view)
}

fn load_sheet(finder: &Finder, tx: &mut Tx<'_>, query: &PageQuery) -> db::Result<Sheet> {
    Ok(Selected::find(finder, tx, query)?.figures().sheet())
}

/// The selected filters and the data they apply to.
struct Selected {
    projects: Vec<(i64, String)>,
    branches: Vec<String>,
    project_id: Option<i64>,
    branch_name: Option<String>,
    /// The counts of the year for all people, with or without the lines of merges.
    counts: PageCounts,
    is_counted: bool,
    people: Vec<String>,
    measure: Measure,
    scale: Scale,
    with_merges: bool,
}

impl Selected {
    fn find(finder: &Finder, tx: &mut Tx<'_>, query: &PageQuery) -> db::Result<Self> {
        let pairs = reading::list_pairs(tx)?;
        let mut projects: Vec<(i64, String)> = Vec::new();
        for (project_id, _) in &pairs {
            if projects.last().is_none_or(|(last, _)| last != project_id) {
                let path = projects::find(tx, *project_id)?.map(|project| project.path);
                projects.push((*project_id, path.unwrap_or_else(|| project_id.to_string())));
            }
        }
        let wanted: Option<i64> = query.parse("project");
        let project_id = wanted.filter(|wanted| projects.iter().any(|(id, _)| id == wanted));
        let mut branches: Vec<String> = pairs
            .into_iter()
            .filter(|(of, _)| project_id.is_none_or(|project_id| project_id == *of))
            .map(|(_, branch)| branch)
            .collect();
        branches.sort();
        branches.dedup();
        let branch_name = query.find("branch").map(str::to_owned).filter(|name| branches.contains(name));
        let scope = Scope { project_id, branch_name: branch_name.clone(), ..Scope::default() };
        let with_merges = query.find("merges") == Some("yes");
        let wanted = match (query.find("year"), query.parse("year")) {
            (Some("all"), _) => WantedYear::All,
            (_, Some(year)) => WantedYear::Only(year),
            _ => WantedYear::Newest,
        };
        let found = counts::find(&finder.config, tx, scope, wanted)?;
        let is_counted = found.is_some();
        let mut counts = found.unwrap_or_default();
        if with_merges {
            let months = counts.series.people.iter_mut().flat_map(|person| &mut person.months);
            months.for_each(|(_, month)| *month = month.with_merges());
        }
        Ok(Self {
            projects,
            branches,
            project_id,
            branch_name,
            counts,
            is_counted,
            people: query.list("person").map(str::to_owned).collect(),
            measure: if query.find("show") == Some("commits") { Measure::Commits } else { Measure::Lines },
            scale: if query.find("scale") == Some("log") { Scale::Log } else { Scale::Linear },
            with_merges,
        })
    }

    fn figures(&self) -> Figures {
        let mut series = self.counts.series.clone();
        if !self.people.is_empty() {
            series.people.retain(|person| self.people.contains(&person.name));
        }
        Figures { series, year: self.counts.year, measure: self.measure, scale: self.scale }
    }

    fn filters(&self) -> Vec<PageFilter> {
        let projects = self.projects.iter();
        let projects = projects.map(|(id, path)| Choice::new(id.to_string(), path.as_str().into()));
        let projects = Choice::any(phrase!("all projects", "すべて")).chain(projects);
        let project = self.project_id.map(|id| id.to_string()).unwrap_or_default();
        let branches = self.branches.iter().map(Choice::named);
        let branches = Choice::any(phrase!("all branches", "すべて")).chain(branches);
        let branch = self.branch_name.clone().unwrap_or_default();
        let years = self.counts.years.iter().map(|year| Choice::named(year.to_string()));
        let years = years.chain([Choice::new("all", phrase!("all years", "全期間"))]);
        let year = self.counts.year.map_or_else(|| "all".to_owned(), |year| year.to_string());
        let switch = |name, label, [off, on]: [Phrase; 2], word: &str, is_on: bool| {
            let choices = [Choice::new("", off), Choice::new(word, on)];
            PageFilter::one(name, label, choices, if is_on { word } else { "" })
        };
        let measures = [Measure::Lines.phrase(), Measure::Commits.phrase()];
        let scales = [phrase!("linear", "均等"), phrase!("logarithmic", "対数")];
        let merges = [phrase!("left out", "含めない"), phrase!("counted", "含める")];
        vec![
            PageFilter::one("project", phrase!("Project", "プロジェクト"), projects, project),
            PageFilter::one("branch", phrase!("Branch", "ブランチ"), branches, branch),
            PageFilter::one("year", phrase!("Year", "年"), years, year),
            switch("show", phrase!("Count", "集計"), measures, "commits", self.measure == Measure::Commits),
            switch("scale", phrase!("Scale", "目盛り"), scales, "log", self.scale == Scale::Log),
            switch("merges", phrase!("Lines of merges", "マージの行数"), merges, "yes", self.with_merges),
            PageFilter {
                name: "person",
                label: phrase!("People", "メンバー"),
                input: FilterInput::Many { choices: self.people_choices(), values: self.people.clone() },
            },
        ]
    }

    /// The most active people, and the selected ones.
    fn people_choices(&self) -> Vec<Choice> {
        let mut people: Vec<(i64, &str)> = self
            .counts
            .series
            .people
            .iter()
            .map(|person| (self.measure.of(&person.total()), person.name.as_str()))
            .collect();
        people.sort_by(|a, b| b.cmp(a));
        let chosen = |name: &str| self.people.iter().any(|chosen| chosen == name);
        let mut names: Vec<&str> = people
            .into_iter()
            .enumerate()
            .filter(|(index, (_, name))| *index < MAX_CHOICES || chosen(name))
            .map(|(_, (_, name))| name)
            .collect();
        names.sort_unstable();
        names.into_iter().map(Choice::named).collect()
    }

    /// Notes that explain the numbers.
    fn notes(&self) -> Vec<Phrase> {
        let series = &self.counts.series;
        let zone = series.timezone.as_str();
        let mut notes =
            vec![phrase!("Months and days begin as in {zone}.", "月・日の区切りは {zone} です。")];
        notes.push(if self.with_merges {
            phrase!(
                "Lines of merges are counted, though they repeat those of the merged branch.",
                "マージの行数を含みます（マージ元のブランチの行数と重複します）。"
            )
        } else {
            phrase!(
                "Merges count as commits; their lines are left out.",
                "マージはコミット数に含め、行数には含めません。"
            )
        });
        let missing: i64 = series.people.iter().map(|person| person.total().stats_missing).sum();
        if missing > 0 {
            notes.push(phrase!(
                "{missing commit} without line counts: the host gave none.",
                "行数のないコミット：{missing} 件（ホストから取得できません）。"
            ));
        }
        let left_out = series.left_out;
        if left_out.authors + left_out.titles > 0 {
            notes.push(phrase!(
                "Left out by the config, of all years: {authors} by author, {titles} by title.",
                "設定による除外（全期間）：作者 {authors} 件、タイトル {titles} 件。",
                authors = left_out.authors,
                titles = left_out.titles
            ));
        }
        if let Some(at) = self.counts.stale_since {
            notes.push(phrase!(
                "Counted at {at}. Something has changed since; it is being counted again.",
                "{at} 時点の集計です。その後の変更を反映するため再集計しています。"
            ));
        }
        notes
    }
}
