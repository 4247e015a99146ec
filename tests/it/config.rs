//! The config file: what is read, what is refused, and the messages.
#![allow(dead_code, reason = "the structs stand for those of owners, and are read for their errors")]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use schemars::JsonSchema;
use serde::Deserialize;
use tsuzuki::config::value::{ByteSize, FirstRun, HttpUrl, QuietHours, Span};
use tsuzuki::config::{
    self, Colour, ConfigFile, EditError, Env, Kind, Location, Problems, ScheduleSpec, Secret, Section,
    Severity,
};
use tsuzuki::text::Language;

/// A press job as its owner might read it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Press {
    /// The feed.
    feed: HttpUrl,
    /// The largest attachment.
    max_file: Option<ByteSize>,
    /// How often an item is tried again.
    max_retries: Option<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Blogs {
    /// The blogs.
    blog: Vec<Blog>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Blog {
    /// A short name.
    id: String,
    /// The address.
    url: HttpUrl,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Books {
    /// The search queries.
    queries: Vec<String>,
    /// Books in one mail.
    mail_limit: Option<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Mastodon {
    /// The server.
    instance: HttpUrl,
    /// The access token.
    token: Secret,
    /// When nothing is posted.
    quiet_hours: Option<QuietHours>,
    /// The least time between two posts.
    pace: Option<Span>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Gemini {
    /// The key.
    api_key: Secret,
    /// Where the service is.
    base_url: Option<HttpUrl>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Web {
    /// The address to listen on.
    listen: Option<String>,
    /// Access settings.
    auth: Option<Auth>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Auth {
    /// The password.
    password: Secret,
}

const KINDS: &[Kind] = &[
    Kind::job::<Press>("press"),
    Kind::job::<Blogs>("blogs"),
    Kind::job::<Books>("books").with_env(tsuzuki::books::config::ENV),
    Kind::channel::<Mastodon>("mastodon"),
    Kind::llm::<Gemini>("gemini"),
    Kind::web::<Web>(),
];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/config").join(name)
}

fn parse(text: &str) -> Result<config::Config, config::Problems> {
    config::parse(text, Path::new("tsuzuki.toml"), KINDS, &Env::of([]))
}

#[test]
fn every_bad_file_gets_the_diagnostics_beside_it() {
    let mut files: Vec<PathBuf> = std::fs::read_dir(fixture("bad"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "toml"))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    let mut stale = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let problems = parse(&text).expect_err(&format!("{} is accepted", file.display()));
        let rendered = problems.render(Colour::Never) + "\n";
        for secret in ["literal", "hunter2", "123456"] {
            assert!(!rendered.contains(secret), "{} shows a secret:\n{rendered}", file.display());
        }
        let with_crlf = parse(&text.replace('\n', "\r\n")).unwrap_err();
        assert_eq!(with_crlf.render(Colour::Never) + "\n", rendered, "{} with CRLF", file.display());
        let expected = file.with_extension("txt");
        if std::env::var_os("UPDATE_FIXTURES").is_some() {
            std::fs::write(&expected, &rendered).unwrap();
        }
        if std::fs::read_to_string(&expected).ok().as_ref() != Some(&rendered) {
            stale.push(format!("{}:\n{rendered}", file.display()));
        }
    }
    assert!(stale.is_empty(), "{}", stale.join("\n"));
}

fn load_full() -> config::Config {
    config::load(&fixture("full.toml"), KINDS, &Env::of([])).unwrap_or_else(|problems| panic!("{problems}"))
}

fn find_channel<'a>(config: &'a config::Config, name: &str) -> &'a Section {
    config.channels.iter().find(|channel| channel.name == name).unwrap()
}

#[test]
fn the_full_file_is_read_without_a_word() {
    let config = load_full();
    assert!(config.warnings.is_empty(), "{}", config.warnings);
    assert_eq!(config.app.timezone.name(), "Asia/Tokyo");
    assert_eq!(config.app.language, Some(Language::En));
    assert_eq!(config.store.keep_history.unwrap().to_string(), "30d");
    assert_eq!(config.quotas["gemini"].per_day, 1500);
    assert_eq!(config.quotas["gemini"].zone.name(), "Asia/Tokyo");
    assert_eq!(config.quotas["google_books"].zone.name(), "America/Los_Angeles");
    assert_eq!(config.channels.len(), 2);
    let web: &Web = config.web.keys().unwrap();
    assert!(web.auth.is_some());
    let channel: &Mastodon = find_channel(&config, "mastodon").keys().unwrap();
    assert_eq!(channel.pace.unwrap().to_string(), "30s");
}

#[test]
fn defaults_hold_where_a_job_says_nothing() {
    let config = load_full();
    let job = config.find_job("mic").unwrap();
    assert_eq!(job.schedule, ScheduleSpec::Every("3h".parse().unwrap()));
    assert_eq!(job.timezone.name(), "Europe/Berlin");
    assert_eq!((job.enabled, job.hold_above), (true, 20));
    assert_eq!(job.deliver, ["mastodon"]);
    assert_eq!(job.first_run, Some(FirstRun::Latest(3)));
    assert_eq!(job.allow_private, ["10.0.0.0/8"]);
    let job = config.find_job("ai-books").unwrap();
    assert_eq!(job.schedule, ScheduleSpec::Cron("0 9 * * 1-5".parse().unwrap()));
    assert_eq!(job.timezone.name(), "UTC");
    assert_eq!((job.enabled, job.hold_above), (false, 0));
    assert_eq!(job.deliver, ["mastodon", "続き"]);
    assert_eq!(job.first_run, Some(FirstRun::All));
    assert!(job.allow_private.is_empty());
}

#[test]
fn the_smallest_file_has_sensible_defaults() {
    let text = "[[job]]\nname = \"blogs\"\nkind = \"blogs\"\nblog = [{ id = \"example\", url = \"https://example.com\" }]\n";
    let config = config::parse(text, Path::new("/etc/tsuzuki/tsuzuki.toml"), KINDS, &Env::of([])).unwrap();
    let job = &config.jobs[0];
    assert_eq!(job.schedule, ScheduleSpec::Default);
    assert_eq!((job.enabled, job.hold_above, job.first_run), (true, 50, None));
    assert_eq!(job.timezone.name(), "Asia/Tokyo");
    assert!(job.deliver.is_empty());
    match config.store.location().unwrap() {
        Location::Sqlite(path) => assert_eq!(path, Path::new("/etc/tsuzuki/tsuzuki.db")),
        Location::Postgres(_) => panic!("a file was expected"),
    }
    assert!(parse("").unwrap().jobs.is_empty());
}

#[test]
fn both_forms_of_blogs_point_at_their_places() {
    let config = load_full();
    for (name, key, line, column) in [
        ("inline-blogs", "blog.1.url", 78, 74),
        ("inline-blogs", "blog.0", 78, 9),
        ("table-blogs", "blog.0.url", 86, 7),
        ("table-blogs", "nothing", 80, 1),
        ("ai-books", "deliver.1", 70, 24),
        ("mic", "deliver.0", 47, 12),
    ] {
        let problem = config.find_job(name).unwrap().section.problem(key, "wrong".into());
        assert_eq!((problem.line(), problem.column()), (line, column), "{name} {key}");
    }
}

#[test]
fn the_environment_stands_above_the_file() {
    let text = "[app]\ntimezone = \"UTC\"\n[quota.google_books]\nper_day = 5\nday_starts = \"01:00\"\n[quota.x]\nper_day = 1\n";
    let env = Env::of([
        ("APP_TZ", "Europe/Berlin"),
        ("DAILY_BOOKS_API_LIMIT", "7"),
        ("TSUZUKI_STORE_URL", "sqlite:/tmp/x.db"),
    ]);
    let config = config::parse(text, Path::new("t.toml"), KINDS, &env).unwrap();
    assert_eq!(config.app.timezone.name(), "Europe/Berlin");
    assert_eq!(config.quotas["x"].zone.name(), "Europe/Berlin", "what follows [app] follows its override");
    assert_eq!(config.quotas["google_books"].per_day, 7);
    assert_eq!(config.quotas["google_books"].day_starts.to_string(), "01:00");
    assert_eq!(config.store.url.to_string(), "sqlite:/tmp/x.db");
    let config = config::parse("", Path::new("t.toml"), KINDS, &env).unwrap();
    assert_eq!(config.quotas["google_books"].per_day, 7);

    let env = Env::of([("APP_TZ", "Asia/Tokio"), ("DAILY_BOOKS_API_LIMIT", "-1")]);
    let problems = config::parse("", Path::new("t.toml"), KINDS, &env).unwrap_err();
    let rendered = problems.to_string();
    assert!(
        rendered.contains("$APP_TZ:1:1") && rendered.contains("did you mean \"Asia/Tokyo\"?"),
        "{rendered}"
    );
    assert!(rendered.contains("$DAILY_BOOKS_API_LIMIT:1:1"), "{rendered}");
}

#[test]
fn the_file_is_found_where_the_documentation_says() {
    let home = tempfile::tempdir().unwrap();
    let xdg = home.path().join(".config/tsuzuki");
    std::fs::create_dir_all(&xdg).unwrap();
    let home_text = home.path().to_str().unwrap();
    let system = home.path().join("etc");
    let dirs = format!("relative:{}", system.display());
    let env = Env::of([("HOME", home_text), ("XDG_CONFIG_DIRS", &dirs)]);
    let both = Env::of([("HOME", home_text), ("TSUZUKI_CONFIG", "elsewhere.toml")]);
    assert_eq!(config::find_path(None, &env), None);
    std::fs::create_dir_all(system.join("tsuzuki")).unwrap();
    std::fs::write(system.join("tsuzuki/tsuzuki.toml"), "").unwrap();
    assert_eq!(config::find_path(None, &env), Some(system.join("tsuzuki/tsuzuki.toml")));
    std::fs::write(xdg.join("tsuzuki.toml"), "").unwrap();
    assert_eq!(config::find_path(None, &env), Some(xdg.join("tsuzuki.toml")));
    assert_eq!(config::find_path(None, &both), Some("elsewhere.toml".into()));
    assert_eq!(config::find_path(Some(Path::new("x.toml")), &both), Some("x.toml".into()));
    let relative = Env::of([("HOME", home_text), ("XDG_CONFIG_HOME", "relative")]);
    assert_eq!(config::find_path(None, &relative), Some(xdg.join("tsuzuki.toml")));
}

#[test]
fn a_file_that_cannot_be_read_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tsuzuki.toml");
    let rendered = config::load(&path, KINDS, &Env::of([])).unwrap_err().to_string();
    assert!(rendered.contains("there is no such file") && rendered.contains("tsuzuki init"), "{rendered}");
    std::fs::write(&path, b"[app]\nuser_agent = \"\xff\"\n").unwrap();
    let rendered = config::load(&path, KINDS, &Env::of([])).unwrap_err().to_string();
    assert!(rendered.contains("not UTF-8") && rendered.contains("tsuzuki.toml:2:15"), "{rendered}");
    let wide: Vec<u8> = "\u{feff}[app]\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    std::fs::write(&path, wide).unwrap();
    let rendered = config::load(&path, KINDS, &Env::of([])).unwrap_err().to_string();
    assert!(rendered.contains("the file is UTF-16") && rendered.contains("save it as UTF-8"), "{rendered}");
    std::fs::write(&path, "\u{feff}[app]\r\nlanguage = \"en\"\r\ntimezon = \"UTC\"\r\n").unwrap();
    let problems = config::load(&path, KINDS, &Env::of([])).unwrap_err();
    let problem = problems.iter().next().unwrap();
    assert_eq!((problems.len(), problem.line(), problem.column()), (1, 3, 1), "{problems}");
    std::fs::write(&path, "\u{feff}ap = 1\r\n").unwrap();
    let rendered = config::load(&path, KINDS, &Env::of([])).unwrap_err().to_string();
    assert!(rendered.contains("tsuzuki.toml:1:1") && rendered.contains("1 | ap = 1\n  | ^^"), "{rendered}");
}

proptest! {
    #[test]
    fn a_damaged_file_is_refused_or_read_but_never_panics(
        at in 0..1704_usize, gone in 0..40_usize, put in "[\\[\\]{}=\"'#$.,\\\\\n\r é0a:]{0,6}",
    ) {
        let mut text = std::fs::read_to_string(fixture("full.toml")).unwrap();
        let boundary = |at: usize| (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap();
        let range = boundary(at)..boundary(at + gone);
        text.replace_range(range, &put);
        match parse(&text) {
            Ok(config) => drop(config.warnings.render(Colour::Always)),
            Err(problems) => {
                prop_assert!(!problems.is_empty());
                for problem in problems.iter() {
                    prop_assert!(problem.line() <= text.lines().count().max(1) + 1);
                    drop(problem.render(Colour::Always));
                }
            }
        }
    }
}

#[test]
fn problems_are_also_data() {
    let problems = parse("[app]\ntimezon = \"UTC\"\n").unwrap_err();
    let json = serde_json::to_value(&problems).unwrap();
    assert_eq!(
        json,
        serde_json::json!([{
            "severity": "error", "file": "tsuzuki.toml", "line": 2, "column": 1,
            "message": "unknown key `timezon`", "label": "did you mean `timezone`?", "hint": null,
        }])
    );
    assert!(problems.render(Colour::Always).contains("\u{1b}["));
    assert!(!problems.render(Colour::Never).contains('\u{1b}'));
}

#[test]
fn secrets_are_looked_up_late_and_beside_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let credentials = tempfile::tempdir().unwrap();
    let path = directory.path().join("tsuzuki.toml");
    std::fs::write(directory.path().join("token"), "file-secret-77\r\n").unwrap();
    std::fs::write(credentials.path().join("web"), "cred-secret-77\n").unwrap();
    let text = "[channel.a]\nkind = \"mastodon\"\ninstance = \"https://a.example\"\ntoken = \"${file:token}\"\n\
        [channel.b]\nkind = \"mastodon\"\ninstance = \"https://b.example\"\ntoken = \"Bearer ${B_TOKEN}\"\n\
        [channel.c]\nkind = \"mastodon\"\ninstance = \"https://c.example\"\ntoken = \"literal-secret-77\"\n\
        [channel.d]\nkind = \"mastodon\"\ninstance = \"https://d.example\"\ntoken = \"${file:gone}\"\n\
        [web.auth]\npassword = \"${cred:web}\"\n";
    let env = Env::of([
        ("B_TOKEN", "env-secret-77"),
        ("CREDENTIALS_DIRECTORY", credentials.path().to_str().unwrap()),
    ]);
    let config = config::parse(text, &path, KINDS, &env).unwrap();
    let token = |name: &str| find_channel(&config, name).keys::<Mastodon>().unwrap().token.clone();
    assert_eq!(token("a").reveal().unwrap().expose(), "file-secret-77");
    assert_eq!(token("b").reveal().unwrap().expose(), "Bearer env-secret-77");
    assert_eq!(token("c").reveal().unwrap().expose(), "literal-secret-77");
    let web: &Web = config.web.keys().unwrap();
    assert_eq!(web.auth.as_ref().unwrap().password.reveal().unwrap().expose(), "cred-secret-77");
    assert!(token("d").reveal().unwrap_err().to_string().contains("gone"));

    let rendered = format!("{:?} {} {:?}", token("c"), token("b"), token("c").reveal());
    assert_eq!(rendered, "Secret([redacted]) [redacted]${B_TOKEN} Ok([redacted])");
    assert_eq!(config::redact("x env-secret-77 file-secret-77"), "x [redacted] [redacted]");
    assert!(!format!("{config:?}").contains("literal-secret-77"));
    assert!(!config.masked_text().contains("literal-secret-77"));
    assert!(config.masked_text().contains("${file:token}"));

    assert_eq!(config.warnings.len(), 1);
    let warning = config.warnings.iter().next().unwrap();
    assert_eq!((warning.line(), warning.severity), (12, Severity::Warning));
    assert!(!warning.to_string().contains("literal-secret-77"), "{warning}");
}

#[test]
fn missing_secrets_are_reported_with_their_places_and_badly_kept_ones_too() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let open = directory.path().join("open");
    std::fs::write(&open, "everyone-reads-77").unwrap();
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o644)).unwrap();
    let text = "[store]\nurl = \"postgres://u:${GONE_PW}@h/db\"\n\
        [llm.a]\nkind = \"gemini\"\napi_key = \"${GONE_KEY}:${file:gone}:${cred:none}\"\n\
        [llm.b]\nkind = \"gemini\"\napi_key = \"${file:open}\"\n\
        [llm.c]\nkind = \"gemini\"\napi_key = \"${SHORT}\"\n";
    let env = Env::of([("SHORT", "ab ")]);
    let config = config::parse(text, &directory.path().join("t.toml"), KINDS, &env).unwrap();
    let missing = config.list_missing_secrets();
    let whys: Vec<String> = missing.iter().map(|one| one.why.to_string()).collect();
    let rendered: Vec<_> =
        missing.iter().zip(&whys).map(|(one, why)| (one.line, one.key.as_str(), why.as_str())).collect();
    let gone = format!(
        "the secret file `{}` cannot be read: No such file or directory (os error 2)",
        directory.path().join("gone").display()
    );
    assert_eq!(
        rendered,
        [
            (2, "store.url", "GONE_PW is not set"),
            (5, "api_key", "GONE_KEY is not set"),
            (5, "api_key", gone.as_str()),
            (5, "api_key", "the credential `none` is not there: `$CREDENTIALS_DIRECTORY` is not set"),
        ]
    );
    let warnings = config.list_secret_warnings();
    assert!(warnings[0].to_string().contains("chmod 600"), "{}", warnings[0]);
    assert_eq!(
        warnings[1..],
        ["${SHORT} is too short to be hidden in logs", "${SHORT} begins or ends with white space"]
    );
    assert_eq!(config::redact("everyone-reads-77"), "[redacted]");
}

#[test]
fn a_table_is_read_once_and_every_owner_gets_that_value() {
    static READ: AtomicUsize = AtomicUsize::new(0);
    fn counted<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
        READ.fetch_add(1, Ordering::Relaxed);
        String::deserialize(deserializer)
    }
    #[derive(Deserialize, JsonSchema)]
    struct Counted {
        #[serde(deserialize_with = "counted")]
        text: String,
    }
    const COUNTED: &[Kind] = &[Kind::job::<Counted>("counted")];
    let text = "[[job]]\nname = \"a\"\nkind = \"counted\"\ntext = \"x\"\n";
    let config = config::parse(text, Path::new("t.toml"), COUNTED, &Env::of([])).unwrap();
    let section = &config.jobs[0].section;
    let (one, other): (&Counted, &Counted) = (section.keys().unwrap(), section.keys().unwrap());
    assert!(std::ptr::eq(one, other) && one.text == "x");
    assert_eq!(READ.load(Ordering::Relaxed), 1);
}

#[test]
fn an_owner_adds_checks_of_its_own() {
    fn ids_differ(section: &Section) -> Problems {
        let blogs: &Blogs = section.keys().unwrap();
        let mut problems = Problems::default();
        for (index, blog) in blogs.blog.iter().enumerate() {
            if blogs.blog[..index].iter().any(|other| other.id == blog.id) {
                problems.push(section.problem(&format!("blog.{index}.id"), "two blogs have this id".into()));
            }
        }
        problems
    }
    const CHECKED: &[Kind] = &[Kind::job::<Blogs>("blogs").with_check(ids_differ)];
    let text = "[[job]]\nname = \"b\"\nkind = \"blogs\"\nblog = [\n  { id = \"a\", url = \"https://a.example\" },\n  { id = \"a\", url = \"https://b.example\" },\n]\n";
    let problems = config::parse(text, Path::new("t.toml"), CHECKED, &Env::of([])).unwrap_err();
    let problem = problems.iter().next().unwrap();
    assert_eq!((problems.len(), problem.line(), problem.column()), (1, 6, 10));
}

#[test]
fn a_thousand_mistakes_are_not_a_thousand_messages() {
    let blogs: String = (0..3000).map(|n| format!("  {{ id = \"{n}\", uri = \"x\" }},\n")).collect();
    let text = format!("[[job]]\nname = \"b\"\nkind = \"blogs\"\nblog = [\n{blogs}]\n");
    let problems = parse(&text).unwrap_err();
    assert_eq!(problems.len(), 101, "{}", problems.len());
    assert!(problems.iter().any(|problem| problem.message.to_string().contains("may be more")));
}

#[test]
fn only_the_password_of_a_database_is_secret() {
    let env = Env::of([("PW", "p@ss/77-word"), ("URL", "postgres://u:whole-77-url@db.example/x")]);
    let open = |url: &str| {
        let text = format!("[store]\nurl = \"{url}\"\n");
        config::parse(&text, Path::new("/data/tsuzuki.toml"), KINDS, &env)
    };
    let config = open("postgres://u:${PW}@db.example/x").unwrap();
    assert_eq!(config.store.url.to_string(), "postgres://u:${PW}@db.example/x");
    let config = open("${URL}").unwrap();
    match config.store.location().unwrap() {
        Location::Postgres(url) => assert!(url.expose().contains("whole-77-url")),
        Location::Sqlite(path) => panic!("{}", path.display()),
    }
    assert_eq!(config::redact("to whole-77-url at db.example"), "to [redacted] at db.example");
    let config = open("postgres://u:literal-77-pw@db.example/x").unwrap();
    assert_eq!(config.warnings.len(), 1);
    assert_eq!(config.store.url.to_string(), "postgres://u:*************@db.example/x");
    for (url, file) in [
        ("sqlite:x.db", "/data/x.db"),
        ("sqlite:/abs/x.db", "/abs/x.db"),
        ("sqlite:///abs/x.db", "/abs/x.db"),
        ("sqlite:../x.db", "/data/../x.db"),
    ] {
        let config = open(url).unwrap();
        assert!(config.warnings.is_empty());
        match config.store.location().unwrap() {
            Location::Sqlite(path) => assert_eq!(path, Path::new(file)),
            Location::Postgres(_) => panic!("{url}"),
        }
    }
    for url in
        ["", "x.db", "sqlite:", "sqlite::memory:", "sqlite://x.db", "mysql://h/x", "sqlite:x.db?mode=ro"]
    {
        assert!(open(url).is_err(), "{url}");
    }
}

#[test]
fn an_edited_file_is_checked_and_replaced_in_one_step() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let real = directory.path().join("real.toml");
    let link = directory.path().join("tsuzuki.toml");
    let text = "# kept\n[[job]]\nname = \"a\"\nkind = \"press\"\nfeed = \"https://example.com/\" # kept\n";
    std::fs::write(&real, text).unwrap();
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let env = Env::of([]);

    let mut file = ConfigFile::open(&link).unwrap();
    file.document.set("a", "enabled", &false.into()).unwrap();
    let config = file.save(KINDS, &env).unwrap();
    assert!(!config.jobs[0].enabled);
    assert!(link.is_symlink());
    assert_eq!(std::fs::read_to_string(&real).unwrap(), format!("{text}enabled = false\n"));
    assert_eq!(std::fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2, "nothing is left behind");

    let before = std::fs::read_to_string(&real).unwrap();
    let mut file = ConfigFile::open(&link).unwrap();
    file.document.set("a", "evry", &"1h".into()).unwrap();
    let err = file.save(KINDS, &env).unwrap_err();
    assert!(err.to_string().contains("did you mean `every`?"), "{err}");
    assert_eq!(std::fs::read_to_string(&real).unwrap(), before);

    let mut file = ConfigFile::open(&link).unwrap();
    file.document.set("a", "every", &"1h".into()).unwrap();
    std::fs::write(&real, format!("{before}# someone\n")).unwrap();
    assert!(matches!(file.save(KINDS, &env), Err(EditError::Changed(_))));
    assert_eq!(std::fs::read_to_string(&real).unwrap(), format!("{before}# someone\n"));
}

#[test]
fn the_reference_page_is_made_from_the_structs() {
    let page = config::render_reference(KINDS);
    let path = fixture("reference.md");
    if std::env::var_os("UPDATE_FIXTURES").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    assert_eq!(page, std::fs::read_to_string(&path).unwrap());
    assert_eq!(page, config::render_reference(KINDS));
}

#[test]
fn the_schema_knows_every_key_and_nothing_else() {
    let schema = config::schema(KINDS);
    let text = schema.to_string();
    assert!(!text.contains("\"null\""), "TOML has no null");
    let jobs = schema["properties"]["job"]["items"]["oneOf"].as_array().unwrap();
    let press = jobs.iter().find(|job| job["properties"]["kind"]["const"] == "press").unwrap();
    for key in ["name", "every", "cron", "deliver", "feed", "max_file"] {
        assert!(press["properties"][key].is_object(), "{key}");
    }
    assert_eq!(press["additionalProperties"], false);
    assert_eq!(press["required"], serde_json::json!(["name", "kind", "feed"]));
    assert_eq!(schema["properties"]["app"]["properties"]["timezone"]["default"], "Asia/Tokyo");
    for (at, _) in text.match_indices("#/definitions/") {
        let name = text[at + 14..].split('"').next().unwrap();
        assert!(schema["definitions"][name].is_object(), "{name}");
    }
}

#[test]
fn a_config_can_be_shared_between_threads() {
    fn shared<T: Clone + Send + Sync + 'static>() {}
    shared::<config::Config>();
    shared::<Section>();
    shared::<Secret>();
    shared::<Problems>();
}
