//! Heartbeats: an address that is requested after every run, and whose failures have no effect.

use crate::test_env::{TestEnv, code, err};
use tsuzuki::demo::site::{Content, Site};

fn config(blog: &str, of_app: &str, of_job: Option<&str>) -> String {
    let of_job = of_job.map(|ping| format!("ping = \"{ping}\"\n")).unwrap_or_default();
    format!(
        "[app]\nping = \"{of_app}\"\n[[job]]\nname = \"blogs\"\nkind = \"blogs\"\n{of_job}\
         allow_private = [\"127.0.0.0/8\"]\nblog = [{{ id = \"a\", url = \"{blog}\" }}]\n"
    )
}

fn paths(site: &Site) -> Vec<String> {
    site.take_log().into_iter().map(|asked| asked.path).collect()
}

#[tokio::test]
async fn every_run_is_reported_with_how_it_ended() {
    let blog = Site::start(Content::with_articles(2, "2026-01-15T00:00:00Z".parse().unwrap())).await.unwrap();
    let checks =
        Site::start(Content::with_articles(0, "2026-01-15T00:00:00Z".parse().unwrap())).await.unwrap();
    let of_app = format!("{}ping/app", checks.url);
    let test_env = TestEnv::new(&config(blog.url.as_str(), &of_app, None));
    let output = test_env.run_beside(&["run", "blogs"]).await;
    assert_eq!(code(&output), 0, "a check that knows nothing of us is no failure of ours: {}", err(&output));
    assert_eq!(paths(&checks), ["/ping/app"]);
    assert!(err(&output).contains("The ping after the run of blogs did not arrive"), "{}", err(&output));

    let of_job = format!("{}ping/own/", checks.url);
    test_env.write("tsuzuki.toml", &config("http://127.0.0.1:9/", &of_app, Some(&of_job)));
    let output = test_env.run_beside(&["run", "blogs"]).await;
    assert_eq!(code(&output), 1, "{}", err(&output));
    assert_eq!(paths(&checks), ["/ping/own/fail"], "that of the job stands above that of all");
}

#[tokio::test]
async fn a_ping_that_finds_nobody_is_a_line_and_nothing_else() {
    let blog = Site::start(Content::with_articles(2, "2026-01-15T00:00:00Z".parse().unwrap())).await.unwrap();
    let test_env = TestEnv::new(&config(blog.url.as_str(), "http://127.0.0.1:9/ping", None));
    let output = test_env.run_beside(&["run", "blogs"]).await;
    assert_eq!(code(&output), 0, "{}", err(&output));
    assert!(err(&output).contains("did not arrive"), "{}", err(&output));
}
