//! `job add`: a new job from flags, checked before it is written, without touching the rest of the file.

use super::super::{Context, Error, Exit, Result, sending};
use super::edit::key_and_value;
use crate::app;
use crate::config::ConfigFile;
use crate::config::value::{HttpUrl, Span};
use crate::text::nearest;

/// The flags that a job of each kind needs or is best made with.
const FLAGS: [(&str, &str); 4] = [
    ("press", "--feed URL, --llm NAME"),
    ("books", "--query TEXT, --book-lang LANGUAGE"),
    ("blogs", "--blog [ID=]URL"),
    ("commits", "--gitlab URL, --token-env VARIABLE, --project PROJECT or --group GROUP"),
];

/// Options of `job add`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// What it does and its name, e.g. `blogs mine`
    #[arg(value_names = ["KIND", "NAME"], num_args = 1..=2, required = true)]
    words: Vec<String>,
    /// What it does, if only the name stands before
    #[arg(long)]
    kind: Option<String>,
    /// How often it runs, e.g. 3h
    #[arg(long, value_name = "SPAN", conflicts_with = "cron")]
    every: Option<Span>,
    /// When it runs, e.g. "0 7 * * *"
    #[arg(long)]
    cron: Option<String>,
    /// A channel that it tells; may be repeated
    #[arg(long, value_name = "CHANNEL")]
    deliver: Vec<String>,
    /// press, books, blogs: what the first run tells: baseline, latest:N or all
    #[arg(long, value_name = "WHAT")]
    first_run: Option<String>,
    /// press: the feed
    #[arg(long, value_name = "URL")]
    feed: Option<String>,
    /// press: the [llm.NAME] to ask
    #[arg(long, value_name = "NAME")]
    llm: Option<String>,
    /// books: what to search for; may be repeated
    #[arg(long, value_name = "TEXT")]
    query: Vec<String>,
    /// books: only volumes in this language, e.g. ja
    #[arg(long, value_name = "LANGUAGE")]
    book_lang: Option<String>,
    /// blogs: a blog; without an id its host is the id; may be repeated
    #[arg(long, value_name = "[ID=]URL")]
    blog: Vec<String>,
    /// commits: the address of GitLab
    #[arg(long, value_name = "URL")]
    gitlab: Option<String>,
    /// commits: the name of the variable that holds the token, e.g. GITLAB_TOKEN
    #[arg(long, value_name = "VARIABLE")]
    token_env: Option<String>,
    /// commits: a project by path or number; may be repeated
    #[arg(long, value_name = "PROJECT")]
    project: Vec<String>,
    /// commits: every project of this group
    #[arg(long)]
    group: Option<String>,
    /// commits: a branch by name or pattern; may be repeated
    #[arg(long)]
    branch: Vec<String>,
    /// commits: leave older commits out, e.g. 2024-01-01
    #[arg(long, value_name = "DATE")]
    since: Option<String>,
    /// Any other key, e.g. max_retries=5; the value may be any TOML
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_and_value)]
    set: Vec<(String, toml::Value)>,
}

type Keys = Vec<(String, toml::Value)>;

pub(super) async fn run(args: &Args, context: &Context) -> Result {
    let (kind, name) = args.kind_and_name()?;
    let keys = args.keys(kind, name)?;
    let mut file = ConfigFile::open(&context.config_path()?)?;
    if context.load_config().is_ok_and(|config| config.find_job(name).is_some()) {
        return Err(Error::usage(format!("there is a job `{name}` already")).hint(format!(
            "choose another name, or change it with `tsuzuki job update {name} --set KEY=VALUE`"
        )));
    }
    let borrowed: Vec<(&str, toml::Value)> =
        keys.iter().map(|(key, value)| (key.as_str(), value.clone())).collect();
    file.document.add_job(&borrowed)?;
    let tried = async { context.preview(&file.read(app::kinds(), &context.env)?).await };
    tried.await.map_err(|error| refused(error, kind))?;
    let saved = file.save(app::kinds(), &context.env)?;
    context.out.note(format!("Added the job `{name}`:"));
    if context.out.is_json() {
        context.out.json(&keys.iter().cloned().collect::<std::collections::BTreeMap<_, _>>())?;
    } else {
        context.out.line("[[job]]")?;
        keys.iter().try_for_each(|(key, value)| context.out.line(format!("{key} = {value}")))?;
    }
    sending::warn_without_channel(saved.find_job(name), &context.out);
    context.out.note(format!("`tsuzuki job test {name}` looks once; `tsuzuki run {name}` runs it now"));
    Ok(Exit::Fine)
}

/// The error of a job that would not work: its lines are those that the file would have got.
fn refused(error: Error, kind: &str) -> Error {
    let error = error.hint("nothing was written; the job would have stood at the end of the file");
    match FLAGS.iter().find(|(of, _)| *of == kind) {
        Some((_, flags)) => error.hint(format!("a {kind} job is made with {flags}, or --set KEY=VALUE")),
        None => error,
    }
}

impl Args {
    fn kind_and_name(&self) -> Result<(&str, &str)> {
        let kinds: Vec<&str> = app::job_kinds().collect();
        let usage = |words: &str| {
            Error::usage(words)
                .hint(format!("write `tsuzuki job add KIND NAME`; kinds: {}", kinds.join(", ")))
        };
        let (kind, name) = match (self.words.as_slice(), &self.kind) {
            ([kind, name], None) => (kind, name),
            ([name], Some(kind)) => (kind, name),
            ([_, _], Some(_)) => return Err(usage("the kind is named twice")),
            ([word], None) if kinds.contains(&word.as_str()) => return Err(usage("the name is missing")),
            _ => return Err(usage("the kind is missing")),
        };
        match (kinds.contains(&kind.as_str()), nearest(kind, kinds.iter().copied())) {
            (true, _) => Ok((kind, name)),
            (false, Some(near)) => Err(Error::usage(format!("there is no kind of job `{kind}`"))
                .hint(format!("did you mean `{near}`?"))),
            (false, None) => Err(usage(&format!("there is no kind of job `{kind}`"))),
        }
    }

    /// The keys of the new job, in the order in which a person would write them.
    fn keys(&self, kind: &str, name: &str) -> Result<Keys> {
        let mut keys: Keys = vec![("name".into(), name.into()), ("kind".into(), kind.into())];
        let text = |value: &Option<String>| value.as_deref().map(toml::Value::from);
        let list = |values: &[String]| (!values.is_empty()).then(|| toml::Value::from(values.to_vec()));
        let token = self.token_env.as_deref().map(|name| toml::Value::from(format!("${{{name}}}")));
        let own = [
            ("press", "--feed", "feed", text(&self.feed)),
            ("press", "--llm", "llm", text(&self.llm)),
            ("books", "--query", "queries", list(&self.query)),
            ("books", "--book-lang", "google_books.langRestrict", text(&self.book_lang)),
            ("blogs", "--blog", "blog", blogs(&self.blog)?),
            ("commits", "--gitlab", "gitlab", text(&self.gitlab)),
            ("commits", "--token-env", "token", token),
            ("commits", "--project", "projects", list(&self.project)),
            ("commits", "--group", "group", text(&self.group)),
            ("commits", "--branch", "branches", list(&self.branch)),
            ("commits", "--since", "since", text(&self.since)),
        ];
        for (owner, flag, key, value) in own {
            match value {
                Some(_) if owner != kind => {
                    return Err(Error::usage(format!("{flag} is for {owner} jobs, this is a {kind} job")));
                }
                Some(value) => keys.push((key.to_owned(), value)),
                None => {}
            }
        }
        let common = [
            ("every", self.every.map(|every| toml::Value::from(every.to_string()))),
            ("cron", text(&self.cron)),
            ("deliver", list(&self.deliver)),
            ("first_run", text(&self.first_run)),
        ];
        keys.extend(common.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
        keys.extend(self.set.iter().cloned());
        Ok(keys)
    }
}

/// `id=url` or a bare address, whose host is the id.
fn blogs(words: &[String]) -> Result<Option<toml::Value>> {
    let mut blogs = Vec::new();
    for word in words {
        let is_bare = word.starts_with("http://") || word.starts_with("https://");
        let (id, url) = match word.split_once('=').filter(|_| !is_bare) {
            Some((id, url)) => (Some(id.to_owned()), url),
            None => (None, word.as_str()),
        };
        let parsed: HttpUrl = url.parse().map_err(|_| {
            Error::usage(format!("`{word}` names no blog"))
                .hint("write --blog ID=https://… or --blog https://…")
        })?;
        let host = || parsed.url().host_str().unwrap_or_default().trim_start_matches("www.").to_owned();
        let mut blog = toml::Table::new();
        blog.insert("id".into(), id.unwrap_or_else(host).into());
        blog.insert("url".into(), url.into());
        blogs.push(toml::Value::from(blog));
    }
    Ok((!blogs.is_empty()).then_some(toml::Value::Array(blogs)))
}
