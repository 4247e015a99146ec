//! `demo` as a new user sees it: the real program, its output, its pages, and the files that it leaves.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use crate::test_env::send_signal;
use rustix::process::Signal;
use serde_json::Value as Json;
use tsuzuki::db::{Db, DbUrl, Open};
use tsuzuki::demo::world::{self, World};
use tsuzuki::demo::{journal, mail, smtp, store};
use tsuzuki::time::Clock;

/// `tsuzuki demo …` with an environment in which everything points elsewhere.
fn demo(temporary: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tsuzuki"));
    command.arg("demo").args(args).current_dir(temporary).env_clear().env("TZ", "Asia/Tokyo");
    command.env("TMPDIR", temporary).env("HOME", temporary).env("TZ", "UTC");
    // Settings of a real installation must not affect the demo.
    command.env("SMTP_HOST", "smtp.invalid").env("TSUZUKI_STORE_URL", "sqlite:/nowhere/x.db");
    command
        .env("COPY_PAGE_BASE_URL", "https://elsewhere.invalid")
        .env("TSUZUKI_CONFIG", "/nowhere/tsuzuki.toml");
    command
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{}{err}", out(&output));
    assert_eq!(err, "");
    out(&output)
}

fn run_json(command: &mut Command) -> Json {
    serde_json::from_str(&run(command)).unwrap()
}

fn names(directory: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// What the demo servers received, according to the journal: texts of posts, and mails.
fn received(directory: &Path) -> (Vec<String>, Vec<smtp::Kept>) {
    let text = std::fs::read_to_string(directory.join(journal::FILE)).unwrap();
    let (mut posts, mut mails) = (Vec::new(), Vec::new());
    for line in text.lines() {
        match serde_json::from_str(line).unwrap() {
            journal::Entry::Post(toot) => posts.push(toot.request["status"].as_str().unwrap().to_owned()),
            journal::Entry::Mail(mail) => mails.push(mail),
            _ => {}
        }
    }
    (posts, mails)
}

fn are_different<T: Ord>(list: impl IntoIterator<Item = T>) -> bool {
    let list: Vec<T> = list.into_iter().collect();
    let count = list.len();
    list.into_iter().collect::<BTreeSet<T>>().len() == count
}

#[tokio::test]
async fn a_second_run_goes_on_and_repeats_nothing() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("kept");
    let args = ["--once", "--json", "--keep", "kept"];
    let first = run_json(&mut demo(temporary.path(), &args));
    let (posts, mails) = received(&directory);
    assert_eq!((first["continued"].as_bool(), first["steps"].as_u64()), (Some(false), Some(1)));
    assert_eq!((posts.len(), mails.len()), (3, 2), "{posts:?}");

    let second = run_json(&mut demo(temporary.path(), &args));
    assert_eq!(second["continued"], true);
    assert_eq!(second["before"], first["now"], "nothing was lost, and nothing had happened meanwhile");
    let new = |pipeline: &str, figure: &str| {
        let at = |when: &str| second[when][pipeline][figure].as_i64().unwrap();
        at("now") - at("before")
    };
    assert_eq!((new("press", "found"), new("press", "posted")), (1, 1));
    assert_eq!((new("books", "volumes"), new("books", "mailed"), new("books", "mails")), (40, 5, 1));
    assert_eq!((new("blogs", "checks"), new("blogs", "entries"), new("blogs", "mails")), (3, 0, 0));
    assert_eq!((new("commits", "commits"), new("commits", "posts")), (4, 1));

    let third = run(&mut demo(temporary.path(), &["--once", "--keep", "kept"]));
    let start = format!("Continued in {}: ", directory.canonicalize().unwrap().display());
    assert!(third.starts_with(&start), "{third}");
    assert!(
        third.contains("2 steps of the story so far; the demo servers received 5 posts and 3 mails."),
        "{third}"
    );
    assert!(third.contains("blogs    3 checks, 1 new entry (33 known before)"), "{third}");
    assert!(
        third.contains("press    0 new in the feed (13 known before); nothing to decide; 0 posts sent"),
        "{third}"
    );

    let (all_posts, all_mails) = received(&directory);
    assert_eq!(&all_posts[..3], &posts[..], "what was received stays");
    assert_eq!(&all_mails[..2], &mails[..]);
    assert!(are_different(all_posts.iter()), "{all_posts:?}");
    assert!(are_different(all_mails.iter().map(|mail| mail.header("message-id").unwrap().to_owned())));
    let letters: Vec<_> = all_mails.iter().map(mail::read).collect();
    let isbns =
        letters.iter().flat_map(|letter| letter.text.lines().filter(|line| line.starts_with("ISBN: ")));
    assert!(are_different(isbns.clone()), "a book was mailed twice");
    assert_eq!(isbns.count(), 15);
    assert!(letters.iter().all(|letter| !letter.text.contains("elsewhere.invalid")));

    let place = DbUrl::File(directory.join("tsuzuki.db"));
    let db = Db::open(place, Open::ReadOnly, Clock::system()).await.unwrap();
    let figures = db.read(store::count_figures).await.unwrap();
    db.close().await;
    let mut stats = Command::new(env!("CARGO_BIN_EXE_tsuzuki"));
    stats
        .args(["commits", "stats", "--json", "-c"])
        .arg(directory.join("tsuzuki.toml"))
        .env_clear()
        .env("TZ", "Asia/Tokyo");
    let stats = run_json(&mut stats);
    let counted = stats["commits"].as_i64().unwrap() + stats["merges"].as_i64().unwrap();
    assert_eq!(counted, figures.commits.commits, "a commit on two branches is one");
    let sent = figures.press.posted + figures.commits.posts;
    assert_eq!(usize::try_from(sent).unwrap(), all_posts.len(), "every post is one that we know of");
    let sent = figures.books.mails + figures.blogs.mails;
    assert_eq!(usize::try_from(sent).unwrap(), all_mails.len());
    assert_eq!(
        names(&directory),
        [".tsuzuki.db.claims", "keys", "tsuzuki.db", "tsuzuki.toml", journal::FILE].map(str::to_owned).into()
    );
}

#[test]
fn a_demo_that_was_killed_goes_on_without_repeating() {
    for point in ["press.collected", "blogs.queued"] {
        let temporary = tempfile::tempdir().unwrap();
        let args = ["--once", "--json", "--keep", "kept"];
        let killed = demo(temporary.path(), &args).env("TSUZUKI_FAIL_AT", point).output().unwrap();
        assert!(!killed.status.success() && killed.status.code().is_none(), "{point}: {killed:?}");
        run_json(&mut demo(temporary.path(), &args));
        let (posts, mails) = received(&temporary.path().join("kept"));
        assert!(posts.len() >= 3, "{point}: {posts:?}");
        assert!(are_different(posts.iter()), "{point}: {posts:?}");
        let letters: Vec<_> = mails.iter().map(mail::read).collect();
        let lines = |start: &'static str| {
            letters
                .iter()
                .flat_map(move |letter| letter.text.lines().filter(move |line| line.starts_with(start)))
        };
        assert!(are_different(lines("* ")) && lines("* ").count() == 4, "{point}: {letters:?}");
        assert!(are_different(lines("ISBN: ")) && lines("ISBN: ").count() >= 5, "{point}: {letters:?}");
    }
}

#[tokio::test]
async fn a_world_is_open_once_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let first = World::open(directory.path(), Clock::system()).await.unwrap();
    let second = World::open(directory.path(), Clock::system()).await;
    assert!(matches!(second, Err(world::Error::Taken { what: "ministry", .. })));
    drop(first);
}

#[test]
fn a_directory_with_something_else_is_refused_and_left_alone() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("mine");
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(directory.join("tsuzuki.toml"), "# my own\n").unwrap();
    let output = demo(temporary.path(), &["--once", "--keep", "mine"]).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert!(
        err.contains("holds something else than a demo: `tsuzuki.toml`") && err.contains("hint: "),
        "{err}"
    );
    assert_eq!(names(&directory), ["tsuzuki.toml".to_owned()].into());
    let printed = demo(temporary.path(), &["--keep", "mine", "--lang", "ja"]).output().unwrap().stderr;
    assert!(String::from_utf8(printed).unwrap().contains("デモのものではない `tsuzuki.toml`"));
    let output =
        demo(temporary.path(), &["--once", "--keep", "new", "--listen", "0.0.0.0:0"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "open to the network without a password");
    assert!(
        !temporary.path().join("new/tsuzuki.toml").exists(),
        "a refusal leaves nothing that is refused again"
    );
    let output = demo(temporary.path(), &["--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "--json without --once");
}

/// Paths and ports differ between runs; everything else should be the same.
fn normalised(text: &str) -> String {
    let word = |word: &str| match (word.contains("tsuzuki-demo-"), word.contains("127.0.0.1:")) {
        (true, _) if word.ends_with("/tsuzuki.toml") => "DIR/tsuzuki.toml".to_owned(),
        (true, _) => "DIR".to_owned(),
        (_, true) => {
            let (before, after) = word.split_once("127.0.0.1:").unwrap();
            format!("{before}127.0.0.1:PORT{}", after.trim_start_matches(|c: char| c.is_ascii_digit()))
        }
        _ => word.to_owned(),
    };
    let line = |line: &str| line.split(' ').map(word).collect::<Vec<_>>().join(" ");
    text.trim().lines().map(line).collect::<Vec<_>>().join("\n")
}

/// The block of the README that begins with the line `first`.
fn readme_block(first: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = std::fs::read_to_string(path).unwrap();
    let blocks = readme.split("```").skip(1).step_by(2);
    let block = blocks.filter_map(|block| block.split_once('\n')).find(|(_, text)| text.starts_with(first));
    block.unwrap_or_else(|| panic!("the README has no block that begins with `{first}`")).1.to_owned()
}

fn get(address: &str, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\nhost: {address}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_lowercase(), body.to_owned())
}

fn interrupt(child: &Child) {
    send_signal(child.id(), Signal::INT);
}

#[test]
fn ctrl_c_in_the_first_round_leaves_nothing_either() {
    let temporary = tempfile::tempdir().unwrap();
    let mut child =
        demo(temporary.path(), &["--once"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut String::new()).unwrap();
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(names(temporary.path()).is_empty(), "{:?}", names(temporary.path()));
}

#[test]
fn the_readme_shows_what_it_says_its_pages_answer_and_ctrl_c_leaves_nothing() {
    let temporary = tempfile::tempdir().unwrap();
    let mut child =
        demo(temporary.path(), &[]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut opening = String::new();
    while !opening.contains("Ctrl-C") {
        let line = lines.next().expect("it goes on until it says how to end it").unwrap();
        opening = opening + &line + "\n";
    }
    assert_eq!(names(temporary.path()).len(), 1, "everything is in one temporary directory");

    let (_, rest) = opening.split_once("Messages:     http://").unwrap();
    let address = rest.split('/').next().unwrap();
    let (head, page) = get(address, "/demo");
    assert!(head.starts_with("http/1.0 200") || head.starts_with("http/1.1 200"), "{head}");
    assert!(
        head.contains("content-security-policy: default-src 'none'; script-src 'self'; style-src 'self';"),
        "{head}"
    );
    assert!(page.contains("Posts (3)") && page.contains("Mails (2)"), "{page}");
    assert!(page.contains("4 new entries on 3 blogs") && page.contains("5 new books"), "{page}");
    assert!(page.contains("「R&#38;D &#60;重点分野&#62;」"), "titles are text: {page}");
    assert!(!page.contains("<script>") && !page.contains("<重点分野"), "{page}");
    let (head, mail) = get(address, "/demo?document=2");
    assert!(head.contains("content-security-policy: sandbox "), "{head}");
    assert!(mail.contains("<html") && !mail.contains("<script"), "{mail}");
    assert!(page.contains("src=\"/demo?document=2\"") && page.contains("<iframe sandbox="), "{page}");
    let documents = [mail, get(address, "/demo?document=1").1];
    assert!(
        documents.iter().any(|mail| mail.contains("<img src=\"data:image/svg+xml;base64,")),
        "{documents:?}"
    );
    assert!(get(address, "/demo?document=9").0.contains(" 404 "));
    let plain = page.replace("&#x2f;", "/");
    let (_, token) = plain.split_once(&format!("http://{address}/p/")).expect("mails link to prompt pages");
    let (head, prompt) = get(address, &format!("/p/{}", &token[..32]));
    assert!(head.contains(" 200 ") && prompt.contains("ISBN"), "{head}\n{prompt}");
    assert!(get(address, "/healthz").0.contains(" 200 "));
    assert!(get(address, "/p/0").0.contains(" 404 "));

    interrupt(&child);
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!((child.wait().unwrap().code(), err.as_str()), (Some(0), ""));
    assert!(names(temporary.path()).is_empty(), "{:?}", names(temporary.path()));

    let shown = readme_block("Demo servers");
    assert_eq!(normalised(&opening), normalised(&shown), "README.md shows another demo");
}

/// The number before these words.
fn count_before(text: &str, words: &str) -> usize {
    let before = text.split_once(words).unwrap_or_else(|| panic!("`{words}` is not said: {text}")).0;
    let digits = before.len() - before.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    before[before.len() - digits..].parse().unwrap()
}

#[test]
fn the_demo_says_the_numbers_of_the_listings_and_ends_with_the_next_step() {
    let temporary = tempfile::tempdir().unwrap();
    let printed = run(&mut demo(temporary.path(), &["--once", "--keep", "kept"]));
    let lines: Vec<&str> = printed.lines().collect();
    let [.., look_inside, next] = lines[..] else { panic!("{printed}") };
    assert_eq!(next, "Next: `tsuzuki init`");
    let command = look_inside.strip_prefix("Look inside:  tsuzuki ").unwrap();
    let tsuzuki = |words: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tsuzuki"));
        command.args(words.split(' ')).current_dir(temporary.path()).env_clear().env("TZ", "UTC");
        command
    };
    assert!(run(&mut tsuzuki(command)).contains("consultant-books"), "{command}");

    let list = |listing: &str| {
        let listed = run_json(&mut tsuzuki(&format!("-c kept/tsuzuki.toml {listing} --json")));
        listed.as_array().unwrap().clone()
    };
    let items = list("item ls");
    let recorded = count_before(&printed, " press items");
    assert_eq!(recorded + count_before(&printed, " new in the feed"), items.len());
    let state = |words: &str| items.iter().filter(|item| item["state_words"] == words).count();
    assert_eq!(count_before(&printed, " posts sent"), state("posted"));
    assert_eq!(count_before(&printed, " rejected"), state("put off: not worth a post"));
    assert_eq!(count_before(&printed, " not ready yet"), state("put off: the page is not complete yet"));

    let entries = |change: &Json| change["detail"]["entries"].as_array().unwrap().len();
    let new = count_before(&printed, " new entries");
    assert_eq!(new, list("change ls").iter().map(entries).sum::<usize>());
    let info = run_json(&mut tsuzuki("-c kept/tsuzuki.toml db info --json"));
    assert_eq!(info["rows"]["blog_entries"], new + count_before(&printed, " blog entries were there"));

    let mail = &list("mail status")[0];
    let chosen = count_before(&printed, " chosen");
    assert_eq!(mail["books"], count_before(&printed, " new books"));
    assert_eq!(mail["delivered"], chosen);
    assert_eq!(mail["undelivered"], count_before(&printed, " queued for later digests"));
    assert_eq!(
        (list("book ls --limit 100").len(), list("token ls").len()),
        (count_before(&printed, " new books"), chosen)
    );

    let branches = list("branch ls");
    let commits: i64 = branches.iter().map(|branch| branch["commits"].as_i64().unwrap()).sum();
    assert_eq!(commits, i64::try_from(count_before(&printed, " new commits")).unwrap());
    assert_eq!(branches.len(), count_before(&printed, " branches of "));

    let (posts, mails) = received(&temporary.path().join("kept"));
    let sent = list("delivery ls");
    assert_eq!(
        (posts.len(), mails.len()),
        (count_before(&printed, " posts and "), count_before(&printed, " mails."))
    );
    assert!(sent.iter().all(|message| message["state"] == "sent") && sent.len() == posts.len() + mails.len());
}

#[test]
fn the_demo_speaks_japanese_and_counts_as_its_run_and_its_statistics_do() {
    let temporary = tempfile::tempdir().unwrap();
    let printed =
        run(demo(temporary.path(), &["--once", "--keep", "kept", "--lang", "ja"]).env("LANG", "en_US.UTF-8"));
    let readme = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.ja.md")).unwrap();
    for line in printed.lines().filter(|line| !line.contains("kept") && !line.starts_with("次は")) {
        assert!(readme.contains(line), "README.ja.md shows another demo than: {line}");
    }
    assert!(printed.contains("次は `tsuzuki init`"), "{printed}");
    let tsuzuki = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tsuzuki"));
        let command =
            command.args(args).current_dir(temporary.path().join("kept")).env_clear().env("TZ", "UTC");
        run_json(command)
    };
    let status = tsuzuki(&["status", "code", "--json"]).to_string();
    let line = printed.lines().find(|line| line.starts_with("コミット")).unwrap();
    let stats = tsuzuki(&["commits", "stats", "--json"]);
    let distinct = stats["commits"].as_i64().unwrap() + stats["merges"].as_i64().unwrap();
    assert!(line.contains("新しいコミット 616 件") && status.contains("616 new commits"), "{line}\n{status}");
    assert!(line.contains(&format!("重複を除くと {distinct} 件")), "{line}");
    let commits = tsuzuki(&["commits", "ls", "--limit", "60", "--json"]);
    let hours: BTreeSet<&str> = commits
        .as_array()
        .unwrap()
        .iter()
        .map(|commit| &commit["committed_date_utc"].as_str().unwrap()[11..13])
        .collect();
    assert!(hours.len() > 5, "work is done at all hours of a day: {hours:?}");
}
