//! Mastodon: posts to one account, effectively once.
//!
//! The server deduplicates by our idempotency key for an hour. Later, and on servers that ignore keys, the account's
//! own statuses show whether a post was made. If neither helps, a person decides.

mod api;
mod fit;
mod link;

use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::error::{Accepted, Finding, SendError};
use super::kind::{Backend, ChannelKind, Ctx};
use super::notice::News;
use super::outbox::Row;
use super::plain::inert_line;
use super::settings::channel_config;
use super::template::Template;
use super::{Check, Progress, count};
use crate::config::value::HttpUrl;
use crate::config::{Flag, Kind, Problems, Secret, Section};
use crate::fetch::SecretHint;
use crate::phrase;
use crate::phrase::Phrase;
use crate::text;
use crate::time::Timestamp;
use fit::{PostLimits, fit};

/// Its name in `doctor`.
const INSTANCE: Phrase = Phrase::of_words("instance", "インスタンス");
const LOOKUP: Phrase = Phrase::of_words("lookup", "投稿の照会");

/// Posts to an account.
pub(super) const KIND: ChannelKind = ChannelKind {
    keys: Kind::channel::<MastodonConfig>("mastodon").without(&[("on_unknown", || {
        phrase!(
            "a post that may have been sent is searched for on the account, and held if that is not conclusive",
            "送信済みかもしれない投稿はアカウントで探し、判別できなければ保留します"
        )
    })]),
    about: || phrase!("posts of a Mastodon account", "Mastodon のアカウントで投稿"),
    flags: &[
        Flag::new("instance", "URL", || {
            phrase!(
                "the server of the account, e.g. https://mastodon.social",
                "アカウントのあるサーバー（例：https://mastodon.social）"
            )
        })
        .required(),
        Flag::variable("token-env", "token", "MASTODON_TOKEN", || {
            phrase!(
                "the environment variable that holds the access token",
                "アクセストークンを入れた環境変数の名前"
            )
        })
        .required(),
    ],
    promise: "effectively once",
    secrets: &[SecretHint {
        key: "token",
        check: "",
        en: "on your instance under Preferences, Development, New application: scopes `read` and \
             `write:statuses`; the page of the application shows the access token",
        ja: "インスタンスの「ユーザー設定」→「開発」→「新規アプリ」で、アクセス権 `read` と `write:statuses` を付けて作ります。\
             アプリのページにアクセストークンが表示されます",
    }],
    // An hour, less a margin for clocks that differ.
    key_window: Some(Duration::from_secs(55 * 60)),
    answers_within: None,
    open: |section, zone| MastodonConfig::open(section, zone, Mastodon::new),
    show: |payload| serde_json::from_str(payload).ok().map(Status::into_text),
};

/// How long the limits of an instance are cached, and the defaults after a failure to read them.
const LIMITS_FOR: Duration = Duration::from_secs(24 * 3600);
const FALLBACK_FOR: Duration = Duration::from_secs(600);
/// A longer content warning would leave too few characters for the post.
const MAX_WARNING_COLUMNS: usize = 160;

/// The default template of a post.
const DEFAULT_TEMPLATE: &str = "{{ headline }}
{% if summary %}
{{ summary }}
{% endif %}{% for entry in entries %}
・{{ entry.title }}{% if entry.link %} {{ entry.link }}{% endif %}{% endfor %}{% if more %}
{{ more }}{% endif %}{% if link %}

{{ link }}{% endif %}{% if hashtags %}

{{ hashtags }}{% endif %}";

channel_config! {
    /// `[channel.NAME] kind = "mastodon"`: posts to an account.
    pub struct MastodonConfig {
        /// The server, such as `"https://mastodon.example"`.
        pub instance: HttpUrl,
        /// An access token of the account with the scopes `write:statuses` and `read`.
        pub token: Secret,
        /// Who sees the posts: `"public"`, `"unlisted"` (default), `"private"` or `"direct"`.
        pub visibility: Option<Visibility>,
        /// Hashtags for every post, without `#`.
        pub hashtags: Option<Vec<String>>,
        /// A content warning for every post.
        pub content_warning: Option<String>,
        /// The text of a post; see the documentation for the names it may use.
        pub template: Option<String>,
    }
}

/// The visibility of a post.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Visibility {
    /// Everybody, and it is shown in public timelines.
    Public,
    /// Everybody who looks.
    #[default]
    Unlisted,
    /// Followers.
    Private,
    /// Nobody but the account itself.
    Direct,
}

/// A post as it is sent to the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Status {
    status: String,
    visibility: Visibility,
    language: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    spoiler_text: Option<String>,
    /// For finding the post again; not sent to the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    link: Option<String>,
}

#[derive(Debug)]
struct Mastodon {
    config: MastodonConfig,
    template: Template,
    limits: Mutex<Option<(PostLimits, Timestamp)>>,
}

impl Mastodon {
    fn new(config: MastodonConfig, section: &Section) -> Result<Self, Problems> {
        let source = config.template.as_deref().unwrap_or(DEFAULT_TEMPLATE);
        let template = Template::new(source).map_err(|why| section.problem("template", why))?;
        if !template.uses("link") {
            return Err(section
                .problem(
                    "template",
                    phrase!(
                        "the template has no `{link}`",
                        "テンプレートに `{link}` がありません",
                        link = "{{ link }}"
                    ),
                )
                .with_hint(phrase!(
                    "readers need it, and so do we to find a post again after a crash",
                    "読者に必要なだけでなく、異常終了の後に投稿を探す手がかりにもなります"
                ))
                .into());
        }
        let mastodon = Self { config, template, limits: Mutex::default() };
        let sample = super::Notice { link: Some(mastodon.config.instance.clone().into()), ..sample() };
        fit(&mastodon.template, &sample, &[], PostLimits::default(), 0)
            .map_err(|why| section.problem("template", Template::wrong(&why)))?;
        Ok(mastodon)
    }

    fn compose(&self, news: &News, limits: PostLimits) -> Result<Status, String> {
        let notice = &news.notice;
        let warning = notice.warning.as_deref().or(self.config.content_warning.as_deref());
        let warning = warning.map(|warning| text::shorten(&inert_line(warning), MAX_WARNING_COLUMNS));
        let warning = warning.filter(|warning| !warning.is_empty());
        let taken = warning.as_deref().map_or(0, |warning| count::count(warning, limits.url_chars));
        let hashtags = self.config.hashtags.as_deref().unwrap_or_default();
        let status = fit(&self.template, notice, hashtags, limits, taken)?;
        // A digest is known by the first of its entries, if its link stands there.
        let of_entry = || {
            let mut links = notice.entries.iter().filter_map(|entry| entry.link.as_ref().map(link::in_post));
            links.find(|link| status.split_whitespace().any(|word| word == link))
        };
        let link = notice.link.as_ref().map(link::in_post).or_else(of_entry);
        Ok(Status {
            status,
            visibility: self.config.visibility.unwrap_or_default(),
            language: notice.language.word().to_owned(),
            spoiler_text: warning,
            link,
        })
    }

    /// The instance's limits, read once a day, or the defaults if they cannot be read.
    async fn limits(&self, ctx: Ctx<'_>) -> PostLimits {
        let now = ctx.env.clock.now();
        let known = *self.limits.lock();
        if let Some((limits, until)) = known
            && now < until
        {
            return limits;
        }
        let (limits, until) = match self.api(ctx).limits().await {
            Ok(limits) => (limits, now.plus(LIMITS_FOR)),
            Err(error) => {
                tracing::warn!(channel = ctx.channel.name, "Cannot read the limits of the instance: {error}");
                (known.map(|(limits, _)| limits).unwrap_or_default(), now.plus(FALLBACK_FOR))
            }
        };
        *self.limits.lock() = Some((limits, until));
        limits
    }

    fn api<'a>(&'a self, ctx: Ctx<'a>) -> api::Api<'a> {
        api::Api { instance: &self.config.instance, token: &self.config.token, ctx }
    }
}

#[async_trait]
impl Backend for Mastodon {
    async fn render(&self, ctx: Ctx<'_>, news: &News) -> Result<Vec<(String, String)>, String> {
        let limits = self.limits(ctx).await;
        let status = self.compose(news, limits)?;
        let payload = serde_json::to_string(&status).map_err(|error| error.to_string())?;
        Ok(vec![("account".to_owned(), payload)])
    }

    async fn send(&self, ctx: Ctx<'_>, row: &Row, progress: &Progress) -> Result<Accepted, SendError> {
        let sent = self.api(ctx).post(&read(row)?, &row.key, progress).await;
        if matches!(sent, Err(SendError::Refused { .. })) {
            // The limits may have changed since they were read: read them again for the next post.
            *self.limits.lock() = None;
        }
        sent
    }

    async fn resolve(&self, ctx: Ctx<'_>, row: &Row) -> Result<Vec<String>, Finding> {
        let status = read(row).map_err(Finding::Later)?;
        // If the attempt is in the future, the clock was ahead and the post is older.
        let since = row.attempted().since.min(ctx.env.clock.now());
        self.api(ctx).find_own(&status, since).await
    }

    async fn measure(&self, ctx: Ctx<'_>, payload: &str) -> Option<(usize, usize)> {
        let status: Status = serde_json::from_str(payload).ok()?;
        let limits = self.limits(ctx).await;
        let warning = status.spoiler_text.as_deref().unwrap_or_default();
        let length = count::count(&status.status, limits.url_chars) + count::count(warning, limits.url_chars);
        Some((length, limits.max_chars))
    }

    /// Only the account itself sees a test message.
    fn soften(&self, payload: String) -> String {
        let status = serde_json::from_str::<Status>(&payload);
        let alone = status.map(|status| Status { visibility: Visibility::Direct, ..status });
        alone.and_then(|alone| serde_json::to_string(&alone)).unwrap_or(payload)
    }

    fn credentials(&self) -> String {
        super::http::secret_text(&self.config.token)
    }

    async fn check(&self, ctx: Ctx<'_>) -> Vec<Check> {
        let api = self.api(ctx);
        let limits = match api.limits().await {
            Ok(limits) => Check::fine(
                INSTANCE,
                phrase!(
                    "posts of {count} characters",
                    "{count} 文字まで投稿できます",
                    count = limits.max_chars
                ),
            ),
            Err(error) => error.check(INSTANCE),
        };
        let account = match api.account().await {
            Ok(account) => Check::fine(
                Check::TOKEN,
                phrase!(
                    "posts as @{account}",
                    "@{account} として投稿します",
                    account = text::one_line(&account.acct)
                ),
            ),
            Err(error) => error.check(Check::TOKEN),
        };
        let lookup = match api.find_own(&Status::nothing(), ctx.env.clock.now()).await {
            Ok(_) => Check::fine(
                LOOKUP,
                phrase!("can find its own posts after a crash", "異常終了の後に自分の投稿を探せます"),
            ),
            Err(Finding::CannotTell { why }) => Check::bad(
                LOOKUP,
                phrase!(
                    "{why}; a crash can leave posts that wait for you",
                    "{why}。異常終了すると、投稿が確認待ちになることがあります"
                ),
            ),
            Err(Finding::Later(error)) => error.check(LOOKUP),
            Err(other) => Check::bad(LOOKUP, other.phrase()),
        };
        vec![limits, account, lookup]
    }
}

impl Status {
    /// The post as readers see it, its content warning first.
    fn into_text(self) -> String {
        match self.spoiler_text.filter(|warning| !warning.is_empty()) {
            Some(warning) => format!("[{warning}]\n{}", self.status),
            None => self.status,
        }
    }

    fn nothing() -> Self {
        Self {
            status: String::new(),
            visibility: Visibility::Direct,
            language: String::new(),
            spoiler_text: None,
            link: Some("https://example.invalid/".to_owned()),
        }
    }
}

fn read(row: &Row) -> Result<Status, SendError> {
    serde_json::from_str(&row.payload).map_err(|_| super::error::made_for_another_kind())
}

fn sample() -> super::Notice {
    super::Notice {
        summary: "A sentence. Another one.".to_owned(),
        entries: vec![super::NoticeEntry {
            title: "An entry".to_owned(),
            link: None,
            date: None,
            note: None,
        }],
        ..super::Notice::new("A headline", crate::text::Language::En)
    }
}
