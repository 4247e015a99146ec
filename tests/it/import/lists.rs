//! The commands as people meet them: lists into the config file, files of others into config and database.

use std::path::Path;
use std::process::Command;

use super::{BLOG_WATCHER, DRE, GITLAB_ANALYZER, MIC_BOT, source};
use crate::test_env::{TestEnv, code, ends_with, err, out};

const OPML: &str = "<opml version='2.0'><body><outline text='News'>\
    <outline text='Alpha' xmlUrl='https://alpha.example/feed' htmlUrl='https://alpha.example/'/>\
    <outline text='日本' xmlUrl='https://nihon.example/rss'/></outline></body></opml>";

#[test]
fn feeds_of_an_opml_list_join_the_config_and_its_comments_stay() {
    let test_env = TestEnv::new(
        "# mine\n[[job]]\nname = \"web\"  # short\nkind = \"blogs\"\n\n# the first\n[[job.blog]]\nid = \"a\"\nurl = \"https://a.example/\"\n\n[app]\nlanguage = \"en\"\n",
    );
    test_env.write("list.opml", OPML);
    let before = test_env.config();
    let dry = test_env.run(&["import", "opml", "list.opml", "--dry-run"]);
    assert_eq!((code(&dry), test_env.config() == before), (0, true), "{}", err(&dry));
    assert!(out(&dry).contains("https://nihon.example/rss"), "{}", out(&dry));
    let output = test_env.run(&["import", "opml", "list.opml"]);
    assert_eq!(code(&output), 0, "{}", err(&output));
    assert!(err(&output).contains("2 blogs added, 0 known already"), "{}", err(&output));
    let config = test_env.config();
    for kept in ["# mine", "# short", "# the first", "[app]"] {
        assert!(config.contains(kept), "{kept} in {config}");
    }
    assert!(config.contains("[[job.blog]]\nid = \"alpha\"\nurl = \"https://alpha.example/\"\ntitle = \"Alpha\"\nfolder = \"News\"\nfeed = \"https://alpha.example/feed\"\n"), "{config}");
    assert!(
        config.contains(
            "id = \"日本\"\nurl = \"https://nihon.example/\"\nfolder = \"News\"\nfeed = \"https://nihon.example/rss\""
        ),
        "{config}"
    );
    test_env.ends("check", 0);
    let again = test_env.run_with(&["import", "opml", "-"], OPML);
    assert!(err(&again).contains("0 blogs added, 2 known already"), "{}", err(&again));
    assert_eq!(test_env.config(), config);

    let written = test_env.ends("export opml --output back.opml", 0);
    let feeds = tsuzuki::parse::opml::parse(test_env.read("back.opml").as_bytes(), None).unwrap().feeds;
    let urls: Vec<&str> = feeds.iter().map(|feed| feed.url.as_str()).collect();
    assert_eq!(urls, ["https://alpha.example/feed", "https://nihon.example/rss"]);
    assert!(written.contains("1 blog left out: no feed is known"), "{written}");
}

#[test]
fn a_plain_list_makes_the_job_if_there_is_none() {
    let test_env = TestEnv::new("[app]\nlanguage = \"en\"\n");
    let output = test_env.run_with(
        &["import", "urls", "-", "--job", "friends"],
        "https://a.example/ A friend\n# no\nhttps://b.example/x\nhttp://b.example/x?utm_source=y\nnonsense\n",
    );
    assert_eq!(code(&output), 3, "one line is no address: {}", err(&output));
    assert!(err(&output).contains("2 blogs added, 1 known already, 1 left out"), "{}", err(&output));
    assert!(test_env.config().contains("name = \"friends\"\nkind = \"blogs\"\n\n[[job.blog]]\nid = \"a-friend\"\nurl = \"https://a.example/\"\n"), "{}", test_env.config());
    test_env.ends("check", 0);
    let json = test_env.run_with(&["import", "urls", "-", "--dry-run", "--json"], "https://c.example/\n");
    let printed: serde_json::Value = serde_json::from_str(&out(&json)).unwrap();
    assert_eq!((&printed["dry_run"], &printed["blogs"][0]["id"]), (&true.into(), &"c-example".into()));
    let wrong = ends_with(&test_env.run_with(&["import", "opml", "-"], "<html>"), 1);
    assert!(wrong.contains("this is no OPML"), "{wrong}");
}

#[test]
fn an_import_says_everything_in_the_language_of_the_config() {
    let test_env = TestEnv::new("[app]\nlanguage = \"ja\"\n");
    let insert = "INSERT INTO items (url, title, published_at, status, reason, retry_count, created_at, last_checked_at)
                  VALUES ('javascript:x', 't', 0, 9, 7, -1, 'soon', 0), ('https://a.example/', '', 'soon', 0, NULL, 0, 0, 0);
                  ALTER TABLE items ADD COLUMN more TEXT;";
    source(test_env.path(), "mic.db", &format!("{MIC_BOT}{insert}"));
    let home = test_env.file("dre/data");
    std::fs::create_dir_all(&home).unwrap();
    source(&home, "app.db", DRE);
    for (args, input, wanted) in [
        (
            &["import", "mic-bot", "mic.db", "--job", "mic"][..],
            "",
            "取り込めません（最初は 1 行目：`url` が Web アドレスではありません",
        ),
        (&["import", "dre", "dre"], "", "jobs.yaml が見つかりません"),
        (&["import", "dre", "mic.db"], "", "は dre のデータベースではありません"),
        (&["import", "blog-watcher", "--db", "tsuzuki.toml"], "", "SQLite のデータベースではありません"),
        (&["import", "urls", "-"], "nonsense\nhttps://b.example/\n", "ブログ 1 件を追加しました"),
        (&["import", "opml", "-"], "<opml><body>", "途中で切れています"),
        (&["export", "opml", "-o", "x.opml"], "", "を x.opml に書き出しました"),
        (&["export", "items", "-o", "x.foo"], "", "拡張子 `.foo`"),
        (&["commits", "stats"], "", "コミット 0 件"),
        (&["db", "info"], "", "スキーマのバージョン"),
    ] {
        let output = test_env.run_with(args, input);
        let printed = format!("{}{}", out(&output), err(&output));
        assert!(printed.contains(wanted), "{args:?}: {printed}");
        let is_english = |word: &str| word.len() > 2 && word.bytes().all(|byte| byte.is_ascii_lowercase());
        let mut words = printed.split_whitespace().collect::<Vec<_>>();
        words.retain(|word| !word.contains('`'));
        let sentence = words.windows(3).find(|words| words.iter().all(|word| is_english(word)));
        assert_eq!(sentence, None, "{args:?}: {printed}");
    }
}

#[test]
fn a_list_that_is_cut_off_is_refused_unless_a_part_is_wanted() {
    let test_env = TestEnv::new("");
    let cut = OPML.rfind("</opml>").unwrap();
    let refused = ends_with(&test_env.run_with(&["import", "opml", "-"], &OPML[..cut]), 1);
    assert!(refused.contains("is cut off: it ends before the list does, after 2 feeds"), "{refused}");
    assert_eq!(test_env.config(), "");
    let taken = ends_with(&test_env.run_with(&["import", "opml", "-", "--partial"], &OPML[..cut]), 0);
    assert!(taken.contains("warning: - is cut off") && taken.contains("2 blogs added"), "{taken}");
}

#[test]
fn a_misspelt_job_is_refused_and_a_new_one_is_named_before_and_after() {
    let test_env = TestEnv::new("[[job]]\nname = \"friends\"\nkind = \"blogs\"\nblog = []\n");
    let config = test_env.config();
    let list = "https://a.example/\n";
    let typo = test_env.run_with(&["import", "urls", "-", "--job", "freinds"], list);
    assert_eq!((code(&typo), test_env.config()), (2, config), "{}", err(&typo));
    for words in ["there is no job `freinds`", "did you mean `friends`?", "--new"] {
        assert!(err(&typo).contains(words), "{words}: {}", err(&typo));
    }
    for args in [&["freinds", "--new"][..], &["others"]] {
        let made = test_env.run_with(
            &[&["import", "urls", "-", "--job"], args].concat(),
            &format!("https://{}.example/\n", args[0]),
        );
        assert_eq!(code(&made), 0, "{}", err(&made));
        let before = format!("job `{}` does not exist; it is made new", args[0]);
        let after = format!("Jobs that were added to the config file: {}", args[0]);
        let printed = err(&made);
        assert!(printed.find(&before).unwrap() < printed.find(&after).unwrap(), "{printed}");
    }
    assert_eq!(code(&test_env.run_with(&["import", "urls", "-", "--job", "friends"], list)), 0);
}

#[test]
fn a_directory_of_dre_becomes_jobs_and_rows_and_a_dry_run_creates_nothing() {
    let test_env = TestEnv::new(
        "[channel.me]\nkind = \"email\"\nsmtp = \"127.0.0.1:25\"\nfrom = \"a@example.com\"\nto = [\"b@example.com\"]\n",
    );
    let home = test_env.file("dre");
    std::fs::create_dir_all(home.join("data")).unwrap();
    std::fs::create_dir_all(home.join("config")).unwrap();
    let isbn = tsuzuki::demo::google_books::isbn(1);
    source(
        &home.join("data"),
        "app.db",
        &format!(
            "{DRE} INSERT INTO books VALUES ('{isbn}', 'One', NULL, NULL, NULL, NULL, NULL, NULL, 'google_books', '2025-01-01', '2025-01-01', NULL)"
        ),
    );
    std::fs::write(home.join("config/jobs.yaml"), "defaults:\n  interval: 6h\n  mail_limit: 4\njobs:\n  - name: ai-books\n    enabled: true\n    queries: [AI]\n    google_books: {printType: books, langRestrict: ja}\n").unwrap();
    let before = test_env.config();
    let dry = test_env.run(&["import", "dre", "dre", "--dry-run"]);
    assert_eq!(code(&dry), 0, "{}", err(&dry));
    assert!(out(&dry).contains("WOULD ADD"), "{}", out(&dry));
    assert_eq!(test_env.config(), before);
    assert!(!test_env.file("tsuzuki.db").exists(), "a dry run creates no database");
    let output = test_env.ends("import dre dre", 0);
    assert!(output.contains("now waiting in the job `ai-books`: 1 undelivered book"), "{output}");
    let config = test_env.config();
    assert!(config.contains("[[job]]\nname = \"ai-books\"\nkind = \"books\"\ndeliver = [\"me\"]\nevery = \"6h\"\nqueries = [\"AI\"]\nmail_limit = 4\n"), "{config}");
    test_env.ends("check", 0);
    let printed = test_env.json("import dre dre");
    assert_eq!((&printed["tables"][0]["added"], &printed["tables"][0]["known"]), (&0.into(), &1.into()));
    assert_eq!(test_env.config(), config);
    let csv = test_env.run(&["export", "books"]);
    assert!(out(&csv).starts_with("isbn13,title,authors,"), "{}", out(&csv));
    assert!(out(&csv).contains(&format!("\r\n{isbn},One,")), "{}", out(&csv));
}

#[test]
fn what_an_imported_book_says_cannot_command_a_terminal() {
    let test_env = TestEnv::new("[[job]]\nname = \"shelf\"\nkind = \"books\"\nqueries = [\"x\"]\n");
    let isbn = tsuzuki::demo::google_books::isbn(1);
    let evil = "'T' || char(27) || '[31mitle' || char(27) || ']0;pwned' || char(7)";
    source(
        test_env.path(),
        "app.db",
        &format!(
            "{DRE} INSERT INTO books VALUES ('{isbn}', {evil}, '[\"A\\u001b[2Juthor\", \"B\"]', {evil}, {evil},
               {evil} || char(10) || 'second line' || char(155) || char(8238), {evil}, '[{{\"label\": \"L\\u009b\", \"url\": \"https://a.example/\"}}]',
               'google_books', '2025-01-01', '2025-01-01', NULL);
             INSERT INTO prompts VALUES (1, '{isbn}', {evil} || char(10) || 'more', '2025-01-01')"
        ),
    );
    test_env.ends("import dre app.db --job shelf", 0);
    let stored = test_env.run(&["book", "show", &isbn, "--json"]);
    let stored: serde_json::Value = serde_json::from_str(&out(&stored)).unwrap();
    assert_eq!(stored["title"], "T[31mitle]0;pwned", "{stored}");
    // Control characters in texts that were stored before cleaning was introduced have no effect either.
    let file = rusqlite::Connection::open(test_env.file("tsuzuki.db")).unwrap();
    file.execute_batch(&format!("UPDATE books SET title = {evil} || char(10) || 'x', description = {evil} || char(10) || 'y' || char(155); UPDATE prompts SET prompt_text = {evil}")).unwrap();
    drop(file);
    for args in [
        &["book", "show", &isbn][..],
        &["book", "show", &isbn, "--json"],
        &["book", "prompt", &isbn],
        &["book", "ls"],
        &["mail", "preview", "shelf"],
    ] {
        let printed = out(&test_env.run(args));
        assert!(printed.contains("pwned"), "{args:?}: {printed}");
        assert!(!printed.contains(['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}']), "{args:?}: {printed:?}");
    }
    let shown = out(&test_env.run(&["book", "show", &isbn]));
    assert!(shown.contains(&format!("book {isbn}: T[31mitle]0;pwned x\n")), "one line: {shown}");
    assert!(shown.contains("description     T[31mitle]0;pwned y\n"), "several lines in one: {shown}");
}

#[test]
fn blogs_of_blog_watcher_keep_the_ids_of_their_states() {
    let test_env = TestEnv::new("");
    test_env.write("config.toml", "[[blogs]]\nname = \"A\"\nurl = \"https://a.example\"\n[[blogs]]\nname = \"B\"\nurl = \"https://b.example\"\n");
    source(
        test_env.path(),
        "state.db",
        &format!(
            "{BLOG_WATCHER} INSERT INTO blog_state (blog_id, last_check_at) VALUES ('A', '2025-01-01'), ('https://b.example', '2025-01-01')"
        ),
    );
    test_env.ends("import blog-watcher --blogs config.toml --db state.db", 0);
    let config = test_env.config();
    assert!(config.contains("id = \"A\"\n") && config.contains("id = \"https://b.example\"\n"), "{config}");
    let why = test_env.run(&["why", "A"]);
    assert!(out(&why).contains("2025-01-01 09:00 +09:00"), "{}", out(&why));
}

#[test]
fn refusals_and_wrong_files_end_with_words_and_codes() {
    let test_env = TestEnv::new("");
    let file = source(
        test_env.path(),
        "mic.db",
        &format!(
            "{MIC_BOT} INSERT INTO items (url, title, published_at, status, retry_count, created_at, last_checked_at) VALUES ('https://a.example/', 't', 'soon', 0, 0, '2025-01-01', '2025-01-01')"
        ),
    );
    let nameless = test_env.ends("import mic-bot mic.db", 2);
    assert!(nameless.contains("hint: name it with --job"), "{nameless}");
    let refused = test_env.run(&["import", "mic-bot", "mic.db", "--job", "mic"]);
    assert_eq!(code(&refused), 3, "{}", err(&refused));
    assert!(
        err(&refused).contains("warning: items: 1 refused, first row 1: `published_at` is not a time"),
        "{}",
        err(&refused)
    );
    let other = test_env.ends("import dre mic.db", 1);
    assert!(other.contains("mic.db is not a database of dre: it has no table `books`"), "{other}");
    let ours = test_env.run(&["import", "mic-bot", "tsuzuki.db", "--job", "mic"]);
    assert!(err(&ours).contains("is a database of tsuzuki itself"), "{}", err(&ours));
    test_env.ends("import mic-bot mic.db --job mic --timezone Mars", 2);
    assert!(file.exists());
}

/// The shell blocks of a page.
fn blocks(page: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(page);
    let text = std::fs::read_to_string(path).unwrap();
    let after = text.split("```sh\n").skip(1);
    after.map(|block| block.split("```").next().unwrap().to_owned()).collect()
}

#[test]
fn every_shell_block_of_the_pages_works_on_files_of_these_names() {
    let test_env = TestEnv::new("");
    test_env.write("subscriptions.opml", OPML);
    test_env.write("blogs.txt", "https://c.example/\n");
    test_env.write("config.toml", "[[blogs]]\nid = \"w\"\nurl = \"https://w.example\"\n");
    std::fs::create_dir_all(test_env.file("dre/data")).unwrap();
    source(test_env.path(), "mic.db", MIC_BOT);
    source(&test_env.file("dre/data"), "app.db", DRE);
    source(test_env.path(), "state.db", BLOG_WATCHER);
    source(test_env.path(), "gitlab.db", GITLAB_ANALYZER);
    let program = Path::new(env!("CARGO_BIN_EXE_tsuzuki")).parent().unwrap();
    let path = format!("{}:/usr/bin:/bin", program.display());
    let all: Vec<String> = blocks("import.md").into_iter().chain(blocks("export.md")).collect();
    assert!(all.len() >= 7, "{} blocks", all.len());
    for block in all {
        let mut shell = Command::new("bash");
        shell.current_dir(test_env.path()).args(["-euo", "pipefail", "-c", &block]);
        let output = shell
            .env_clear()
            .env("TZ", "Asia/Tokyo")
            .env("HOME", test_env.path())
            .env("PATH", &path)
            .output()
            .unwrap();
        assert_eq!(code(&output), 0, "{block}\n{}", err(&output));
    }
}
