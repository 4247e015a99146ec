//! The keys of a books job, and environment variables that override them.

use tsuzuki::app;
use tsuzuki::books::{self, config::Keys};
use tsuzuki::channel::email::EmailConfig;
use tsuzuki::config::{self, Config, Env, Problems};

fn read(text: &str, env: &Env) -> Result<Config, Problems> {
    config::parse(text, std::path::Path::new("tsuzuki.toml"), app::kinds(), env)
}

fn keys(config: &Config) -> Keys {
    let section = &config.jobs[0].section;
    let keys = section.keys().cloned().and_then(|keys| books::config::check(section).unless_any(keys));
    keys.unwrap_or_else(|problems| panic!("{}", problems.render(config::Colour::Never)))
}

const JOB: &str = "[[job]]\nname = \"b\"\nkind = \"books\"\nqueries = [\"rust\"]\n";

#[test]
fn a_job_needs_only_its_queries() {
    let keys = keys(&read(JOB, &Env::of([])).unwrap());
    assert_eq!((keys.max_per_run, keys.mail_limit, keys.fallback_limit, keys.token_days), (20, 5, 3, 30));
    assert_eq!(keys.quota, "google_books");
    assert_eq!(keys.recheck_after.0, None);
}

#[test]
fn what_init_and_the_documents_write_finds_new_books() {
    let example = &books::pipeline::PIPELINE.example;
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = ["README.md", "README.ja.md", "docs/books.md", "docs/ja/books.md"];
    let files = files.map(|file| std::fs::read_to_string(root.join(file)).unwrap());
    for text in files.iter().map(String::as_str).chain([example.en, example.ja]) {
        assert!(text.contains("also_newest = true\nrecheck_after = \"30d\"\n"), "{text}");
    }
}

#[test]
fn a_day_needs_no_quotes() {
    for written in ["2024-04-01", "\"2024-04-01\"", "\"2024-04\"", "\"2024\""] {
        let keys = keys(&read(&format!("{JOB}earliest = {written}\n"), &Env::of([])).unwrap());
        assert_eq!(keys.earliest.as_deref(), Some(written.trim_matches('"')));
    }
    let rendered = read(&format!("{JOB}earliest = 09:00:00\n"), &Env::of([])).unwrap_err().to_string();
    assert!(rendered.contains("this is not a year, month or day"), "{rendered}");
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    for (line, message) in [
        ("queries = []", "there is nothing to search for"),
        ("queries = [\"a\", \" \"]", "the query is empty"),
        ("max_per_run = 0", "`max_per_run` is at least 1"),
        ("mail_limit = 51", "`mail_limit` is at most 50"),
        ("token_days = 0", "`token_days` is at least 1"),
        ("recheck_after = 7", "`7` has no unit"),
        ("recheck_after = \"soon\"", "is not a duration"),
        ("recheck_after = -3", "`-3` has no unit"),
        ("earliest = \"April\"", "this is not a year, month or day"),
        ("retries = 4", "`retries` is at most 3"),
        ("include = { words = [\"a\", \"\"] }", "`` is in every book"),
        ("exclude = { publishers = [\" \"] }", "is in every book"),
        ("exclude = { titles = [\"a\"] }", "titles"),
        ("google_books = { country = \"Japan\" }", "the code of a country"),
        ("google_books = { langRestrict = \"japanese\" }", "the code of a language"),
        ("google_books = { filter = \"free\" }", "free-ebooks"),
        ("google_books = { order_by = \"date\" }", "relevance"),
        ("prompt = \"nowhere/prompt.txt\"", "nowhere/prompt.txt cannot be read"),
        ("google_books = { printtype = \"books\" }", "printtype"),
        ("google_books = { printType = \"comics\" }", "comics"),
        ("google_books = { api_url = \"googleapis.com\" }", "is not a web address"),
    ] {
        let text = if line.starts_with("queries") {
            JOB.replace("queries = [\"rust\"]", line)
        } else {
            format!("{JOB}{line}\n")
        };
        let problems = read(&text, &Env::of([])).unwrap_err();
        let rendered = problems.render(config::Colour::Never);
        assert!(rendered.contains(message) && rendered.contains("tsuzuki.toml:"), "{line}: {rendered}");
    }
}

#[test]
fn an_unknown_quota_is_told() {
    let text = format!("[quota.mine]\nper_day = 3\n{JOB}quota = \"mien\"\n");
    let rendered = read(&text, &Env::of([])).unwrap_err().render(config::Colour::Never);
    assert!(
        rendered.contains("there is no quota `mien`") && rendered.contains("did you mean `mine`"),
        "{rendered}"
    );
    assert!(read(&format!("{JOB}quota = \"google_books\"\n"), &Env::of([])).is_ok(), "it needs no table");
}

#[test]
fn the_environment_of_the_seed_stands_above_the_file() {
    let env = Env::of([
        ("GOOGLE_BOOKS_API_KEY", "s3cret-key"),
        ("COPY_PAGE_BASE_URL", "https://copy.example/base/"),
        ("DAILY_BOOKS_API_LIMIT", "7"),
    ]);
    let config = read(&format!("{JOB}google_books = {{ langRestrict = \"ja\" }}\n"), &env).unwrap();
    let keys = keys(&config);
    assert_eq!(keys.google_books.lang_restrict.as_deref(), Some("ja"), "what the file says besides stays");
    assert_eq!(keys.google_books.api_key.unwrap().reveal().unwrap().expose(), "s3cret-key");
    assert_eq!(config.quotas["google_books"].per_day, 7);
    let web: config::Web = config.web.keys().cloned().unwrap();
    assert_eq!(web.prompt_url("t"), "https://copy.example/base/p/t");
    let rendered = read(JOB, &Env::of([("COPY_PAGE_BASE_URL", "copy.example")]))
        .unwrap_err()
        .render(config::Colour::Never);
    assert!(
        rendered.contains("$COPY_PAGE_BASE_URL") && rendered.contains("https://copy.example"),
        "{rendered}"
    );
}

#[test]
fn the_mail_variables_count_for_the_only_email_channel() {
    let env = Env::of([
        ("SMTP_HOST", "mail.example"),
        ("SMTP_PORT", "2525"),
        ("SMTP_USER", "me"),
        ("SMTP_PASS", "s3cret-pass"),
        ("MAIL_TO", "a@example.com, b@example.com"),
    ]);
    let one = "[channel.m]\nkind = \"email\"\nsmtp = \"localhost:25\"\nfrom = \"f@example.com\"\nto = [\"x@example.com\"]\n";
    let email: EmailConfig = read(one, &env).unwrap().channels[0].keys().cloned().unwrap();
    assert_eq!((email.smtp.as_str(), email.user.as_deref()), ("mail.example:2525", Some("me")));
    assert_eq!(email.to, ["a@example.com", "b@example.com"]);
    assert_eq!(email.password.unwrap().reveal().unwrap().expose(), "s3cret-pass");
    let host_only = Env::of([("SMTP_HOST", "mail.example")]);
    let email: EmailConfig = read(one, &host_only).unwrap().channels[0].keys().cloned().unwrap();
    assert_eq!(email.smtp, "mail.example:25");
    let two = format!("{one}{}", one.replace("[channel.m]", "[channel.n]"));
    for channel in read(&two, &env).unwrap().channels {
        let email: EmailConfig = channel.keys().cloned().unwrap();
        assert_eq!((email.smtp.as_str(), email.user), ("localhost:25", None), "of two, none is meant");
    }
    assert!(read("", &env).is_ok(), "without an email channel they mean nothing");
    let rendered = read(one, &Env::of([("SMTP_PORT", "mail")])).unwrap_err().render(config::Colour::Never);
    assert!(rendered.contains("`mail` is not a port"), "{rendered}");
}
