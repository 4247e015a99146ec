-- Answers of language models: a cache by content, prompt version and model, and what each cost.

CREATE TABLE llm_answers (
  key TEXT PRIMARY KEY NOT NULL,
  provider TEXT NOT NULL,
  model TEXT NOT NULL,
  purpose TEXT NOT NULL,
  answer_json TEXT NOT NULL,
  tokens_in INTEGER NOT NULL DEFAULT 0,
  tokens_out INTEGER NOT NULL DEFAULT 0,
  job_name TEXT,
  created_at TEXT NOT NULL
);
CREATE INDEX idx_llm_answers_created ON llm_answers (created_at);

-- What was asked of a provider on a day and by a job: counted before the request leaves, corrected after its answer.
CREATE TABLE llm_usage (
  provider TEXT NOT NULL,
  date TEXT NOT NULL,
  job_name TEXT NOT NULL,
  requests INTEGER NOT NULL DEFAULT 0,
  tokens INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (provider, date, job_name)
);

-- How a provider has been: failures in a row make its rests longer, a change of its key, model or address ends them.
CREATE TABLE llm_health (
  provider TEXT PRIMARY KEY NOT NULL,
  failures_in_a_row INTEGER NOT NULL DEFAULT 0,
  rests_with TEXT,
  rests_because TEXT CHECK (rests_because IN ('busy', 'used_up', 'down', 'locked', 'refused')),
  -- The last refusal of each purpose that did not say what it was about, as JSON.
  refusals TEXT
);
