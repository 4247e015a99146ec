//! While the demo is running: the demo servers publish new things from time to time, and each find is reported in a
//! line.

use std::time::Duration;

use jiff::tz::TimeZone;

use super::{Context, Demo};
use tsuzuki::demo::figures::Figures;
use tsuzuki::demo::world::World;
use tsuzuki::phrase;

/// How often the demo servers publish new things.
const MOVE_EVERY: Duration = Duration::from_secs(25);
/// How often to check for something to report.
const POLL_EVERY: Duration = Duration::from_secs(1);

/// For how many polls a line waits for its messages to be sent.
const MAX_POLLS: u32 = 10;

/// Advances the demo servers until the program is stopped.
pub(super) async fn move_world(context: &Context, world: &World) {
    while is_time(context, MOVE_EVERY).await {
        if let Err(error) = world.step() {
            let why = error.to_string();
            context.out.warn(phrase!(
                "the demo servers cannot publish anything new: {why}",
                "デモのサーバーを進められません：{why}"
            ));
        }
    }
}

/// Reports what was found, decided and sent since `reported`, until the program is stopped.
pub(super) async fn report_finds(demo: &Demo<'_>, mut reported: Figures) {
    let zone = TimeZone::try_system().unwrap_or(TimeZone::UTC);
    let (mut seen, mut waited) = (reported, 0);
    while is_time(demo.context, POLL_EVERY).await {
        let Ok(now) = demo.figures().await else { continue };
        // A find and its messages belong in one line; but report it even if the messages cannot be sent.
        let is_settled = now == seen && (now.under_way == 0 || waited > MAX_POLLS);
        waited = if now == reported { 0 } else { waited + 1 };
        if is_settled && now != reported {
            let time =
                demo.context.clock.now().to_jiff().to_zoned(zone.clone()).strftime("%H:%M:%S").to_string();
            for line in now.render_news(&reported) {
                // Ignore a closed pipe: the output is only progress.
                let _ = demo.print_line(phrase!("{time} {line}", "{time} {line}"));
            }
            reported = now;
        }
        seen = now;
    }
}

/// Waits; returns whether to continue.
async fn is_time(context: &Context, after: Duration) -> bool {
    tokio::select! {
        () = context.stop.cancelled() => false,
        () = tokio::time::sleep(after) => true,
    }
}
