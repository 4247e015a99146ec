//! `db move`: copies everything to another database, verifies it, and retires the old one.

use std::io::IsTerminal;

use indicatif::ProgressBar;

use super::super::table::row;
use super::super::{Column, Context, Error, Exit, Output, Result, progress};
use tsuzuki::app;
use tsuzuki::channel::outbox;
use tsuzuki::config::{ConfigFile, SecretUrl};
use tsuzuki::db::{self, DatabaseMove, DbUrl, MoveError, MoveReport, MoveStep, Open, TargetState, Tx};
use tsuzuki::fail;
use tsuzuki::ledger::{lease, presence};
use tsuzuki::phrase;
use tsuzuki::text::counted;
use tsuzuki::time::Clock;

/// The variable that overrides `[store] url`.
const VARIABLE: &str = "TSUZUKI_STORE_URL";

/// Options of `db move`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// Where to: `postgres://…` or the path of a new SQLite file; a password may stand in it as '${NAME}'
    #[arg(long, value_name = "URL", required_unless_present = "reopen")]
    to: Option<String>,
    /// Change [store] url in the config file when everything has arrived
    #[arg(long)]
    switch: bool,
    /// Show what would be moved, and change nothing
    #[arg(long, conflicts_with = "switch")]
    dry_run: bool,
    /// Use the database of the config file again although everything was moved away from it
    #[arg(long, conflicts_with_all = ["to", "switch", "dry_run"])]
    reopen: bool,
    /// Do it, with --reopen
    #[arg(long, requires = "reopen")]
    yes: bool,
}

pub(super) async fn run(args: &Args, context: &Context) -> Result {
    let Some(to) = &args.to else { return reopen(args.yes, context).await };
    let (url, location) = SecretUrl::named(to, &context.env).map_err(|why| {
        Error::usage(why).hint(phrase!(
            "write `postgres://user@host/name` or the path of a file",
            "`postgres://user@host/name` またはファイルのパスを書きます"
        ))
    })?;
    let directory = context.config().await?.store.directory.clone();
    let written = url.written_for(&location, &directory);
    let file = if args.switch { Some(prepare_switch(&url, &written, context)?) } else { None };
    let bar = bar(&context.out);
    let (drawn, stop) = (bar.clone(), context.stop.clone());
    let mover = DatabaseMove {
        from: context.place().await?,
        to: DbUrl::from(&location),
        clock: context.clock.clone(),
        list_busy,
        is_stopped: Box::new(move || stop.is_cancelled()),
        progress: Box::new(move |step| draw(&drawn, step)),
    };
    if args.dry_run {
        return plan(mover, context).await;
    }
    let report = mover.run().await;
    bar.finish_and_clear();
    match report {
        Ok(report) => show(&report, context)?,
        // Only the switch after a completed move is missing.
        Err(MoveError::Ended { to, .. }) if args.switch => {
            context
                .out
                .note(phrase!("Everything was moved to {to} before", "すでにすべて {to} に移行済みです"));
        }
        Err(error) => return Err(error.into()),
    }
    fail::point("move.ended");
    switch(file, &url, &written, context)
}

fn show(report: &MoveReport, context: &Context) -> Result<()> {
    if context.out.is_json() {
        return context.out.json(report);
    }
    let columns = [
        Column::left(phrase!("table", "表")),
        Column::right(phrase!("rows", "行数")),
        Column::left(phrase!("checksum", "チェックサム")),
    ];
    context.out.listing(&columns, &report.tables, |moved| {
        row![&moved.table, moved.survey.rows, &moved.survey.checksum]
    })?;
    let rows: u64 = report.tables.iter().map(|moved| moved.survey.rows).sum();
    context.out.note(phrase!(
        "Moved {rows row} in {tables table} to {to}; rows and checksums are the same on both sides",
        "{tables} 個の表の {rows} 行を {to} に移行しました（行数とチェックサムは両側で一致）",
        tables = report.tables.len(),
        to = &report.to
    ));
    context.out.note(phrase!(
        "{from} is retired (nothing runs in it any more); keep it until you are sure",
        "{from} は使われなくなりました（実行もされません）。確認できるまで残しておいてください",
        from = &report.from
    ));
    Ok(())
}

/// The config file with the new address, checked before the move, to be saved after it.
fn prepare_switch(url: &SecretUrl, written: &str, context: &Context) -> Result<ConfigFile> {
    if context.env.find(VARIABLE).is_some() {
        return Err(Error::usage(phrase!(
            "{variable} says where the database is, not the config file",
            "データベースの場所は設定ファイルではなく {variable} で指定されています",
            variable = VARIABLE
        ))
        .hint(phrase!(
            "move without --switch, then change {variable}",
            "--switch なしで移行し、{variable} を変更してください",
            variable = VARIABLE
        )));
    }
    if url.has_literal_password() {
        return Err(Error::usage(phrase!(
            "--switch would write the password into the config file",
            "--switch を使うと、パスワードが設定ファイルに書き込まれます"
        ))
        .hint(phrase!(
            "name it in single quotes as {place}, with the variable NAME set, or leave --switch away",
            "環境変数 NAME に設定して {place} と引用符付きで書くか、--switch を外してください",
            place = "'${NAME}'"
        )));
    }
    let mut file = ConfigFile::open(&context.config_path()?)?;
    file.document.set_in("store", "url", &toml::Value::from(written))?;
    Ok(file)
}

fn switch(file: Option<ConfigFile>, url: &SecretUrl, written: &str, context: &Context) -> Result {
    // A literal password must not be printed.
    let shown = if url.has_literal_password() { url.to_string() } else { written.to_owned() };
    let shown = toml::Value::from(shown);
    match file {
        Some(file) => {
            file.save(app::kinds(), &context.env)?;
            context.out.note(phrase!(
                "The config file now says `url = {shown}` under [store]",
                "設定ファイルの [store] を `url = {shown}` に変更しました",
                shown = shown.to_string()
            ));
        }
        None if context.env.find(VARIABLE).is_some() => {
            context.out.note(phrase!(
                "Now change the variable {variable} to {shown}",
                "環境変数 {variable} を {shown} に変更してください",
                variable = VARIABLE,
                shown = shown.to_string()
            ));
        }
        None => context.out.note(phrase!(
            "Now change {config}, under [store]: url = {shown}",
            "{config} の [store] を url = {shown} に変更してください",
            config = context.config_path()?.display().to_string(),
            shown = shown.to_string()
        )),
    }
    context.out.done(phrase!(
        "Restart `tsuzuki serve` where it runs",
        "動いている `tsuzuki serve` を再起動してください"
    ))
}

async fn plan(mover: DatabaseMove, context: &Context) -> Result {
    let target = mover.to.to_string();
    let plan = mover.plan().await?;
    if context.out.is_json() {
        context.out.json(&plan)?;
        return Ok(Exit::Fine);
    }
    let rows: Vec<_> = plan.rows.iter().collect();
    let columns = [Column::left(phrase!("table", "表")), Column::right(phrase!("rows", "行数"))];
    context.out.listing(&columns, &rows, |(table, count)| row![*table, **count])?;
    let state = match plan.target {
        TargetState::Missing => phrase!("which would be made", "新しく作成"),
        TargetState::Empty => phrase!("which is empty", "空のデータベース"),
        TargetState::Unfinished => {
            phrase!("where an unfinished move would be continued", "未完了の移行を続行")
        }
    };
    context.out.note(phrase!(
        "Would move {rows row} from {from} to {target}, {state}",
        "{from} から {target} へ {rows} 行を移行します（{state}）",
        rows = plan.rows.values().sum::<u64>(),
        from = &plan.from
    ));
    if !plan.busy.is_empty() {
        context.out.warn(phrase!(
            "it would be refused now, jobs are running: {busy}",
            "今は移行できません。実行中のジョブがあります：{busy}",
            busy = plan.busy.join(", ")
        ));
    }
    Ok(Exit::Fine)
}

async fn reopen(yes: bool, context: &Context) -> Result {
    let place = context.place().await?;
    let db = context.open_db(Open::Left).await?;
    let Some(left) = db.read(db::find_moved_away).await? else {
        return context.out.done(phrase!("{place} is in use already", "{place} はすでに使用中です"));
    };
    if !yes {
        return Err(Error::usage(phrase!(
            "{place} was moved to {to}: what happened there since is not known here, so messages may be sent again",
            "{place} は {to} に移行済みです：移行先でその後に送信したものが分からないため、再送される可能性があります",
            place = place.to_string(),
            to = &left.to
        ))
        .hint(phrase!(
            "run `tsuzuki db move --reopen --yes` if nothing ran in the new place",
            "移行先で何も実行していなければ、`tsuzuki db move --reopen --yes` としてください"
        )));
    }
    // Messages that wait here may have been sent from the other database.
    let suspected = db.write(|tx| outbox::suspect(tx, outbox::Suspicion::Reopened, tx.now())).await?;
    db::reopen(db).await?;
    context.out.note(phrase!("{place} is in use again", "{place} を再び使うようにしました"));
    if suspected > 0 {
        context.out.note(phrase!(
            "Looked into before anything is sent: {count message}",
            "送信前に確認するメッセージ：{count} 件",
            count = suspected
        ));
    }
    Ok(Exit::Fine)
}

/// All processes at work, without dead ones of this machine.
pub(super) fn list_busy(tx: &mut Tx<'_>) -> db::Result<Vec<String>> {
    let mut busy: Vec<String> = lease::list_held(tx)?
        .into_iter()
        .map(|(name, holder)| format!("{name} ({})", presence::shown_owner(&holder.owner)))
        .collect();
    for pipeline in app::PIPELINES {
        busy.extend((pipeline.list_busy)(tx)?);
    }
    match outbox::count_in_hand(tx, Clock::system().uptime())? {
        0 => {}
        count => busy.push(format!("{} being sent", counted(count, "message"))),
    }
    Ok(busy)
}

fn bar(out: &Output) -> ProgressBar {
    if out.is_quiet() || out.is_json() || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    ProgressBar::new(0).with_style(progress::style("{prefix:24} {bar:30} {pos}/{len} {rate} {left}"))
}

fn draw(bar: &ProgressBar, step: MoveStep<'_>) {
    match step {
        MoveStep::Table { name, rows, arrived } => {
            bar.set_prefix(name.to_owned());
            bar.set_length(rows);
            bar.set_position(arrived);
        }
        MoveStep::Rows(more) => bar.inc(more),
    }
}

impl From<MoveError> for Error {
    fn from(error: MoveError) -> Self {
        let words = error.phrase();
        match error {
            MoveError::Busy(_) => Error::new(Exit::Held, words).hint(phrase!(
                "stop `serve` or wait for them, then run the same command again",
                "`serve` を止めるか終わるのを待ってから、同じコマンドをもう一度実行してください"
            )),
            MoveError::NotEmpty { .. } => Error::failed(words).hint(phrase!(
                "name a new file or an empty schema; nothing was changed",
                "新しいファイルか空のスキーマを指定してください（何も変更していません）"
            )),
            MoveError::Ended { .. } => Error::failed(words).hint(phrase!(
                "add --switch, or change [store] url to it by hand, and restart `tsuzuki serve`",
                "--switch を付けるか、[store] の url を手で変更して、`tsuzuki serve` を再起動してください"
            )),
            MoveError::OtherSource { .. } => Error::failed(words).hint(phrase!(
                "finish that move, or name a new file or an empty schema",
                "その移行を終えるか、新しいファイルか空のスキーマを指定してください"
            )),
            MoveError::SamePlace(_) => Error::usage(words),
            MoveError::Differs(_) => Error::failed(words).hint(phrase!(
                "the old database is as it was and in use; empty the new one and move again",
                "元のデータベースは変わらず使用中です。移行先を空にして、もう一度移行してください"
            )),
            MoveError::Interrupted => Error::new(Exit::Interrupted, words).hint(phrase!(
                "run the same command again to continue",
                "同じコマンドで、止まったところから続けられます"
            )),
            MoveError::Db(error) => error.into(),
        }
    }
}
