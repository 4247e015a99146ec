-- Blogs: the seed's state and history, the long memory of what was seen, and what is still to be told.

-- From `job_name` on ours. `etag` and `last_modified` belong to the document that decided, at `validators_url`;
-- those of other documents stand in `other_validators`.
CREATE TABLE blog_state (
  blog_id TEXT PRIMARY KEY NOT NULL,
  etag TEXT,
  last_modified TEXT,
  url_fingerprint TEXT,
  feed_url TEXT,
  sitemap_url TEXT,
  recent_entry_keys TEXT,
  last_check_at TEXT NOT NULL,
  last_change_at TEXT,
  job_name TEXT NOT NULL,
  decided_by TEXT CHECK (decided_by IN ('feed', 'sitemap', 'html')),
  validators_url TEXT,
  other_validators TEXT,
  settings_hash TEXT,
  next_feed_discovery_at TEXT,
  next_sitemap_discovery_at TEXT,
  feed_first_read_at TEXT,
  sitemap_first_read_at TEXT,
  html_first_read_at TEXT,
  last_success_at TEXT,
  last_full_read_at TEXT,
  url_count INTEGER NOT NULL DEFAULT 0,
  unconfirmed TEXT,
  moved_to TEXT,
  moved_count INTEGER NOT NULL DEFAULT 0,
  failures_in_a_row INTEGER NOT NULL DEFAULT 0,
  failing_since TEXT,
  warned_at TEXT,
  not_before TEXT,
  -- Feeds that its page names and that are not read, as JSON.
  other_feeds TEXT,
  -- The last days with something new, as JSON, and since when it is known to be silent.
  news_days TEXT,
  silent_at TEXT,
  -- The date of the newest entry of its feed, when the sitemap beside a feed that has stopped was last read, and since when that
  -- feed does not decide.
  feed_newest_at TEXT,
  looked_beside_at TEXT,
  feed_stopped_at TEXT,
  -- What was left out at a limit when it was last read, as JSON.
  cut TEXT
);
CREATE INDEX idx_blog_state_job ON blog_state (job_name);

CREATE TABLE check_history (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  blog_id TEXT NOT NULL,
  checked_at TEXT NOT NULL,
  http_status INTEGER,
  skipped INTEGER NOT NULL DEFAULT 0,
  changed INTEGER NOT NULL DEFAULT 0,
  url_fingerprint TEXT,
  error_message TEXT,
  -- Ours: what was left out at a limit, as JSON.
  cut TEXT
);
CREATE INDEX idx_check_history_blog_time ON check_history (blog_id, checked_at DESC);
CREATE INDEX idx_check_history_changed ON check_history (changed) WHERE changed = 1;

-- Everything that was ever seen on a blog. `url_key` is the address as it is compared: without scheme and tracking
-- parameters; NULL where the address does not tell entries apart, and where it is the `entry_key` itself.
CREATE TABLE blog_entries (
  blog_id TEXT NOT NULL,
  entry_key TEXT NOT NULL,
  url TEXT,
  url_key TEXT,
  title TEXT,
  published_at TEXT,
  first_seen_at TEXT NOT NULL,
  PRIMARY KEY (blog_id, entry_key)
) {without_rowid};
CREATE INDEX idx_blog_entries_url ON blog_entries (blog_id, url_key) WHERE url_key IS NOT NULL;

-- What a check found worth telling. `digest` is the subject of the messages that tell it, NULL until they are queued.
CREATE TABLE blog_changes (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  job_name TEXT NOT NULL,
  blog_id TEXT NOT NULL,
  found_at TEXT NOT NULL,
  -- When the blog had been read before, the last time before this was found.
  found_since TEXT,
  code TEXT NOT NULL CHECK (code IN ('new', 'failing', 'recovered', 'gone')),
  held INTEGER NOT NULL DEFAULT 0,
  detail TEXT NOT NULL,
  digest TEXT
);
CREATE INDEX idx_blog_changes_untold ON blog_changes (job_name, id) WHERE digest IS NULL;
CREATE INDEX idx_blog_changes_digest ON blog_changes (digest);
CREATE INDEX idx_blog_changes_blog ON blog_changes (blog_id, id);
CREATE INDEX idx_blog_changes_job ON blog_changes (job_name, id);
-- What is pruned: trouble that was told. What was new stays for ever.
CREATE INDEX idx_blog_changes_trouble ON blog_changes (found_at, id) WHERE code <> 'new' AND digest IS NOT NULL;
