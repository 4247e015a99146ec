//! `tsuzuki inspect`: what we read from a document, as JSON, for anyone who wonders why a source misbehaves.

mod answer;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::IpAddr;
use std::path::Path;

use serde_json::Value;

use crate::fetch::guard::AllowPrivate;
use crate::fetch::{self, ClientConfig, FetchConfig, Fetcher, Request, Response};
use crate::parse::url::{self, Url};
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::Clock;

use super::{Context, Exit};

pub use self::answer::{Document, Kind, answer, of_address, of_document, of_robots, of_url};

/// Bytes of a file, of standard input, or of one batch line that are read.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Who asks; the command works without a config file.
const USER_AGENT: &str = concat!("tsuzuki/", env!("CARGO_PKG_VERSION"), " (inspect)");

/// Shows what we read from a document.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// What it is
    #[arg(value_enum)]
    pub kind: Kind,
    /// A file, `-` for standard input, or an http(s) address; for `url` and `address` the address itself
    #[arg(value_name = "FILE|URL", default_value = "-")]
    pub input: String,
    /// The address that the document came from; for `url` its base, for `robots` the page in question
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// The Content-Type that the document came with
    #[arg(long, value_name = "TYPE")]
    pub content_type: Option<String>,
    /// The agent that a robots.txt is asked about
    #[arg(long, value_name = "NAME", default_value = "tsuzuki")]
    pub user_agent: String,
    /// What a host name resolves to, for `address`
    #[arg(long, value_name = "HOST=IP,…")]
    pub resolve: Vec<String>,
    /// An address, range or host beyond the open internet that may be reached
    #[arg(long, value_name = "ENTRY")]
    pub allow_private: Vec<String>,
    /// Reads JSON lines and answers each by one line
    #[arg(long)]
    pub batch: bool,
}

/// Why nothing could be shown.
#[derive(Debug)]
pub enum Error {
    /// The document is not what it was said to be.
    Refused {
        /// The document.
        input: String,
        /// The reason.
        why: String,
    },
    /// The document cannot be had from here.
    Read {
        /// The file.
        input: String,
        /// What the system says.
        source: io::Error,
    },
    /// The document cannot be fetched.
    Fetch {
        /// The address.
        input: String,
        /// What happened.
        source: fetch::Error,
    },
    /// An option makes no sense.
    Usage(Phrase),
    /// The answer cannot be written.
    Write(io::Error),
}

crate::error_in_english!(Error);

impl Error {
    /// Why, in one sentence.
    pub fn phrase(&self) -> Phrase {
        match self {
            Error::Refused { input, why } => phrase!("{input}: {why}", "{input}：{why}"),
            Error::Read { input, source } => phrase!(
                "cannot read {input}: {source}",
                "{input} を読み込めません：{source}",
                source = source.to_string()
            ),
            Error::Fetch { input, source } => {
                phrase!("cannot fetch {input}: {source}", "{input} を取得できません：{source}")
            }
            Error::Usage(why) => why.clone(),
            Error::Write(error) => phrase!(
                "cannot write the answer: {error}",
                "結果を書き出せません：{error}",
                error = error.to_string()
            ),
        }
    }

    /// What the user can do about it, as the text of a `hint:` line.
    pub fn hint(&self) -> Option<Phrase> {
        match self {
            Error::Fetch { source: fetch::Error::Blocked { allow: Some(entry), .. }, .. } => Some(phrase!(
                "if you trust it, add `--allow-private {entry}`",
                "信頼できる相手なら `--allow-private {entry}` を付けてください"
            )),
            Error::Fetch { source, .. } => source.hint(),
            _ => None,
        }
    }
}

/// How an answer is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Indented, for people.
    Indented,
    /// On one line, for programs.
    Line,
}

pub(super) async fn command(args: &Args, context: &Context) -> Result<Exit, super::Error> {
    let layout = if context.out.is_json() { Layout::Line } else { Layout::Indented };
    let mut out = io::BufWriter::new(io::stdout().lock());
    run(args, &context.clock, layout, &mut out).await.map_err(|error| {
        let exit = if matches!(error, Error::Usage(_)) { Exit::Usage } else { Exit::Failed };
        let shown = super::Error::new(exit, error.phrase());
        match error.hint() {
            Some(hint) => shown.hint(hint),
            None => shown,
        }
    })?;
    Ok(Exit::Fine)
}

/// Runs the command; data goes to `out`. A reader that closes the pipe has seen enough, which is no error.
pub async fn run(args: &Args, clock: &Clock, layout: Layout, out: &mut dyn Write) -> Result<(), Error> {
    let allow = AllowPrivate::parse(&args.allow_private).map_err(|error| Error::Usage(error.phrase()))?;
    let shown = if args.batch {
        batch(args.kind, &mut *open(&args.input)?, &allow, out)
    } else {
        let value = inspect(args, &allow, clock).await?;
        let text = match layout {
            Layout::Indented => serde_json::to_string_pretty(&value),
            Layout::Line => serde_json::to_string(&value),
        };
        text.map_err(io::Error::from).and_then(|text| writeln!(out, "{text}")).and_then(|()| out.flush())
    };
    match shown {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        shown => shown.map_err(Error::Write),
    }
}

async fn inspect(args: &Args, allow: &AllowPrivate, clock: &Clock) -> Result<Value, Error> {
    let refused = |why| Error::Refused { input: args.input.clone(), why };
    match args.kind {
        Kind::Url => of_url(&args.input, args.url.as_deref()).map_err(refused),
        Kind::Address => {
            let names = names(&args.resolve)?;
            let host = Url::parse(&args.input).ok().and_then(|url| url.domain().map(str::to_owned));
            match host {
                Some(host) if !names.contains_key(&host) && host != "localhost" => {
                    Err(Error::Usage(phrase!(
                        "say what {host} resolves to: `--resolve {host}=ADDRESS`",
                        "{host} の IP アドレスを `--resolve {host}=ADDRESS` で指定してください"
                    )))
                }
                _ => Ok(of_address(&args.input, &names, allow)),
            }
        }
        Kind::Robots => robots(args, allow, clock).await,
        Kind::Feed | Kind::Sitemap | Kind::Page | Kind::Opml | Kind::Pdf => {
            let document = document(args, &args.input, allow, clock).await?;
            of_document(args.kind, &document).map_err(refused)
        }
    }
}

/// A robots.txt by its file or address; for any other address, the robots.txt of its site.
async fn robots(args: &Args, allow: &AllowPrivate, clock: &Clock) -> Result<Value, Error> {
    let mut source = args.input.clone();
    let mut page = args.url.clone();
    if let Some(address) = web_address(&args.input) {
        if address.path() != "/robots.txt" {
            page = page.or_else(|| Some(address.clone().into()));
        }
        source = address.join("/robots.txt").unwrap_or(address).into();
    }
    let text = match document(args, &source, allow, clock).await {
        Ok(document) => document.bytes,
        // A site without the file allows everything (RFC 9309 §2.3.1.3).
        Err(Error::Fetch { source, .. })
            if source.status().is_some_and(|status| (400..429).contains(&status)) =>
        {
            Vec::new()
        }
        Err(error) => return Err(error),
    };
    Ok(of_robots(&text, &args.user_agent, page.as_deref().unwrap_or("/")))
}

async fn document(args: &Args, input: &str, allow: &AllowPrivate, clock: &Clock) -> Result<Document, Error> {
    let mut document = match web_address(input) {
        Some(address) => fetched(address, allow, clock).await?,
        None => {
            let read_error = |source| Error::Read { input: input.to_owned(), source };
            let mut bytes = Vec::new();
            open(input)?.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(read_error)?;
            if bytes.len() as u64 > MAX_BYTES {
                return Err(Error::Refused {
                    input: input.to_owned(),
                    why: format!("it is larger than {MAX_BYTES} bytes"),
                });
            }
            Document { bytes, ..Document::default() }
        }
    };
    if args.url.is_some() && args.kind != Kind::Robots {
        document.url.clone_from(&args.url);
    }
    if args.content_type.is_some() {
        document.content_type.clone_from(&args.content_type);
    }
    Ok(document)
}

async fn fetched(address: Url, allow: &AllowPrivate, clock: &Clock) -> Result<Document, Error> {
    let input = address.to_string();
    let request = Request::get(address).allow_private(allow);
    let fetch_error = |source| Error::Fetch { input: input.clone(), source };
    let client = ClientConfig { user_agent: USER_AGENT.to_owned(), ..ClientConfig::default() };
    let config = FetchConfig { client, ..FetchConfig::default() };
    let fetcher = Fetcher::new(config, clock.clone()).map_err(fetch_error)?;
    match fetcher.fetch(&request).await.map_err(fetch_error)? {
        Response::Fetched(head, body) => {
            let header =
                |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
            Ok(Document {
                bytes: body.to_vec(),
                url: Some(head.final_url.to_string()),
                content_type: header("content-type"),
                content_location: header("content-location"),
                content_language: header("content-language"),
            })
        }
        Response::Unchanged(_) => Err(Error::Refused {
            input,
            why: "the server sent no document, although none was known".to_owned(),
        }),
    }
}

fn web_address(input: &str) -> Option<Url> {
    url::resolve_web(None, input).filter(|_| input.contains("://"))
}

fn open(input: &str) -> Result<Box<dyn BufRead>, Error> {
    if input == "-" {
        return Ok(Box::new(BufReader::new(io::stdin())));
    }
    let file =
        File::open(Path::new(input)).map_err(|source| Error::Read { input: input.to_owned(), source })?;
    Ok(Box::new(BufReader::with_capacity(64 * 1024, file)))
}

fn names(entries: &[String]) -> Result<BTreeMap<String, Vec<IpAddr>>, Error> {
    let mut names: BTreeMap<String, Vec<IpAddr>> = BTreeMap::new();
    for entry in entries {
        let wrong = || {
            Error::Usage(phrase!(
                "`{entry}` is not HOST=ADDRESS,…",
                "`{entry}` は HOST=ADDRESS,… の形ではありません"
            ))
        };
        let (host, addresses) = entry.split_once('=').ok_or_else(wrong)?;
        for address in addresses.split(',') {
            names.entry(host.to_ascii_lowercase()).or_default().push(address.parse().map_err(|_| wrong())?);
        }
    }
    Ok(names)
}

/// Answers each line of `input` by one line, keeping no more than one in memory.
pub fn batch(
    kind: Kind,
    input: &mut dyn BufRead,
    allow: &AllowPrivate,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut line = Vec::new();
    loop {
        line.clear();
        if (&mut *input).take(MAX_BYTES).read_until(b'\n', &mut line)? == 0 {
            return out.flush();
        }
        let answered = if line.len() as u64 == MAX_BYTES && line.last() != Some(&b'\n') {
            skip_line(input)?;
            answer::refusal(&Value::Null, &format!("the line is longer than {MAX_BYTES} bytes"))
        } else {
            match std::str::from_utf8(&line) {
                Ok(text) => answer(kind, text, allow),
                Err(error) => answer::refusal(&Value::Null, &format!("the line is no UTF-8: {error}")),
            }
        };
        serde_json::to_writer(&mut *out, &answered)?;
        out.write_all(b"\n")?;
        // One question, one answer: a program on the other side may wait for it.
        out.flush()?;
    }
}

fn skip_line(input: &mut dyn BufRead) -> io::Result<()> {
    loop {
        let (used, found) = match input.fill_buf()? {
            [] => return Ok(()),
            buffer => match buffer.iter().position(|byte| *byte == b'\n') {
                Some(at) => (at + 1, true),
                None => (buffer.len(), false),
            },
        };
        input.consume(used);
        if found {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests;
