-- Books: the seeds' tables, and which job has seen which book.

CREATE TABLE books (
  isbn13 TEXT PRIMARY KEY NOT NULL,
  title TEXT NOT NULL,
  authors_json TEXT,
  publisher TEXT,
  published_date TEXT,
  description TEXT,
  cover_url TEXT,
  links_json TEXT,
  source TEXT NOT NULL,
  first_seen_at TEXT NOT NULL,
  last_seen_at TEXT NOT NULL,
  last_delivered_at TEXT
);
CREATE INDEX idx_books_undelivered ON books (last_delivered_at) WHERE last_delivered_at IS NULL;
CREATE INDEX idx_books_last_seen ON books (last_seen_at);
CREATE INDEX idx_books_first_seen ON books (first_seen_at);

CREATE TABLE deliveries (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  job_name TEXT NOT NULL,
  delivered_at TEXT NOT NULL,
  isbn13_list_json TEXT NOT NULL
);
CREATE INDEX idx_deliveries_job ON deliveries (job_name);

CREATE TABLE delivery_items (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  delivery_id INTEGER NOT NULL REFERENCES deliveries (id),
  job_name TEXT NOT NULL,
  isbn13 TEXT NOT NULL,
  delivered_at TEXT NOT NULL,
  UNIQUE (job_name, isbn13)
);
CREATE INDEX idx_delivery_items_job ON delivery_items (job_name);
CREATE INDEX idx_delivery_items_isbn13 ON delivery_items (isbn13);
CREATE INDEX idx_delivery_items_delivery ON delivery_items (delivery_id);

CREATE TABLE prompts (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  isbn13 TEXT NOT NULL,
  prompt_text TEXT NOT NULL,
  created_at TEXT NOT NULL
);
CREATE INDEX idx_prompts_isbn13 ON prompts (isbn13);

CREATE TABLE prompt_tokens (
  token TEXT PRIMARY KEY NOT NULL,
  prompt_id INTEGER NOT NULL REFERENCES prompts (id),
  expires_at TEXT NOT NULL,
  created_at TEXT NOT NULL,
  revoked_at TEXT
);
CREATE INDEX idx_prompt_tokens_expires ON prompt_tokens (expires_at);
CREATE INDEX idx_prompt_tokens_prompt ON prompt_tokens (prompt_id);

CREATE TABLE collect_cursor (
  job_name TEXT NOT NULL,
  query_set_hash TEXT NOT NULL,
  start_index INTEGER NOT NULL DEFAULT 0,
  is_exhausted INTEGER NOT NULL DEFAULT 0,
  last_updated_at TEXT NOT NULL DEFAULT {now},
  PRIMARY KEY (job_name, query_set_hash)
);
CREATE INDEX idx_collect_cursor_job ON collect_cursor (job_name);

-- Which job has found which book. `is_waiting` is a hint that keeps selection fast: every book without a
-- delivery item has it, except those that the first run of a job was told to keep to itself.
CREATE TABLE job_books (
  job_name TEXT NOT NULL,
  isbn13 TEXT NOT NULL,
  first_seen_at TEXT NOT NULL,
  -- What the config does not want to hear of; it may want to later.
  is_unwanted INTEGER NOT NULL DEFAULT 0,
  is_waiting INTEGER NOT NULL DEFAULT 1,
  last_sent_at TEXT,
  -- How many digests with it were refused, and until when it is in none therefore.
  refusals INTEGER NOT NULL DEFAULT 0,
  rests_until TEXT,
  PRIMARY KEY (job_name, isbn13)
);
CREATE INDEX idx_job_books_first_seen ON job_books (job_name, first_seen_at);
CREATE INDEX idx_job_books_isbn13 ON job_books (isbn13, job_name);
CREATE INDEX idx_job_books_waiting ON job_books (job_name, is_waiting, first_seen_at, isbn13) WHERE is_waiting = 1;
CREATE INDEX idx_job_books_waiting_anywhere ON job_books (is_waiting, first_seen_at, isbn13) WHERE is_waiting = 1;
CREATE INDEX idx_job_books_last_sent ON job_books (job_name, last_sent_at, isbn13) WHERE last_sent_at IS NOT NULL;

-- A digest that was handed to the outbox, under the subject `digest:ID`; `delivery_id` is set by its first acceptance,
-- `refused_at` when every message of it has failed.
CREATE TABLE book_digests (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  job_name TEXT NOT NULL,
  is_repeat INTEGER NOT NULL DEFAULT 0,
  created_at TEXT NOT NULL,
  refused_at TEXT,
  delivery_id INTEGER REFERENCES deliveries (id)
);
CREATE INDEX idx_book_digests_job ON book_digests (job_name, id);

CREATE TABLE book_digest_items (
  digest_id INTEGER NOT NULL REFERENCES book_digests (id),
  position INTEGER NOT NULL,
  isbn13 TEXT NOT NULL,
  PRIMARY KEY (digest_id, position)
);
CREATE INDEX idx_book_digest_items_isbn13 ON book_digest_items (isbn13, digest_id);
