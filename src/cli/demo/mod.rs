//! `demo`: all four pipelines at work against demo servers, through the same code as everything else.
//!
//! ```text
//! first look ──▶ the world moves on ──▶ first round, a line each ──▶ serve, while the world moves on
//! (silent)                              (`--once` ends here)         (a line for each find)
//! ```

mod place;
mod watch;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::sync::watch as channel;

use self::place::DemoDirectory;
use super::{Context, Error, Exit, Result, log, serve};
use tsuzuki::app::App;
use tsuzuki::config::FILE_NAME;
use tsuzuki::db::Open;
use tsuzuki::demo::figures::Figures;
use tsuzuki::demo::world::{self, World};
use tsuzuki::demo::{page, store};
use tsuzuki::engine::{Failure, Finished, Job, Progress, Runner, Selection, Skipped};
use tsuzuki::phrase;
use tsuzuki::phrase::Phrase;
use tsuzuki::time::Timestamp;
use tsuzuki::{blogs, press, web};

/// Options of `demo`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// End after the first round
    #[arg(long)]
    once: bool,
    /// Keep config, database and demo servers in this directory, and continue there next time
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Where pages are served [default: 127.0.0.1 and a free port]
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
    /// Only keep the demo servers open after the first round: run and send nothing
    #[arg(long, hide = true, conflicts_with = "once")]
    world: bool,
}

pub(super) async fn run(args: &Args, context: &Context) -> Result {
    if context.out.is_json() && !args.once {
        return Err(Error::usage(phrase!(
            "`--json` prints one round only",
            "`--json` で出力できるのは 1 回分だけです"
        ))
        .hint(phrase!("add `--once`", "`--once` を付けてください")));
    }
    log::start(&context.global, "warn", context.out.colours_messages());
    let place = DemoDirectory::open(args.keep.as_deref())?;
    let outcome = open(args, context, &place).await;
    let kept = place.path().to_owned();
    place.close(&context.out);
    match outcome {
        Err(error) if error.exit == Exit::Interrupted => {
            if args.keep.is_some() {
                let kept = kept.display().to_string();
                context.out.note(phrase!(
                    "Interrupted; `tsuzuki demo --keep {kept}` continues.",
                    "中断しました。`tsuzuki demo --keep {kept}` で続きから再開できます。"
                ));
            }
            Ok(Exit::Interrupted)
        }
        outcome => outcome,
    }
}

async fn open(args: &Args, context: &Context, place: &DemoDirectory) -> Result {
    let world = Arc::new(open_world(place.path(), context).await?);
    let config = place.path().join(FILE_NAME);
    place::put_config(&config, &world, args.listen, context)?;
    let mut context = context.apart(config);
    let outcome = play(args, &context, place, world).await;
    context.close().await;
    outcome
}

async fn open_world(directory: &Path, context: &Context) -> Result<World> {
    World::open(directory, context.clock.clone()).await.map_err(|error| {
        let hint = match error {
            world::Error::Taken { .. } => phrase!(
                "is this demo running already? Else choose another directory",
                "このデモはすでに動いていませんか？ そうでなければ別のディレクトリを指定してください"
            ),
            _ => phrase!("choose another directory", "別のディレクトリを指定してください"),
        };
        Error::failed(error.to_string()).hint(hint)
    })
}

async fn play(args: &Args, context: &Context, place: &DemoDirectory, world: Arc<World>) -> Result {
    let app = Arc::new(context.app(Open::Create).await?);
    let language = app.env.app.message_language();
    let finders = channel::Sender::new(Arc::new(app.finder(context.config().await?, serve::EVENTS)));
    let pages = if args.once {
        None
    } else {
        let pages = web::Pages::new(app.env.db.clone(), language).with_dashboard(finders.subscribe());
        let pages = pages.with_page(page::page(Arc::clone(&world))).with_env(context.env.clone());
        Some(web::bind(&app.env.web, &pages).await?)
    };
    let demo = Demo { context, app, world };
    let round = demo.first_round(place).await?;
    if context.out.is_json() {
        context.out.json(&round)?;
    }
    let config = place.path().join(FILE_NAME).display().to_string();
    let look_inside =
        phrase!("Look inside:  tsuzuki -c {config} status", "中を見る：tsuzuki -c {config} status");
    let Some(pages) = pages else {
        if args.keep.is_some() {
            demo.print_line(look_inside)?;
        }
        demo.print_line(phrase!("Next: `tsuzuki init`", "次は `tsuzuki init` で自分の設定を作れます"))?;
        return Ok(round.exit);
    };
    let listening = pages.addresses();
    let Some(address) = listening.first() else { return Ok(round.exit) };
    let (address, path) = (address.to_string(), page::PATH);
    demo.print_line(phrase!("Dashboard:    http://{address}/", "ダッシュボード：http://{address}/"))?;
    demo.print_line(phrase!(
        "Messages:     http://{address}{path}",
        "受信したメッセージ：http://{address}{path}"
    ))?;
    demo.print_line(look_inside)?;
    if args.world {
        pages.serve(&context.stop).await;
    } else {
        demo.print_line(phrase!(
            "Still running. Press Ctrl-C to stop. Next: `tsuzuki init`\n",
            "動作中です。Ctrl-C で終了します。次は `tsuzuki init` で自分の設定を作れます\n"
        ))?;
        let (served, ..) = tokio::join!(
            serve::until_stopped(context, &demo.app, &finders, Some(pages)),
            watch::move_world(context, &demo.world),
            watch::report_finds(&demo, round.now),
        );
        served?;
    }
    Ok(Exit::Fine)
}

/// One demo, opened.
struct Demo<'a> {
    context: &'a Context,
    app: Arc<App>,
    world: Arc<World>,
}

/// What the first round did; `--json` prints it.
#[derive(Serialize)]
struct Round {
    directory: PathBuf,
    /// Whether the demo was continued.
    continued: bool,
    /// How many steps of the demo servers there were.
    steps: usize,
    before: Figures,
    now: Figures,
    /// What the demo servers have received.
    posts: usize,
    mails: usize,
    #[serde(skip)]
    exit: Exit,
}

impl Demo<'_> {
    /// A first run that sends nothing, if the demo is new; then the demo servers publish new things, and every job runs
    /// once.
    async fn first_round(&self, place: &DemoDirectory) -> Result<Round> {
        let continued = self.world.steps() > 0;
        if continued {
            self.print_continued(place)?;
        } else {
            self.show_first_run(place).await?;
        }
        let before = self.figures().await?;
        let news = self.world.step()?;
        self.print_line(if continued {
            phrase!(
                "Since then: {news}. What the next run found, decided and sent:\n",
                "その後の新着：{news}。次の実行で見つけ、判定し、送信したもの：\n"
            )
        } else {
            phrase!(
                "Then came: {news}. What the next run found, decided and sent:\n",
                "続いて公開：{news}。次の実行で見つけ、判定し、送信したもの：\n"
            )
        })?;
        let exit = self.run(|_| true).await?;
        let now = self.figures().await?;
        for line in now.render(&before) {
            self.print_line(line)?;
        }
        let (posts, mails) = (self.world.posts().len(), self.world.mails().len());
        self.print_line(phrase!(
            "\nMessages the demo servers received, in all: {posts post} and {mails mail}.",
            "\nデモのサーバーが受信したメッセージ：投稿 {posts} 件、メール {mails} 通。"
        ))?;
        let (directory, steps) = (place.path().to_owned(), self.world.steps());
        Ok(Round { directory, continued, steps, before, now, posts, mails, exit })
    }

    async fn show_first_run(&self, place: &DemoDirectory) -> Result<()> {
        self.print_line(phrase!(
            "Demo servers run on this machine: a ministry, Google Books, three blogs, GitLab, Gemini, Mastodon and a mail server.\nNo account, no key; nothing leaves this machine.",
            "このマシンの中でデモ用のサーバーが動きます：官庁のサイト、Google ブックス、ブログ 3 つ、GitLab、Gemini、Mastodon、メールサーバー。\nアカウントも API キーも不要で、外部とは通信しません。"
        ))?;
        let path = place.path().display().to_string();
        self.print_line(match place {
            DemoDirectory::Passing(_) => phrase!(
                "Config and database: {path} (removed at the end; `--keep DIR` keeps them)\n",
                "設定とデータベース：{path}（終了時に削除。`--keep DIR` で残せます）\n"
            ),
            DemoDirectory::Kept(_) => {
                phrase!("Config and database: {path}\n", "設定とデータベース：{path}\n")
            }
        })?;
        self.run(|job| [press::KIND, blogs::KIND].contains(&job.kind)).await?;
        let now = self.figures().await?;
        self.print_line(phrase!(
            "First run: {items} press items and {entries} blog entries were there already. Recorded as already seen; nothing was sent.",
            "初回：報道発表 {items} 件とブログの記事 {entries} 件は公開済みのため、既読として記録しました。通知はしていません。",
            items = now.press.items,
            entries = now.blogs.entries
        ))
    }

    fn print_continued(&self, place: &DemoDirectory) -> Result<()> {
        self.print_line(phrase!(
            "Continued in {path}: {steps step} of the story so far; the demo servers received {posts post} and {mails mail}.",
            "{path} の続き：これまでに {steps} 回進み、デモのサーバーは投稿 {posts} 件、メール {mails} 通を受信しています。",
            path = place.path().display().to_string(),
            steps = self.world.steps(),
            posts = self.world.posts().len(),
            mails = self.world.mails().len()
        ))
    }

    /// Runs the jobs that match `wanted` and sends queued messages, as `run --force` does.
    async fn run(&self, wanted: impl Fn(&Job) -> bool) -> Result {
        let stop = &self.context.stop;
        let runner = Runner::new(self.app.env.db.clone(), Progress::default());
        let mut jobs: Vec<Job> = self.app.jobs.iter().filter(|job| wanted(job)).cloned().collect();
        let mut exit = Exit::Fine;
        while !jobs.is_empty() {
            let mut held = None;
            for (name, finished) in runner.run(jobs.clone(), Selection::Forced, stop).await {
                match finished {
                    Finished::Skipped(Skipped::Held(holder)) => {
                        held = held.max(Some(holder.expires_at));
                        continue;
                    }
                    Finished::Skipped(_) => {}
                    Finished::Failed(failure) => return Err(failed(name.as_str(), failure)),
                    Finished::Ran(report) => {
                        for problem in report.problems {
                            exit = Exit::Partly;
                            self.context.out.warn(format!("{name}: {problem}"));
                        }
                    }
                }
                jobs.retain(|job| job.name != name);
            }
            if let Some(until) = held {
                self.wait_for_lease(until).await;
            }
        }
        self.app.sender().send_due(stop).await?;
        if stop.is_cancelled() { Err(failed("the demo", Failure::Interrupted)) } else { Ok(exit) }
    }

    /// Waits while another process runs a job of this directory.
    async fn wait_for_lease(&self, until: Timestamp) {
        let wait =
            until.since(self.context.clock.now()).clamp(Duration::from_millis(100), Duration::from_secs(1));
        tokio::select! {
            () = self.context.stop.cancelled() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }

    async fn figures(&self) -> Result<Figures> {
        Ok(self.app.env.db.read(store::count_figures).await?)
    }

    /// Prints a line, unless `-q` or `--json` is set.
    fn print_line(&self, text: impl Into<Phrase>) -> Result<()> {
        let out = &self.context.out;
        if out.is_quiet() || out.is_json() { Ok(()) } else { out.prose(out.speech().phrase(&text.into())) }
    }
}

fn failed(what: &str, failure: Failure) -> Error {
    let error = Error::from(failure);
    let text = error.plain();
    Error { hints: error.hints, ..Error::new(error.exit, format!("{what}: {text}")) }
}
