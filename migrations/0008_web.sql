-- Who may use the pages and the API. Only hashes are kept: whoever reads this table cannot log in with it.

CREATE TABLE web_sessions (
  hash TEXT PRIMARY KEY NOT NULL,
  user_name TEXT NOT NULL,
  -- The fingerprint of the password that opened it: another password ends it.
  password_print TEXT NOT NULL,
  created_at TEXT NOT NULL,
  expires_at TEXT NOT NULL
);
CREATE INDEX idx_web_sessions_expires ON web_sessions (expires_at);

-- For programs: made by `token create`.
CREATE TABLE access_tokens (
  name TEXT PRIMARY KEY NOT NULL,
  hash TEXT NOT NULL UNIQUE,
  scope TEXT NOT NULL CHECK (scope IN ('feed', 'read', 'act')),
  created_at TEXT NOT NULL
);
