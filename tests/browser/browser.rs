//! A Chromium without a window, what it complained about, whom it asked, and what axe-core finds wrong.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use axum::http::Method;
use fantoccini::wd::WebDriverCompatibleCommand;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use url::Url;

/// The longest time until something is on the page.
const PATIENCE: Duration = Duration::from_secs(30);
/// A name that leads to this machine but is not known to be safe: no secure context, as on a phone in the same network.
pub(crate) const INSECURE_HOST: &str = "phone.test";

/// One browser with a profile of its own.
pub(crate) struct Browser {
    pub(crate) client: Client,
    driver: Child,
}

impl Browser {
    /// Starts it.
    pub(crate) async fn open() -> Self {
        // It wants one port number on two addresses, and gives up when a neighbour took the second meanwhile.
        let (driver, port) = (0..5).find_map(|_| start_driver()).expect("chromedriver says where it listens");
        let mut args = vec![
            "--headless=new".to_owned(),
            "--disable-gpu".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            "--window-size=1280,900".to_owned(),
            format!("--host-resolver-rules=MAP {INSECURE_HOST} 127.0.0.1"),
        ];
        if rustix::process::getuid().is_root() {
            args.push("--no-sandbox".to_owned());
        }
        let capabilities = json!({
            "goog:chromeOptions": { "args": args },
            "goog:loggingPrefs": { "browser": "ALL", "performance": "ALL" },
        });
        let Value::Object(capabilities) = capabilities else { unreachable!("it is an object") };
        let client = ClientBuilder::new(HttpConnector::new())
            .capabilities(capabilities)
            .connect(&format!("http://127.0.0.1:{port}"))
            .await;
        let client = client.unwrap_or_else(|error| panic!("Chromium cannot be started: {error}"));
        Self { client, driver }
    }

    pub(crate) async fn close(self) {
        let _ = self.client.clone().close().await;
    }

    pub(crate) async fn go(&self, address: &str) {
        self.client.goto(address).await.unwrap_or_else(|error| panic!("{address}: {error}"));
    }

    /// Makes the page as large as the window of another device; a window without a screen has a least width.
    pub(crate) async fn resize(&self, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        let command = DevTools { name: "Emulation.setDeviceMetricsOverride", params: size };
        self.client.issue_cmd(command).await.unwrap();
    }

    pub(crate) async fn run(&self, script: &str) -> Value {
        self.client.execute(script, Vec::new()).await.unwrap_or_else(|error| panic!("{script}: {error}"))
    }

    /// The text of everything on the page.
    pub(crate) async fn text(&self) -> String {
        self.run("return document.body.innerText").await.as_str().unwrap_or_default().to_owned()
    }

    /// Waits until `script` answers with something.
    pub(crate) async fn wait_until(&self, what: &str, script: &str) {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            // A page that is being left cannot answer.
            let answer = self.client.execute(script, Vec::new()).await.unwrap_or_default();
            if answer.as_bool().unwrap_or(!answer.is_null()) {
                return;
            }
            if tokio::time::Instant::now() > deadline {
                panic!("{what} did not happen; the page says: {}", self.text().await);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits for an element and clicks it.
    pub(crate) async fn click(&self, css: &str) {
        let found = self.client.wait().at_most(PATIENCE).for_element(Locator::Css(css)).await;
        let element = found.unwrap_or_else(|error| panic!("{css}: {error}"));
        element.click().await.unwrap_or_else(|error| panic!("{css}: {error}"));
    }

    /// Types into an element.
    pub(crate) async fn type_into(&self, css: &str, text: &str) {
        let found = self.client.wait().at_most(PATIENCE).for_element(Locator::Css(css)).await;
        let element = found.unwrap_or_else(|error| panic!("{css}: {error}"));
        element.send_keys(text).await.unwrap_or_else(|error| panic!("{css}: {error}"));
    }

    /// Types without looking for an element: whatever has the focus gets it.
    pub(crate) async fn press(&self, keys: &str) {
        let focused = self.client.active_element().await.unwrap();
        focused.send_keys(keys).await.unwrap();
    }

    /// What the console said since the last call that is worse than information.
    pub(crate) async fn complaints(&self) -> Vec<String> {
        let log = self.client.issue_cmd(Log("browser")).await.unwrap();
        let entries = log.as_array().cloned().unwrap_or_default();
        let is_bad = |entry: &Value| matches!(entry["level"].as_str(), Some("SEVERE" | "WARNING"));
        entries.iter().filter(|entry| is_bad(entry)).map(|entry| entry["message"].to_string()).collect()
    }

    /// Every address that pages asked for since the last call.
    pub(crate) async fn asked(&self) -> Vec<Url> {
        let log = self.client.issue_cmd(Log("performance")).await.unwrap();
        let entries = log.as_array().cloned().unwrap_or_default();
        let address = |entry: &Value| -> Option<Url> {
            let message: Value = serde_json::from_str(entry["message"].as_str()?).ok()?;
            let message = &message["message"];
            let is_request = message["method"] == "Network.requestWillBeSent";
            is_request.then(|| message["params"]["request"]["url"].as_str())??.parse().ok()
        };
        entries.iter().filter_map(address).collect()
    }

    /// What keeps people out, by the rules of WCAG 2.2 AA that a program can check.
    pub(crate) async fn violations(&self) -> Vec<String> {
        self.client.execute(axe(), Vec::new()).await.unwrap();
        let found = self.client.execute_async(RUN_AXE, Vec::new()).await.unwrap();
        let found = found.as_array().unwrap_or_else(|| panic!("axe failed: {found}"));
        found.iter().map(|violation| violation.as_str().unwrap_or_default().to_owned()).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // ChromeDriver takes its browsers along.
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// A driver and its port, unless it ended at once.
fn start_driver() -> Option<(Child, u16)> {
    let driver = Command::new("chromedriver").arg("--port=0").stdout(Stdio::piped()).spawn();
    let mut driver = driver.unwrap_or_else(|error| {
        panic!("chromedriver cannot be started ({error}); `scripts/test` installs chromium-driver")
    });
    let lines = BufReader::new(driver.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut ports = lines.filter_map(|line| {
        let (_, port) = line.split_once("started successfully on port ")?;
        port.trim_end_matches('.').parse::<u16>().ok()
    });
    match ports.next() {
        Some(port) => Some((driver, port)),
        None => {
            let _ = driver.wait();
            None
        }
    }
}

/// What ChromeDriver keeps of a sort of message.
#[derive(Debug)]
struct Log(&'static str);

impl WebDriverCompatibleCommand for Log {
    fn endpoint(&self, base_url: &Url, session_id: Option<&str>) -> Result<Url, url::ParseError> {
        base_url.join(&format!("session/{}/se/log", session_id.unwrap_or_default()))
    }

    fn method_and_body(&self, _: &Url) -> (Method, Option<String>) {
        (Method::POST, Some(json!({ "type": self.0 }).to_string()))
    }
}

/// What only Chromium can be asked for.
#[derive(Debug)]
struct DevTools {
    name: &'static str,
    params: Value,
}

impl WebDriverCompatibleCommand for DevTools {
    fn endpoint(&self, base_url: &Url, session_id: Option<&str>) -> Result<Url, url::ParseError> {
        base_url.join(&format!("session/{}/goog/cdp/execute", session_id.unwrap_or_default()))
    }

    fn method_and_body(&self, _: &Url) -> (Method, Option<String>) {
        (Method::POST, Some(json!({ "cmd": self.name, "params": self.params }).to_string()))
    }
}

/// The library that checks; it is loaded into the pages of tests only.
fn axe() -> &'static str {
    static AXE: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/target/axe/node_modules/axe-core/axe.min.js");
        std::fs::read_to_string(path).unwrap_or_else(|error| {
            panic!("{path}: {error}; `npm install --prefix target/axe axe-core@4` puts it there")
        })
    });
    &AXE
}

const RUN_AXE: &str = "
    const done = arguments[arguments.length - 1];
    const rules = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];
    axe.run(document, { runOnly: rules, resultTypes: ['violations'] }).then(
        found => done(found.violations.map(of => `${of.id}: ${of.nodes.map(node => node.html).slice(0, 3).join(' | ')}`)),
        error => done(String(error)));";
