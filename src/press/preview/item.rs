//! Shows what a run would make of one item before it is public: page, files, prompt, verdict and post.

use serde_json::json;

use super::super::collect::{Fetched, fetch_feed, item_title, item_url, read_entries};
use super::super::config::Future;
use super::super::decide::NotValuable;
use super::super::files::{self, Broken, NoFiles};
use super::super::model::{Item, NewItem, Status};
use super::super::page::{self, ItemPage};
use super::super::post::{self, PostText};
use super::super::workspace::Workspace;
use super::super::{Failure, Press, store, summarize, view};
use crate::channel::News;
use crate::config::value::ByteSize;
use crate::db::Db;
use crate::engine::preview::Asking;
use crate::engine::view::{Line, View};
use crate::fetch::Validators;
use crate::llm::{AskError, ModelInput, Purpose, Worth};
use crate::phrase;
use crate::phrase::{Phrase, Value};
use crate::text::shell_word;

/// The most lines of a page, and of a prompt, that are shown.
const MAX_LINES: usize = 60;

/// The answer of the model, for the view.
struct Opinion {
    text: Option<PostText>,
    verdict: Option<Phrase>,
    summary: Option<String>,
}

/// Shows one item. Writes nothing but the cost and the answers of the model.
pub(in crate::press) async fn preview(
    press: &Press,
    db: &Db,
    url: &str,
    asking: Asking,
) -> Result<View, Failure> {
    let item = find_item(press, db, url).await?;
    let title = phrase!(
        "item of job {job}: {title}",
        "ジョブ {job} の記事：{title}",
        job = &press.name,
        title = &item.title
    );
    let mut shown = View::new("item", &item.url, title, json!({}));
    shown.fact(phrase!("address", "アドレス"), Value::link(&item.url));
    if item.id > 0 {
        shown.fact(phrase!("state", "状態"), view::standing(&item));
    }
    let page = match page::fetch(press, &item).await {
        Ok(page) => page,
        Err(error) => {
            let why = error.describe();
            return Err(Failure::Failed(phrase!(
                "{url} could not be read: {why}",
                "{url} を読めません：{why}"
            )));
        }
    };
    show_page(&mut shown, press, &page);
    let screened = page.document(&item);
    let mut prompt = None;
    if press.llm.is_some() {
        let options = press.options(&item, press.keys.screen_prompt.as_ref());
        let (system, text) = press.llm()?.screening_prompt(&screened, &options);
        let lines = system.lines().chain(text.lines()).take(MAX_LINES);
        shown.section(
            phrase!("question to the model (screening)", "モデルへの質問（判定）"),
            lines.map(|line| Line::from(Phrase::verbatim(line))),
        );
        prompt = Some(json!({ "system": system, "text": text }));
    }
    let opinion = match (press.llm.is_some(), asking) {
        (false, _) => without_model(press, &item, &page),
        (true, Asking::No) => Opinion { text: Some(placeholder()), verdict: None, summary: None },
        (true, Asking::Ask) => ask_model(press, &item, page.clone(), screened).await?,
    };
    shown.fact(phrase!("verdict", "判定"), opinion.verdict.clone());
    shown.fact(phrase!("summary", "要約"), opinion.summary.as_deref());
    let posts = match &opinion.text {
        Some(text) => show_posts(&mut shown, press, &item, text).await?,
        None => Vec::new(),
    };
    if asking == Asking::No && press.llm.is_some() {
        shown.command(
            phrase!("ask the model, too (this counts)", "モデルにも問い合わせる（回数に数えます）"),
            format!("job test {} --item {} --ask", press.name, shell_word(&item.url)),
        );
    }
    shown.data = json!({
        "url": item.url,
        "title": item.title,
        "text": page.text,
        "lacks_block": page.lacks_block,
        "files": page.files.iter().map(|file| json!({ "name": file.name, "url": file.url.as_str(), "bytes": file.bytes })).collect::<Vec<_>>(),
        "prompt": prompt,
        "verdict": opinion.verdict.map(|verdict| verdict.to_string()),
        "summary": opinion.summary,
        "posts": posts,
    });
    Ok(shown)
}

/// The item as it is stored, or as the feeds list it, or its address alone.
async fn find_item(press: &Press, db: &Db, url: &str) -> Result<Item, Failure> {
    let Some(url) = item_url(url) else {
        return Err(Failure::Config(phrase!(
            "`{url}` is not a web address",
            "`{url}` は Web アドレスではありません"
        )));
    };
    let (job, wanted) = (press.name.clone(), url.clone());
    if let Some(item) = db.read(move |tx| store::find_by_url(tx, job.as_str(), &wanted)).await? {
        return Ok(item);
    }
    let now = press.env.clock.now();
    let mut listed: Option<NewItem> = None;
    for feed in press.feeds() {
        if let Ok(Fetched::Feed(_, entries)) = fetch_feed(press, feed, &Validators::default()).await {
            let read = read_entries(&entries, Future::Now, press.keys.patterns(), now);
            listed = listed.or_else(|| read.items.into_iter().find(|item| item.url == url));
        }
    }
    let (title, published_at, excerpt) = match listed {
        Some(listed) => (listed.title, listed.published_at, listed.excerpt),
        None => (item_title("", &url), now, None),
    };
    Ok(Item {
        id: 0,
        job_name: press.name.to_string(),
        url,
        title,
        published_at,
        status: Status::Unprocessed,
        reason: None,
        retry_count: 0,
        created_at: now,
        last_checked_at: now,
        not_before: None,
        deferred_since: None,
        page_hash: None,
        is_held: false,
        excerpt,
        is_short: false,
        summary: None,
        verdict: None,
        bypass_cache: false,
    })
}

fn show_page(shown: &mut View, press: &Press, page: &ItemPage) {
    if page.lacks_block {
        shown.fact(phrase!("warning", "警告"), press.block_warning(&shown.name));
    }
    let lines: Vec<&str> = page.text.lines().filter(|line| !line.trim().is_empty()).collect();
    let characters = page.text.chars().count();
    shown.section(
        phrase!("page text ({characters character})", "本文（{characters} 文字）"),
        lines.iter().take(MAX_LINES).map(|line| Line::from(Phrase::verbatim(*line))),
    );
    let file = |file: &page::Linked| {
        let size = file.bytes.map_or_else(|| "?".to_owned(), |bytes| ByteSize::bytes(bytes).to_string());
        let (name, url) = (&file.name, Value::link(file.url.as_str()));
        Line::from(phrase!("{name} ({size}) {url}", "{name}（{size}） {url}"))
    };
    shown.section(phrase!("attachments", "添付ファイル"), page.files.iter().map(file));
}

fn without_model(press: &Press, item: &Item, page: &ItemPage) -> Opinion {
    let text = summarize::excerpt_of(press, item.excerpt.as_deref().unwrap_or(&page.text));
    Opinion { text: Some(PostText::Excerpt { text }), verdict: None, summary: None }
}

/// The placeholder for the summary.
fn placeholder() -> PostText {
    PostText::Excerpt { text: "…".to_owned() }
}

async fn ask_model(
    press: &Press,
    item: &Item,
    page: ItemPage,
    screened: ModelInput,
) -> Result<Opinion, Failure> {
    let llm = press.llm()?;
    let options = press.options(item, press.keys.screen_prompt.as_ref());
    let verdict =
        llm.screen(&press.name, &screened, &options).await.map_err(|error| no_answer(press, error))?.answer;
    let says = match verdict.worth {
        Worth::Worth => phrase!("worth a post: {why}", "投稿する価値あり：{why}", why = &verdict.reason),
        Worth::NotWorth => {
            phrase!("not worth a post: {why}", "投稿する価値なし：{why}", why = &verdict.reason)
        }
        Worth::NotReady => {
            phrase!("the page is not complete yet: {why}", "ページが未完成：{why}", why = &verdict.reason)
        }
    };
    let is_short = verdict.worth == Worth::NotWorth && press.keys.not_valuable == NotValuable::PostTitle;
    if verdict.worth != Worth::Worth {
        let text = is_short.then(|| PostText::None { why: verdict.reason.clone() });
        return Ok(Opinion { text, verdict: Some(says), summary: None });
    }
    let sizes: Vec<u64> = page.files.iter().map(|file| file.bytes.unwrap_or(0)).collect();
    if let Some(obstacle) = llm.find_obstacle(&press.name, Purpose::Summary, &sizes).await? {
        return Err(no_answer(press, AskError::Paused(obstacle)));
    }
    let workspace = Workspace::open().map_err(|error| Failure::Failed(error.to_string().into()))?;
    let has_text = !page.text.trim().is_empty();
    let files = files::fetch_all(press, llm, &page.files, &workspace, Broken::IsLeftOut, has_text).await;
    let files = files.map_err(|trouble| match trouble {
        NoFiles::Failed(failed) => Failure::Failed(failed.why),
        NoFiles::AllTooLarge => Failure::Failed(phrase!("its files are too large", "ファイルが大きすぎます")),
    })?;
    let document = ModelInput { title: item.title.clone(), text: page.text, files };
    let options = press.options(item, press.keys.summary_prompt.as_ref());
    let answered =
        llm.summarize(&press.name, &document, &options).await.map_err(|error| no_answer(press, error))?;
    let text = answered.answer.text;
    Ok(Opinion {
        summary: Some(text.clone()),
        text: Some(PostText::Summary { text, is_cached: answered.is_cached, tokens: 0 }),
        verdict: Some(says),
    })
}

fn no_answer(press: &Press, error: AskError) -> Failure {
    match super::super::no_answer(press, error) {
        Err(failure) => failure,
        Ok(Ok(super::super::Step::Waiting { until, why })) => Failure::Failed(phrase!(
            "the model is not available until {until}: {why}",
            "{until} までモデルに問い合わせできません：{why}"
        )),
        Ok(Ok(_)) => Failure::Failed(phrase!("the model is not available", "モデルに問い合わせできません")),
        Ok(Err(why)) => Failure::Failed(phrase!(
            "the model gave no usable answer: {why}",
            "モデルの回答を使えません：{why}"
        )),
    }
}

/// The post as each channel would send it.
async fn show_posts(
    shown: &mut View,
    press: &Press,
    item: &Item,
    text: &PostText,
) -> Result<Vec<serde_json::Value>, Failure> {
    let notice = post::notice(press, item, text).map_err(|why| Failure::Failed(why.into()))?;
    let news = News::from(notice);
    let mut posts = Vec::new();
    for channel in press.deliver.iter().filter_map(|name| press.env.channels.find(name)) {
        let previews = channel.preview(&press.env.channel_env, &news).await;
        for preview in previews.map_err(|error| Failure::Failed(error.to_string().into()))? {
            shown.section(
                phrase!("post ({channel})", "投稿（{channel}）", channel = &preview.channel),
                preview.text.lines().map(|line| Line::from(Phrase::verbatim(line))),
            );
            posts.push(json!(preview));
        }
    }
    Ok(posts)
}
