//! Buttons and forms: each does what its command does, and the page shows it by itself.

use tsuzuki::demo::gitlab::GitLab;

use crate::browser::Browser;
use crate::program::Program;

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_started_and_its_end_appears_without_a_reload() {
    let program = Program::demo();
    let browser = Browser::open().await;
    browser.go(&program.at("/job/blogs")).await;
    browser.click("#head button[data-verb=run]").await;
    browser.wait_until("the answer", "return document.querySelector('.flash')?.innerText.length > 0").await;
    browser
        .run("window.isStillHere = true; window.before = document.querySelector('#runs').textContent")
        .await;
    browser
        .wait_until(
            "the end of the run",
            "return document.querySelector('#runs').textContent !== window.before",
        )
        .await;
    assert_eq!(browser.run("return window.isStillHere").await, true, "the page was not loaded again");
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_the_way_back_leads_to_is_live_again() {
    let program = Program::demo();
    let browser = Browser::open().await;
    browser.go(&program.at("/job/blogs")).await;
    // As a browser does that keeps the page it leaves, and shows it again as it was.
    browser
        .run(
            "for (const name of ['pagehide', 'pageshow']) dispatchEvent(new PageTransitionEvent(name, { persisted: true }));
             window.before = document.querySelector('#runs').textContent",
        )
        .await;
    browser
        .wait_until(
            "the next run, without a reload",
            "return document.querySelector('#runs').textContent !== window.before",
        )
        .await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn text_that_is_being_marked_stays_marked_while_the_page_goes_on() {
    let program = Program::demo();
    let browser = Browser::open().await;
    browser.go(&program.at("/job/blogs")).await;
    browser
        .run(
            "getSelection().selectAllChildren(document.querySelector('#facts'));
             window.before = document.querySelector('#runs').textContent",
        )
        .await;
    browser
        .wait_until(
            "the next run beside it",
            "return document.querySelector('#runs').textContent !== window.before",
        )
        .await;
    assert_eq!(browser.run("return getSelection().toString().length > 20").await, true);
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_held_is_sent_once_a_person_approves_it() {
    let program = Program::demo();
    let browser = Browser::open().await;
    hold_a_message(&program);
    browser.go(&program.at("/")).await;
    browser
        .wait_until(
            "the notice that a person is needed",
            "return !!document.querySelector('#needs-you button[data-verb=approve]')",
        )
        .await;
    browser.go(&program.at("/deliveries?state=held")).await;
    browser.click("button[data-verb=approve]").await;
    browser.wait_until("the answer", "return document.querySelector('.flash')?.innerText.length > 0").await;
    browser
        .wait_until(
            "that none is held any more",
            "return !document.querySelector('button[data-verb=approve]')",
        )
        .await;
    browser.close().await;
}

/// As if the flood guard had held one: a copy of a message that was sent.
fn hold_a_message(program: &Program) {
    let connection = rusqlite::Connection::open(program.directory().join("demo/tsuzuki.db")).unwrap();
    connection.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
    let held = connection.execute(
        "INSERT INTO outbox (key, job_name, channel, recipient, topic, subject, generation, payload, state, created_at,
           not_before)
         SELECT 'held', job_name, channel, recipient, topic, subject, generation + 1, payload, 'held', created_at, not_before
         FROM outbox WHERE channel = 'mail' ORDER BY id LIMIT 1",
        [],
    );
    assert_eq!(held.unwrap(), 1, "the demo has sent a mail");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_added_by_form_and_the_rest_of_the_file_stays() {
    let program = Program::demo();
    let browser = Browser::open().await;
    let path = program.directory().join("demo/tsuzuki.toml");
    let before = std::fs::read_to_string(&path).unwrap();
    browser.go(&program.at("/settings")).await;
    browser.click("a[href='?kind=blogs']").await;
    browser.type_into("input[name=name]", "mine").await;
    browser.click("form.fields button.main").await;
    browser.wait_until("the refusal", "return !!document.querySelector('.refused')").await;
    assert_eq!(std::fs::read_to_string(&path).unwrap(), before, "nothing was written");
    assert_eq!(browser.run("return document.querySelector('input[name=name]').value").await, "mine");
    browser.type_into("textarea[name='flag.blog']", "one=https://blog.example/").await;
    browser.click("form.fields button.main").await;
    browser
        .wait_until("the answer", "return document.querySelector('.flash')?.innerText.includes('mine')")
        .await;
    let after = std::fs::read_to_string(&path).unwrap();
    assert!(after.starts_with(&before) && after.contains("name = \"mine\""), "{after}");
    browser.go(&program.at("/")).await;
    let listed =
        "if (document.querySelector('[data-job=mine]')) return true; location.reload(); return false";
    browser.wait_until("the job in the list", listed).await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_branch_that_is_being_collected_moves_without_a_reload() {
    let gitlab = GitLab::start().await.unwrap();
    gitlab.add_synthetic(1, "team/large", 300_000);
    gitlab.set_most_per_page(10);
    let program = Program::serve(&format!(
        "[web]\nlisten = \"127.0.0.1:0\"\n[[job]]\nname = \"code\"\nkind = \"commits\"\nallow_private = [\"127.0.0.1\"]\n\
         gitlab = \"{}\"\nprojects = [\"team/large\"]\n",
        gitlab.url()
    ));
    let browser = Browser::open().await;
    browser.go(&program.at("/job/code")).await;
    browser.click("#head button[data-verb=run]").await;
    browser.go(&program.at("/commits")).await;
    let row = "(document.querySelector('.work tbody tr')?.textContent ?? '')";
    let is_begun = format!("return /[1-9]/.test({row}.replace('team/large', ''))");
    browser.wait_until("commits of the branch", &is_begun).await;
    browser.run(&format!("window.isStillHere = true; window.before = {row}")).await;
    for step in ["more commits of the branch", "and more"] {
        browser.wait_until(step, &format!("return {row} !== window.before")).await;
        browser.run(&format!("window.before = {row}")).await;
    }
    assert_eq!(browser.run("return window.isStillHere").await, true, "the page was not loaded again");
    browser.close().await;
}
