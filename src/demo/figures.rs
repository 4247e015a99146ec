//! What the four pipelines have found, decided and sent, and the line that tells each of them.

use crate::text::counted;
use serde::Serialize;

/// Everything so far, as the database has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Figures {
    /// Press releases.
    pub press: Press,
    pub books: Books,
    pub blogs: Blogs,
    pub commits: Commits,
    /// Messages that are on their way.
    pub under_way: i64,
}

/// Press releases so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Press {
    /// Items that are known, also those of the first look.
    pub items: i64,
    /// Items that were news.
    pub found: i64,
    /// Screenings that found an item worth a post.
    pub worth: i64,
    /// Screenings that did not.
    pub not_worth: i64,
    /// Screenings of pages whose documents are announced for later.
    pub not_ready: i64,
    /// Pages, files or answers that could not be had.
    pub failed: i64,
    /// Posts that were accepted.
    pub posted: i64,
}

/// Books so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Books {
    /// Volumes that were read: where the search goes on.
    pub volumes: i64,
    /// Books that are known.
    pub books: i64,
    /// Books that no mail has told yet.
    pub waiting: i64,
    /// Books that a mail has told.
    pub mailed: i64,
    /// Links to prompts.
    pub links: i64,
    /// Mails that were accepted.
    pub mails: i64,
}

/// Blogs so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Blogs {
    /// Blogs that are read by their feed.
    pub by_feed: i64,
    /// Blogs that are read by their sitemap.
    pub by_sitemap: i64,
    /// Blogs that are read by the links of their page.
    pub by_page: i64,
    /// Checks, whatever they brought.
    pub checks: i64,
    /// Checks that failed.
    pub failed: i64,
    /// Entries that are known, also those of the first look.
    pub entries: i64,
    /// Mails that were accepted.
    pub mails: i64,
}

/// Commits so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Commits {
    /// Commits that are stored, each once.
    pub commits: i64,
    pub projects: i64,
    /// Branches that were walked to their end.
    pub branches: i64,
    /// Those of them whose history has no gap.
    pub closed: i64,
    /// Posts that were accepted.
    pub posts: i64,
}

impl Figures {
    /// What happened since `before`: a line per pipeline.
    pub fn render(&self, before: &Figures) -> [String; 4] {
        [
            format!("press    {}", self.press.render(&before.press)),
            format!("books    {}", self.books.render(&before.books)),
            format!("blogs    {}", self.blogs.render(&before.blogs)),
            format!("commits  {}", self.commits.render(&before.commits)),
        ]
    }

    /// The same, but only of pipelines that found, decided or sent something: an unchanged check is no news.
    pub fn render_news(&self, before: &Figures) -> Vec<String> {
        let quiet = Figures { blogs: Blogs { checks: before.blogs.checks, ..self.blogs }, ..*self };
        let is_news = [
            quiet.press != before.press,
            quiet.books != before.books,
            quiet.blogs != before.blogs,
            quiet.commits != before.commits,
        ];
        self.render(before)
            .into_iter()
            .zip(is_news)
            .filter(|(_, is_news)| *is_news)
            .map(|(line, _)| line)
            .collect()
    }
}

impl Press {
    fn render(&self, before: &Press) -> String {
        let decided: Vec<String> = [
            (self.worth - before.worth, "worth a post"),
            (self.not_worth - before.not_worth, "rejected"),
            (self.not_ready - before.not_ready, "not ready yet"),
            (self.failed - before.failed, "failed"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
        let decided = if decided.is_empty() { "nothing to decide".to_owned() } else { decided.join(", ") };
        let found = self.found - before.found;
        let sent = counted(self.posted - before.posted, "post");
        format!("{found} new in the feed ({} known before); {decided}; {sent} sent", before.items)
    }
}

impl Books {
    fn render(&self, before: &Books) -> String {
        let volumes = counted(self.volumes - before.volumes, "volume");
        let books = counted(self.books - before.books, "new book");
        let sent = counted(self.mails - before.mails, "mail");
        let links = counted(self.links - before.links, "prompt link");
        format!(
            "{volumes} read from position {}, {books}; {} chosen, {} queued for later digests; {sent} sent with {links}",
            before.volumes,
            self.mailed - before.mailed,
            self.waiting
        )
    }
}

impl Blogs {
    fn render(&self, before: &Blogs) -> String {
        let checks = counted(self.checks - before.checks, "check");
        let entries = counted(self.entries - before.entries, "new entry");
        let sent = counted(self.mails - before.mails, "mail");
        let failed = match self.failed - before.failed {
            0 => String::new(),
            failed => format!(", {failed} failed"),
        };
        format!(
            "{checks}{failed}, {entries} ({} known before); read by feed: {}, sitemap: {}, page: {}; {sent} sent",
            before.entries, self.by_feed, self.by_sitemap, self.by_page
        )
    }
}

impl Commits {
    fn render(&self, before: &Commits) -> String {
        let commits = counted(self.commits - before.commits, "new commit");
        let complete = counted(self.closed, "branch");
        let branches = counted(self.branches, "branch");
        let projects = counted(self.projects, "project");
        let sent = counted(self.posts - before.posts, "post");
        format!(
            "{commits} ({} known before) on {branches} of {projects}; {complete} complete; {sent} sent",
            before.commits
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_moved_is_news_and_a_check_alone_is_not() {
        let before = Figures::default();
        let mut now = before;
        now.blogs.checks = 3;
        assert!(now.render_news(&before).is_empty());
        now.press = Press { items: 1, found: 1, worth: 1, posted: 1, ..Press::default() };
        assert_eq!(
            now.render_news(&before),
            ["press    1 new in the feed (0 known before); 1 worth a post; 1 post sent"]
        );
    }
}
