//! Everything without a mouse.

use crate::browser::Browser;
use crate::program::Program;

const TAB: &str = "\u{e004}";
const ENTER: &str = "\u{e007}";
const ESCAPE: &str = "\u{e00c}";

#[tokio::test(flavor = "multi_thread")]
async fn a_person_walks_through_the_pages_by_keyboard_alone() {
    let program = Program::demo();
    let browser = Browser::open().await;
    browser.go(&program.at("/")).await;
    browser.press(TAB).await;
    assert_eq!(browser.run("return document.activeElement.className").await, "skip");
    browser.press(ENTER).await;
    browser.wait_until("the way to the content", "return location.hash === '#content'").await;
    browser.press("?").await;
    browser.wait_until("the list of keys", "return document.querySelector('#keys').open").await;
    browser.run("document.querySelector('#keys-off').click()").await;
    browser.press(ESCAPE).await;
    browser.wait_until("the end of the list", "return !document.querySelector('#keys').open").await;
    browser.go(&program.at("/")).await;
    browser.press("/").await;
    assert_ne!(browser.run("return document.activeElement.name").await, "q", "the keys are off");
    browser.run("document.querySelector('#keys-off').click()").await;
    browser.press("/").await;
    assert_eq!(browser.run("return document.activeElement.name").await, "q");
    browser.press(&format!("blogs{ENTER}")).await;
    browser.wait_until("the job of that name", "return location.pathname === '/job/blogs'").await;
    browser.press("g").await;
    browser.press("o").await;
    browser.wait_until("the overview", "return location.pathname === '/'").await;
    browser.press("j").await;
    browser.press("j").await;
    browser.press("k").await;
    browser
        .wait_until("a row that is chosen", "return !!document.querySelector('[data-row].is-chosen')")
        .await;
    browser.press(ENTER).await;
    browser.wait_until("the page of the row", "return location.pathname !== '/'").await;
    browser.press("g").await;
    browser.press("d").await;
    browser.wait_until("the deliveries", "return location.pathname === '/deliveries'").await;
    browser.close().await;
}
