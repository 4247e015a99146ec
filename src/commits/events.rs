//! Events of branches, projects and bulk runs.

use crate::event_codes;
use crate::id::RunId;
use crate::ledger::Subject;

/// The word before the project and the name of a branch.
pub const BRANCH: &str = "branch";
/// The word before the path of a project.
pub const PROJECT: &str = "project";
/// The word before the id of a bulk run.
pub const RUN: &str = "run";

/// The word before the name of an author.
pub const PERSON: &str = "person";

/// The word before the SHA of a commit.
pub const COMMIT: &str = "commit";

/// A branch, as events refer to it; both names may contain slashes.
pub fn branch(project: &str, branch_name: &str) -> Subject {
    Subject::new(BRANCH, format_args!("{project}/{branch_name}"))
}

/// A project.
pub fn project(path: &str) -> Subject {
    Subject::new(PROJECT, path)
}

/// A bulk run.
pub fn run(run_id: &RunId) -> Subject {
    Subject::new(RUN, run_id)
}

event_codes! {
    BranchCode on BRANCH;
    Collected = "collected", "collected", "収集";
    CollectFailed = "collect_failed", "could not be collected", "収集に失敗";
    HistoryRewritten = "history_rewritten", "its history was rewritten; commits that left it are kept and marked", "履歴が書き換えられました（外れたコミットは印を付けて保存）";
    UnreadableCommit = "unreadable_commit", "a commit has a date that cannot be read", "日付を読めないコミットがあります";
    Deleted = "branch_deleted", "is gone from the host", "ホストから削除されました";
    Added = "branch_added", "added by hand", "手動で追加";
    Forgotten = "branch_forgotten", "its commits were deleted by hand", "手動でコミットを削除";
    Ignored = "branch_ignored", "left out by hand", "手動で対象外に設定";
}

event_codes! {
    ProjectCode on PROJECT;
    Gone = "project_gone", "is gone from the host, or the token cannot see it", "ホストから削除されたか、トークンでは参照できません";
}

event_codes! {
    RunCode on RUN;
    Started = "run_started", "started", "開始";
    Completed = "run_completed", "completed", "完了";
    Cancelled = "run_cancelled", "cancelled", "取り消し";
    Announced = "run_told", "its messages are queued", "通知を送信待ちに登録";
    GivenUp = "targets_given_up", "gave up what could not be collected", "収集できない対象を断念";
}
