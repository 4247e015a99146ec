//! Problems of a config file are reported in Japanese, too: every broken file of the tests, and one for each check of the
//! kinds.

use std::path::{Path, PathBuf};

use tsuzuki::app;
use tsuzuki::config::{Config, Env, Problem};
use tsuzuki::phrase::{Phrase, Speech};
use tsuzuki::text::Language;
use tsuzuki::time::Clock;

/// Whether nothing but names, quotations and words of libraries is in English.
fn is_japanese(phrase: &Phrase) -> bool {
    let rendered = Speech { language: Language::Ja, zone: None }.phrase(phrase);
    // The parser of TOML, the system and libraries speak English only.
    if rendered.starts_with("TOML の書式の誤り：") {
        return true;
    }
    let of_others = ["No such file", "failed to parse header value"];
    let rendered = of_others
        .into_iter()
        .fold(&*rendered, |rendered, words| rendered.split(words).next().unwrap_or_default());
    // Quoted text comes from the file.
    let outside = |text: &str, quote: char| text.split(quote).step_by(2).collect::<Vec<_>>().join(" _ ");
    let prose = outside(&outside(rendered, '`'), '"');
    let words = |run: &str| run.split_whitespace().filter(|word| word.len() > 1).count();
    let longest = prose.split(|c: char| !(c.is_ascii_alphabetic() || c == ' ')).map(words).max();
    !rendered.is_ascii() && longest < Some(3)
}

fn assert_japanese(file: &str, problem: &Problem) {
    for phrase in
        [Some(&problem.message), problem.label.as_ref(), problem.hint.as_ref()].into_iter().flatten()
    {
        let rendered = Speech { language: Language::Ja, zone: None }.phrase(phrase);
        assert!(phrase.is_empty() || is_japanese(phrase), "{file}: {rendered}");
    }
}

async fn problems_of(directory: &Path, text: &str) -> Vec<Problem> {
    let path = directory.join("tsuzuki.toml");
    std::fs::write(&path, text).unwrap();
    let (config, problems) = app::survey::survey(&path, &Env::of([]), &Clock::system()).await;
    let setup = config.iter().flat_map(Config::list_needed_setup).map(|(_, problem)| problem);
    problems.into_iter().chain(setup).collect()
}

#[tokio::test]
async fn every_problem_of_every_broken_file_is_told_in_japanese() {
    let directory = tempfile::tempdir().unwrap();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/config/bad");
    let files = std::fs::read_dir(fixtures).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|end| end == "toml")).collect();
    let mut count = 0;
    for file in files {
        for problem in problems_of(directory.path(), &std::fs::read_to_string(&file).unwrap()).await {
            assert_japanese(&file.display().to_string(), &problem);
            count += 1;
        }
    }
    assert!(count > 60, "{count}");
}

const PRESS: &str = "kind = \"press\"\nfeed = \"https://a.example/feed\"\nllm = \"none\"\n";
const BOOKS: &str = "kind = \"books\"\nqueries = [\"rust\"]\n";
const BLOGS: &str = "kind = \"blogs\"\nblog = [{ id = \"a\", url = \"https://a.example/\" }]\n";
const COMMITS: &str = "kind = \"commits\"\ngitlab = \"https://gitlab.example\"\nprojects = [\"team/app\"]\n";

#[tokio::test]
async fn what_the_kinds_check_is_told_in_japanese() {
    let directory = tempfile::tempdir().unwrap();
    let job = |own: &str, line: &str| format!("[[job]]\nname = \"one\"\n{own}{line}\n");
    let blog = |keys: &str| {
        job("kind = \"blogs\"\n", &format!("blog = [{{ id = \"a\", url = \"https://a.example/\", {keys} }}]"))
    };
    let channel = |text: &str| format!("[channel.one]\n{text}\n");
    let email = |line: &str| {
        let base = "kind = \"email\"\nsmtp = \"mail.example\"\nfrom = \"a@example.com\"\n";
        channel(&format!("{base}{line}"))
    };
    for text in [
        job(PRESS, "items_per_run = 0"),
        job(PRESS, "summary_chars = 3"),
        job(PRESS, "allow_private = [\"a b\"]"),
        job(PRESS, "max_file = \"5 XB\""),
        job(PRESS, "max_file = -5"),
        job(PRESS, "include = [\"\"]"),
        job(PRESS, "feed = 5").replacen("feed = \"https://a.example/feed\"\n", "", 1),
        job(PRESS, "deliver = [\"nobody\"]"),
        job(PRESS, "").replace("llm = \"none\"", ""),
        job(PRESS, "").replace("\"none\"", "\"nosuch\""),
        job(PRESS, "").replace("https://", "ftp://"),
        job(BOOKS, "max_per_run = 0"),
        job(BOOKS, "mail_limit = 51\ntoken_days = 0\nretries = 1000\nfallback_limit = 99"),
        job(BOOKS, "earliest = \"soon\""),
        job(BOOKS, "recheck_after = 7"),
        job(BOOKS, "recheck_after = true"),
        job(BOOKS, "hold_above = 3"),
        job(BOOKS, "prompt = \"nosuch.txt\""),
        job(BOOKS, "quota = \"nosuch\""),
        job(BOOKS, "").replace("[\"rust\"]", "[]"),
        job(BOOKS, "").replace("\"rust\"", "\" \""),
        job(BOOKS, "google_books = { printType = \"comics\" }"),
        job(BLOGS, "warn_after = 0"),
        blog("detect = []"),
        blog("sitemap = \"https://a.example/s.xml\", detect = [\"feed\"]"),
        blog("deliver = [\"nobody\"]"),
        blog("headers = { \"a b\" = \"${X}\" }"),
        blog("login = { user = \"u\", password = \"${P}\" }, headers = { Authorization = \"${X}\" }"),
        job(
            "kind = \"blogs\"\n",
            "blog = [{ id = \"a\", url = \"https://a.example/\" }, { id = \"a\", url = \"https://b.example/\" }]",
        ),
        format!("{}{}", job(BLOGS, ""), job(BLOGS, "").replace("one", "two")),
        job(COMMITS, "concurrency = 0"),
        job(COMMITS, "branches = [\" \"]"),
        job(COMMITS, "mailmap = \"nosuch\""),
        job(COMMITS, "first_run = \"all\""),
        job(COMMITS, "since = \"soon\""),
        job(COMMITS, "group = true"),
        job(COMMITS, "[[job.person]]\nname = \"\""),
        job(COMMITS, "").replace("[\"team/app\"]", "[-1, \"a b\"]"),
        job("kind = \"commits\"\n", ""),
        job("kind = \"commits\"\n", "gitlab = \"https://gitlab.example\""),
        job("kind = \"pres\"\n", ""),
        job("kind = \"cats\"\n", ""),
        job("", "").replace("one", "two words"),
        channel(
            "kind = \"mastodon\"\ninstance = \"https://m.example\"\ntoken = \"${T}\"\ntemplate = \"{{ title }}\"",
        ),
        channel(
            "kind = \"mastodon\"\ninstance = \"https://m.example\"\ntoken = \"${T}\"\non_unknown = \"hold\"",
        ),
        channel("kind = \"slack\"\nurl = \"${HOOK}\"\nmax_per_day = 0\nmax_attempts = 0"),
        channel("kind = \"slack\"\nurl = \"${HOOK\"\nquiet_hours = \"22\""),
        channel("kind = \"slack\"\nurl = \"literal-text\"\npace = 10"),
        email("to = []"),
        email("to = [\"b\"]"),
        email("to = [\"b@example.com\"]\nuser = \"u\""),
        email("to = [\"b@example.com\"]\npassword = \"${P}\""),
        email("to = [\"b@example.com\"]\nuser = \"u\"\npassword = \"${P}\"\ntls = \"none\""),
        email("to = [\"b@example.com\"]").replace("mail.example", "file:"),
        email("to = [\"b@example.com\"]").replace("mail.example", "a b"),
        "[llm.m]\nkind = \"gemini\"\napi_key = \"${K}\"\ntemperature = 5.0".to_owned(),
        "[llm.m]\nkind = \"gemini\"\napi_key = \"${K}\"\nmax_output_tokens = 0".to_owned(),
        "[llm.m]\nkind = \"gemini\"\napi_key = \"${K}\"\nscreen_model = \"a b\"".to_owned(),
        "[llm.m]\nkind = \"gemini\"\napi_key = \"${K}\"\nquota = \"nosuch\"".to_owned(),
        "[web]\nlisten = \"localhost\"".to_owned(),
        "[web]\nsso_header = \"a b\"".to_owned(),
        "[web]\nsso_header = \"Remote-User\"".to_owned(),
        "[web]\ntrusted_proxies = [\"proxy\"]".to_owned(),
        "[store]\nurl = \"mysql://a\"".to_owned(),
        "[app]\ntimezone = \"JST\"\nuser_agent = \"日本\"\nproxy = \"${P}\"".to_owned(),
        "[quota.q]\nper_day = \"many\"\nday_starts = \"25:00\"".to_owned(),
        "[quota]\nper_day = 3".to_owned(),
        "app = 3\njob = 3".to_owned(),
        "feed = \"x\"".to_owned(),
    ] {
        let problems = problems_of(directory.path(), &text).await;
        assert!(!problems.is_empty(), "nothing is wrong with {text}");
        problems.iter().for_each(|problem| assert_japanese(&text, problem));
    }
}
