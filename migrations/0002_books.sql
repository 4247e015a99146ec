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

CREATE TABLE job_books (
  job_name TEXT NOT NULL,
  isbn13 TEXT NOT NULL,
  first_seen_at TEXT NOT NULL,
  PRIMARY KEY (job_name, isbn13)
);
CREATE INDEX idx_job_books_first_seen ON job_books (job_name, first_seen_at);
