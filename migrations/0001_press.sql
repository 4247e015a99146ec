-- Press releases: the seed's `items`, and what remembers a feed.

CREATE TABLE items (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  url TEXT NOT NULL,
  title TEXT NOT NULL,
  published_at TIMESTAMP NOT NULL,
  status INTEGER NOT NULL CHECK (status IN (0, 1, 2, 3)),
  reason INTEGER CHECK (reason BETWEEN 0 AND 6),
  retry_count INTEGER NOT NULL CHECK (retry_count >= 0),
  created_at TIMESTAMP NOT NULL,
  last_checked_at TIMESTAMP NOT NULL,
  job_name TEXT NOT NULL,
  not_before TEXT,
  -- Since when it is put off without having been found worth a summary.
  deferred_since TEXT,
  entry_key TEXT,
  -- The address without scheme, fragment and tracking parameters; none where entries of one document share it.
  url_key TEXT,
  -- When the feed had been read before, the last time before this was found in it.
  found_since TEXT,
  page_hash TEXT,
  -- 1 when it came with more new entries than `hold_above` allows: its post waits for a person.
  is_held INTEGER NOT NULL DEFAULT 0,
  -- 1 when a person wants it looked at again: the model is asked even if its answer is known.
  bypass_cache INTEGER NOT NULL DEFAULT 0,
  -- What the feed says about it, for posts that no model writes.
  excerpt TEXT,
  -- 1 when it is posted with its title alone: the model finds it not worth a summary, and the job posts it all the same.
  is_short INTEGER NOT NULL DEFAULT 0,
  -- The summary as posted, and what the model said about it last.
  summary TEXT,
  verdict TEXT
);

-- With one job this is the seed's rule that a URL occurs once.
CREATE UNIQUE INDEX idx_items_url ON items (job_name, url);
CREATE INDEX idx_items_status_last_checked_at ON items (status, last_checked_at);
CREATE INDEX idx_items_status_published_at ON items (status, published_at);
CREATE INDEX idx_items_address ON items (url, job_name);
CREATE INDEX idx_items_entry_key ON items (job_name, entry_key);
CREATE INDEX idx_items_url_key ON items (job_name, url_key);
CREATE INDEX idx_items_job ON items (job_name, id);
CREATE INDEX idx_items_job_status_last_checked_at ON items (job_name, status, last_checked_at, published_at, id);
CREATE INDEX idx_items_job_status_published_at ON items (job_name, status, published_at);

CREATE TABLE press_feeds (
  job_name TEXT NOT NULL,
  feed_url TEXT NOT NULL,
  etag TEXT,
  last_modified TEXT,
  -- The resource that the validators belong to.
  validated_url TEXT,
  first_success_at TEXT,
  last_success_at TEXT,
  -- When its body was last read whole.
  last_read_at TEXT,
  -- From when on it is read whole again: the date of an entry that was left alone because it lay in the future.
  read_again_at TEXT,
  -- Until when the server asked us to leave it alone.
  not_before TEXT,
  -- How many entries it had when its body was last read whole.
  entry_count INTEGER,
  -- When it answered that it is gone for good (410).
  gone_at TEXT,
  -- Where permanent redirects lead, in how many readings in a row, and the address that was adopted.
  moved_to TEXT,
  moved_count INTEGER NOT NULL DEFAULT 0,
  adopted_url TEXT,
  -- The last days with something new, as JSON, and since when it is known to be silent.
  news_days TEXT,
  silent_at TEXT,
  -- What was left out at a limit when it was last read whole, as JSON.
  cut TEXT,
  PRIMARY KEY (job_name, feed_url)
);
