//! Which jobs are due, and running them: the same code for `run`, `run-due` and `serve`.
//!
//! ```text
//! config ──▶ Job ──is due?──▶ lease + last_run_at ──▶ Collector::run ──▶ last_success_at, outcome, lease back
//!                   │ no         │ held by another        │ stop: interrupted, nothing is lost
//!                   ▼            ▼                        ▼
//!                 wait          skip                    continue next time
//! ```

pub mod action;
pub mod alert;
pub mod attention;
pub mod chart;
pub mod commands;
pub mod cut;
pub mod daemon;
pub mod env;
pub mod events;
pub mod filter;
pub mod finder;
pub mod finding;
pub mod job;
pub mod newest;
pub mod notice;
pub mod obstacle;
pub mod overview;
pub mod page;
pub mod pages;
pub mod ping;
pub mod pipeline;
pub mod preview;
pub mod runner;
pub mod schedule;
pub mod share;
pub mod silence;
pub mod standing;
pub mod store;
pub mod table;
pub mod things;
pub mod view;
pub mod walk;

pub use action::{Action, ActionOutcome, Deed, Verb};
pub use env::JobEnv;
pub use finder::Finder;
pub use job::{Collector, DeliveryMode, Failure, Job, Plan, Progress, Report, RunContext, Update};
pub use obstacle::Skipped;
pub use overview::Overview;
pub use page::{Block, Page, PageQuery, PageView};
pub use pipeline::Pipeline;
pub use preview::{Preview, PreviewItem};
pub use runner::{EndedRun, Finished, Runner, Selection};
pub use schedule::Schedule;
pub use share::{RunStart, ShareContext, SharedRun};
pub use standing::Standing;
pub use store::{JobState, RunOutcome};
pub use table::{Cell, Table};
pub use view::{State, View};
