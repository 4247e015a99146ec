//! `/settings`: the config file without its secrets, its problems, and a form that adds a job as `job add` does.

use askama::Template;
use axum::Form;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};

use super::render::Renderer;
use super::{Visit, layout, missing, visit};
use crate::app;
use crate::app::new_table::{AddError, NewJob};
use crate::config::{Config, EditError, Problems, Severity, Web};
use crate::engine::{Finder, Pipeline};
use crate::phrase;
use crate::phrase::Speech;
use crate::web::Pages;

#[derive(Template)]
#[template(path = "pages/settings.html")]
struct SettingsBody<'a> {
    r: &'a Renderer,
    path: String,
    problems: Vec<ProblemRow>,
    /// The file, without secrets.
    text: String,
    /// Kinds of jobs that can be added; none without the permission.
    kinds: Vec<&'static Pipeline>,
    form: Option<JobForm>,
}

struct ProblemRow {
    severity: Severity,
    line: usize,
    column: usize,
    message: String,
    hint: String,
}

/// The form for a job of one kind, with its input.
struct JobForm {
    pipeline: &'static Pipeline,
    channels: Vec<(String, bool)>,
    fields: Vec<(String, String)>,
    /// Why it was not added.
    refused: Option<String>,
}

impl JobForm {
    fn value(&self, name: &str) -> &str {
        let found = self.fields.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value.as_str())
    }
}

/// The file, and the form of the selected kind.
pub(super) async fn show(State(pages): State<Pages>, visit: Visit) -> Response {
    let Some(finder) = pages.finder() else { return missing(&pages, &visit) };
    let form = visit.query.find("kind").and_then(app::find_pipeline);
    let form = form.map(|pipeline| new_form(&finder, pipeline, Vec::new(), None));
    render(&pages, &finder, &visit, form).await
}

/// Adds a job, or shows why it was refused.
pub(super) async fn add(
    State(pages): State<Pages>,
    visit: Visit,
    Form(fields): Form<Vec<(String, String)>>,
) -> Response {
    let Some(finder) = pages.finder() else { return missing(&pages, &visit) };
    if !may_edit(&finder) {
        let (title, text) = visit.choose(
            ("Not here", "`edit = false` in [web] keeps the config file as it is."),
            ("変更できません", "[web] の `edit = false` により、設定ファイルは変更できません。"),
        );
        return layout::message(&pages, &visit, StatusCode::FORBIDDEN, title, text);
    }
    let kind = fields.iter().find(|(name, _)| name == "kind").map(|(_, value)| value.as_str());
    let Some(pipeline) = kind.and_then(app::find_pipeline) else { return missing(&pages, &visit) };
    let job = new_job(pipeline, &fields);
    match job.add_to(&finder.config.path, &pages.env, &pages.clock).await {
        Ok(_) => {
            let name = job.name;
            let done = phrase!(
                "Added the job {name}; it appears within some seconds. `tsuzuki job test {name}` looks once.",
                "ジョブ {name} を追加しました（数秒後に表示されます）。`tsuzuki job test {name}` で試せます。"
            );
            ([visit::set_flash(&done)], Redirect::to("/settings")).into_response()
        }
        Err(error) => {
            let form =
                new_form(&finder, pipeline, fields, Some(explain(&error, &visit.renderer(&finder).speech)));
            let mut answer = render(&pages, &finder, &visit, Some(form)).await;
            *answer.status_mut() = StatusCode::UNPROCESSABLE_ENTITY;
            answer
        }
    }
}

fn explain(error: &AddError, speech: &Speech) -> String {
    let lines = |problems: &Problems| {
        let line = |problem: &crate::config::Problem| {
            let message = &problem.message;
            match &problem.hint {
                Some(hint) => speech.phrase(&phrase!("{message} ({hint})", "{message}（{hint}）")),
                None => speech.phrase(message),
            }
        };
        problems.iter().map(line).collect::<Vec<_>>().join("\n")
    };
    match error {
        AddError::Edit(EditError::Problems(problems)) | AddError::App(app::Error::Config(problems)) => {
            lines(problems)
        }
        error => speech.phrase(&error.phrase()),
    }
}

fn new_job(pipeline: &'static Pipeline, fields: &[(String, String)]) -> NewJob {
    let all = |name: &str| -> Vec<String> {
        let given = fields.iter().filter(|(known, _)| known == name).map(|(_, value)| value.trim());
        given.filter(|value| !value.is_empty()).map(str::to_owned).collect()
    };
    let one = |name: &str| all(name).into_iter().next();
    let own = pipeline.flags.iter().filter_map(|flag| {
        let given = one(&format!("flag.{}", flag.name))?;
        let values = if flag.is_list() {
            given.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
        } else {
            vec![given]
        };
        Some((flag, values))
    });
    NewJob {
        kind: pipeline.kind.name.to_owned(),
        name: one("name").unwrap_or_default(),
        every: one("every"),
        deliver: all("deliver"),
        own: own.collect(),
        ..NewJob::default()
    }
}

fn new_form(
    finder: &Finder,
    pipeline: &'static Pipeline,
    fields: Vec<(String, String)>,
    refused: Option<String>,
) -> JobForm {
    let is_chosen = |name: &str| fields.iter().any(|(known, value)| known == "deliver" && value == name);
    let channels = finder.channels.iter().map(|channel| (channel.name.clone(), is_chosen(&channel.name)));
    JobForm { pipeline, channels: channels.collect(), fields, refused }
}

/// Whether the file may be changed by those who may change something.
pub(super) fn may_edit(finder: &Finder) -> bool {
    finder.config.web.keys::<Web>().map_or(true, |web| web.edit)
}

async fn render(pages: &Pages, finder: &Finder, visit: &Visit, form: Option<JobForm>) -> Response {
    let path = &finder.config.path;
    let (config, mut problems) = app::survey::survey(path, &pages.env, &pages.clock).await;
    let text = config.as_ref().map_or_else(String::new, Config::masked_text);
    if let Some(config) = &config {
        problems.extend(config.list_needed_setup().into_iter().map(|(_, problem)| problem));
    }
    let r = visit.renderer(finder);
    let speech = &r.speech;
    let row = |problem: &crate::config::Problem| ProblemRow {
        severity: problem.severity,
        line: problem.line(),
        column: problem.column(),
        message: speech.phrase(&problem.message),
        hint: problem.hint.as_ref().map(|hint| speech.phrase(hint)).unwrap_or_default(),
    };
    let may_edit = may_edit(finder);
    let body = SettingsBody {
        r: &r,
        path: path.display().to_string(),
        problems: problems.in_order().iter().map(row).collect(),
        text,
        kinds: if may_edit { app::PIPELINES.to_vec() } else { Vec::new() },
        form: form.filter(|_| may_edit),
    };
    layout::respond(pages, finder, visit, r.say("Settings", "設定"), &body)
}
