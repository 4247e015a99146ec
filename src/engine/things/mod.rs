//! Things that belong to no pipeline: jobs, messages, channels and providers.

pub mod delivery;
pub mod external;
pub mod job;

use super::events::{JobEvent, RunEvent};
use super::pipeline::{Thing, Words};
use crate::channel::outbox::events::{ChannelCode, DeliveryCode, MessageCode};
use crate::ledger::event;
use crate::llm::events::ProviderCode;

/// In the order in which a bare name is tried.
pub const THINGS: &[&Thing] = &[&delivery::DELIVERY, &external::CHANNEL, &external::PROVIDER, &job::JOB];

/// Word the events that belong to no pipeline.
pub const WORDS: &[Words] = &[
    event::words::<RunEvent>,
    event::words::<JobEvent>,
    DeliveryCode::words,
    ChannelCode::words,
    ProviderCode::words,
    MessageCode::words,
];
