//! What pipelines are given: the shared tools that `app` builds once.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::channel::{ChannelEnv, ChannelSet};
use crate::config;
use crate::db::Db;
use crate::fetch::Fetcher;
use crate::ledger::quota::Quota;
use crate::llm::LlmSet;
use crate::time::Clock;

/// The shared tools of this process.
#[derive(Clone)]
pub struct JobEnv {
    /// Every `[[job]]` of the file, for jobs that depend on others.
    pub jobs: Arc<[config::Job]>,
    /// `[app]`: zone, language, user agent.
    pub app: config::App,
    pub clock: Clock,
    pub db: Db,
    /// HTTP client with address guard, size limits and host pacing.
    pub fetcher: Fetcher,
    /// `[channel.NAME]`.
    pub channels: Arc<ChannelSet>,
    /// What channels need to render a message.
    pub channel_env: ChannelEnv,
    /// `[llm.NAME]`.
    pub llms: Arc<LlmSet>,
    /// `[web]`: where prompts can be read.
    pub web: config::Web,
    /// `[quota.NAME]`, ready to reserve from.
    pub quotas: BTreeMap<String, Quota>,
}
