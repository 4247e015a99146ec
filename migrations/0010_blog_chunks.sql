-- What the last run of a job consists of: 64 blogs each, in the order of the config, so that several processes can share it.
CREATE TABLE blog_chunks (
  job_name TEXT NOT NULL,
  number INTEGER NOT NULL,
  -- The fence of the job's lease when the run was laid out.
  round INTEGER NOT NULL,
  -- Of the blogs and their settings: processes with another config do not take part.
  list_hash TEXT NOT NULL,
  -- A bit for each blog that is still to be checked.
  pending INTEGER NOT NULL,
  -- What was seen on the others, as JSON.
  counts TEXT NOT NULL,
  lease_owner TEXT,
  lease_fence INTEGER NOT NULL DEFAULT 0,
  lease_until TEXT,
  PRIMARY KEY (job_name, number)
);
