//! The SQL of the commits pipeline.

/// `pairs`, for `WITH RECURSIVE`: every project and branch that has commits, by steps through the index; the last row
/// is NULL.
macro_rules! pairs {
    () => {
        "pairs (project_id, branch_name) AS (
           SELECT first.project_id, first.branch_name
           FROM (SELECT project_id, branch_name FROM commits
             ORDER BY project_id, branch_name LIMIT 1) first
           UNION ALL
           SELECT
             (SELECT c.project_id FROM commits c
              WHERE (c.project_id, c.branch_name) > (pairs.project_id, pairs.branch_name)
              ORDER BY c.project_id, c.branch_name LIMIT 1),
             (SELECT c.branch_name FROM commits c
              WHERE (c.project_id, c.branch_name) > (pairs.project_id, pairs.branch_name)
              ORDER BY c.project_id, c.branch_name LIMIT 1)
           FROM pairs WHERE pairs.project_id IS NOT NULL)"
    };
}

pub mod branches;
pub mod export;
pub mod forget;
pub mod import;
pub mod lines;
pub mod pages;
pub mod projects;
pub mod reading;
pub mod unreachable;

crate::migration!(4, "commits", "../../../migrations/0004_commits.sql");
