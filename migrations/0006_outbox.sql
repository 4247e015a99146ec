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
  not_before TEXT NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  first_attempt_at TEXT,
  last_attempt_at TEXT,
  settled_at TEXT,
  lease_owner TEXT,
  lease_fence INTEGER NOT NULL DEFAULT 0,
  lease_until TEXT,
  remote_id TEXT,
  last_error TEXT
);
CREATE INDEX idx_outbox_state_not_before ON outbox (state, not_before, id);
CREATE INDEX idx_outbox_channel_settled ON outbox (channel, state, settled_at);
CREATE INDEX idx_outbox_subject ON outbox (topic, subject);
CREATE INDEX idx_outbox_job ON outbox (job_name, id);
