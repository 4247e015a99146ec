//! Mail over a connection with an attacker in the middle: forged answers are ignored, nothing is sent in plain text,
//! and everything has a limit.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tsuzuki::channel::outbox::State;
use tsuzuki::db::Dialect;
use tsuzuki::demo::smtp::{Phase, SmtpServer, Trouble, USER};
use tsuzuki::ledger::{Subject, event};
use tsuzuki::phrase::Speech;
use tsuzuki::text::Language;

use crate::channels::{TO_ONE, make_certificate, news, post_office};
use crate::databases::{self, Fixture};

/// What the attacker does before the handshake.
#[derive(Clone, Default)]
struct Tampering {
    /// Removes STARTTLS from the server's offer.
    strips: bool,
    /// Sends this instead of the server's answer to STARTTLS.
    starttls: Option<String>,
    /// A first line that does not end.
    is_endless: bool,
    /// An endless answer to EHLO.
    is_long_winded: bool,
}

/// A mail server with STARTTLS, and an attacker in front of it.
struct Line {
    port: u16,
    server: SmtpServer,
    tampering: Arc<Mutex<Tampering>>,
    /// Bytes that a client took of something without an end.
    taken: Arc<AtomicU64>,
    /// Connections that were encrypted.
    encrypted: Arc<AtomicU64>,
    task: tokio::task::AbortHandle,
}

impl Drop for Line {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Line {
    async fn start(folder: &Path) -> Self {
        let chain = vec![CertificateDer::from_pem_file(folder.join("cert.pem")).unwrap()];
        let key = PrivateKeyDer::from_pem_file(folder.join("key.pem")).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let server = SmtpServer::start().await.unwrap();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let tampering = Arc::new(Mutex::new(Tampering::default()));
        let (taken, encrypted) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (shared, inside) = (Arc::clone(&tampering), server.address);
        let (counts, handshakes) = (Arc::clone(&taken), Arc::clone(&encrypted));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let tampering = shared.lock().unwrap().clone();
                let (acceptor, counts) = (acceptor.clone(), Arc::clone(&counts));
                let handshakes = Arc::clone(&handshakes);
                tokio::spawn(async move {
                    let Some(stream) = speak_in_the_clear(stream, &tampering, &counts).await else { return };
                    let Ok(mut stream) = acceptor.accept(stream).await else { return };
                    handshakes.fetch_add(1, Ordering::SeqCst);
                    let mut server = TcpStream::connect(inside).await.unwrap();
                    // The greeting was sent before.
                    read_line(&mut server).await;
                    let _ = tokio::io::copy_bidirectional(&mut stream, &mut server).await;
                });
            }
        });
        Self { port, server, tampering, taken, encrypted, task: task.abort_handle() }
    }

    fn tamper(&self, tampering: Tampering) {
        *self.tampering.lock().unwrap() = tampering;
    }

    fn config(&self, more: &str) -> String {
        format!(
            "[channel.mail]\nkind = \"email\"\nsmtp = \"localhost:{}\"\nfrom = \"bot@example.com\"\n{TO_ONE}\n\
             allow_private = [\"localhost\"]\nca_file = \"cert.pem\"\n{more}",
            self.port
        )
    }
}

/// The server's side of the dialogue until the handshake, as it arrives; `None` when it ends before.
async fn speak_in_the_clear(
    mut stream: TcpStream,
    tampering: &Tampering,
    taken: &AtomicU64,
) -> Option<TcpStream> {
    if tampering.is_endless {
        pour(&mut stream, b"220 ", &[b'x'; 65_536], taken).await;
        return None;
    }
    stream.write_all(b"220 line ESMTP\r\n").await.ok()?;
    loop {
        let line = read_line(&mut stream).await?;
        match line.split(' ').next().unwrap_or_default() {
            "EHLO" if tampering.is_long_winded => {
                let lines = b"250-X-AGAIN and again\r\n".repeat(2_000);
                pour(&mut stream, b"250-line\r\n", &lines, taken).await;
                return None;
            }
            "EHLO" if tampering.strips => stream.write_all(b"250-line\r\n250 8BITMIME\r\n").await.ok()?,
            "EHLO" => stream.write_all(b"250-line\r\n250 STARTTLS\r\n").await.ok()?,
            "STARTTLS" => {
                let said = tampering.starttls.as_deref().unwrap_or("220 go\r\n");
                stream.write_all(said.as_bytes()).await.ok()?;
                if said.starts_with("220") {
                    return Some(stream);
                }
            }
            "QUIT" => return None,
            _ => stream.write_all(b"530 5.7.0 STARTTLS first\r\n").await.ok()?,
        }
    }
}

/// Sends `again` repeatedly, as long as the connection is open.
async fn pour(stream: &mut TcpStream, first: &[u8], again: &[u8], taken: &AtomicU64) {
    let _ = stream.write_all(first).await;
    while let Ok(bytes) = stream.write(again).await {
        taken.fetch_add(bytes as u64, Ordering::SeqCst);
    }
}

/// Reads a line byte by byte: the bytes after it may belong to TLS.
async fn read_line(stream: &mut TcpStream) -> Option<String> {
    let mut line = Vec::new();
    loop {
        match stream.read_u8().await.ok()? {
            b'\n' => return Some(String::from_utf8(line).unwrap()),
            b'\r' => {}
            byte => line.push(byte),
        }
    }
}

on_both_databases! {
    /// An attacker sends in advance what the server would answer, up to each phase; the real server answers 535.
    async fn nothing_that_was_said_before_the_handshake_counts_after_it(fixture) {
        make_certificate(fixture.dir.path());
        let line = Line::start(fixture.dir.path()).await;
        line.server.need_auth();
        let config = line.config(&format!("user = \"{}\"\npassword = \"wrong\"", USER.0));
        let post = post_office(&fixture, &config);
        let phases = [
            ("EHLO", "250-line\r\n250 AUTH PLAIN LOGIN\r\n"),
            ("AUTH", "235 2.7.0 welcome\r\n"),
            ("MAIL", "250 2.1.0 ok\r\n"),
            ("RCPT", "250 2.1.5 ok\r\n"),
            ("DATA", "354 go ahead\r\n"),
            ("end of data", "250 2.0.0 kept\r\n"),
        ];
        let id = post.add("mail", "u1", &news(1)).await[0];
        let mut forged = "220 go\r\n".to_owned();
        for (phase, answer) in phases {
            forged.push_str(answer);
            // A part of the next line, too, so that something remains after the last forged answer.
            for behind in ["", "25"] {
                let said = Some(format!("{forged}{behind}"));
                line.tamper(Tampering { starttls: said, ..Tampering::default() });
                let report = post.send().await;
                let row = post.row(id).await;
                assert_eq!((report.sent, row.state, row.attempts), (0, State::Ready, 0), "{phase}: {row:?}");
                assert!(
                    row.last_error.as_ref().is_some_and(|why| why.to_string().contains("before the handshake")),
                    "{phase}: {row:?}"
                );
                fixture.clock.advance(Duration::from_secs(3600));
            }
        }
        assert_eq!(line.encrypted.load(Ordering::SeqCst), 0, "such a connection is not used at all");
        // Without the attacker, the same server rejects the password.
        line.tamper(Tampering::default());
        post.send().await;
        assert_eq!(line.encrypted.load(Ordering::SeqCst), 1);
        let rest = post.rest("mail", fixture.clock.now()).await.unwrap();
        assert!(rest.paused_until.is_none() && rest.reason.to_string().contains("535"), "{rest:?}");
        assert!(line.server.mails().is_empty());
    }

    /// Without STARTTLS the channel is paused, no attempt is counted however long it lasts, it is reported once, and
    /// sending resumes by itself.
    async fn a_channel_without_starttls_is_paused_and_resumes_by_itself(fixture) {
        make_certificate(fixture.dir.path());
        let line = Line::start(fixture.dir.path()).await;
        let post = post_office(&fixture, &line.config("max_attempts = 2"));
        let id = post.add("mail", "u1", &news(1)).await[0];
        let stripped = Tampering { strips: true, ..Tampering::default() };
        let refused = Tampering { starttls: Some("454 4.7.0 not now\r\n".into()), ..Tampering::default() };
        for tampering in [&stripped, &refused, &stripped, &refused] {
            line.tamper(tampering.clone());
            post.send().await;
            let row = post.row(id).await;
            assert_eq!((row.state, row.attempts), (State::Ready, 0), "{:?}", row.last_error);
            let rest = post.rest("mail", fixture.clock.now()).await.unwrap();
            assert!(rest.reason.to_string().contains("STARTTLS") && rest.reason.to_string().contains("localhost"), "{rest:?}");
            assert!(rest.reason.to_string().contains("nothing is sent without encryption"), "{rest:?}");
            assert_eq!(row.not_before, rest.paused_until.unwrap());
            // Both are kept as data, for readers of either language.
            let japanese = Speech { language: Language::Ja, ..Speech::default() };
            for said in [row.last_error.as_ref().unwrap(), &rest.reason] {
                let said = japanese.phrase(said);
                assert!(said.starts_with("localhost に暗号化して接続できません：STARTTLS"), "{said}");
            }
            fixture.clock.advance(Duration::from_secs(24 * 3600));
        }
        line.tamper(Tampering::default());
        assert_eq!(post.send().await.sent, 1);
        assert_eq!((post.row(id).await.state, line.server.mails().len()), (State::Sent, 1));
        let name = Subject::channel("mail");
        let events = fixture.db.read(move |tx| event::list_about(tx, &name, 10)).await.unwrap();
        assert!(events.iter().all(|event| event.code == "no_encryption") && !events.is_empty(), "{events:?}");
    }
}

#[test]
fn an_answer_without_an_end_is_cut_off_while_it_is_read() {
    databases::run(Dialect::Sqlite, async |fixture: Fixture| {
        make_certificate(fixture.dir.path());
        let line = Line::start(fixture.dir.path()).await;
        let post = post_office(&fixture, &line.config("timeout = \"20s\""));
        let endless = Tampering { is_endless: true, ..Tampering::default() };
        let long_winded = Tampering { is_long_winded: true, ..Tampering::default() };
        for (what, tampering) in [("line", endless), ("lines", long_winded)] {
            line.tamper(tampering);
            line.taken.store(0, Ordering::SeqCst);
            let id = post.add("mail", what, &news(1)).await[0];
            post.send().await;
            let row = post.row(id).await;
            assert_eq!(row.state, State::Ready, "{what}: {row:?}");
            assert!(
                row.last_error.as_ref().is_some_and(|why| why.to_string().contains("too long")),
                "{what}: {row:?}"
            );
            // Data in the kernel's buffers on both sides is not counted.
            let taken = line.taken.load(Ordering::SeqCst);
            assert!(taken < 16 << 20, "{what}: {taken} bytes");
            fixture.clock.advance(Duration::from_secs(3600));
        }
    });
}

/// Encrypted or not, an unexpected answer must not be taken for that to the next command.
#[test]
fn an_answer_too_many_ends_the_connection() {
    databases::run(Dialect::Sqlite, async |fixture: Fixture| {
        make_certificate(fixture.dir.path());
        let line = Line::start(fixture.dir.path()).await;
        let post = post_office(&fixture, &line.config(""));
        for (phase, said) in [
            (Phase::Hello, "250 loopback\r\n250 2.1.0 ok\r\n250 2.1.5 ok\r\n354 go\r\n250 2.0.0 kept"),
            (Phase::Mail, "250 2.1.0 ok\r\n250 2.1.5 ok"),
            (Phase::Rcpt, "250 2.1.5 ok\r\n354 go ahead\r\n250 2.0.0 kept"),
            (Phase::Data, "354 go ahead\r\n250 2.0.0 kept"),
        ] {
            let id = post.add("mail", &format!("{phase:?}"), &news(1)).await[0];
            line.server.next(phase, Trouble::Say(said));
            assert_eq!(post.send().await.sent, 0, "{phase:?}");
            assert_eq!(post.row(id).await.state, State::Ready, "{phase:?}");
            assert!(line.server.mails().is_empty(), "{phase:?}");
            fixture
                .db
                .write(|tx| tx.execute(tsuzuki::sql!("DELETE FROM outbox"), tsuzuki::params![]))
                .await
                .unwrap();
        }
    });
}
