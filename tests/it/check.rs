//! `check`: everything that is wrong with a config file, in one go and with its place, for people and for programs.

use std::path::Path;

use crate::test_env::{TestEnv, ends_with, output_text};
use serde_json::Value as Json;

/// The problems of `check --json` as `LINE:COLUMN MESSAGE`, and its exit code.
fn check(test_env: &TestEnv) -> (Vec<String>, Option<i32>) {
    let output = test_env.run(&["check", "--json"]);
    let printed: Json = serde_json::from_slice(&output.stdout).unwrap();
    let line = |problem: &Json| {
        assert_eq!(Path::new(problem["file"].as_str().unwrap()), Path::new("tsuzuki.toml"));
        format!("{}:{} {}", problem["line"], problem["column"], problem["message"].as_str().unwrap())
    };
    (printed["problems"].as_array().unwrap().iter().map(line).collect(), output.status.code())
}

/// Every line with a comment has the error in the comment; other lines have none.
const EVERYTHING_WRONG: &str = r#"bogus = 1 # 1 unknown key `bogus`
[app]
timezone = "Asia/Tokio" # 12 `Asia/Tokio` is not a time zone
langage = "ja" # 1 unknown key `langage`
alert = ["mail", "maill"] # 18 there is no channel `maill`
[quota.small] # 1 the key `per_day` is missing
perday = 5 # 1 unknown key `perday`
[llm.gem]
kind = "gemini"
api_key = "${KEY}" # 11 KEY is not set
quota = "nope" # 9 there is no quota `nope`
foo = 1 # 1 unknown key `foo`
[llm.kindless] # 1 the key `kind` is missing
[channel.mail] # 1 the key `from` is missing
kind = "emial" # 8 there is no kind of channel `emial`
smtp = "host:99999" # 8 `host:99999` is not a mail server
to = ["nobody"] # 7 `nobody` is not a mail address
max_attempts = 0 # 16 0 would send nothing at all
max_per_day = 0 # 15 0 would send nothing at all
bar = 2 # 1 unknown key `bar`
[[job]] # 1 the key `feed` is missing
name = "p"
kind = "press"
every = "abc" # 9 `abc` is not a duration: a number is missing
deliver = ["mail", "nobody"] # 20 there is no channel `nobody`
llm = "kindless"
items_per_run = 0 # 17 0 would look at nothing at all
allow_private = [""] # 17 `` is not an address, a range such as 10.0.0.0/8, a host name or one of these with :port
zzz = 1 # 1 unknown key `zzz`
content = "${HOME}" # 11 `${…}` is filled in only where a secret belongs
[[job]]
name = "b"
kind = "blogs"
deliver = ["mail"]
warn_after = 0 # 14 a warning needs at least one failure
[[job.blog]]
id = "x"
url = "nonsense" # 7 `nonsense` is not a web address: it does not begin with https:// or http://
selector = "a[" # 12 `a[` is not a CSS selector that we know: end of input
[[job.blog]] # 1 the key `id` is missing
url = "https://x.example"
detect = [] # 10 at least one of feed, sitemap and html is needed
wat = 1 # 1 unknown key `wat`
[[job.blog]] # 1 the key `url` is missing
id = "x" # 6 the id `x` is already that of blog number 1
[[job]] # 1 the key `name` is missing
kind = "books"
queries = "rust" # 11 expected an array, found the text "rust"
max_per_run = 0 # 15 `max_per_run` is at least 1
quota = "none" # 9 there is no quota `none`
google_books.api_url = "https://books.example/"
[[job]] # 1 the key `gitlab` is missing
name = "c"
kind = "commits"
deliver = ["mail"]
group = "g"
concurrency = 99 # 15 `concurrency` is 1 to 16
[[job]] # 1 the key `kind` is missing
name = "c" # 8 two jobs are named `c`
"#;

#[test]
fn every_problem_of_every_table_is_told_in_one_go() {
    let wanted = EVERYTHING_WRONG.lines().enumerate().filter_map(|(number, line)| {
        let (_, comment) = line.split_once(" # ")?;
        let (column, message) = comment.split_once(' ')?;
        Some(format!("{}:{column} {message}", number + 1))
    });
    let (problems, code) = check(&TestEnv::new(EVERYTHING_WRONG));
    assert_eq!(problems.join("\n"), wanted.collect::<Vec<_>>().join("\n"));
    assert_eq!(code, Some(5));
}

#[test]
fn a_host_that_is_there_but_wrong_is_not_missing() {
    let config = "[[job]]\nname = \"c\"\nkind = \"commits\"\nprojects = [\"a/b\"]\ngitlab = { url = \"https://x.example\" }\n";
    let (problems, _) = check(&TestEnv::new(config));
    let errors: Vec<&String> =
        problems.iter().filter(|problem| problem.contains("gitlab") || problem.starts_with("5:")).collect();
    assert_eq!(errors, ["5:10 expected a web address such as \"https://example.com/\", found a table"]);
}

#[test]
fn people_see_the_same_problems_with_the_lines_and_what_was_meant() {
    let output = TestEnv::new(EVERYTHING_WRONG).run(&["check"]);
    let printed = String::from_utf8(output.stderr).unwrap();
    for words in [
        "--> tsuzuki.toml:4:1",
        "^^^^^^^ did you mean `language`?",
        "^^^^^^^ did you mean `email`?",
        "hint: kinds of job: press, books, blogs, commits",
        "first used in line 53",
        "tsuzuki.toml: 39 errors",
    ] {
        assert!(printed.contains(words), "{words}\n{printed}");
    }
    assert!(!printed.contains("stand-in"), "{printed}");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(5), 0));
}

#[test]
fn a_file_that_is_not_there_or_not_toml_is_json_too() {
    let test_env = TestEnv::new("[app\n");
    assert_eq!(check(&test_env).1, Some(5));
    assert!(check(&test_env).0[0].starts_with("1:5 "), "{:?}", check(&test_env).0);
    std::fs::remove_file(test_env.file("tsuzuki.toml")).unwrap();
    let output = test_env.run(&["check", "--json", "-c", "tsuzuki.toml"]);
    let printed: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(printed["problems"][0]["message"], "there is no such file");
    assert_eq!((&printed["problems"][0]["line"], output.status.code()), (&Json::from(0), Some(5)));
}

#[test]
fn a_good_file_has_no_problems_and_one_job() {
    let test_env = TestEnv::new(
        "[[job]]\nname = \"b\"\nkind = \"books\"\nqueries = [\"rust\"]\ngoogle_books.api_url = \"https://books.example/\"\n\
         deliver = [\"out\"]\n[web]\npublic_url = \"https://prompts.example\"\n\
         [channel.out]\nkind = \"email\"\nsmtp = \"mail.example:587\"\nfrom = \"a@mail.example\"\nto = [\"b@mail.example\"]\n",
    );
    assert_eq!(check(&test_env), (vec![], Some(0)));
    let printed = String::from_utf8(test_env.run(&["check"]).stderr).unwrap();
    assert_eq!(printed, "tsuzuki.toml: 1 job, no errors\n");
}

/// A job of every kind without a channel, and the commands that list what it collects.
const SILENT: [(&str, &str, &str); 4] = [
    ("press", "feed = \"https://a.example/\"", "`item ls`"),
    ("books", "queries = [\"rust\"]", "`book ls`"),
    ("blogs", "blog = [{ id = \"x\", url = \"https://x.example\" }]", "`change ls`"),
    ("commits", "gitlab = \"https://gitlab.example\"\nprojects = [\"a/b\"]", "`commits stats`"),
];

#[test]
fn a_job_without_a_channel_is_warned_of_wherever_it_is_set_up() {
    for (kind, keys, listing) in SILENT {
        let job = format!("[[job]]\nname = \"j\"\nkind = \"{kind}\"\n{keys}\n");
        let test_env =
            TestEnv::new(&format!("{job}[llm.gem]\nkind = \"gemini\"\napi_key = \"literal-key\"\n"));
        let (problems, code) = check(&test_env);
        assert_eq!(code, Some(0), "it is no error");
        let warning = problems.iter().find(|problem| problem.contains("job `j` sends nowhere: ")).unwrap();
        let shown = format!("results are kept and shown by `status` and {listing}");
        assert!(warning.starts_with("1:1 ") && warning.ends_with(&shown), "{warning}");
        // Every command that it names is one.
        let words: Vec<&str> = listing.trim_matches('`').split(' ').collect();
        ends_with(&test_env.run(&[words.as_slice(), &["--help"]].concat()), 0);
        let doctor = output_text(&test_env.run(&["doctor", "--offline"]));
        assert!(doctor.contains(&shown) && doctor.contains("add `deliver` to be notified"), "{doctor}");
        let quiet = test_env.run(&["check", "-q"]);
        assert_eq!((output_text(&quiet).as_str(), quiet.status.code()), ("", Some(0)));
    }
    let test_env = TestEnv::new("[channel.hook]\nkind = \"webhook\"\nurl = \"https://example.com/hook\"\n");
    let add = |name: &str, more: &[&str]| {
        let args = ["job", "add", "blogs", name, "--blog", &format!("{name}=https://{name}.example")];
        ends_with(&test_env.run(&[&args, more].concat()), 0)
    };
    assert!(add("silent", &[]).contains("warning: job `silent` sends nowhere"));
    assert!(!add("loud", &["--deliver", "hook"]).contains("sends nowhere"));
    test_env.write("list", "https://more.example/\n");
    let import = |job: &str| ends_with(&test_env.run(&["import", "urls", "list", "--job", job, "--new"]), 0);
    assert!(!import("loud").contains("sends nowhere"));
    test_env.write("list", "https://others.example/\n");
    assert!(import("fresh").contains("warning: job `fresh` sends nowhere"));
}

#[test]
fn a_books_job_without_a_key_is_warned_of_unless_it_asks_somebody_else() {
    let wanted = "1:1 this job has no key for Google Books, which allows no requests without one";
    for (options, warned) in [
        ("{}", true),
        ("{ api_url = \"https://books.googleapis.com/books/v1\" }", true),
        ("{ api_url = \"https://books.example/\" }", false),
        ("{ api_key = \"${KEY}\" }", false),
    ] {
        let test_env = TestEnv::new(&format!(
            "[[job]]\nname = \"b\"\nkind = \"books\"\nqueries = [\"rust\"]\ngoogle_books = {options}\n"
        ));
        let (problems, code) = check(&test_env);
        assert_eq!((problems.iter().any(|problem| problem == wanted), code), (warned, Some(0)), "{options}");
        let printed = String::from_utf8(test_env.run(&["check"]).stderr).unwrap();
        assert_eq!(printed.contains("which allows no requests without one"), warned, "{printed}");
        assert!(
            !warned || printed.contains("https://console.cloud.google.com/apis/credentials"),
            "{printed}"
        );
        let doctor = crate::test_env::output_text(&test_env.run(&["doctor", "--offline"]));
        assert_eq!(
            doctor.matches("which allows no requests without one").count(),
            usize::from(warned),
            "{doctor}"
        );
    }
}

#[test]
fn a_table_that_nothing_uses_is_a_warning() {
    let test_env = TestEnv::new(
        "[[job]]\nname = \"b\"\nkind = \"books\"\nqueries = [\"rust\"]\ndeliver = [\"told\"]\n\
         google_books.api_key = \"${KEY}\"\n\
         [channel.told]\nkind = \"webhook\"\nurl = \"${URL}\"\n\
         [channel.forgotten]\nkind = \"webhook\"\nurl = \"${URL}\"\n\
         [llm.idle]\nkind = \"gemini\"\napi_key = \"${KEY}\"\n\
         [web]\npublic_url = \"https://prompts.example\"\n",
    );
    let (problems, code) = check(&test_env);
    assert_eq!(code, Some(0), "{problems:?}");
    let unused: Vec<&String> = problems.iter().filter(|problem| !problem.contains("is not set")).collect();
    let [channel, llm] = unused.as_slice() else { panic!("{problems:?}") };
    assert!(
        channel.starts_with("10:1 ") && channel.contains("neither a `deliver` nor `alert` names it"),
        "{channel}"
    );
    assert!(llm.starts_with("13:1 ") && llm.contains("no job uses a model"), "{llm}");
}

#[test]
fn a_file_that_is_far_too_large_is_refused_before_it_is_parsed() {
    let test_env = TestEnv::empty();
    std::fs::write(test_env.file("tsuzuki.toml"), "this is no toml {{{\n".repeat(2_000_000)).unwrap();
    let (problems, code) = check(&test_env);
    assert_eq!(code, Some(5));
    let [problem] = problems.as_slice() else { panic!("{problems:?}") };
    assert!(problem.contains("it is larger than 4 MiB"), "{problem}");
}

const UNSET: &str = "[channel.out]\nkind = \"slack\"\nurl = \"${SLACK_WEBHOOK_URL}\"\n\
    [llm.gem]\nkind = \"gemini\"\napi_key = \"${LEFT}:${RIGHT}:${file:key}\"\n\
    [[job]]\nname = \"b\"\nkind = \"blogs\"\ndeliver = [\"out\"]\nblog = [{ id = \"x\", url = \"https://x.example\" }]\n\
    [[job]]\nname = \"c\"\nkind = \"commits\"\ngitlab = \"https://lab.example\"\nprojects = [\"a/b\"]\n";

#[test]
fn every_secret_that_is_not_set_needs_setup_and_is_an_error_only_when_strict() {
    let test_env = TestEnv::new(UNSET);
    let comment = test_env.ends("check", 0);
    for words in ["needs setup: SLACK_WEBHOOK_URL is not set", "needs setup: LEFT is not set"] {
        assert!(comment.contains(words), "{words}\n{comment}");
    }
    assert!(
        comment.contains("needs setup: RIGHT is not set") && comment.contains("the secret file `"),
        "{comment}"
    );
    assert!(comment.contains("https://api.slack.com/apps"), "where to get it: {comment}");
    assert!(comment.contains("no errors, needs setup: 4 secrets not set"), "{comment}");
    let problems = test_env.json("check");
    let severities: Vec<&str> = problems["problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["severity"].as_str().unwrap())
        .collect();
    assert_eq!(severities.iter().filter(|severity| **severity == "setup").count(), 4, "{severities:?}");
    let strict = test_env.ends("check --strict -q", 5);
    assert!(strict.contains("SLACK_WEBHOOK_URL is not set"), "{strict}");

    let status = test_env.run(&["status"]);
    let (table, comment) = (crate::test_env::out(&status), ends_with(&status, 0));
    let line = |job: &str| table.lines().find(|line| line.starts_with(job)).unwrap_or_default().to_owned();
    assert!(line("b ").contains("Needs setup"), "{table}");
    assert!(!line("c ").contains("Needs setup"), "it has no channel: {table}");
    assert!(comment.contains("needs setup: SLACK_WEBHOOK_URL is not set"), "{comment}");
    assert!(!comment.contains("LEFT"), "no job asks that model: {comment}");

    let mut set = test_env.command(&["check", "--strict"]);
    set.env("SLACK_WEBHOOK_URL", "https://hooks.slack.example/services/a")
        .envs([("LEFT", "a"), ("RIGHT", "b")]);
    test_env.write("key", "c-secret");
    ends_with(&set.output().unwrap(), 0);
}

/// Without a limit these take minutes to hours.
#[test]
fn a_large_file_that_is_wrong_everywhere_is_told_of_in_reasonable_time() {
    let unknown: String = (0..380_000).map(|number| format!("k{number}=1\n")).collect();
    let broken = "= nothing\n".repeat(300_000);
    let quotas: String =
        (0..20_000).map(|number| format!("[quota.q{number}]\nper_day = 0\nperday = 1\n")).collect();
    let jobs: String = (0..5_000)
        .map(|number| format!("[[job]]\nname = \"j{number}\"\nkind = \"none-that-is-known\"\n"))
        .collect();
    for (text, least, most) in [(unknown, 101, 101), (broken, 1, 5), (quotas, 100, 501), (jobs, 100, 501)] {
        let test_env = TestEnv::new(&text);
        let (problems, code) = check(&test_env);
        assert_eq!(code, Some(5));
        assert!((least..=most).contains(&problems.len()), "{}: {:?}", problems.len(), problems.first());
        let comment = test_env.ends("check", 5);
        assert!(comment.lines().count() < 10 * most, "{}", comment.lines().count());
    }
}

#[test]
fn a_channel_that_only_alerts_go_to_is_in_use() {
    let channel = "[channel.ops]\nkind = \"slack\"\nurl = \"https://hooks.example/x\"\n";
    for (app, is_used) in [("", false), ("[app]\nalert = [\"ops\"]\n", true)] {
        let printed = output_text(&TestEnv::new(&format!("{app}{channel}")).run(&["check"]));
        assert_eq!(!printed.contains("nothing is sent there"), is_used, "{printed}");
    }
}
