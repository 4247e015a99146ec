-- Status and pages ask which blogs of a job fail: a few among many.
CREATE INDEX IF NOT EXISTS idx_blog_state_failing ON blog_state (job_name, blog_id) WHERE failures_in_a_row > 0;
