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
