//! The SQL of the commits pipeline.

/// `pairs`, for `WITH RECURSIVE`: every project and branch that has commits, by steps through the index; the last row
/// of each project has no branch.
///
/// A step compares one column at a time: for a comparison of both, SQLite uses the index for the first only and reads
/// the rest of the project.
macro_rules! pairs {
    () => {
        "places (project_id) AS (
           SELECT MIN(project_id) FROM commits
           UNION ALL
           SELECT (SELECT MIN(c.project_id) FROM commits c WHERE c.project_id > places.project_id)
           FROM places WHERE places.project_id IS NOT NULL),
         pairs (project_id, branch_name) AS (
           SELECT places.project_id,
             (SELECT MIN(c.branch_name) FROM commits c WHERE c.project_id = places.project_id)
           FROM places WHERE places.project_id IS NOT NULL
           UNION ALL
           SELECT pairs.project_id, (SELECT MIN(c.branch_name) FROM commits c
             WHERE c.project_id = pairs.project_id AND c.branch_name > pairs.branch_name)
           FROM pairs WHERE pairs.branch_name IS NOT NULL)"
    };
}

pub mod branches;
pub mod counts;
pub mod export;
pub mod forget;
pub mod import;
pub mod lines;
pub mod pages;
pub mod projects;
pub mod reading;
pub mod unreachable;

crate::migration!(4, "commits", "../../../migrations/0004_commits.sql");
