//! A reader that panics on the document of one blog, in the real program: the others are checked all the same.

use tsuzuki::demo::site::{Content, Site};

use crate::test_env::{TestEnv, ends_with, output_beside};

const BLOGS: usize = 12;

async fn desk_of(sites: &[Site]) -> TestEnv {
    let blogs: Vec<String> = sites
        .iter()
        .enumerate()
        .map(|(n, site)| format!("{{ id = \"blog{n}\", url = \"{}\" }}", site.url))
        .collect();
    TestEnv::new(&format!(
        "[[job]]\nname = \"b\"\nkind = \"blogs\"\nallow_private = [\"127.0.0.1\"]\nblog = [{}]\n",
        blogs.join(", ")
    ))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_panics_fails_one_check_and_the_other_blogs_go_on() {
    let mut sites = Vec::new();
    for _ in 0..BLOGS {
        let content = Content::with_articles(3, "2026-01-15T00:00:00Z".parse().unwrap());
        sites.push(Site::start(content).await.unwrap());
    }
    let test_env = desk_of(&sites).await;
    let mut command = test_env.command(&["run", "b"]);
    command.env("TSUZUKI_PANIC_AT", "blogs.checking:5");
    let printed = ends_with(&output_beside(command).await, 3);
    assert!(printed.contains("checked 12 of 12 blogs: 11 read for the first time"), "{printed}");
    assert!(printed.contains("1 failed") && printed.contains("the reader crashed"), "{printed}");

    // The others are saved, and the next run reads the missing one.
    let printed = ends_with(&test_env.run_beside(&["run", "b"]).await, 0);
    assert!(printed.contains("checked 12 of 12 blogs: 11 unchanged, 1 read for the first time"), "{printed}");
}
