-- Messages on their way out: one row per message and recipient, rendered once.

CREATE TABLE outbox (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  key TEXT NOT NULL UNIQUE,
  job_name TEXT NOT NULL,
  channel TEXT NOT NULL,
  recipient TEXT NOT NULL,
  topic TEXT NOT NULL,
  subject TEXT NOT NULL,
  generation INTEGER NOT NULL DEFAULT 0,
  payload TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('ready', 'sending', 'sent', 'unknown', 'failed', 'held', 'skipped')),
  created_at TEXT NOT NULL,
  -- When it was last made ready by its owner or by a person; NULL: when it was added.
  readied_at TEXT,
  not_before TEXT NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  -- Looks in a row that failed, while nobody knows whether it was sent.
  resolve_attempts INTEGER NOT NULL DEFAULT 0,
  first_attempt_at TEXT,
  last_attempt_at TEXT,
  -- When it was sent again although nobody knew whether it had arrived: a second time a person is asked.
  resent_at TEXT,
  settled_at TEXT,
  lease_owner TEXT,
  lease_fence INTEGER NOT NULL DEFAULT 0,
  lease_until TEXT,
  -- The same end by the boot clock of the owner's kernel, as `KERNEL@MILLISECONDS`; NULL where there is none.
  lease_uptime TEXT,
  -- Why it may have been sent although this row says nothing of it: `restored`, `reopened` or `retold`.
  suspicion TEXT,
  -- Since when it can have been sent then; NULL: since it was added.
  suspect_since TEXT,
  remote_id TEXT,
  last_error TEXT
);
CREATE INDEX idx_outbox_state_not_before ON outbox (state, not_before, id);
CREATE INDEX idx_outbox_channel_state ON outbox (channel, state, not_before, id);
CREATE INDEX idx_outbox_channel_attempt ON outbox (channel, last_attempt_at);
CREATE INDEX idx_outbox_channel_remote ON outbox (channel, remote_id);
CREATE INDEX idx_outbox_subject ON outbox (topic, subject);
CREATE INDEX idx_outbox_job ON outbox (job_name, id);
-- What is not over, beside years of what is.
CREATE INDEX idx_outbox_open ON outbox (job_name, state, id)
  WHERE state IN ('ready', 'sending', 'unknown', 'held');
-- What has ended but whose owner could not be told yet: almost always empty.
CREATE INDEX idx_outbox_untold ON outbox (settled_at, id)
  WHERE settled_at IS NULL AND state IN ('sent', 'failed', 'skipped');

-- Copies of earlier states: a backup carries a row that says when it was made, and learns here since when it is in use.
CREATE TABLE restores (
  made_at TEXT PRIMARY KEY NOT NULL,
  restored_at TEXT
);

-- What tells a database from an earlier copy of it: SQLite has a name of its own and counts what was claimed, as a file
-- beside it does; PostgreSQL says where it lives.
CREATE TABLE db_copy (
  role TEXT PRIMARY KEY NOT NULL,
  identity TEXT NOT NULL,
  claims INTEGER NOT NULL DEFAULT 0
);

-- What senders remember about a channel; its row is also the lock under which they take messages.
CREATE TABLE outbox_channels (
  channel TEXT PRIMARY KEY NOT NULL,
  last_attempt_at TEXT,
  locked_with TEXT
);
