//! What is copied is in the clipboard, also where the browser knows no secure context.

use serde_json::Value;

use crate::browser::{Browser, INSECURE_HOST};
use crate::program::Program;

/// What somebody gets who pastes now.
async fn paste(browser: &Browser) -> String {
    browser
        .run("const field = document.createElement('textarea'); field.id = 'pasted'; document.body.append(field); field.focus()")
        .await;
    browser.type_into("#pasted", "\u{e009}v").await;
    let pasted = browser.run("return document.getElementById('pasted').value").await;
    pasted.as_str().unwrap_or_default().trim().to_owned()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().trim().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_is_copied_without_a_secure_context() {
    let program = Program::demo();
    let browser = Browser::open().await;
    browser.go(&program.at("/demo")).await;
    let link = browser.run("return document.querySelector(\"a[href*='/p/']\").href").await;
    let link = link.as_str().unwrap().replace("127.0.0.1", INSECURE_HOST);
    browser.go(&link).await;
    assert_eq!(browser.run("return window.isSecureContext").await, false);
    assert_eq!(browser.violations().await, Vec::<String>::new());
    browser.click("#copy").await;
    browser.wait_until("the answer", "return document.querySelector('#said').innerText.length > 0").await;
    let prompt = text(&browser.run("return document.querySelector('#prompt').textContent").await);
    assert!(prompt.chars().count() > 20, "{prompt}");
    assert_eq!(paste(&browser).await, prompt);
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_numbers_of_commits_are_copied_as_tsv() {
    let program = Program::demo();
    let browser = Browser::open().await;
    browser.go(&program.at("/commits")).await;
    let label = "document.querySelector('button[data-copy]').innerText";
    browser.run(&format!("window.label = {label}")).await;
    browser.click("button[data-copy]").await;
    browser.wait_until("the answer", &format!("return {label} !== window.label")).await;
    let tsv = text(&browser.run("return document.getElementById('tsv').value").await);
    assert!(tsv.lines().count() > 1 && tsv.contains('\t') && !tsv.contains('@'), "{tsv}");
    assert_eq!(paste(&browser).await, tsv);
    browser.close().await;
}
