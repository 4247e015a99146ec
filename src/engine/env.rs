//! What pipelines are made of: the shared tools that `app` builds once and hands to every job.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::channel::{ChannelEnv, ChannelSet};
use crate::config;
use crate::db::Db;
use crate::fetch::Fetcher;
use crate::ledger::quota::Quota;
use crate::llm::LlmSet;
use crate::time::Clock;

/// The tools of this process.
#[derive(Clone)]
pub struct JobEnv {
    /// Every `[[job]]` of the file, for a job that has to know what is another's.
    pub jobs: Arc<[config::Job]>,
    /// `[app]`: zone, language, how we call ourselves.
    pub app: config::App,
    pub clock: Clock,
    pub db: Db,
    /// HTTP, guarded, bounded and polite.
    pub fetcher: Fetcher,
    /// `[channel.NAME]`: the places that messages go to.
    pub channels: Arc<ChannelSet>,
    /// What channels need to render a message.
    pub channel_env: ChannelEnv,
    /// `[llm.NAME]`: the models that can be asked.
    pub llms: Arc<LlmSet>,
    /// `[web]`: where prompts are shown.
    pub web: config::Web,
    /// `[quota.NAME]`, ready to reserve from.
    pub quotas: BTreeMap<String, Quota>,
}
