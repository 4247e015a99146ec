-- Counts of many commits for the pages: reading a million rows takes seconds, and a page must not.

-- Rises in every transaction that changes what is stored of the branch: a count of less is out of date.
ALTER TABLE branches ADD COLUMN changes INTEGER NOT NULL DEFAULT 0;

-- What was counted last, a document for each year and one (year 0) for all of them.
CREATE TABLE commit_counts (
  -- A project and a branch, as `PROJECT/BRANCH`; empty for all of them.
  scope TEXT NOT NULL,
  year INTEGER NOT NULL,
  -- The sum of `changes` of its branches, and a fingerprint of people, exclusions and time zone, when it was counted.
  version INTEGER NOT NULL,
  settings TEXT NOT NULL,
  counted_at TEXT NOT NULL,
  commits INTEGER NOT NULL,
  counts TEXT NOT NULL,
  PRIMARY KEY (scope, year)
);
