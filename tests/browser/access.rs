//! The way in and out.

use crate::browser::Browser;
use crate::program::Program;

#[tokio::test(flavor = "multi_thread")]
async fn a_person_logs_in_and_out() {
    let program = Program::serve(
        "[web]\nlisten = \"127.0.0.1:0\"\n[web.auth]\nuser = \"me\"\npassword = \"pass word\"\n",
    );
    let browser = Browser::open().await;
    browser.go(&program.at("/quotas")).await;
    assert!(browser.client.current_url().await.unwrap().path().starts_with("/login"));
    browser.type_into("#user", "me").await;
    browser.type_into("#password", "wrong\u{e007}").await;
    browser.wait_until("the refusal", "return !!document.querySelector('[role=alert]')").await;
    assert_eq!(browser.violations().await, Vec::<String>::new());
    browser.type_into("#user", "me").await;
    browser.type_into("#password", "pass word\u{e007}").await;
    browser.wait_until("the page that was asked for", "return location.pathname === '/quotas'").await;
    browser.click("form[action='/logout'] button").await;
    browser.wait_until("the way out", "return location.pathname === '/login'").await;
    browser.go(&program.at("/")).await;
    assert!(browser.client.current_url().await.unwrap().path().starts_with("/login"), "the session is over");
    browser.close().await;
}
