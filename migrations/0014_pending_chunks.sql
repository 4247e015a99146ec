-- Whoever takes part in a run takes its next piece: what is done of a million blogs is not passed over for each.
CREATE INDEX IF NOT EXISTS idx_blog_chunks_pending ON blog_chunks (job_name, number) WHERE pending <> 0;
