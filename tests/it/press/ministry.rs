//! The config of docs/press.md for the real ministry, against pages of the ministry's shapes.

use super::*;

/// The job of the documentation, over the servers of the test.
fn documented(world: &World) -> String {
    let docs = include_str!("../../../docs/press.md");
    let begins =
        docs.find("feed = \"https://www.soumu.go.jp/news.rdf\"").expect("the page shows the real feed");
    let job = &docs[docs[..begins].rfind("[[job]]").unwrap()..];
    let job = &job[..job.find("```").unwrap()];
    let own = config_text(&world.ministry, &world.gemini, &world.mastodon, &More::default());
    let own = &own[..own.find("[[job]]").unwrap()];
    let job = job
        .replace("https://www.soumu.go.jp/news.rdf", &world.ministry.feed())
        .replace("\"soumu\"", "\"mic\"");
    format!(
        "{own}{}\nallow_private = [\"127.0.0.1\"]\n",
        job.replace("[\"mastodon\"]", "[\"toots\"]").trim_end()
    )
}

/// Pages as the ministry writes them: the parts around the main block, tables of files, and links that are none.
fn page(main: &str) -> Shape {
    Shape::Html(main.to_owned())
}

on_both_databases! {
    async fn the_documented_config_reads_pages_of_the_ministrys_shapes(fixture) {
        let mut world = World::untouched(&fixture, &More::default()).await;
        world.config = read_config(&documented(&world));
        world.run().await;
        world.clock.advance(MINUTE);
        // A table of files, one of them twice; a heading and a contact block.
        let table = "<p class=\"date\">令和８年１月15日</p><h1>家計調査の結果</h1><p>総務省は、調査の結果を取りまとめました。</p>\
            <table><tr><th>資料</th><td><a href=\"../../main_content/000000101.pdf\">別添１<img alt=\"PDF\" src=\"/p.gif\"></a></td></tr>\
            <tr><th>再掲</th><td><a href=\"/main_content/000000101.pdf\">別添１</a></td></tr></table>\
            <div class=\"contact\">連絡先：統計局 電話 03-0000-0000</div>";
        // A call for comments with a link inside a sentence and an address of another system.
        let comments = "<h1>意見募集</h1><p>案についてはhttps://public-comment.example/で公表しています。</p>\
            <ul><li><a href=\"/main_content/000000102.pdf\">報道資料（PDF）</a></li><li><a href=\"https://www.e-gov.example/\">e-Gov</a></li></ul>";
        // Documents follow later.
        let later = "<h1>研究会（第３回）</h1><p>議事概要及び資料は、後日掲載します。</p>";
        for (slug, html) in [("01tokei", table), ("01iken", comments), ("01kenkyu", later)] {
            world.publish(slug, page(html));
            world.clock.advance(MINUTE);
        }
        for number in [101, 102] {
            world.ministry.instead(&format!("/main_content/000000{number}.pdf"), "application/pdf", "%PDF-1.4\n%%EOF");
        }
        world.live(4).await;
        assert_eq!(world.standing("01kenkyu").await, "1/2/1", "{:?}", world.story("01kenkyu").await);
        assert_eq!(world.posts().len(), 2, "{:?}", world.posts());
        let asked = world.gemini.questions();
        assert!(asked.iter().all(|asked| !asked.text().contains("annai.pdf") && !asked.text().contains("御案内")), "the menu is no part of a page");
        let table = asked.iter().find(|asked| asked.text().contains("取りまとめました")).unwrap();
        assert_eq!(table.text().matches("- 別添１").count(), 1, "a file that is linked twice is one: {}", table.text());
        let report = world.run().await;
        assert!(!report.summary.to_string().contains("warning"), "the selector matches: {}", report.summary);
    }
}
