//! Secrets repeated by other programs appear nowhere: not in logs, listings, exports or the database.

use axum::http::{HeaderMap, StatusCode, Uri};
use tsuzuki::channel::Rendered;
use tsuzuki::db::{Db, DbUrl, Open};
use tsuzuki::demo::smtp::{Phase, SmtpServer, Trouble, USER};
use tsuzuki::time::Clock;

use crate::outbox::add_rendered;
use crate::test_env::{TestEnv, output_beside, output_text};

const PATH: &str = "/hooks/T0SECRET/B0SECRET/xyzSECRET";
const TOKEN: &str = "tok-0SECRET-en";

/// A server that answers like Express, but repeats the token.
async fn parrot() -> std::net::SocketAddr {
    let answer = async |uri: Uri, headers: HeaderMap| {
        let token = headers.get("authorization").map(|value| value.to_str().unwrap().to_owned());
        let page = format!("<pre>Cannot POST {}</pre> {}", uri.path(), token.unwrap_or_default());
        (StatusCode::NOT_FOUND, page)
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = axum::Router::new().fallback(answer);
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    address
}

/// Queues one message for every channel.
async fn queue(test_env: &TestEnv, channels: &[(&'static str, &'static str, &'static str)]) {
    let place = DbUrl::File(test_env.file("tsuzuki.db"));
    let db = Db::open(place, Open::Create, Clock::system()).await.unwrap();
    for (channel, recipient, payload) in channels.iter().copied() {
        let [name, recipient, payload] = [channel, recipient, payload].map(str::to_owned);
        let message = Rendered { channel: name, recipient, payload };
        db.write(move |tx| add_rendered(tx, &message, channel)).await.unwrap();
    }
}

/// Searches for `secrets` everywhere in the directory.
fn check_all_files(test_env: &TestEnv, secrets: &[&str]) {
    let hides = |what: &str, bytes: &[u8]| {
        for secret in secrets {
            let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!found, "{what} shows {secret}: {}", String::from_utf8_lossy(bytes));
        }
    };
    for args in [
        "delivery ls",
        "delivery ls --json",
        "delivery show 1",
        "delivery show 1 --json",
        "why delivery:1",
        "status --json",
        "export messages --format csv",
        "export messages --format json",
    ] {
        // This process does not know the secrets, so it cannot redact them: they must not be there.
        let output = test_env.run(&args.split(' ').collect::<Vec<_>>());
        hides(args, output_text(&output).as_bytes());
    }
    let files = test_env.files();
    assert!(files.iter().any(|name| name == "tsuzuki.db"), "{files:?}");
    for name in files.iter().filter(|name| *name != "tsuzuki.toml") {
        hides(name, &std::fs::read(test_env.file(name)).unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_a_receiver_repeats_is_shown_and_kept_nowhere() {
    let address = parrot().await;
    let test_env = TestEnv::new(
        "[store]\nurl = \"sqlite:tsuzuki.db\"\n\
         [channel.hook]\nkind = \"webhook\"\nurl = \"${HOOK}\"\ntoken = \"${TOKEN}\"\nallow_private = [\"127.0.0.1\"]\n\
         [channel.slack]\nkind = \"slack\"\nurl = \"${HOOK}\"\nallow_private = [\"127.0.0.1\"]\n",
    );
    queue(&test_env, &[("hook", "webhook", "{}"), ("slack", "webhook", "{}")]).await;
    let mut sending = test_env.command(&["run-due", "-v"]);
    sending.env("HOOK", format!("http://{address}{PATH}")).env("TOKEN", TOKEN);
    let log = output_text(&output_beside(sending).await);
    let quoted = ": <pre>Cannot POST /[redacted]</pre>";
    for receiver in ["the webhook", "Slack"] {
        assert!(log.contains(&format!("HTTP 404 from {receiver}{quoted}")), "{log}");
    }
    assert!(!log.contains("SECRET"), "{log}");
    let shown = output_text(&test_env.run(&["delivery", "show", "1"]));
    assert!(shown.contains(quoted), "{shown}");
    check_all_files(&test_env, &["T0SECRET", "B0SECRET", "xyzSECRET", "0SECRET-en"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_that_a_mail_server_repeats_is_shown_and_kept_nowhere() {
    let server = SmtpServer::start().await.unwrap();
    let (user, password) = USER;
    let test_env = TestEnv::new(&format!(
        "[store]\nurl = \"sqlite:tsuzuki.db\"\n\
         [channel.mail]\nkind = \"email\"\nsmtp = \"{}\"\ntls = \"none\"\nuser = \"{user}\"\npassword = \"${{PASSWORD}}\"\n\
         from = \"a@example.com\"\nto = [\"b@example.com\"]\nallow_private = [\"127.0.0.1\"]\n",
        server.address
    ));
    let body = "{\"subject\":\"s\",\"text\":\"t\",\"html\":\"<p>t</p>\"}";
    for (phase, words, expected) in [
        (Phase::Auth, "535 5.7.8 loopback-password is wrong", "[redacted] is wrong"),
        (Phase::Kept, "250 2.0.0 kept under loopback-password", "kept under [redacted]"),
    ] {
        queue(&test_env, &[("mail", "b@example.com", body)]).await;
        server.next(phase, Trouble::Say(words));
        let mut sending = test_env.command(&["run-due", "-v"]);
        let log = output_text(
            &output_beside({
                sending.env("PASSWORD", password);
                sending
            })
            .await,
        );
        assert!(!log.contains(password), "{log}");
        let shown = output_text(&test_env.run(&["delivery", "show", "1", "--json"]));
        assert!(shown.contains(expected), "{shown}{log}");
        check_all_files(&test_env, &[password]);
        let resumed = test_env.run(&["delivery", "retry", "--channel", "mail"]);
        assert!(resumed.status.success(), "{}", output_text(&resumed));
    }
}

#[test]
fn headers_of_a_blog_are_not_in_the_config_that_is_shown() {
    let test_env = TestEnv::new(
        "[[job]]\nname = \"blogs\"\nkind = \"blogs\"\n\
         blog = [{ id = \"a\", url = \"https://a.example\", headers = { X-Api = \"inline-SECRET\" } }]\n\
         [[job]]\nname = \"more\"\nkind = \"blogs\"\n\
         [[job.blog]]\nid = \"b\"\nurl = \"https://b.example\"\nheaders.X-Api = \"dotted-SECRET\"\n\
         [[job.blog]]\nid = \"c\"\nurl = \"https://c.example\"\n[job.blog.headers]\nX-Api = \"table-SECRET\"\n\
         X-Named = \"${NAMED}\"\n",
    );
    let shown = output_text(&test_env.run(&["config", "show"]));
    assert!(!shown.contains("SECRET") && shown.contains("${NAMED}"), "{shown}");
    assert!(shown.contains("url = \"https://c.example\""), "{shown}");
}
