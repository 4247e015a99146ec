//! `job test` and `job show` for each kind of job, for people and for programs, and what is stored afterwards.

use crate::books_world;
use crate::test_env::{TestEnv, ends_with};
use serde_json::Value as Json;
use tsuzuki::demo::gitlab::{Asked, GitLab};
use tsuzuki::demo::google_books::{GoogleBooks, volumes};
use tsuzuki::demo::site::{Content, Site};

const ALLOW: &str = "allow_private = [\"127.0.0.1\"]";

/// The output of a command that ends with `code`.
async fn ends(test_env: &TestEnv, code: i32, args: &[&str]) -> String {
    ends_with(&test_env.run_beside(args).await, code)
}

async fn json(test_env: &TestEnv, code: i32, args: &[&str]) -> Json {
    let output = test_env.run_beside(args).await;
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

async fn site() -> Site {
    Site::start(Content::with_articles(3, "2026-01-15T00:00:00Z".parse().unwrap())).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn blogs_are_looked_at_one_by_one_and_some_may_fail() {
    let site = site().await;
    let job = |second: &str| {
        format!(
            "[[job]]\nname = \"b\"\nkind = \"blogs\"\n{ALLOW}\nblog = [{{ id = \"one\", url = \"{}\" }}, {second}]\n",
            site.url
        )
    };
    let gone = format!("{{ id = \"gone\", url = \"{}missing\" }}", site.url);
    let test_env = TestEnv::new(&job(&gone));
    let printed = ends(&test_env, 3, &["job", "test", "b"]).await;
    assert!(
        printed.contains("one   by feed: 3 entries, 0 to be sent") && printed.contains("gone  failed: "),
        "{printed}"
    );
    let trial = json(&test_env, 3, &["job", "test", "b", "--json"]).await;
    assert_eq!(trial["items"][0]["detail"]["entries"], 3);
    assert!(trial["items"][1]["error"].is_string());
    let test_env =
        TestEnv::new(&format!("[[job]]\nname = \"b\"\nkind = \"blogs\"\n{ALLOW}\nblog = [{gone}]\n"));
    ends(&test_env, 1, &["job", "test", "b"]).await;
    assert_eq!(test_env.files().len(), 1, "nothing is written");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_press_feed_is_read_and_no_model_is_asked() {
    let site = site().await;
    let config = |feed: &str, first_run: &str| {
        format!(
            "[llm.g]\nkind = \"gemini\"\napi_key = \"${{K}}\"\nbase_url = \"{}\"\n{ALLOW}\n[[job]]\nname = \"p\"\nkind = \"press\"\n{ALLOW}\nfeed = \"{}{feed}\"\nfirst_run = \"{first_run}\"\n",
            site.url, site.url
        )
    };
    let test_env = TestEnv::new(&config("feed.xml", "latest:1"));
    let printed = ends(&test_env, 0, &["job", "test", "p"]).await;
    assert!(printed.contains("3 entries, 1 to be screened, the others recorded as known"), "{printed}");
    assert_eq!(json(&test_env, 0, &["job", "test", "p", "--json"]).await["items"][0]["detail"]["entries"], 3);
    assert_eq!(test_env.files().len(), 1, "nothing is written");
    let printed = ends(&TestEnv::new(&config("missing", "all")), 1, &["job", "test", "p"]).await;
    assert!(printed.contains("failed: ") && printed.contains("404"), "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_look_at_books_counts_one_request_and_stores_nothing_else() {
    let google = GoogleBooks::start(volumes(0, 7)).await.unwrap();
    let config = |per_day: u32| {
        format!(
            "[quota.google_books]\nper_day = {per_day}\n[[job]]\nname = \"s\"\nkind = \"books\"\nqueries = [\"rust\"]\n{ALLOW}\ngoogle_books = {{ api_url = \"{}\" }}\n",
            google.url
        )
    };
    let test_env = TestEnv::new(&config(3));
    let printed = ends(&test_env, 0, &["job", "test", "s"]).await;
    for words in [
        "7 volumes of 7 from position 0: 7 books, 7 new to the job",
        "1 request was counted",
        "2 of 3 are left today",
    ] {
        assert!(printed.contains(words), "{words}: {printed}");
    }
    assert_eq!(google.asked().len(), 1);
    assert_eq!(json(&test_env, 0, &["quota", "ls", "--json"]).await[0]["count"], 1);
    assert_eq!(json(&test_env, 0, &["book", "ls", "--json"]).await, Json::Array(Vec::new()));
    assert_eq!(json(&test_env, 0, &["job", "cursor", "show", "--json"]).await, Json::Array(Vec::new()));
    google.reply(books_world::refusal(500, "backendError"));
    ends(&test_env, 1, &["job", "test", "s"]).await;
    let used_up = TestEnv::new(&config(0));
    let printed = ends(&used_up, 1, &["job", "test", "s"]).await;
    assert!(printed.contains("no requests to `google_books` until"), "{printed}");
    assert_eq!(google.asked().len(), 2, "nothing is asked without permission");
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_are_not_walked_but_their_heads_are_compared() {
    let gitlab = GitLab::start().await.unwrap();
    gitlab.add_synthetic(7, "team/code", 5);
    let config = |projects: &str| {
        format!(
            "[[job]]\nname = \"c\"\nkind = \"commits\"\n{ALLOW}\ngitlab = \"{}\"\nprojects = [{projects}]\n",
            gitlab.url()
        )
    };
    let test_env = TestEnv::new(&config("\"team/code\", \"team/none\""));
    let printed = ends(&test_env, 3, &["job", "test", "c"]).await;
    assert!(printed.contains("team/code main") && printed.contains("new: everything up to "), "{printed}");
    assert!(printed.contains("project `team/none`") && printed.contains("1 of 2 checks failed"), "{printed}");
    assert_eq!(test_env.files().len(), 1, "nothing is written");
    assert!(!gitlab.requests().iter().any(Asked::is_for_commits), "no commit is fetched");
    let test_env = TestEnv::new(&config("\"team/code\""));
    ends(&test_env, 0, &["run", "c"]).await;
    let trial = json(&test_env, 0, &["job", "test", "c", "--json"]).await;
    let detail = &trial["items"][0]["detail"];
    assert!(detail["head"].is_string() && detail["head"] == detail["known_head"], "{trial}");
    gitlab.add_synthetic(7, "team/code", 6);
    let printed = ends(&test_env, 0, &["job", "test", "c"]).await;
    assert!(printed.contains("would be walked from "), "{printed}");
    ends(&TestEnv::new(&config("\"team/none\"")), 1, &["job", "test", "c"]).await;
    let printed = ends(&TestEnv::new(&config("")), 0, &["job", "test", "c"]).await;
    assert!(printed.contains("a run would walk nothing") && printed.contains("branch add"), "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_shown_with_its_own_keys_and_without_its_secrets() {
    let test_env = TestEnv::new(
        "[[job]]\nname = \"c\"\nkind = \"commits\"\nevery = \"2h\"\ngitlab = \"https://gitlab.example\"\ntoken = \"glpat-7777-secret\"\nprojects = [\"a/b\", 4]\n",
    );
    let printed = ends(&test_env, 0, &["job", "show", "c"]).await;
    for line in [
        "schedule       every 2 h (Asia/Tokyo)",
        "projects       a/b, 4",
        "gitlab         https://gitlab.example",
        "token          ***",
    ] {
        assert!(printed.lines().any(|printed| printed == line), "{line}: {printed}");
    }
    let shown = json(&test_env, 0, &["job", "show", "c", "--json"]).await;
    assert_eq!((&shown["job_name"], &shown["keys"]["projects"][1]), (&"c".into(), &4.into()));
    assert!(!format!("{printed}{shown}").contains("7777"), "{printed}{shown}");
    for refused in ["first_run", "hold_above"] {
        assert!(!printed.contains(refused) && shown.get(refused).is_none(), "{refused}: {printed}{shown}");
    }
    ends(&test_env, 2, &["job", "show", "d"]).await;
}
