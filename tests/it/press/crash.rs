//! kill -9 at every step boundary: no item is lost, none is posted twice, on both databases.
//!
//! The servers live in this process; the program itself is started, killed at a named point, and started again until
//! everything is done. Its clock moves on an hour with every start, so that leases end without waiting for them.

use std::process::Output;

use super::*;
use crate::test_env::output_beside;
use tsuzuki::db::Dialect;

/// Every point between two steps, in the order in which a run passes them.
const POINTS: [&str; 15] = [
    "press.feed_fetched",
    "press.collected",
    "press.page_fetched",
    "llm.reserved",
    "llm.answered",
    "llm.stored",
    "press.screened",
    "press.verdict_stored",
    "press.files_fetched",
    "press.summarized",
    "press.rendered",
    "press.queued",
    "outbox.claimed",
    "outbox.sent",
    "outbox.recording",
];

/// The program as a child process, with its own folder for temporary files.
struct Program {
    test_env: TestEnv,
    clock: Clock,
}

impl Program {
    fn new(world: &World, fixture: &Fixture, more: &More<'_>) -> Self {
        let test_env = world.test_env(fixture, more);
        std::fs::create_dir(test_env.file("tmp")).unwrap();
        Self { test_env, clock: fixture.clock.clone() }
    }

    /// Runs the job an hour later than before; `point` is where to die.
    async fn run(&self, point: Option<&str>) -> Output {
        self.clock.advance(HOUR);
        let mut command = self.test_env.command(&["run", "mic"]);
        command.env("TMPDIR", self.test_env.file("tmp"));
        command.envs(point.map(|point| ("TSUZUKI_FAIL_AT", point)));
        output_beside(command).await
    }

    fn left_files(&self) -> usize {
        std::fs::read_dir(self.test_env.file("tmp")).unwrap().count()
    }
}

async fn is_done(world: &World) -> bool {
    let items = world.items().await;
    items.len() == 2 && items.iter().all(|item| state_of(item).starts_with("3/0/"))
}

/// Kills at one point after `passes` passes, then continues until everything is done.
async fn survive(fixture: Fixture, point: &'static str) {
    let more = More { job: "items_per_run = 9", ..More::default() };
    let world = World::new(&fixture, &more).await;
    let program = Program::new(&world, &fixture, &more);
    world.publish("a", files(&[2000]));
    world.publish("b", files(&[3000]));
    // Dies at the first item, then at the second, then lives.
    let mut deaths = 0;
    for pass in ["0", "1"] {
        let output = program.run(Some(&format!("{point}:{pass}"))).await;
        // A process that was aborted has no exit code.
        deaths += usize::from(output.status.code().is_none());
    }
    assert!(deaths > 0, "{point} was never passed");
    let mut rounds = 0;
    while !is_done(&world).await {
        let output = program.run(None).await;
        assert!(output.status.success(), "{point}: {}", String::from_utf8_lossy(&output.stderr));
        rounds += 1;
        assert!(rounds < 12, "{point}: {:?}", world.items().await);
    }
    // A message that was being sent when its sender died is resolved after a while.
    program.run(None).await;
    let posts = world.posts();
    assert_eq!(posts.len(), 2, "{point}: {posts:?}");
    for slug in ["a", "b"] {
        let url = world.ministry.page(slug);
        assert_eq!(posts.iter().filter(|post| post.contains(&url)).count(), 1, "{point}: {posts:?}");
        assert_eq!(world.item(slug).await.retry_count, 0, "{point}: a crash is no try");
    }
    assert_eq!(program.left_files(), 0, "{point}: files of the killed run are still there");
}

fn survive_all(dialect: Dialect) {
    for point in POINTS {
        crate::databases::run(dialect, |fixture| survive(fixture, point));
    }
}

#[test]
fn a_kill_between_any_two_steps_loses_and_repeats_nothing_on_sqlite() {
    survive_all(Dialect::Sqlite);
}

#[test]
fn a_kill_between_any_two_steps_loses_and_repeats_nothing_on_postgres() {
    survive_all(Dialect::Postgres);
}
