-- Bookkeeping that all pipelines share.

CREATE TABLE job_state (
  job_name TEXT PRIMARY KEY NOT NULL,
  last_success_at TEXT,
  last_run_at TEXT,
  last_outcome TEXT,
  last_message TEXT,
  failures_in_a_row INTEGER NOT NULL DEFAULT 0,
  -- When a run that failed is tried again, if that is before the next point of the schedule.
  retry_at TEXT
);

CREATE TABLE api_usage (
  date TEXT NOT NULL,
  provider TEXT NOT NULL,
  count INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (date, provider)
);

-- A job, a channel or a provider that rests: `job:NAME`, `channel:NAME`, `provider:NAME`.
CREATE TABLE pauses (
  name TEXT PRIMARY KEY NOT NULL,
  paused_at TEXT NOT NULL,
  paused_until TEXT,
  reason TEXT NOT NULL
);

-- What the operator has to know, such as `failing job:NAME`: told when it begins and when it is over.
CREATE TABLE alerts (
  cause TEXT PRIMARY KEY NOT NULL,
  since TEXT NOT NULL,
  message TEXT NOT NULL,
  -- When the channels of `alert` were told that it began.
  announced_at TEXT,
  -- When it was over; it goes once the channels are told.
  over_at TEXT
);

-- A released lease keeps its row, so that the fence only ever rises.
CREATE TABLE leases (
  name TEXT PRIMARY KEY NOT NULL,
  owner TEXT,
  fence INTEGER NOT NULL,
  taken_at TEXT NOT NULL,
  expires_at TEXT NOT NULL
);

-- The append-only story that `why` tells.
CREATE TABLE events (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at TEXT NOT NULL,
  job_name TEXT,
  subject TEXT NOT NULL,
  code TEXT NOT NULL,
  detail TEXT
);
CREATE INDEX idx_events_subject ON events (subject, id);
CREATE INDEX idx_events_job ON events (job_name, id);
CREATE INDEX idx_events_at ON events (at);
