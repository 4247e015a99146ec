-- The parents of a commit stand beside it, SHAs with a space between them as `git log --format=%P` writes them: a table of
-- their own was a second large index to write at random for every commit. NULL: collected by another program and not met yet.
ALTER TABLE commits ADD COLUMN parents TEXT;
ALTER TABLE commits_left_out ADD COLUMN parents TEXT;

UPDATE commits SET parents = COALESCE((
  SELECT string_agg(e.parent_sha, ' ') FROM commit_parents e
  WHERE e.project_id = commits.project_id AND e.sha = commits.sha), '')
WHERE title IS NOT NULL;
UPDATE commits_left_out SET parents = COALESCE((
  SELECT string_agg(e.parent_sha, ' ') FROM commit_parents e
  WHERE e.project_id = commits_left_out.project_id AND e.sha = commits_left_out.sha), '');

DROP TABLE commit_parents;
