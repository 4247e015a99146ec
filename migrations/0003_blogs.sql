-- Blogs: the seed's state and history, and the long memory of what was seen.

CREATE TABLE blog_state (
  blog_id TEXT PRIMARY KEY NOT NULL,
  etag TEXT,
  last_modified TEXT,
  url_fingerprint TEXT,
  feed_url TEXT,
  sitemap_url TEXT,
  recent_entry_keys TEXT,
  last_check_at TEXT NOT NULL,
  last_change_at TEXT
);

CREATE TABLE check_history (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  blog_id TEXT NOT NULL,
  checked_at TEXT NOT NULL,
  http_status INTEGER,
  skipped INTEGER NOT NULL DEFAULT 0,
  changed INTEGER NOT NULL DEFAULT 0,
  url_fingerprint TEXT,
  error_message TEXT
);
CREATE INDEX idx_check_history_blog_time ON check_history (blog_id, checked_at DESC);
CREATE INDEX idx_check_history_changed ON check_history (changed) WHERE changed = 1;
CREATE INDEX idx_check_history_time ON check_history (checked_at);

CREATE TABLE blog_entries (
  blog_id TEXT NOT NULL,
  entry_key TEXT NOT NULL,
  url TEXT,
  title TEXT,
  published_at TEXT,
  first_seen_at TEXT NOT NULL,
  PRIMARY KEY (blog_id, entry_key)
);
CREATE INDEX idx_blog_entries_url ON blog_entries (blog_id, url);
