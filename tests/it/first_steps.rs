//! First steps of a new user: a first file, a first job, and `doctor`, which reports what is missing and where to get
//! it.

use crate::test_env::{TestEnv, ends_with, output_text};
use tsuzuki::demo::gemini::{Gemini, KEY};
use tsuzuki::demo::gitlab::GitLab;
use tsuzuki::demo::mastodon::{MastodonServer, TOKEN};
use tsuzuki::demo::site::{Content, Site};
use tsuzuki::demo::smtp::SmtpServer;
use tsuzuki::demo::webhook::WebhookServer;
use tsuzuki::time::Clock;

#[test]
fn a_first_file_passes_the_check_and_is_never_overwritten() {
    for (args, jobs) in [
        (&["init"][..], "0 jobs"),
        (&["init", "--lang", "ja"], "ジョブ 0 件"),
        (&["init", "blogs"], "1 job,"),
        (&["init", "press", "books", "blogs", "commits", "--lang", "ja"], "ジョブ 4 件"),
    ] {
        let test_env = TestEnv::empty();
        ends_with(&test_env.run(args), 0);
        assert!(test_env.ends("check", 0).contains(jobs), "{args:?}");
        let before = test_env.config();
        let printed = ends_with(&test_env.run(args), 1);
        let words = ["exists already, and was left as it is", "すでにあります。変更していません"];
        assert!(words.iter().any(|words| printed.contains(words)), "{printed}");
        assert_eq!(test_env.config(), before);
        test_env.ends("init -c other.toml", 0);
        assert!(test_env.ends("check -c other.toml", 0).contains("0 jobs"));
    }
    assert!(TestEnv::empty().ends("init blog", 2).contains("blogs"));
}

const OUTSIDE: &str = "# my places\n[llm.gemini] # the model\nkind = \"gemini\"\napi_key = \"${GEMINI_API_KEY}\"\n\n\
                       [channel.hook]\nkind = \"webhook\"\nurl = \"https://example.com/hook\"\n# the end\n";

#[test]
fn jobs_of_every_kind_are_added_by_flags() {
    let test_env = TestEnv::new(OUTSIDE);
    for (args, lines) in [
        (
            &["press", "mic", "--feed", "https://example.com/feed", "--llm", "gemini", "--deliver", "hook"][..],
            "feed = \"https://example.com/feed\"\nllm = \"gemini\"\ndeliver = [\"hook\"]\n",
        ),
        (
            &[
                "books",
                "ai",
                "--query",
                "intitle:AI",
                "--query",
                "subject:機械学習",
                "--book-lang",
                "ja",
                "--cron",
                "0 7 * * *",
            ],
            "queries = [\"intitle:AI\", \"subject:機械学習\"]\ngoogle_books.langRestrict = \"ja\"\ncron = \"0 7 * * *\"\n",
        ),
        (
            &[
                "blogs",
                "some",
                "--blog",
                "one=https://example.com/?a=b",
                "--blog",
                "www.example.org",
                "--every",
                "3h",
            ],
            "blog = [{ id = \"one\", url = \"https://example.com/?a=b\" }, { id = \"example.org\", url = \"https://www.example.org\" }]\nevery = \"3h\"\n",
        ),
        (
            &[
                "commits",
                "code",
                "--gitlab",
                "https://gitlab.com",
                "--project",
                "a/b",
                "--branch",
                "main",
                "--since",
                "2024-01-01",
                "--token-env",
                "GITLAB_TOKEN",
            ],
            "gitlab = \"https://gitlab.com\"\ntoken = \"${GITLAB_TOKEN}\"\nprojects = [\"a/b\"]\nbranches = [\"main\"]\nsince = \"2024-01-01\"\n",
        ),
    ] {
        let output = test_env.run(&[&["job", "add"], args].concat());
        ends_with(&output, 0);
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(out, format!("[[job]]\nname = \"{}\"\nkind = \"{}\"\n{lines}", args[1], args[0]));
        assert!(test_env.config().starts_with(OUTSIDE), "the rest of the file is as it was");
    }
    assert!(test_env.ends("check", 0).contains("4 jobs"));
    test_env.ends("job add more --kind blogs --blog x=https://example.net", 0);
}

#[test]
fn the_doctor_says_that_messages_are_japanese_where_nothing_names_a_language() {
    let job = "[channel.a]\nkind = \"slack\"\nurl = \"https://hooks.example/x\"\n\
        [[job]]\nname = \"b\"\nkind = \"blogs\"\ndeliver = [\"a\"]\nblog = [{ id = \"a\", url = \"https://a.example\" }]\n";
    let words = "messages are in Japanese wherever the locale (LANG) names no language";
    let test_env = TestEnv::new(job);
    assert!(test_env.ends("doctor --offline", 0).contains(words));
    let japanese = test_env
        .command(&["doctor", "--offline", "--lang", "en"])
        .env("LANG", "ja_JP.UTF-8")
        .output()
        .unwrap();
    assert!(!ends_with(&japanese, 0).contains(words), "that is what is wanted there");
    for other in [format!("[app]\nlanguage = \"en\"\n{job}"), job.replace("deliver = [\"a\"]\n", "")] {
        assert!(!TestEnv::new(&other).ends("doctor --offline", 0).contains(words), "{other}");
    }
}

#[test]
fn a_run_without_jobs_says_so() {
    let test_env = TestEnv::new("");
    assert!(test_env.ends("run-due", 0).contains("There is no job to run; `tsuzuki job ls`"));
    assert_eq!(test_env.ends("run-due -q", 0), "");
}

#[test]
fn what_would_not_work_is_not_written() {
    let test_env = TestEnv::new("# mine\n");
    for (args, code, words) in [
        (&["press", "mic", "--feed", "https://example.com/feed"][..], 5, "needs a model to ask"),
        (&["press", "mic"], 5, "feed"),
        (&["blogs", "b", "--blog", "x=ftp://example.com"], 2, "names no blog"),
        (&["blogs", "b", "--blog", "x=https://example.com", "--deliver", "nobody"], 5, "nobody"),
        (&["blogs", "b", "--feed", "https://example.com"], 2, "--feed is for press jobs"),
        (&["blogs"], 2, "the name is missing"),
        (&["mine"], 2, "the kind is missing"),
        (&["blog", "b"], 2, "did you mean `blogs`?"),
        (&["books", "b", "--query", "x", "--set", "mail_limit=0"], 5, "mail_limit"),
    ] {
        let printed = ends_with(&test_env.run(&[&["job", "add"], args].concat()), code);
        assert!(printed.contains(words), "{args:?}: {printed}");
        assert_eq!(test_env.config(), "# mine\n", "{args:?}");
    }
}

#[test]
fn the_doctor_says_where_to_get_what_is_missing() {
    let test_env = TestEnv::empty();
    test_env.ends("init press books blogs commits", 0);
    let printed = test_env.ends("doctor --offline", 4);
    for words in [
        "https://aistudio.google.com/apikey",
        "scopes `read` and `write:statuses`",
        "https://myaccount.google.com/apppasswords",
        "https://api.slack.com/apps",
        "scope `read_api`",
        "https://console.cloud.google.com/apis/credentials",
        "secret gemini.api_key",
        "secret commits.token",
        "secret books.api_key",
    ] {
        assert!(printed.contains(words), "{words}: {printed}");
    }
    let test_env = TestEnv::new("[[job]]\nname = \"b\"\nkind = \"books\"\nqueries = [\"x\"]\n");
    let printed = test_env.ends("doctor --offline", 0);
    assert!(printed.contains("which allows no requests without one"), "{printed}");
    assert_eq!(printed.matches("https://console.cloud.google.com/apis/credentials").count(), 1, "{printed}");
}

#[test]
fn the_doctor_names_its_checks_in_japanese_and_tells_a_missing_secret_once() {
    let test_env = TestEnv::new(
        "[channel.toot]\nkind = \"mastodon\"\ninstance = \"http://127.0.0.1:9\"\ntoken = \"${TOOT}\"\n\
         [channel.hook]\nkind = \"webhook\"\nurl = \"http://127.0.0.1:9/\"\n\
         [[job]]\nname = \"p\"\nkind = \"press\"\nllm = \"none\"\nfeed = \"http://127.0.0.1:9/\"\ndeliver = [\"toot\"]\n",
    );
    let printed = test_env.ends("doctor --lang ja", 4);
    let names: std::collections::BTreeSet<&str> =
        printed.lines().filter_map(|line| line.split("  ").next()).collect();
    for name in [
        "設定",
        "シークレット toot.token",
        "データベース",
        "チャンネル hook：アドレス",
        "チャンネル hook：署名",
        "ジョブ p：フィード",
    ] {
        assert!(names.contains(name), "{name}: {printed}");
    }
    assert_eq!(printed.matches("TOOT が設定されていません").count(), 1, "{printed}");
    let english = test_env.run(&["doctor", "--lang", "ja", "--json"]);
    assert!(ends_with(&english, 4).contains("\"channel hook: address\""), "programs read one language");
}

#[test]
fn the_doctor_says_in_one_way_of_all_servers_that_nobody_listens() {
    let address = dead_address();
    let smtp = address.trim_start_matches("http://").trim_end_matches('/');
    let allow = "allow_private = [\"127.0.0.1\"]\n";
    let test_env = TestEnv::new(&format!(
        "[channel.mail]\nkind = \"email\"\nsmtp = \"{smtp}\"\ntls = \"none\"\nfrom = \"a@example.com\"\n\
         to = [\"b@example.com\"]\n{allow}[[job]]\nname = \"w\"\nkind = \"blogs\"\ndeliver = [\"mail\"]\n{allow}\
         blog = [{{ id = \"site\", url = \"{address}\" }}]\n"
    ));
    for (lang, words) in [
        ("en", "no connection to 127.0.0.1: connection refused"),
        ("ja", "127.0.0.1 に接続できません：接続を拒否されました"),
    ] {
        let printed = ends_with(&test_env.run(&["doctor", "--lang", lang]), 1);
        assert_eq!(printed.matches(words).count(), 2, "{printed}");
    }
}

#[test]
fn the_doctor_ends_with_what_has_to_be_mended_first() {
    let test_env = TestEnv::new("[app]\nlangage = \"ja\"\n");
    test_env.ends("doctor --offline", 5);
    let without_model = "[[job]]\nname = \"p\"\nkind = \"press\"\nfeed = \"https://a.example/\"\n";
    let printed = TestEnv::new(without_model).ends("doctor --offline", 5);
    assert!(printed.contains("a press job needs a model to ask"), "{printed}");
    let in_file = "[store]\nurl = \"sqlite:tsuzuki.toml/inside.db\"\n";
    let test_env = TestEnv::new(in_file);
    let printed = test_env.ends("doctor --offline", 1);
    assert!(printed.contains("tsuzuki.toml is not a directory"), "{printed}");
    let test_env = TestEnv::new("[store]\nurl = \"sqlite:place\"\n");
    std::fs::create_dir(test_env.file("place")).unwrap();
    let printed = test_env.ends("doctor --offline", 1);
    assert!(printed.contains("place is not a file"), "{printed}");
    let mail = "[channel.m]\nkind = \"slack\"\nurl = \"${NOT_SET}\"\n";
    let test_env = TestEnv::new(&format!("{in_file}{mail}"));
    test_env.ends("doctor --offline", 4);
}

#[test]
fn the_doctor_tells_each_problem_of_a_broken_file_in_a_line_of_its_own() {
    let test_env =
        TestEnv::new("[app]\nlangage = \"ja\"\n[[job]]\nname = \"b\"\nkind = \"blog\"\nblog = []\n");
    let printed = test_env.ends("doctor --offline", 5);
    let lines: Vec<&str> = printed.lines().skip(1).collect();
    assert_eq!(lines.len(), 2, "{printed}");
    assert_eq!(
        lines[0], "config  error    line 2: unknown key `langage`; did you mean `language`?",
        "{printed}"
    );
    assert!(lines[1].starts_with("config  error    line 5: there is no kind of job `blog`; "), "{printed}");
}

#[test]
fn what_cannot_be_written_is_told_without_flags_and_passing_files() {
    // Files cannot be created here, not even by root.
    let test_env = TestEnv::new("");
    std::os::unix::fs::symlink("/proc/self/limits", test_env.file("elsewhere.toml")).unwrap();
    let mut command = test_env.command(&["-c", "elsewhere.toml", "channel", "add", "slack"]);
    let output = command.output().unwrap();
    assert!(!output.status.success());
    assert!(!output_text(&output).contains(".tsuzuki-"), "{}", output_text(&output));
    let test_env = TestEnv::new("[store]\nurl = \"sqlite:/proc/tsuzuki.db\"\n");
    let printed = test_env.ends("doctor --offline", 1);
    assert!(printed.contains("/proc cannot be written to: ") && !printed.contains(".tsuzuki-"), "{printed}");
}

#[test]
fn a_job_that_cannot_be_added_is_told_its_flags() {
    let test_env = TestEnv::new("[[job]]\nname = \"mine\"\nkind = \"blogs\"\nblog = []\n");
    let config = test_env.config();
    for (args, words) in [
        (&["books", "lib"][..], &["the key `queries` is missing", "nothing was written", "--query TEXT"][..]),
        (&["blogs", "mine"], &["there is a job `mine` already", "tsuzuki job update mine"]),
        (&["pres", "p", "--feed", "x"], &["there is no kind of job `pres`", "did you mean `press`?"]),
        (&["unheard", "p"], &["there is no kind of job `unheard`", "kinds: press, books, blogs, commits"]),
    ] {
        let output = test_env.run(&[&["job", "add"], args].concat());
        assert!(!output.status.success());
        for words in words {
            assert!(output_text(&output).contains(words), "{words}: {}", output_text(&output));
        }
    }
    assert_eq!(test_env.config(), config);
}

#[test]
fn a_commits_job_that_names_nothing_is_told_how_to_name_something() {
    let job = "[[job]]\nname = \"code\"\nkind = \"commits\"\ngitlab = \"https://gitlab.example\"\n";
    let printed = TestEnv::new(job).ends("check", 0);
    for words in [
        "warning: the job `code` names neither",
        "tsuzuki branch add PROJECT BRANCH --job code",
        "1 job, no errors",
    ] {
        assert!(printed.contains(words), "{words}: {printed}");
    }
    let printed = TestEnv::new(job).ends("run-due --dry-run", 0);
    assert!(printed.contains("nothing: no project, group or branch is named"), "{printed}");
    let printed = TestEnv::new(job).ends("job ls", 0);
    assert!(printed.contains("every 1 h by default"), "{printed}");
    for key in ["projects = [\"a/b\"]", "group = \"a\""] {
        let printed = TestEnv::new(&format!("{job}{key}\n")).ends("check", 0);
        assert!(!printed.contains("names neither"), "{printed}");
    }
}

/// An address without a listener.
fn dead_address() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}/", listener.local_addr().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_says_which_models_exist_and_what_to_take_instead() {
    let gemini = Gemini::start().await.unwrap();
    let openai = tsuzuki::demo::openai::OpenAi::start().await.unwrap();
    openai.set_models(&["small-2", "large-2"]);
    let allow = "allow_private = [\"127.0.0.1\"]";
    let test_env = TestEnv::new(&format!(
        "[llm.gemini]\nkind = \"gemini\"\napi_key = \"{KEY}\"\nbase_url = \"{}\"\nsummary_model = \"gemini-2.5-flash\"\n{allow}\n\
         [llm.local]\nkind = \"openai\"\nbase_url = \"{}\"\nscreen_model = \"small-2\"\nsummary_model = \"large-1\"\n{allow}\n",
        gemini.url, openai.url
    ));
    let mut command = test_env.command(&["doctor"]);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let printed = ends_with(&output, 1);
    for (start, verdict, words) in [
        ("llm gemini: gemini-flash-lite-latest", " ok ", "has the model"),
        (
            "llm gemini: gemini-2.5-flash ",
            " error ",
            "hint: set `summary_model = \"gemini-flash-latest\"` in [llm.gemini]",
        ),
        ("llm local: small-2", " ok ", "has the model"),
        ("llm local: large-1", " error ", "hint: set `summary_model = \"large-2\"` in [llm.local]"),
    ] {
        let line = printed
            .lines()
            .find(|line| line.starts_with(start))
            .unwrap_or_else(|| panic!("{start}: {printed}"));
        assert!(line.contains(verdict) && line.contains(words), "{words}: {line}");
    }
    assert!(gemini.log().iter().any(|asked| asked.line.contains("pageToken=")), "every page is read");
    assert!(gemini.questions().is_empty() && openai.log().is_empty(), "nothing that costs");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_asks_every_address_and_sends_nothing() {
    let (gemini, gitlab) = (Gemini::start().await.unwrap(), GitLab::start().await.unwrap());
    gitlab.add_synthetic(7, "team/code", 3);
    gitlab.set_token("glpat-the-right-one");
    let toots = MastodonServer::start(Clock::system()).await.unwrap();
    let (hook, smtp) = (WebhookServer::start().await.unwrap(), SmtpServer::start().await.unwrap());
    let site = Site::start(Content::with_articles(2, "2026-01-15T00:00:00Z".parse().unwrap())).await.unwrap();
    let allow = "allow_private = [\"127.0.0.1\"]";
    let config = |gitlab_url: &str, feed: &str| {
        format!(
            "[llm.gemini]\nkind = \"gemini\"\napi_key = \"${{GEMINI}}\"\nbase_url = \"{}\"\n{allow}\n\
             [channel.toot]\nkind = \"mastodon\"\ninstance = \"{}\"\ntoken = \"${{TOOT}}\"\n{allow}\n\
             [channel.hook]\nkind = \"webhook\"\nurl = \"{}secret-path\"\n{allow}\n\
             [channel.mail]\nkind = \"email\"\nsmtp = \"{}\"\ntls = \"none\"\nfrom = \"a@example.com\"\nto = [\"b@example.com\"]\n{allow}\n\
             [[job]]\nname = \"p\"\nkind = \"press\"\nfeed = \"{feed}\"\ndeliver = [\"toot\"]\n{allow}\n\
             [[job]]\nname = \"w\"\nkind = \"blogs\"\nblog = [{{ id = \"site\", url = \"{}\" }}]\n{allow}\n\
             [[job]]\nname = \"c\"\nkind = \"commits\"\ngitlab = \"{gitlab_url}\"\nprojects = [\"team/code\"]\ntoken = \"${{LAB}}\"\n{allow}\n",
            gemini.url, toots.url, hook.url, smtp.address, site.url
        )
    };
    let doctor = async |config: &str, gemini: &str, toot: &str, lab: &str| {
        let test_env = TestEnv::new(config);
        let mut command = test_env.command(&["doctor"]);
        command.env("GEMINI", gemini).env("TOOT", toot).env("LAB", lab);
        tokio::task::spawn_blocking(move || (command.output().unwrap(), test_env)).await.unwrap().0
    };
    let feed = format!("{}feed.xml", site.url);
    let well = doctor(&config(&gitlab.url(), &feed), KEY, TOKEN, "glpat-the-right-one").await;
    let printed = ends_with(&well, 0);
    for words in [
        "llm gemini: gemini-flash-lite-latest",
        "llm gemini: gemini-flash-latest",
        "channel toot: token",
        "channel hook: server",
        "takes mail",
        "job p: feed",
        "job w: site",
        "can read team/code",
    ] {
        assert!(printed.contains(words), "{words}: {printed}");
    }

    let ill =
        doctor(&config(&dead_address(), &dead_address()), "AIza-a-wrong-key", "a-wrong-token", "glpat-wrong")
            .await;
    let printed = ends_with(&ill, 4);
    let line = |start: &str| {
        printed
            .lines()
            .find(|line| line.starts_with(start))
            .unwrap_or_else(|| panic!("{start}: {printed}"))
            .to_owned()
    };
    for (start, words) in [
        ("llm gemini:", "API key not valid"),
        ("llm gemini:", "https://aistudio.google.com/apikey"),
        ("channel toot: token", "scopes `read` and `write:statuses`"),
        ("job p: feed", "refused"),
        ("job c: GitLab", "refused"),
        ("job w: site", " ok "),
    ] {
        assert!(line(start).contains(words), "{start} {words}: {}", line(start));
    }
    let locked =
        doctor(&config(&gitlab.url(), &format!("{}missing", site.url)), KEY, TOKEN, "glpat-wrong").await;
    let printed = ends_with(&locked, 4);
    assert!(printed.contains("HTTP 404 from"), "{printed}");
    let token = printed.lines().find(|line| line.starts_with("job c: token")).unwrap();
    assert!(token.contains("error") && token.contains("scope `read_api`"), "{token}");
    for output in [well, ill, locked] {
        let printed = output_text(&output);
        for secret in [KEY, TOKEN, "glpat", "a-wrong", "secret-path"] {
            assert!(!printed.contains(secret), "{secret}: {printed}");
        }
    }
    assert!(toots.toots().is_empty() && hook.posts().is_empty() && smtp.mails().is_empty());
    assert!(gemini.questions().is_empty(), "nothing that costs");
}
