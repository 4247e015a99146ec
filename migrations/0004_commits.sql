-- Commits: the seed's runs, results and commits, and how far each branch has been walked.

CREATE TABLE projects (
  project_id INTEGER PRIMARY KEY,
  host TEXT NOT NULL,
  remote_id INTEGER NOT NULL,
  path TEXT NOT NULL,
  name TEXT NOT NULL,
  default_branch TEXT,
  web_url TEXT,
  first_seen_at TEXT NOT NULL,
  last_seen_at TEXT NOT NULL,
  removed_at TEXT,
  UNIQUE (host, remote_id)
);

-- Everything reachable from `complete_head` is stored, except what is older than `complete_since`. The walking_*
-- columns say where an unfinished walk goes on; they move in the transaction that stores the page before.
CREATE TABLE branches (
  project_id INTEGER NOT NULL REFERENCES projects (project_id),
  branch_name TEXT NOT NULL,
  complete_head TEXT,
  complete_since TEXT,
  walking_head TEXT,
  walking_base TEXT,
  walking_page TEXT,
  walking_since TEXT,
  -- Parents that the walk has named but not met yet, as a JSON array.
  walking_open TEXT,
  -- Whether the walk has met a child of its base: then the branch moved forward and nothing was lost.
  walking_met_base INTEGER NOT NULL DEFAULT 0,
  -- Commits that the walk has marked as unreachable so far: marking goes in steps.
  walking_lost INTEGER NOT NULL DEFAULT 0,
  last_walk_at TEXT,
  -- Parents that were still missing at the end of the last walk; 0 when the history is closed.
  open_parents INTEGER,
  -- The job that collects it, and whether that job's config named it when last looked.
  job_name TEXT,
  is_named INTEGER NOT NULL DEFAULT 0,
  added_at TEXT,
  ignored_at TEXT,
  deleted_at TEXT,
  -- Since when and why it cannot be collected; NULL as soon as it can.
  failing_since TEXT,
  failing_why TEXT,
  PRIMARY KEY (project_id, branch_name)
);

CREATE INDEX idx_branches_failing ON branches (failing_since) WHERE failing_since IS NOT NULL;

CREATE TABLE commits (
  project_id INTEGER NOT NULL REFERENCES projects (project_id),
  branch_name TEXT NOT NULL,
  sha TEXT NOT NULL,
  author_name TEXT NOT NULL,
  author_email TEXT NOT NULL,
  committed_date_utc TEXT NOT NULL,
  additions INTEGER NOT NULL,
  deletions INTEGER NOT NULL,
  stats_missing INTEGER NOT NULL DEFAULT 0,
  unreachable_since TEXT,
  -- Two parents or more.
  is_merge INTEGER NOT NULL DEFAULT 0,
  -- Its first line; NULL for what another program collected, until a walk meets it.
  title TEXT,
  -- When missing line counts were asked for last.
  stats_tried_at TEXT NOT NULL DEFAULT '',
  UNIQUE (project_id, branch_name, sha)
);
CREATE INDEX idx_commits_project_branch_date ON commits (project_id, branch_name, committed_date_utc);
CREATE INDEX idx_commits_unreachable ON commits (project_id, branch_name, sha) WHERE unreachable_since IS NOT NULL;
CREATE INDEX idx_commits_stats_missing ON commits (project_id, branch_name) WHERE stats_missing = 1;
CREATE INDEX idx_commits_stats_tried ON commits (project_id, stats_tried_at) WHERE stats_missing = 1;

-- The graph of everything that was walked, stored or not.
CREATE TABLE commit_parents (
  project_id INTEGER NOT NULL,
  sha TEXT NOT NULL,
  parent_sha TEXT NOT NULL,
  PRIMARY KEY (project_id, sha, parent_sha)
) {without_rowid};

-- Commits without parents. Two projects that share a commit share one of these: that is how forks are known.
CREATE TABLE commit_roots (
  project_id INTEGER NOT NULL,
  sha TEXT NOT NULL,
  PRIMARY KEY (project_id, sha)
) {without_rowid};

-- Walked, but not stored: `before_since`, or `unreadable`, with the run that met it first.
CREATE TABLE commits_left_out (
  project_id INTEGER NOT NULL,
  branch_name TEXT NOT NULL,
  sha TEXT NOT NULL,
  why TEXT NOT NULL CHECK (why IN ('before_since', 'unreadable')),
  run_id TEXT,
  PRIMARY KEY (project_id, branch_name, sha)
) {without_rowid};
CREATE INDEX idx_commits_unreadable ON commits_left_out (project_id, branch_name) WHERE why = 'unreadable';

CREATE TABLE bulk_collection_runs (
  run_id TEXT PRIMARY KEY NOT NULL,
  started_at_utc TEXT NOT NULL,
  completed_at_utc TEXT,
  status TEXT NOT NULL CHECK (status IN ('running', 'completed', 'cancelled')),
  total_targets INTEGER NOT NULL,
  completed_count INTEGER NOT NULL DEFAULT 0,
  failed_count INTEGER NOT NULL DEFAULT 0,
  success_count INTEGER NOT NULL DEFAULT 0,
  job_name TEXT,
  -- When the message about its end was queued, or found to be needless.
  told_at TEXT,
  CHECK (completed_count + failed_count <= total_targets),
  CHECK ((completed_at_utc IS NOT NULL) = (status IN ('completed', 'cancelled')))
);
CREATE INDEX idx_bulk_runs_status_started ON bulk_collection_runs (status, started_at_utc);
CREATE INDEX idx_bulk_runs_started ON bulk_collection_runs (started_at_utc, run_id);
CREATE INDEX idx_bulk_runs_untold ON bulk_collection_runs (told_at, status, started_at_utc, run_id)
  WHERE told_at IS NULL;
CREATE UNIQUE INDEX idx_bulk_runs_one_running ON bulk_collection_runs (status) WHERE status = 'running';

CREATE TABLE bulk_collection_results (
  run_id TEXT NOT NULL,
  project_id INTEGER NOT NULL,
  branch_name TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('pending', 'success', 'failed')),
  new_commits_count INTEGER,
  error_message TEXT,
  processed_at_utc TEXT,
  -- Who collects it: the host of its project, and the job whose token and settings count.
  host TEXT NOT NULL DEFAULT '',
  job_name TEXT,
  -- Commits stored for this target in this run so far; it survives a crash in the middle.
  stored_count INTEGER NOT NULL DEFAULT 0,
  -- It failed as it had failed before: nobody is told again.
  is_known_failure INTEGER NOT NULL DEFAULT 0,
  lease_owner TEXT,
  lease_fence INTEGER NOT NULL DEFAULT 0,
  lease_until TEXT,
  PRIMARY KEY (run_id, project_id, branch_name),
  FOREIGN KEY (run_id) REFERENCES bulk_collection_runs (run_id) ON DELETE CASCADE,
  CHECK (status <> 'success' OR new_commits_count IS NOT NULL),
  CHECK (status <> 'failed' OR error_message IS NOT NULL)
);
CREATE INDEX idx_bulk_results_run_status ON bulk_collection_results (run_id, status);
CREATE INDEX idx_bulk_results_target_status ON bulk_collection_results (project_id, branch_name, status);
