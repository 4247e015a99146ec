//! Prompt pages and tokens over real sockets: who sees what, for how long, and with which headers.

use std::net::SocketAddr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use sha2::Digest as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use tsuzuki::books::token::Token;
use tsuzuki::books::{store, token, view};
use tsuzuki::config::Web;
use tsuzuki::demo::google_books::volumes;
use tsuzuki::text::Language;
use tsuzuki::web::{self, Pages};
use tsuzuki::{params, sql};

use crate::books_world::World;
use crate::databases::Fixture;
use crate::test_env::read_config;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A raw answer: status, head (in lower case, and as received), body.
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    raw_head: String,
    pub(crate) body: String,
}

impl Answer {
    /// The content security policy, as it was written.
    fn policy(&self) -> &str {
        self.raw_head
            .lines()
            .find(|line| line.to_ascii_lowercase().starts_with("content-security-policy:"))
            .unwrap()
    }
}

pub(crate) async fn ask(address: SocketAddr, method: &str, path: &str, header: &str) -> Answer {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{header}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head: head.to_ascii_lowercase(), raw_head: head.to_owned(), body: body.to_owned() }
}

async fn get(address: SocketAddr, path: &str) -> Answer {
    ask(address, "GET", path, "").await
}

/// Pages on free ports: where the dashboard and the prompt pages listen, and how to stop them.
async fn serve(
    fixture: &Fixture,
    more: &str,
) -> (Vec<SocketAddr>, CancellationToken, tokio::task::JoinHandle<()>) {
    let text = format!("[web]\nlisten = \"127.0.0.1:0\"\nprompt_listen = \"127.0.0.1:0\"\n{more}");
    let web: Web = read_config(&text).web.keys().cloned().unwrap();
    let bound = web::bind(&web, &Pages::new(fixture.db.clone(), Language::Ja)).await.unwrap();
    let (addresses, stop) = (bound.addresses(), CancellationToken::new());
    let stopping = stop.clone();
    let serving = tokio::spawn(async move { bound.serve(&stopping).await });
    (addresses, stop, serving)
}

/// A mailed book, and the path of its prompt as the message has it.
async fn mail_one(fixture: &Fixture) -> (World, String) {
    let world = World::new(fixture, volumes(0, 1)).await;
    world.run("max_per_run = 5").await;
    world.send().await;
    let body = &world.hook.posts()[0].body;
    let at = body.find("/p/").unwrap();
    (world, body[at..at + 35].to_owned())
}

on_both_databases! {
    async fn a_link_works_until_its_last_moment_and_is_gone_after(fixture) {
        let (_world, path) = mail_one(&fixture).await;
        let (addresses, ..) = serve(&fixture, "").await;
        for address in &addresses {
            let page = get(*address, &path).await;
            assert_eq!(page.status, 200);
            assert!(page.body.contains("経営戦略入門 第1版") && page.body.contains("青木 遥"), "{}", page.body);
            assert!(!page.body.contains("身近な例"), "the description is no part of the prompt");
            for header in [
                "cache-control: no-store", "x-robots-tag: noindex", "referrer-policy: no-referrer",
                "x-content-type-options: nosniff", "content-security-policy: default-src 'none'; script-src 'sha256-",
            ] {
                assert!(page.head.contains(header), "{header}\n{}", page.head);
            }
            for (tag, name) in [("script", "script-src"), ("style", "style-src")] {
                let (_, rest) = page.body.split_once(&format!("<{tag}>")).unwrap();
                let (inside, _) = rest.split_once(&format!("</{tag}>")).unwrap();
                let allowed = format!("{name} 'sha256-{}'", BASE64.encode(sha2::Sha256::digest(inside)));
                assert!(page.policy().contains(&allowed), "the browser would refuse our {tag}: {allowed}");
            }
            assert!(!page.body.contains(" src=") && !page.body.contains(" href="), "nothing is loaded from anywhere");
            let head = ask(*address, "HEAD", &path, "").await;
            assert_eq!((head.status, head.body.as_str()), (200, ""));
            assert_eq!(ask(*address, "POST", &path, "Content-Length: 0\r\n").await.status, 405);
            assert_eq!(ask(*address, "DELETE", &path, "").await.status, 405);
        }
        let expires = fixture.clock.now().plus(DAY * 30);
        let day = expires.date_in(&jiff::tz::TimeZone::UTC);
        let until = format!("{}年{}月{}日まで有効", day.year(), day.month(), day.day());
        assert!(get(addresses[0], &path).await.body.contains(&until), "{until}");
        fixture.clock.set(expires.minus(Duration::from_millis(1)));
        assert_eq!(get(addresses[0], &path).await.status, 200);
        fixture.clock.set(expires);
        let gone = get(addresses[0], &path).await;
        assert_eq!(gone.status, 410, "the moment itself is too late");
        assert!(gone.body.contains("期限切れ") && gone.head.contains("no-store"));
        assert!(gone.body.contains(&format!("{until}でした")), "{}", gone.body);
    }

    async fn a_revoked_token_is_gone_and_a_pruned_one_unknown(fixture) {
        let (_world, path) = mail_one(&fixture).await;
        let (addresses, ..) = serve(&fixture, "").await;
        let now = fixture.clock.now();
        let prefix = path[3..11].to_owned();
        for (text, expected) in [("zz", "Malformed"), ("00000000", "Missing")] {
            let answer = fixture.db.write(move |tx| view::revoke(tx, text, now)).await.unwrap();
            assert!(format!("{answer:?}").starts_with(expected), "{answer:?}");
        }
        let wanted = prefix.clone();
        let answer = fixture.db.write(move |tx| view::revoke(tx, &wanted, now)).await.unwrap();
        assert!(matches!(answer, view::Revoked::Done(_)), "{answer:?}");
        let answer = fixture.db.write(move |tx| view::revoke(tx, &prefix, now)).await.unwrap();
        assert!(matches!(answer, view::Revoked::Before(_)), "{answer:?}");
        assert_eq!(get(addresses[0], &path).await.status, 410);
        assert_eq!(fixture.db.read(move |tx| view::list_tokens(tx, false, 9, now)).await.unwrap().len(), 0);
        assert_eq!(fixture.db.read(move |tx| view::list_tokens(tx, true, 9, now)).await.unwrap().len(), 1);
        // A year after its end the row goes, and not a moment earlier.
        let over = now.plus(DAY * 30).plus(token::KEPT_AFTER_END);
        assert_eq!(fixture.db.write(move |tx| token::prune(tx, over)).await.unwrap(), 0);
        let later = over.plus(Duration::from_millis(1));
        assert_eq!(fixture.db.write(move |tx| token::prune(tx, later)).await.unwrap(), 1);
        assert_eq!(get(addresses[0], &path).await.status, 404);
    }

    async fn two_tokens_of_one_prompt_are_told_apart_by_more_characters(fixture) {
        let now = fixture.clock.now();
        fixture.db.write(move |tx| {
            let prompt = store::put_prompt(tx, &"9784101010014".parse().unwrap(), "text", now)?;
            assert_eq!(store::put_prompt(tx, &"9784101010014".parse().unwrap(), "text", now)?, prompt, "one row per text");
            for token in ["0123456789abcdef0123456789abcdef", "0123456789abcdef0123456789abcdee"] {
                store::add_token(tx, &token.parse::<Token>().unwrap(), prompt, now.plus(DAY), now)?;
            }
            Ok(())
        }).await.unwrap();
        let answer = fixture.db.write(move |tx| view::revoke(tx, "01234567", now)).await.unwrap();
        assert_eq!(answer, view::Revoked::Ambiguous);
        let answer = fixture.db.write(move |tx| view::revoke(tx, "0123456789abcdef0123456789abcdef", now)).await.unwrap();
        assert!(matches!(answer, view::Revoked::Done(_)), "{answer:?}");
    }
}

/// Pages on SQLite, where the database does not matter.
fn on_pages<F: Future<Output = ()>>(test: impl FnOnce(Fixture) -> F) {
    crate::databases::run(tsuzuki::db::Dialect::Sqlite, test);
}

#[test]
fn what_is_no_token_is_not_found_and_guessing_is_slowed_down() {
    on_pages(async |fixture| {
        let (_world, path) = mail_one(&fixture).await;
        let (addresses, ..) = serve(&fixture, "").await;
        let mut misses = 0;
        for wrong in [
            "/p/",
            "/p/x",
            "/p/..%2f..%2fetc%2fpasswd",
            "/p/%ff%fe",
            "/p/0123456789ABCDEF0123456789ABCDEF",
            "/",
            "/x",
            "/p/a/b",
        ] {
            assert_eq!(get(addresses[1], wrong).await.status, 404, "{wrong}");
        }
        loop {
            let answer = get(addresses[1], "/p/00000000000000000000000000000000").await;
            match answer.status {
                404 => misses += 1,
                429 => {
                    assert!(answer.head.contains("retry-after: "), "{}", answer.head);
                    break;
                }
                status => panic!("{status}"),
            }
            assert!(misses < 100, "nobody slows it down");
        }
        assert_eq!(get(addresses[1], &path).await.status, 200, "a link that works is not slowed down");
        fixture.clock.advance(Duration::from_secs(3600));
        assert_eq!(get(addresses[1], "/p/00000000000000000000000000000000").await.status, 404);
    });
}

#[test]
fn the_public_listener_serves_prompts_and_nothing_else() {
    on_pages(async |fixture| {
        let (addresses, stop, serving) = serve(&fixture, "").await;
        assert_eq!(get(addresses[0], "/healthz").await.status, 200);
        assert_eq!(get(addresses[1], "/healthz").await.status, 404);
        stop.cancel();
        serving.await.unwrap();
        assert!(TcpStream::connect(addresses[0]).await.is_err(), "it has stopped listening");
    });
}

#[test]
fn the_dashboard_is_not_opened_to_others_without_a_password() {
    on_pages(async |fixture| {
        let pages = Pages::new(fixture.db.clone(), Language::En);
        for listen in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
            let web = Web { listen: listen.parse().unwrap(), ..Web::default() };
            let error = web::bind(&web, &pages).await.err().unwrap();
            assert!(matches!(error, web::Error::Open(_)), "{error}");
        }
        let auth = "[web.auth]\nuser = \"me\"\npassword = \"pass word\"\n";
        let (addresses, ..) = serve(&fixture, auth).await;
        assert_eq!(get(addresses[0], "/").await.status, 401);
        assert_eq!(get(addresses[0], "/healthz").await.status, 200);
        assert_eq!(get(addresses[0], "/p/x").await.status, 404);
        assert_eq!(get(addresses[1], "/p/x").await.status, 404);
        // me:pass word
        let answer = ask(addresses[0], "GET", "/", "Authorization: Basic bWU6cGFzcyB3b3Jk\r\n").await;
        assert_eq!(answer.status, 404);
    });
}

#[test]
fn whoever_guesses_passwords_has_to_wait_even_for_the_right_one() {
    on_pages(async |fixture| {
        let auth = "[web.auth]\nuser = \"me\"\npassword = \"pass word\"\n";
        let (addresses, ..) = serve(&fixture, auth).await;
        let dashboard = addresses[0];
        // me:pass word, me:guess
        let [right, wrong] =
            ["bWU6cGFzcyB3b3Jk", "bWU6Z3Vlc3M="].map(|pair| format!("Authorization: Basic {pair}\r\n"));
        for _ in 0..30 {
            assert_eq!(get(dashboard, "/").await.status, 401, "a browser that asks first does not guess");
            assert_eq!(get(dashboard, "/p/x").await.status / 100, 4, "nor does a dead link");
        }
        assert_eq!(ask(dashboard, "GET", "/", &right).await.status, 404);
        let guesses = async || {
            let mut statuses = Vec::new();
            for _ in 0..25 {
                statuses.push(ask(dashboard, "GET", "/", &wrong).await.status);
            }
            statuses.iter().filter(|status| **status == 401).count()
        };
        assert_eq!(guesses().await, 20);
        let answer = ask(dashboard, "GET", "/", &right).await;
        assert!(answer.status == 429 && answer.head.contains("retry-after: 6"), "{}", answer.head);
        assert_eq!(get(dashboard, "/healthz").await.status, 200);
        fixture.clock.advance(Duration::from_secs(6));
        assert_eq!(ask(dashboard, "GET", "/", &right).await.status, 404, "one is forgiven");
        assert_eq!(guesses().await, 1, "ten a minute");
    });
}

#[test]
fn a_hanging_reader_does_not_keep_the_program_alive() {
    on_pages(async |fixture| {
        let (addresses, stop, serving) = serve(&fixture, "").await;
        let mut slow = TcpStream::connect(addresses[1]).await.unwrap();
        slow.write_all(b"GET /p/").await.unwrap();
        stop.cancel();
        tokio::time::timeout(Duration::from_secs(20), serving).await.expect("it stops all the same").unwrap();
    });
}

#[test]
fn a_token_is_stored_with_its_prompt_and_its_end() {
    on_pages(async |fixture| {
        let (_world, path) = mail_one(&fixture).await;
        let row = fixture
            .db
            .read(|tx| {
                tx.find(
                    sql!("SELECT t.token, t.expires_at, p.isbn13 FROM prompt_tokens t JOIN prompts p ON p.id = t.prompt_id"),
                    params![],
                    |row| Ok((row.get::<String>(0)?, row.get::<tsuzuki::time::Timestamp>(1)?, row.get::<String>(2)?)),
                )
            })
            .await
            .unwrap()
            .unwrap();
        assert_eq!(format!("/p/{}", row.0), path);
        assert_eq!(row.1, fixture.clock.now().plus(DAY * 30));
        assert_eq!(row.2, tsuzuki::demo::google_books::isbn(0));
    });
}
