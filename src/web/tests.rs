//! Every route there is, over real sockets: who is let in, and what is refused.

use std::net::SocketAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::route::Access;
use super::token::{NewSecret, Scope};
use super::*;
use crate::app::App;
use crate::config::{Colour, Config, Env};
use crate::db::{DbUrl, Open};

/// Pages that are served as long as this value lives.
pub(super) struct Site {
    pub(super) address: SocketAddr,
    pub(super) pages: Pages,
    pub(super) clock: Clock,
    stop: CancellationToken,
}

impl Drop for Site {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// An answer: its status, its head in lower case, its body.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: String,
}

impl Answer {
    /// The value of a header.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

pub(super) fn parse(text: &str) -> Config {
    crate::config::parse(text, "tsuzuki.toml".as_ref(), crate::app::kinds(), &Env::of([]))
        .unwrap_or_else(|problems| panic!("{}", problems.render(Colour::Never)))
}

impl Site {
    pub(super) async fn serve(text: &str) -> Self {
        let clock = Clock::manual("2026-01-15T00:02:11.123Z".parse().unwrap());
        let db = Db::open(DbUrl::Memory, Open::Create, clock.clone()).await.unwrap();
        Self::serve_on(db, clock, text).await
    }

    pub(super) async fn serve_on(db: Db, clock: Clock, text: &str) -> Self {
        let config = parse(&format!("[web]\nlisten = \"127.0.0.1:0\"\n{text}"));
        let app = App::new(&config, db.clone()).unwrap();
        let finders = watch::Sender::new(Arc::new(app.finder(&config, 100)));
        let pages = Pages::new(db, Language::Ja).with_dashboard(finders.subscribe());
        let bound = bind(&app.env.web, &pages).await.unwrap();
        let address = bound.addresses()[0];
        let stop = CancellationToken::new();
        let stopping = stop.clone();
        tokio::spawn(async move { bound.serve(&stopping).await });
        Self { address, pages, clock, stop }
    }

    /// Asks with headers of the test's own; `Host` is ours unless they name another.
    pub(super) async fn ask(&self, method: &str, path: &str, headers: &[&str], body: &str) -> Answer {
        let mut head =
            format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        if !headers.iter().any(|line| line.starts_with("Host:")) {
            head.push_str("Host: localhost\r\n");
        }
        headers.iter().for_each(|line| head.extend([line, "\r\n"]));
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(format!("{head}\r\n{body}").as_bytes()).await.unwrap();
        let mut bytes = Vec::new();
        // What streams has no end.
        let streams = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains("text/event-stream\r\n");
        while stream.read_buf(&mut bytes).await.unwrap() > 0 && !streams(&bytes) {}
        if streams(&bytes) && !bytes.windows(4).any(|end| end == b"\r\n\r\n") {
            bytes.extend_from_slice(b"\r\n\r\n");
        }
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let (first, rest) = head.split_once("\r\n").unwrap();
        let status = first.split(' ').nth(1).unwrap().parse().unwrap();
        let lower = |line: &str| {
            line.split_once(':')
                .map_or_else(String::new, |(name, value)| format!("{}:{value}", name.to_lowercase()))
        };
        let head = rest.lines().map(lower).collect::<Vec<_>>().join("\n");
        Answer { status, head, body: body.to_owned() }
    }

    pub(super) async fn get(&self, path: &str, headers: &[&str]) -> Answer {
        self.ask("GET", path, headers, "").await
    }

    /// A token for a program.
    pub(super) async fn token(&self, name: &'static str, scope: Scope) -> String {
        let NewSecret { secret, hash } = NewSecret::token().unwrap();
        let now = self.clock.now();
        let added = self.pages.db.write(move |tx| store::add_token(tx, name, &hash, scope, now)).await;
        assert!(added.unwrap(), "{name} is new");
        secret
    }
}

/// A user `me` with the password `pass word`.
pub(super) const AUTH: &str = "[web.auth]\nuser = \"me\"\npassword = \"pass word\"\n";
const FORM: &str = "Content-Type: application/x-www-form-urlencoded";

fn basic(pair: &str) -> String {
    format!("Authorization: Basic {}", BASE64.encode(pair))
}

/// The path of a route, with something in each of its holes.
fn filled(path: &str) -> String {
    path.split('/').map(|part| if part.starts_with('{') { "x" } else { part }).collect::<Vec<_>>().join("/")
}

/// What anybody may use. Whoever adds to this list says why in the route's own file.
const OPEN: &[&str] = &["/p/{token}", "/healthz", "/readyz", "/login"];

#[tokio::test]
async fn nothing_but_the_public_list_answers_without_credentials() {
    let site = Site::serve(AUTH).await;
    let (read, act, feed) = (
        site.token("read", Scope::Read).await,
        site.token("act", Scope::Act).await,
        site.token("feed", Scope::Feed).await,
    );
    let right = basic("me:pass word");
    let mut open: Vec<&str> = Vec::new();
    for Route { method, path, access, .. } in routes() {
        let (method, at) = (method.as_str(), filled(path));
        let status = site.ask(method, &at, &[], "").await.status;
        if matches!(access, Access::Public | Access::LogIn) {
            assert_ne!(status, 403, "{method} {path}");
            open.push(path);
            continue;
        }
        assert_eq!(status, 401, "{method} {path}");
        for wrong in [
            basic("me:pass"),
            "Authorization: Bearer x".to_owned(),
            "Cookie: tsuzuki=x".to_owned(),
            format!("Cookie: tsuzuki={read}"),
        ] {
            assert_eq!(site.ask(method, &at, &[&wrong], "").await.status, 401, "{method} {path} {wrong}");
            site.clock.advance(Duration::from_secs(60));
        }
        let in_address = format!("{at}?token={feed}");
        let in_address = site.ask(method, &in_address, &[], "").await.status;
        assert_eq!(in_address == 401, access != Access::Feed, "{method} {path}: a token in the address");
        for secret in [&read, &act] {
            let with_secret = format!("{at}?token={secret}");
            assert_eq!(
                site.ask(method, &with_secret, &[], "").await.status,
                401,
                "{method} {path}: only feeds take it"
            );
        }
        for (secret, scope) in [(&feed, Scope::Feed), (&read, Scope::Read), (&act, Scope::Act)] {
            let status =
                site.ask(method, &at, &[&format!("Authorization: Bearer {secret}")], "").await.status;
            let is_enough = match access {
                Access::Act => scope == Scope::Act,
                Access::Read => scope != Scope::Feed,
                _ => true,
            };
            assert_eq!(status == 403, !is_enough, "{method} {path} {scope}: {status}");
            assert_ne!(status, 401, "{method} {path} {scope}");
        }
        assert!(!matches!(site.ask(method, &at, &[&right], "").await.status, 401 | 403), "{method} {path}");
    }
    open.dedup();
    assert_eq!(open, OPEN);
    for unknown in ["/nothing", "/p", "/healthz/", "/api/v1/nothing", "/login/x"] {
        assert_eq!(site.get(unknown, &[]).await.status, 401, "{unknown}");
        assert_eq!(site.get(unknown, &[&right]).await.status, 404, "{unknown}");
    }
}

#[tokio::test]
async fn nothing_changes_by_another_site_under_a_foreign_name_or_by_get() {
    let site = Site::serve("").await;
    let mut changing = 0;
    for Route { method, path, access, .. } in routes() {
        let at = filled(path);
        let foreign = site.ask(method.as_str(), &at, &["Host: evil.example"], "").await.status;
        assert_eq!(foreign == 421, access != Access::Public, "{method} {path} under a foreign name");
        if method == axum::http::Method::GET {
            continue;
        }
        changing += 1;
        for cross_site in [
            &["Sec-Fetch-Site: cross-site"][..],
            &["Sec-Fetch-Site: same-site", "Origin: http://other.localhost"],
            &["Origin: https://evil.example"],
            &["Origin: null"],
            &["Origin: http://localhost:1"],
        ] {
            let answer = site.ask("POST", &at, cross_site, "").await;
            assert_eq!(answer.status, 403, "{path} {cross_site:?}");
        }
        for same in [&["Sec-Fetch-Site: same-origin"][..], &["Origin: http://localhost"], &[]] {
            assert_ne!(site.ask("POST", &at, same, "").await.status, 403, "{path} {same:?}");
        }
        let has_page =
            routes().iter().any(|other| other.path == path && other.method == axum::http::Method::GET);
        let got = site.get(&at, &[]).await.status;
        assert_eq!(got == 405, !has_page, "GET {path}: {got}");
    }
    assert!(changing >= 2);
}

#[tokio::test]
async fn a_person_logs_in_stays_in_over_a_restart_and_logs_out() {
    let site = Site::serve(AUTH).await;
    let browser = "Accept: text/html,*/*;q=0.1";
    let sent = site.get("/why/a?b=c", &[browser]).await;
    assert_eq!((sent.status, sent.header("location")), (303, Some("/login?next=%2Fwhy%2Fa%3Fb%3Dc")));
    let form = site.get("/login?next=%2Fwhy%2F%22%3E%3Cb%3E", &["Accept-Language: ja"]).await;
    assert!(form.body.contains("パスワード") && !form.body.contains("<b>"), "{}", form.body);
    assert!(form.header("content-security-policy").unwrap().contains("form-action 'self'"));
    let wrong = site.ask("POST", "/login", &[FORM, "Accept-Language: en"], "user=me&password=x").await;
    assert!(wrong.status == 401 && wrong.body.contains("wrong") && wrong.header("set-cookie").is_none());
    let right = site.ask("POST", "/login", &[FORM], "user=me&password=pass+word&next=%2Fwhy").await;
    assert_eq!((right.status, right.header("location")), (303, Some("/why")));
    let cookie = right.header("set-cookie").unwrap();
    assert!(
        cookie.starts_with("tsuzuki=")
            && cookie.ends_with("; Path=/; HttpOnly; SameSite=Lax; Max-Age=2592000"),
        "{cookie}"
    );
    let pair = format!("Cookie: lang=ja; {}", cookie.split(';').next().unwrap());
    assert_eq!(site.get("/nothing", &[&pair]).await.status, 404, "logged in");
    for (credentials, has_session) in [(&pair, true), (&basic("me:pass word"), false)] {
        let page = site.get("/", &[credentials]).await.body;
        assert_eq!(
            page.contains("action=\"/logout\""),
            has_session,
            "{credentials}: only a session can be ended"
        );
    }

    let (db, clock) = (site.pages.db.clone(), site.clock.clone());
    let later = Site::serve_on(db.clone(), clock.clone(), AUTH).await;
    assert_eq!(later.get("/nothing", &[&pair]).await.status, 404, "after a restart, too");
    let other = AUTH.replace("pass word", "another one");
    let changed = Site::serve_on(db, clock.clone(), &other).await;
    assert_eq!(changed.get("/nothing", &[&pair]).await.status, 401, "another password ends it");

    let elsewhere =
        site.ask("POST", "/login", &[FORM], "user=me&password=pass+word&next=//evil.example").await;
    assert_eq!(elsewhere.header("location"), Some("/"));
    let out = site.ask("POST", "/logout", &[&pair], "").await;
    assert_eq!((out.status, out.header("location")), (303, Some("/login")));
    assert!(out.header("set-cookie").unwrap().contains("Max-Age=0"));
    assert_eq!(site.get("/nothing", &[&pair]).await.status, 401, "logged out");
    for (dest, scheme) in [("empty", "Bearer"), ("document", "Basic")] {
        let over = site.get("/live", &[&pair, &format!("Sec-Fetch-Dest: {dest}")]).await;
        let challenge = over.header("www-authenticate").unwrap();
        assert!(over.status == 401 && challenge.starts_with(scheme), "{dest}: {challenge}");
    }
    let last = format!("Cookie: {}", elsewhere.header("set-cookie").unwrap().split(';').next().unwrap());
    clock.advance(Duration::from_secs(30 * 24 * 60 * 60 - 1));
    assert_eq!(site.get("/nothing", &[&last]).await.status, 404);
    clock.advance(Duration::from_secs(1));
    assert_eq!(site.get("/nothing", &[&last]).await.status, 401, "thirty days are over");
}

#[tokio::test]
async fn who_is_refused_learns_what_was_wrong() {
    let site = Site::serve(AUTH).await;
    let read = site.token("read", Scope::Read).await;
    let (feed, wrong) = (format!("/feeds/job/x.atom?token={read}"), basic("me:pass"));
    for (path, headers, challenge, said) in [
        ("/quotas", &[][..], "Basic ", "log in"),
        ("/quotas", &[&*wrong], "Basic ", "the password is wrong"),
        ("/quotas", &["Authorization: Bearer x"], "Bearer ", "unknown or revoked"),
        (&feed, &[], "Bearer ", "the scope `feed`"),
    ] {
        let answer = site.get(path, headers).await;
        assert!(answer.status == 401 && answer.body.contains(said), "{path} {headers:?}: {}", answer.body);
        assert!(answer.header("www-authenticate").unwrap().starts_with(challenge), "{path}: {}", answer.head);
    }
    // A button of a page whose session is over: no browser asks for a password in a box of its own.
    let over = site.ask("POST", "/act", &[FORM, "Accept: text/html"], "about=job:x&verb=run").await;
    assert_eq!((over.status, over.header("location")), (303, Some("/login?next=%2F")));
    for method in ["POST", "DELETE"] {
        let prompt = site.ask(method, "/p/x", &[], "").await;
        assert_eq!((prompt.status, prompt.header("allow")), (405, Some("GET,HEAD")), "{method}");
    }
}

#[tokio::test]
async fn behind_a_proxy_only_whoever_guesses_has_to_wait_and_the_cookie_is_for_tls() {
    let site = Site::serve(&format!("trusted_proxies = [\"127.0.0.0/8\"]\n{AUTH}")).await;
    let from = |ip: &str| format!("X-Forwarded-For: 1.2.3.4, {ip}");
    for _ in 0..25 {
        site.ask("POST", "/login", &[FORM, &from("198.51.100.7")], "user=me&password=x").await;
    }
    let right = "user=me&password=pass+word";
    let guesser = site.ask("POST", "/login", &[FORM, &from("198.51.100.7")], right).await;
    assert!(guesser.status == 429 && guesser.header("retry-after").is_some(), "{}", guesser.head);
    let other =
        site.ask("POST", "/login", &[FORM, &from("198.51.100.8"), "X-Forwarded-Proto: https"], right).await;
    assert_eq!(other.status, 303);
    let cookie = other.header("set-cookie").unwrap();
    assert!(cookie.starts_with("__Host-tsuzuki=") && cookie.ends_with("; Secure"), "{cookie}");
    let pair = format!("Cookie: {}", cookie.split(';').next().unwrap());
    let there = ["X-Forwarded-Proto: https", &from("198.51.100.7"), &pair];
    assert_eq!(site.get("/nothing", &there).await.status, 404, "who is in stays in");
}

#[tokio::test]
async fn a_name_from_a_proxy_counts_only_if_the_proxy_is_trusted() {
    let sso = |proxy: &str| format!("sso_header = \"Remote-User\"\ntrusted_proxies = [\"{proxy}\"]\n");
    let trusted = Site::serve(&sso("127.0.0.1")).await;
    assert_eq!(trusted.get("/nothing", &["Remote-User: aoi"]).await.status, 404);
    assert_eq!(trusted.get("/nothing", &["Remote-User:"]).await.status, 401);
    assert_eq!(trusted.get("/nothing", &[]).await.status, 401);
    let foreign = Site::serve(&sso("192.0.2.1")).await;
    assert_eq!(foreign.get("/nothing", &["Remote-User: aoi"]).await.status, 401);
    let without = Site::serve(&format!("trusted_proxies = [\"127.0.0.1\"]\n{AUTH}")).await;
    assert_eq!(without.get("/nothing", &["Remote-User: aoi"]).await.status, 401);
}

#[tokio::test]
async fn what_is_too_large_or_breaks_is_refused_in_plain_words() {
    let site = Site::serve(AUTH).await;
    let large = format!("user=me&password={}", "x".repeat(MAX_BODY));
    let answer = site.ask("POST", "/login", &[FORM], &large).await;
    assert_eq!(answer.status, 413);
    let router = Router::new().route("/", axum::routing::get(async || -> &str { panic!("secret words") }));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let broken = Site {
        address: listener.local_addr().unwrap(),
        pages: site.pages.clone(),
        clock: site.clock.clone(),
        stop: CancellationToken::new(),
    };
    let stop = broken.stop.clone();
    tokio::spawn(async move {
        serve_router(Limited::new(listener, Limits::DASHBOARD), protect(router), &stop).await;
    });
    let answer = broken.get("/", &[]).await;
    assert_eq!(answer.status, 500);
    assert!(
        !answer.body.contains("secret") && answer.header("x-content-type-options").is_some(),
        "{}",
        answer.body
    );
}

#[tokio::test]
async fn readers_that_never_finish_their_question_keep_nobody_out_for_long() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let limits = Limits { at_once: 2, life: listener::Life::Answered(Duration::from_millis(50)) };
    let router = Router::new().route("/healthz", axum::routing::get(|| async { "ok\n" }));
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    let serving = tokio::spawn(async move {
        serve_router(Limited::new(listener, limits), router, &stopping).await;
    });
    let mut silent = Vec::new();
    for _ in 0..6 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
        silent.push(stream);
    }
    let mut reader = TcpStream::connect(address).await.unwrap();
    reader.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    let read = reader.read_to_string(&mut answer);
    tokio::time::timeout(Duration::from_secs(20), read).await.expect("the others are cut off").unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("ok\n"), "{answer}");
    stop.cancel();
    serving.await.unwrap();
}
