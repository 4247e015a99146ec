//! One connection to a mail server, command by command: every read has a limit, and nothing that arrived before the TLS
//! handshake is read after it.

use std::sync::Arc;

use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio_rustls::TlsConnector;

use super::smtp::quote;
use crate::fetch::in_words;
use crate::phrase;
use crate::phrase::Phrase;

/// RFC 5321 allows 512 bytes for a line of an answer; some servers send more.
const MAX_LINE: usize = 4096;
/// More lines than any server sends.
const MAX_LINES: usize = 128;

/// A stream, encrypted or not.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Sync + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Sync + Unpin> Stream for S {}

/// An answer of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) code: u16,
    pub(super) lines: Vec<String>,
}

impl Reply {
    /// On one short line, with secrets redacted.
    pub(super) fn text(&self) -> String {
        quote(&self.lines.join(" "))
    }
}

impl std::fmt::Display for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.code, self.text())
    }
}

/// Why a command failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The server refused.
    Refused(Reply),
    /// There is no usable answer, and the connection cannot be used any more.
    Broken(Phrase),
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Fault::Refused(reply) => reply.fmt(f),
            Fault::Broken(why) => why.fmt(f),
        }
    }
}

impl From<&Fault> for Phrase {
    fn from(fault: &Fault) -> Self {
        match fault {
            Fault::Refused(reply) => reply.to_string().into(),
            Fault::Broken(why) => why.clone(),
        }
    }
}

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Self {
        Fault::Broken(in_words(&error))
    }
}

pub(super) struct Wire {
    stream: Box<dyn Stream>,
    /// Bytes received but not read yet.
    arrived: Vec<u8>,
}

impl Wire {
    pub(super) fn new(stream: impl Stream + 'static) -> Self {
        Self { stream: Box::new(stream), arrived: Vec::new() }
    }

    /// Starts TLS. Unread data that arrived before may have been injected, so it is an error.
    pub(super) async fn encrypt(
        self,
        config: Arc<rustls::ClientConfig>,
        name: ServerName<'static>,
    ) -> Result<Self, Fault> {
        if !self.arrived.is_empty() {
            return Err(Fault::Broken(phrase!(
                "data arrived before the handshake, so the connection cannot be trusted",
                "TLS ハンドシェイクの前に余分な応答が届きました（第三者の割り込みの可能性があるため信用しません）"
            )));
        }
        Ok(Self::new(TlsConnector::from(config).connect(name, self.stream).await?))
    }

    /// Sends a command and reads the answer, whose code has to begin with `wanted`.
    pub(super) async fn command(&mut self, command: &str, wanted: u16) -> Result<Reply, Fault> {
        if command.chars().any(char::is_control) {
            return Err(Fault::Broken(phrase!(
                "a command of more than one line",
                "コマンドが複数行になっています"
            )));
        }
        self.write(format!("{command}\r\n").as_bytes()).await?;
        self.reply(wanted).await
    }

    /// An unexpected answer must not be taken for that to the next command.
    pub(super) fn refuse_unasked(&self) -> Result<(), Fault> {
        if self.arrived.is_empty() {
            Ok(())
        } else {
            Err(Fault::Broken(phrase!(
                "the server sent a reply without a command",
                "要求していない応答が届きました"
            )))
        }
    }

    /// Writes bytes and flushes them.
    pub(super) async fn write(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.refuse_unasked()?;
        self.stream.write_all(bytes).await?;
        Ok(self.stream.flush().await?)
    }

    /// Reads an answer, whose code has to begin with `wanted`.
    pub(super) async fn reply(&mut self, wanted: u16) -> Result<Reply, Fault> {
        let mut reply = Reply { code: 0, lines: Vec::new() };
        loop {
            let line = self.line().await?;
            let (code, is_last, text) = parse_line(&line)
                .filter(|(code, ..)| reply.lines.is_empty() || *code == reply.code)
                .ok_or_else(|| {
                    let answer = quote(&line);
                    Fault::Broken(phrase!("this is no answer: {answer}", "応答として読めません：{answer}"))
                })?;
            reply.code = code;
            reply.lines.push(text.to_owned());
            if is_last {
                break;
            }
            if reply.lines.len() == MAX_LINES {
                return Err(Fault::Broken(phrase!(
                    "the answer is too long: more than {count line}",
                    "応答が長すぎます（{count} 行超）",
                    count = MAX_LINES
                )));
            }
        }
        match reply.code / 100 {
            class if class == wanted => Ok(reply),
            4 | 5 => Err(Fault::Refused(reply)),
            _ => Err(Fault::Broken(phrase!(
                "this answers another command: {answer}",
                "別のコマンドへの応答です：{answer}",
                answer = reply.to_string()
            ))),
        }
    }

    /// The next line.
    async fn line(&mut self) -> Result<String, Fault> {
        let mut searched = 0;
        loop {
            if let Some(end) = self.arrived[searched..].iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.arrived.drain(..=searched + end).collect();
                let line = String::from_utf8_lossy(&line);
                return Ok(line.trim_end_matches(['\r', '\n']).to_owned());
            }
            searched = self.arrived.len();
            if searched >= MAX_LINE {
                return Err(Fault::Broken(phrase!(
                    "the answer is too long: a line of over {count byte}",
                    "応答が長すぎます（1 行が {count} バイト超）",
                    count = MAX_LINE
                )));
            }
            let mut piece = [0; MAX_LINE];
            match self.stream.read(&mut piece).await? {
                0 => return Err(Fault::Broken(phrase!("the server hung up", "サーバーが接続を閉じました"))),
                count => self.arrived.extend_from_slice(&piece[..count]),
            }
        }
    }
}

/// Splits a line into code, whether it is the last line, and text.
fn parse_line(line: &str) -> Option<(u16, bool, &str)> {
    let (code, rest) = line.split_at_checked(3)?;
    let code = code.parse().ok().filter(|code| (200..600).contains(code))?;
    match rest.strip_prefix('-') {
        Some(text) => Some((code, false, text)),
        None if rest.is_empty() => Some((code, true, "")),
        None => rest.strip_prefix(' ').map(|text| (code, true, text)),
    }
}

/// Parses any bytes as answers of a server; for `fuzz/`.
#[cfg(fuzzing)]
pub fn fuzz_replies(bytes: &[u8]) {
    let stream = tokio::io::join(std::io::Cursor::new(bytes.to_vec()), tokio::io::sink());
    let mut wire = Wire::new(stream);
    let reading = async {
        while let Ok(reply) | Err(Fault::Refused(reply)) = wire.reply(2).await {
            assert!(reply.lines.len() <= MAX_LINES && (200..600).contains(&reply.code));
            assert!(!reply.text().contains(char::is_control));
        }
    };
    futures_util::FutureExt::now_or_never(reading).expect("nothing to wait for");
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(answer: &str) -> Result<Reply, String> {
        let (ours, mut theirs) = tokio::io::duplex(1 << 20);
        theirs.write_all(answer.as_bytes()).await.unwrap();
        drop(theirs);
        Wire::new(ours).reply(2).await.map_err(|fault| fault.to_string())
    }

    #[tokio::test]
    async fn answers_are_read_as_they_are_meant() {
        let long = |count: usize| format!("{}250 end\r\n", "250-x\r\n".repeat(count));
        for (answer, code, lines) in [
            ("250 ok\r\n".to_owned(), 250, &["ok"][..]),
            ("250-a\r\n250-B c\r\n250 d\r\n".to_owned(), 250, &["a", "B c", "d"]),
            ("221\n".to_owned(), 221, &[""]),
            (format!("250 {}\r\n", "x".repeat(4000)), 250, &[&"x".repeat(4000)]),
            (long(127), 250, &[vec!["x"; 127], vec!["end"]].concat()),
        ] {
            let reply = read(&answer).await.unwrap();
            assert_eq!((reply.code, reply.lines), (code, lines.iter().map(ToString::to_string).collect()));
        }
        for (answer, why) in [
            ("550 5.1.1 no\r\n".to_owned(), "550 5.1.1 no"),
            ("354 go\r\n".to_owned(), "this answers another command: 354 go"),
            ("250-a\r\n550 b\r\n".to_owned(), "this is no answer: 550 b"),
            ("hello\r\n".to_owned(), "this is no answer: hello"),
            ("25é\r\n".to_owned(), "this is no answer: 25é"),
            ("999 x\r\n".to_owned(), "this is no answer: 999 x"),
            ("250 ok".to_owned(), "the server hung up"),
            ("x".repeat(5000), "the answer is too long: a line of over 4096 bytes"),
            (long(128), "the answer is too long: more than 128 lines"),
        ] {
            assert_eq!(read(&answer).await.unwrap_err(), why);
        }
    }

    #[tokio::test]
    async fn a_command_is_one_line() {
        let (ours, _theirs) = tokio::io::duplex(64);
        let fault = Wire::new(ours).command("MAIL FROM:<a>\r\nRCPT TO:<b>", 2).await;
        assert!(matches!(fault, Err(Fault::Broken(_))));
    }
}
