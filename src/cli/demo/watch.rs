//! While the demo is open: the world moves on slowly, and what tsuzuki finds is told in a line each.

use std::time::Duration;

use jiff::tz::TimeZone;

use super::{Context, Demo};
use crate::demo::figures::Figures;
use crate::demo::world::World;

/// How often the world moves on.
const MOVE_EVERY: Duration = Duration::from_secs(25);
/// How often we look whether there is something to tell.
const POLL_EVERY: Duration = Duration::from_secs(1);

/// For how many looks a line waits for its messages to be sent.
const PATIENCE: u32 = 10;

/// Moves the world on until the program is told to stop.
pub(super) async fn move_world(context: &Context, world: &World) {
    while is_time(context, MOVE_EVERY).await {
        if let Err(error) = world.step() {
            context.out.warn(format!("the made-up world stands still: {error}"));
        }
    }
}

/// Tells what was found, decided and sent since `told`, until the program is told to stop.
pub(super) async fn report_finds(demo: &Demo<'_>, mut told: Figures) {
    let zone = TimeZone::try_system().unwrap_or(TimeZone::UTC);
    let (mut seen, mut waited) = (told, 0);
    while is_time(demo.context, POLL_EVERY).await {
        let Ok(now) = demo.figures().await else { continue };
        // What is found and what is sent about it belong in one line; but what cannot be sent is no reason for silence.
        let is_settled = now == seen && (now.under_way == 0 || waited > PATIENCE);
        waited = if now == told { 0 } else { waited + 1 };
        if is_settled && now != told {
            let time =
                demo.context.clock.now().to_jiff().to_zoned(zone.clone()).strftime("%H:%M:%S").to_string();
            for line in now.render_news(&told) {
                // A reader who has gone away misses nothing that they asked for.
                let _ = demo.say(format!("{time} {line}"));
            }
            told = now;
        }
        seen = now;
    }
}

/// Waits; answers whether to go on.
async fn is_time(context: &Context, after: Duration) -> bool {
    tokio::select! {
        () = context.stop.cancelled() => false,
        () = tokio::time::sleep(after) => true,
    }
}
