//! Figures of what the four pipelines have found, decided and sent, and the line for each of them.

use serde::Serialize;

use crate::phrase;
use crate::phrase::{Phrase, Value};

/// The totals according to the database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Figures {
    /// Press releases.
    pub press: Press,
    pub books: Books,
    pub blogs: Blogs,
    pub commits: Commits,
    /// Messages that are not final yet.
    pub under_way: i64,
}

/// Totals of press releases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Press {
    /// Known items, including those of the first run.
    pub items: i64,
    /// New items.
    pub found: i64,
    /// Screenings that found an item worth a post.
    pub worth: i64,
    /// Screenings with the verdict "not worth a post".
    pub not_worth: i64,
    /// Screenings of pages whose documents are announced for later.
    pub not_ready: i64,
    /// Pages, files or answers that could not be obtained.
    pub failed: i64,
    /// Posts that were accepted.
    pub posted: i64,
}

/// Totals of books.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Books {
    /// Volumes that were read: the position of the search.
    pub volumes: i64,
    /// Known books.
    pub books: i64,
    /// Books that are in no mail yet.
    pub waiting: i64,
    /// Books that are in a mail.
    pub mailed: i64,
    /// Links to prompts.
    pub links: i64,
    /// Mails that were accepted.
    pub mails: i64,
}

/// Totals of blogs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Blogs {
    /// Blogs with a feed.
    pub by_feed: i64,
    /// Blogs with a sitemap.
    pub by_sitemap: i64,
    /// Blogs of which the links of the page are read.
    pub by_page: i64,
    /// Checks with any result.
    pub checks: i64,
    /// Checks that failed.
    pub failed: i64,
    /// Known entries, including those of the first run.
    pub entries: i64,
    /// Mails that were accepted.
    pub mails: i64,
}

/// Totals of commits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Commits {
    /// Commits that are stored, each once.
    pub commits: i64,
    /// The same, counted on every branch.
    pub on_branches: i64,
    pub projects: i64,
    /// Branches that were read to the end.
    pub branches: i64,
    /// Those of them with a complete history.
    pub closed: i64,
    /// Posts that were accepted.
    pub posts: i64,
}

impl Figures {
    /// What happened since `before`: a line for each pipeline.
    pub fn render(&self, before: &Figures) -> [Phrase; 4] {
        [
            phrase!("press    {what}", "報道発表　{what}", what = self.press.render(&before.press)),
            phrase!("books    {what}", "書籍　　　{what}", what = self.books.render(&before.books)),
            phrase!("blogs    {what}", "ブログ　　{what}", what = self.blogs.render(&before.blogs)),
            phrase!("commits  {what}", "コミット　{what}", what = self.commits.render(&before.commits)),
        ]
    }

    /// The same for pipelines with news only; an unchanged check is none.
    pub fn render_news(&self, before: &Figures) -> Vec<Phrase> {
        let quiet = Figures { blogs: Blogs { checks: before.blogs.checks, ..self.blogs }, ..*self };
        let is_news = [
            quiet.press != before.press,
            quiet.books != before.books,
            quiet.blogs != before.blogs,
            quiet.commits != before.commits,
        ];
        let lines = self.render(before).into_iter().zip(is_news);
        lines.filter(|(_, is_news)| *is_news).map(|(line, _)| line).collect()
    }
}

impl Press {
    fn render(&self, before: &Press) -> Phrase {
        let (worth, not_worth) = (self.worth - before.worth, self.not_worth - before.not_worth);
        let (not_ready, failed) = (self.not_ready - before.not_ready, self.failed - before.failed);
        let decided: Vec<Value> = [
            (worth, phrase!("{worth} worth a post", "投稿対象 {worth} 件")),
            (not_worth, phrase!("{not_worth} rejected", "対象外 {not_worth} 件")),
            (not_ready, phrase!("{not_ready} not ready yet", "資料待ち {not_ready} 件")),
            (failed, phrase!("{failed} failed", "失敗 {failed} 件")),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(_, said)| said.into())
        .collect();
        let decided = if decided.is_empty() {
            phrase!("nothing to decide", "判定なし").into()
        } else {
            Value::List(decided)
        };
        phrase!(
            "{found} new in the feed ({known} known before); {decided}; {posted post} sent",
            "新着 {found} 件（既知 {known} 件）／{decided}／投稿 {posted} 件",
            found = self.found - before.found,
            known = before.items,
            posted = self.posted - before.posted
        )
    }
}

impl Books {
    fn render(&self, before: &Books) -> Phrase {
        phrase!(
            "{volumes volume} read from position {position}, {books new book}; {chosen} chosen, {waiting} queued for later digests; {mails mail} sent with {links prompt link}",
            "{position} 件目から {volumes} 件を取得、新しい本 {books} 冊／今回 {chosen} 冊、次回以降 {waiting} 冊／メール {mails} 通（調査プロンプトのリンク {links} 件）",
            volumes = self.volumes - before.volumes,
            position = before.volumes,
            books = self.books - before.books,
            chosen = self.mailed - before.mailed,
            waiting = self.waiting,
            mails = self.mails - before.mails,
            links = self.links - before.links
        )
    }
}

impl Blogs {
    fn render(&self, before: &Blogs) -> Phrase {
        let checks = self.checks - before.checks;
        let checked = match self.failed - before.failed {
            0 => phrase!("{checks check}", "確認 {checks} 回"),
            failed => phrase!("{checks check}, {failed} failed", "確認 {checks} 回（失敗 {failed}）"),
        };
        phrase!(
            "{checked}, {entries new entry} ({known} known before); read by feed: {feed}, sitemap: {sitemap}, page: {page}; {mails mail} sent",
            "{checked}、新しい記事 {entries} 件（既知 {known} 件）／フィード {feed}、サイトマップ {sitemap}、ページ {page}／メール {mails} 通",
            entries = self.entries - before.entries,
            known = before.entries,
            feed = self.by_feed,
            sitemap = self.by_sitemap,
            page = self.by_page,
            mails = self.mails - before.mails
        )
    }
}

impl Commits {
    /// A commit on two branches is new on both, as in runs and posts; statistics count it once.
    fn render(&self, before: &Commits) -> Phrase {
        let (new, distinct) = (self.on_branches - before.on_branches, self.commits - before.commits);
        let new = if new == distinct {
            phrase!("{new new commit}", "新しいコミット {new} 件")
        } else {
            phrase!(
                "{new new commit}, {distinct} without repeats,",
                "新しいコミット {new} 件（重複を除くと {distinct} 件）"
            )
        };
        phrase!(
            "{new} on {branches branch} of {projects project}; {complete branch} complete; {posts post} sent",
            "{projects} プロジェクト・{branches} ブランチに{new}／完了 {complete} ブランチ／投稿 {posts} 件",
            branches = self.branches,
            projects = self.projects,
            complete = self.closed,
            posts = self.posts - before.posts
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
