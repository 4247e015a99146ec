//! An SMTP server that records every mail, and fails at any phase of the dialogue on request.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use super::journal::{Memory, Record};
use super::open::OpenCount;
use super::server::Serving;

/// The user and password that the server accepts.
pub const USER: (&str, &str) = ("bot@example.com", "loopback-password");

/// A phase of the dialogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The server's first line.
    Greeting,
    /// After EHLO.
    Hello,
    /// After AUTH.
    Auth,
    /// After MAIL FROM.
    Mail,
    /// After RCPT TO.
    Rcpt,
    /// After DATA.
    Data,
    /// In the middle of the text.
    Text,
    /// After the end of the text, before the mail is recorded.
    End,
    /// After the end of the text, when the mail has been recorded.
    Kept,
}

impl Phase {
    /// All of them, in order.
    pub const ALL: [Phase; 9] = [
        Phase::Greeting,
        Phase::Hello,
        Phase::Auth,
        Phase::Mail,
        Phase::Rcpt,
        Phase::Data,
        Phase::Text,
        Phase::End,
        Phase::Kept,
    ];
}

/// The fault at a phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The server sends this line instead.
    Say(&'static str),
    /// The connection is cut.
    Cut,
    /// Nothing is sent any more.
    Hang,
    /// Nothing is sent until [`SmtpServer::release`]; then everything continues normally.
    Wait,
}

/// A recorded mail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The envelope's sender.
    pub from: String,
    /// The envelope's recipients.
    pub to: Vec<String>,
    /// The mail itself.
    pub data: String,
}

impl Kept {
    /// The value of a header, as it stands on its first line.
    pub fn header(&self, name: &str) -> Option<&str> {
        let head = self.data.split("\r\n\r\n").next()?;
        head.split("\r\n").find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }
}

/// The server; stops when dropped.
#[derive(Debug)]
pub struct SmtpServer {
    pub address: SocketAddr,
    /// Its open connections.
    pub open: OpenCount,
    server: Arc<Mutex<Server>>,
    _serving: Serving,
}

#[derive(Debug, Default)]
struct Server {
    mails: Vec<Kept>,
    record: Record<Kept>,
    troubles: VecDeque<(Phase, Trouble)>,
    released: Arc<Notify>,
    needs_auth: bool,
    connections: usize,
}

impl SmtpServer {
    /// Starts on a free port of this machine.
    pub async fn start() -> std::io::Result<Self> {
        Self::start_on(TcpListener::bind(("127.0.0.1", 0)).await?, Memory::default())
    }

    /// Starts on `listener` with earlier mails.
    pub fn start_on(listener: TcpListener, memory: Memory<Kept>) -> std::io::Result<Self> {
        let address = listener.local_addr()?;
        let server = Server { mails: memory.before, record: memory.record, ..Server::default() };
        let server = Arc::new(Mutex::new(server));
        let shared = Arc::clone(&server);
        let open = OpenCount::default();
        let counter = open.clone();
        let _serving = Serving::new(tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let server = Arc::clone(&shared);
                server.lock().connections += 1;
                let counted = counter.enter();
                tokio::spawn(async move {
                    let _counted = counted;
                    // A client that goes away ends its own conversation only.
                    let _ = Talk { stream: BufReader::new(stream), server }.run().await;
                });
            }
        }));
        Ok(Self { address, open, server, _serving })
    }

    /// Requires authentication as [`USER`].
    pub fn need_auth(&self) {
        self.server.lock().needs_auth = true;
    }

    /// Sets the fault of the next time that the dialogue reaches `phase`.
    pub fn next(&self, phase: Phase, trouble: Trouble) {
        self.server.lock().troubles.push_back((phase, trouble));
    }

    /// Ends a [`Trouble::Wait`], also a future one.
    pub fn release(&self) {
        let released = Arc::clone(&self.server.lock().released);
        released.notify_one();
    }

    /// The number of connections so far.
    pub fn connections(&self) -> usize {
        self.server.lock().connections
    }

    /// Every mail that was kept, in order.
    pub fn mails(&self) -> Vec<Kept> {
        self.server.lock().mails.clone()
    }
}

struct Talk {
    stream: BufReader<TcpStream>,
    server: Arc<Mutex<Server>>,
}

/// The end of a dialogue.
struct Over;

impl From<std::io::Error> for Over {
    fn from(_: std::io::Error) -> Self {
        Over
    }
}

impl Talk {
    async fn run(mut self) -> Result<(), Over> {
        let mut mail = Kept { from: String::new(), to: Vec::new(), data: String::new() };
        let mut is_in = !self.server.lock().needs_auth;
        self.say(Phase::Greeting, "220 loopback ESMTP").await?;
        loop {
            let line = self.line().await?;
            let verb = line.split([' ', ':']).next().unwrap_or_default().to_ascii_uppercase();
            let inside = |line: &str| {
                line.split_once('<')
                    .and_then(|(_, rest)| rest.split('>').next())
                    .unwrap_or_default()
                    .to_owned()
            };
            match verb.as_str() {
                "EHLO" | "HELO" => {
                    self.say(
                        Phase::Hello,
                        "250-loopback\r\n250-AUTH PLAIN LOGIN\r\n250-SMTPUTF8\r\n250 8BITMIME",
                    )
                    .await?;
                }
                "AUTH" => {
                    is_in = self.is_known(&line).await?;
                    let answer = if is_in { "235 2.7.0 welcome" } else { "535 5.7.8 credentials invalid" };
                    self.say(Phase::Auth, answer).await?;
                }
                "MAIL" if !is_in => self.write("530 5.7.0 authentication required").await?,
                "MAIL" => {
                    mail = Kept { from: inside(&line), to: Vec::new(), data: String::new() };
                    self.say(Phase::Mail, "250 2.1.0 ok").await?;
                }
                "RCPT" => {
                    if self.say(Phase::Rcpt, "250 2.1.5 ok").await? {
                        mail.to.push(inside(&line));
                    }
                }
                "DATA" => {
                    if self.say(Phase::Data, "354 go ahead").await? {
                        mail.data = self.text().await?;
                        self.end(&mail).await?;
                    }
                }
                "RSET" | "NOOP" => self.write("250 2.0.0 ok").await?,
                "QUIT" => {
                    self.write("221 2.0.0 bye").await?;
                    return Ok(());
                }
                _ => self.write("502 5.5.2 what?").await?,
            }
        }
    }

    /// Sends `line`, or performs the fault of this phase; returns whether there was none.
    async fn say(&mut self, phase: Phase, line: &str) -> Result<bool, Over> {
        match self.trouble(phase) {
            None => self.write(line).await.map(|()| true),
            Some(Trouble::Say(other)) => self.write(other).await.map(|()| false),
            Some(Trouble::Cut) => Err(Over),
            Some(Trouble::Hang) => std::future::pending().await,
            Some(Trouble::Wait) => {
                self.wait().await;
                self.write(line).await.map(|()| true)
            }
        }
    }

    async fn wait(&self) {
        let released = Arc::clone(&self.server.lock().released);
        released.notified().await;
    }

    fn trouble(&self, phase: Phase) -> Option<Trouble> {
        let mut server = self.server.lock();
        let at = server.troubles.iter().position(|(wanted, _)| *wanted == phase)?;
        server.troubles.remove(at).map(|(_, trouble)| trouble)
    }

    async fn text(&mut self) -> Result<String, Over> {
        let mut text = String::new();
        let mut trouble = self.trouble(Phase::Text);
        loop {
            let line = self.line().await?;
            match trouble.take() {
                Some(Trouble::Cut | Trouble::Say(_)) => return Err(Over),
                Some(Trouble::Hang) => std::future::pending().await,
                Some(Trouble::Wait) => self.wait().await,
                None => {}
            }
            if line == "." {
                return Ok(text);
            }
            text.push_str(line.strip_prefix('.').unwrap_or(&line));
            text.push_str("\r\n");
        }
    }

    async fn end(&mut self, mail: &Kept) -> Result<(), Over> {
        match self.trouble(Phase::End) {
            Some(Trouble::Cut) => return Err(Over),
            Some(Trouble::Hang) => std::future::pending().await,
            Some(Trouble::Say(line)) => return self.write(line).await,
            Some(Trouble::Wait) => self.wait().await,
            None => {}
        }
        let number = {
            let mut server = self.server.lock();
            let noted = server.record.note(mail);
            if noted.is_ok() {
                server.mails.push(mail.clone());
            }
            noted.map(|()| server.mails.len())
        };
        match number {
            Ok(number) => self.say(Phase::Kept, &format!("250 2.0.0 kept as {number}")).await.map(drop),
            Err(_) => self.write("451 4.3.0 it cannot be kept").await,
        }
    }

    async fn is_known(&mut self, line: &str) -> Result<bool, Over> {
        let decode =
            |text: &str| String::from_utf8(BASE64.decode(text).unwrap_or_default()).unwrap_or_default();
        let mut words = line.split(' ').skip(1);
        let given = match (words.next().unwrap_or_default().to_ascii_uppercase().as_str(), words.next()) {
            ("PLAIN", Some(first)) => {
                let decoded = decode(first);
                let mut parts = decoded.split('\0').skip(1).map(str::to_owned);
                (parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
            }
            ("LOGIN", first) => {
                let user = match first {
                    Some(user) => decode(user),
                    None => {
                        self.write("334 VXNlcm5hbWU6").await?;
                        decode(&self.line().await?)
                    }
                };
                self.write("334 UGFzc3dvcmQ6").await?;
                (user, decode(&self.line().await?))
            }
            _ => return Ok(false),
        };
        Ok((given.0.as_str(), given.1.as_str()) == USER)
    }

    async fn line(&mut self) -> Result<String, Over> {
        let mut line = Vec::new();
        if self.stream.read_until(b'\n', &mut line).await? == 0 {
            return Err(Over);
        }
        let line = String::from_utf8_lossy(&line).into_owned();
        Ok(line.trim_end_matches(['\r', '\n']).to_owned())
    }

    /// In a single write: a second one would wait until the client has acknowledged the first.
    async fn write(&mut self, line: &str) -> Result<(), Over> {
        let stream = self.stream.get_mut();
        stream.write_all(format!("{line}\r\n").as_bytes()).await?;
        Ok(stream.flush().await?)
    }
}
