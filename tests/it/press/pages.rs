//! Pages as a ministry really has them: blocks by class, files as entries, many files, broken files.

use super::*;
use tsuzuki::demo::faults::Fault;
use tsuzuki::engine::Collector as _;

const NINE: More<'static> = More { tables: "", llm: "", job: "items_per_run = 9" };

/// The same world with another `content`.
fn with_content(world: &mut World, fixture: &Fixture, more: &More<'_>, content: &str) {
    let text = config_text(&world.ministry, &world.gemini, &world.mastodon, more);
    world.config = read_config(&text.replace(".contentsBody", content));
    world.env = fast_parts(&world.config, fixture);
}

/// How often the model was shown `words`.
fn shown(world: &World, words: &str) -> usize {
    world.gemini.questions().iter().filter(|asked| asked.text().contains(words)).count()
}

on_both_databases! {
    async fn a_block_that_no_page_has_is_a_warning_and_the_files_of_the_page_are_read(fixture) {
        let mut world = World::new(&fixture, &NINE).await;
        with_content(&mut world, &fixture, &NINE, "#contentsBody");
        world.ministry.instead("/main_content/annai.pdf", "application/pdf", "%PDF-1.4\n%%EOF");
        world.publish("a", files(&[2000]));
        let warning = format!(
            "warning: `content = \"#contentsBody\"` matches nothing on {}; the main text is detected instead",
            world.ministry.page("a")
        );
        let preview = world.press().test(&world.db).await.unwrap();
        assert!(preview.notes.iter().any(|note| *note == warning), "{preview:?}");
        let checks = world.press().check().await;
        assert!(checks.iter().any(|check| check.is_warning && check.detail == warning), "{checks:?}");
        let report = world.live(1).await.remove(0);
        assert!(report.summary.to_string().contains(&warning), "{report:?}");
        assert_eq!(world.standing("a").await, "3/0/0");
        assert!(world.posts()[0].contains("資料2件を公表した。"), "{:?}", world.posts());

        with_content(&mut world, &fixture, &NINE, ".contentsBody");
        world.publish("b", files(&[2000]));
        let preview = world.press().test(&world.db).await.unwrap();
        assert!(preview.notes.iter().any(|note| note.to_string().contains("and 1 file")), "{preview:?}");
        assert!(world.press().check().await.iter().all(|check| check.is_fine && !check.is_warning));
        let report = world.live(1).await.remove(0);
        assert!(!report.summary.to_string().contains("warning"), "{report:?}");
        assert!(world.posts()[1].contains("資料1件を公表した。"), "the file of the menu is none of the page");
    }

    async fn an_entry_that_is_a_file_is_an_attachment_and_max_file_applies(fixture) {
        let world = World::new(&fixture, &More { job: "max_file = \"4 KiB\"\nitems_per_run = 9", ..NINE }).await;
        world.publish("small", Shape::File("000000001.pdf".into(), 3000));
        world.publish("large", Shape::File("000000002.pdf".into(), 20 << 20));
        world.live(1).await;
        assert_eq!(world.standing("small").await, "3/0/0");
        assert!(world.posts()[0].contains("資料1件を公表した。"), "{:?}", world.posts());
        assert_eq!(world.standing("large").await, "1/4/1", "larger than a page may be, and than `max_file`");
        let fetched = world.ministry.log().iter().filter(|line| *line == "GET /main_content/000000002.pdf").count();
        assert_eq!(fetched, 0, "its size is known without fetching it");
    }

    async fn files_beyond_the_tenth_are_named_and_not_read(fixture) {
        let world = World::new(&fixture, &NINE).await;
        world.publish("many", files(&[2000; 13]));
        world.live(1).await;
        assert_eq!(world.standing("many").await, "3/0/0");
        assert_eq!(shown(&world, "bessi12.pdf"), 2, "in the screening and in the summary");
        let asked = world.ministry.log();
        assert!(asked.contains(&"GET /main_content/bessi9.pdf".to_owned()), "{asked:?}");
        assert!(!asked.iter().any(|line| line.contains("bessi10.pdf")), "{asked:?}");
        let about = Subject::new("item", world.ministry.page("many"));
        let events = world.db.read(move |tx| event::list_about(tx, &about, 100)).await.unwrap();
        let worth = events.iter().find(|event| event.code == "worth").unwrap();
        let named = worth.detail["files_not_read"].as_array().unwrap();
        assert_eq!((named.len(), named[2].as_str()), (3, Some("別紙（bessi12.pdf）")), "{worth:?}");
    }

    async fn a_page_that_forwards_its_readers_is_read_where_they_arrive(fixture) {
        let world = World::new(&fixture, &NINE).await;
        let forward = |to: &str, secs: u32| format!("<html><head><meta http-equiv=\"refresh\" content=\"{secs};url={to}\"></head><body><p>このページは移動しました。</p></body></html>");
        world.publish("there", files(&[2000]));
        world.live(1).await;
        let there = world.ministry.page("there");
        world.publish("moved", Shape::Bare);
        world.ministry.instead("/menu_news/s-news/moved.html", "text/html", forward(&there, 5));
        world.publish("circle", Shape::Bare);
        world.ministry.instead("/menu_news/s-news/circle.html", "text/html", forward("./round.html", 0));
        world.ministry.instead("/menu_news/s-news/round.html", "text/html", forward("./circle.html", 0));
        world.publish("clock", Shape::Bare);
        world.ministry.instead("/menu_news/s-news/clock.html", "text/html", forward("./", 300));
        world.live(1).await;
        assert_eq!(world.standing("moved").await, "3/0/0");
        assert!(world.posts()[1].ends_with(&world.ministry.page("moved")), "{:?}", world.posts());
        assert_eq!(world.standing("circle").await, "1/3/1");
        assert_eq!(world.standing("clock").await, "1/1/1", "a page that reloads itself by and by is read as it stands");
    }

    async fn a_broken_file_holds_up_a_good_page_for_a_quarter_of_an_hour(fixture) {
        let world = World::new(&fixture, &NINE).await;
        world.publish("a", files(&[2000, 2000]));
        world.ministry.script("/main_content/bessi1.pdf").always(Some(Fault::Status(404, vec![])));
        world.live(1).await;
        assert_eq!(world.standing("a").await, "1/3/1", "it may be there in a moment");
        world.clock.advance(15 * MINUTE);
        world.live(1).await;
        assert_eq!(world.standing("a").await, "3/0/1");
        assert_eq!(shown(&world, "bessi1.pdf） (取得できず)") + shown(&world, "／取得できず"), 1, "the model is told");

        // A page with a permanently broken file still has its text; if the entry is the file itself, there is nothing
        // else.
        world.publish("b", Shape::WithFiles(vec![("b.pdf".into(), 2000)]));
        world.publish("c", Shape::File("c.pdf".into(), 2000));
        for path in ["/main_content/b.pdf", "/main_content/c.pdf"] {
            world.ministry.script(path).always(Some(Fault::Status(404, vec![])));
        }
        for _ in 0..3 {
            world.live(1).await;
            world.clock.advance(15 * MINUTE);
        }
        assert_eq!(world.standing("b").await, "3/0/1");
        assert!(world.standing("c").await.starts_with("1/3/"), "{}", world.standing("c").await);
    }
}
