//! Counts what the four pipelines have done so far, for the lines of `demo`.

use super::figures::{Blogs, Books, Commits, Figures, Press};
use crate::db::{self, Tx};
use crate::{blogs, books, commits, press};
use crate::{params, sql};

/// Everything so far.
pub fn count_figures(tx: &mut Tx<'_>) -> db::Result<Figures> {
    Ok(Figures {
        press: count_press(tx)?,
        books: count_books(tx)?,
        blogs: count_blogs(tx)?,
        commits: count_commits(tx)?,
        under_way: tx.count(
            sql!("SELECT COUNT(*) FROM outbox WHERE state IN ('ready', 'sending', 'unknown')"),
            params![],
        )?,
    })
}

fn count_press(tx: &mut Tx<'_>) -> db::Result<Press> {
    let items = tx.count(sql!("SELECT COUNT(*) FROM items"), params![])?;
    let mut events = |code: &str| {
        tx.count(
            sql!(
                "SELECT COUNT(*) FROM events WHERE code = ?1
                 AND job_name IN (SELECT DISTINCT job_name FROM items)"
            ),
            params![code],
        )
    };
    Ok(Press {
        items,
        found: events("found")?,
        worth: events("worth")?,
        not_worth: events("not_valuable")?,
        not_ready: events("page_not_ready")?,
        failed: events("download_failed")? + events("model_failed")? + events("large_file_skipped")?,
        posted: count_sent(tx, press::TOPIC)?,
    })
}

fn count_books(tx: &mut Tx<'_>) -> db::Result<Books> {
    Ok(Books {
        volumes: tx.count(
            sql!("SELECT CAST(COALESCE(SUM(start_index), 0) AS BIGINT) FROM collect_cursor"),
            params![],
        )?,
        books: tx.count(sql!("SELECT COUNT(*) FROM job_books"), params![])?,
        waiting: tx.count(sql!("SELECT COUNT(*) FROM job_books WHERE is_waiting = 1"), params![])?,
        mailed: tx.count(sql!("SELECT COUNT(*) FROM delivery_items"), params![])?,
        links: tx.count(sql!("SELECT COUNT(*) FROM prompt_tokens"), params![])?,
        mails: count_sent(tx, books::deliver::TOPIC)?,
    })
}

fn count_blogs(tx: &mut Tx<'_>) -> db::Result<Blogs> {
    let mut decided =
        |by: &str| tx.count(sql!("SELECT COUNT(*) FROM blog_state WHERE decided_by = ?1"), params![by]);
    let (by_feed, by_sitemap, by_page) = (decided("feed")?, decided("sitemap")?, decided("html")?);
    Ok(Blogs {
        by_feed,
        by_sitemap,
        by_page,
        checks: tx.count(sql!("SELECT COUNT(*) FROM check_history"), params![])?,
        failed: tx
            .count(sql!("SELECT COUNT(*) FROM check_history WHERE error_message IS NOT NULL"), params![])?,
        entries: tx.count(sql!("SELECT COUNT(*) FROM blog_entries"), params![])?,
        mails: count_sent(tx, blogs::TOPIC)?,
    })
}

fn count_commits(tx: &mut Tx<'_>) -> db::Result<Commits> {
    Ok(Commits {
        // Each once, as `commits stats` does, on however many branches it is.
        commits: tx.count(sql!("SELECT COUNT(DISTINCT sha) FROM commits"), params![])?,
        on_branches: tx.count(sql!("SELECT COUNT(*) FROM commits"), params![])?,
        projects: tx.count(sql!("SELECT COUNT(*) FROM projects WHERE removed_at IS NULL"), params![])?,
        branches: tx
            .count(sql!("SELECT COUNT(*) FROM branches WHERE complete_head IS NOT NULL"), params![])?,
        closed: tx.count(sql!("SELECT COUNT(*) FROM branches WHERE open_parents = 0"), params![])?,
        posts: count_sent(tx, commits::message::TOPIC)?,
    })
}

fn count_sent(tx: &mut Tx<'_>, topic: &str) -> db::Result<i64> {
    tx.count(sql!("SELECT COUNT(*) FROM outbox WHERE topic = ?1 AND state = 'sent'"), params![topic])
}
