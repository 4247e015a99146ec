//! `tsuzuki inspect`: prints a parsed document as JSON, to find out why a source misbehaves.

mod answer;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::IpAddr;
use std::path::Path;

use serde_json::Value;

use tsuzuki::fetch::guard::AllowPrivate;
use tsuzuki::fetch::{self, ClientConfig, FetchConfig, Fetcher, Request, Response};
use tsuzuki::parse::url::{self, Url};
use tsuzuki::phrase;
use tsuzuki::time::Clock;

use super::{Context, Error, Exit, Result};

pub(crate) use self::answer::{Document, Kind, answer, of_address, of_document, of_robots, of_url};

/// The most bytes of a file, of standard input, or of one batch line.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// The user agent; the command works without a config file.
const USER_AGENT: &str = concat!("tsuzuki/", env!("CARGO_PKG_VERSION"), " (inspect)");

/// Shows what we read from a document.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// What it is
    #[arg(value_enum)]
    pub kind: Kind,
    /// A file, `-` for standard input, or an http(s) address; for `url` and `address` the address itself
    #[arg(value_name = "FILE|URL", default_value = "-", value_hint = clap::ValueHint::FilePath)]
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

/// The layout of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Indented, for people.
    Indented,
    /// On one line, for programs.
    Line,
}

pub(super) async fn command(args: &Args, context: &Context) -> Result {
    let layout = if context.out.is_json() { Layout::Line } else { Layout::Indented };
    let mut out = io::BufWriter::new(io::stdout().lock());
    run(args, &context.clock, layout, &mut out).await?;
    Ok(Exit::Fine)
}

/// Runs the command; data goes to `out`. A closed pipe is not an error.
pub(crate) async fn run(args: &Args, clock: &Clock, layout: Layout, out: &mut dyn Write) -> Result<()> {
    let allow = AllowPrivate::parse(&args.allow_private).map_err(|error| Error::usage(error.phrase()))?;
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
        shown => shown.map_err(|error| {
            Error::failed(phrase!(
                "cannot write the answer: {error}",
                "結果を書き出せません：{error}",
                error = error.to_string()
            ))
        }),
    }
}

async fn inspect(args: &Args, allow: &AllowPrivate, clock: &Clock) -> Result<Value> {
    let refused = |why: String| refused(&args.input, &why);
    match args.kind {
        Kind::Url => of_url(&args.input, args.url.as_deref()).map_err(refused),
        Kind::Address => {
            let names = names(&args.resolve)?;
            let host = Url::parse(&args.input).ok().and_then(|url| url.domain().map(str::to_owned));
            match host {
                Some(host) if !names.contains_key(&host) && host != "localhost" => {
                    Err(Error::usage(phrase!(
                        "say what {host} resolves to: `--resolve {host}=ADDRESS`",
                        "{host} の IP アドレスを `--resolve {host}=ADDRESS` で指定してください"
                    )))
                }
                _ => Ok(of_address(&args.input, &names, allow)),
            }
        }
        Kind::Robots => robots(args, allow, clock).await,
        Kind::Feed | Kind::Sitemap | Kind::Page | Kind::Opml | Kind::Pdf => {
            let document = document(args, allow, clock).await?;
            of_document(args.kind, &document).map_err(refused)
        }
    }
}

/// A robots.txt by its file or address; for any other address, the robots.txt of its site.
async fn robots(args: &Args, allow: &AllowPrivate, clock: &Clock) -> Result<Value> {
    let mut page = args.url.clone();
    let text = match web_address(&args.input) {
        None => read_file(&args.input)?,
        Some(address) => {
            if address.path() != "/robots.txt" {
                page = page.or_else(|| Some(address.clone().into()));
            }
            let source = address.join("/robots.txt").unwrap_or(address);
            match fetch_document(&source, allow, clock).await {
                Ok(document) => document.bytes,
                // A site without the file allows everything (RFC 9309 §2.3.1.3).
                Err(error) if error.status().is_some_and(|status| (400..429).contains(&status)) => Vec::new(),
                Err(error) => return Err(not_fetched(&source, &error)),
            }
        }
    };
    Ok(of_robots(&text, &args.user_agent, page.as_deref().unwrap_or("/")))
}

async fn document(args: &Args, allow: &AllowPrivate, clock: &Clock) -> Result<Document> {
    let mut document = match web_address(&args.input) {
        Some(address) => {
            fetch_document(&address, allow, clock).await.map_err(|error| not_fetched(&address, &error))?
        }
        None => Document { bytes: read_file(&args.input)?, ..Document::default() },
    };
    if args.url.is_some() {
        document.url.clone_from(&args.url);
    }
    if args.content_type.is_some() {
        document.content_type.clone_from(&args.content_type);
    }
    Ok(document)
}

fn read_file(input: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = open(input)?.take(MAX_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| not_read(input, &error))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(refused(input, &format!("it is larger than {MAX_BYTES} bytes")));
    }
    Ok(bytes)
}

async fn fetch_document(
    address: &Url,
    allow: &AllowPrivate,
    clock: &Clock,
) -> Result<Document, fetch::Error> {
    let client = ClientConfig { user_agent: USER_AGENT.to_owned(), ..ClientConfig::default() };
    let fetcher = Fetcher::new(FetchConfig { client, ..FetchConfig::default() }, clock.clone())?;
    let response = fetcher.fetch(&Request::get(address.clone()).allow_private(allow)).await?;
    let (head, bytes) = match response {
        Response::Fetched(head, body) => (head, body.to_vec()),
        // Never sent for an unconditional request.
        Response::Unchanged(head) => (head, Vec::new()),
    };
    let header = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    Ok(Document {
        bytes,
        url: Some(head.final_url.to_string()),
        content_type: header("content-type"),
        content_location: header("content-location"),
        content_language: header("content-language"),
    })
}

/// The error for a document of another kind.
fn refused(input: &str, why: &str) -> Error {
    Error::failed(phrase!("{input}: {why}", "{input}：{why}"))
}

fn not_read(input: &str, error: &io::Error) -> Error {
    let why = error.to_string();
    Error::failed(phrase!("cannot read {input}: {why}", "{input} を読み込めません：{why}"))
}

fn not_fetched(address: &Url, error: &fetch::Error) -> Error {
    let hint = match error {
        fetch::Error::Blocked { allow: Some(entry), .. } => Some(phrase!(
            "if you trust it, add `--allow-private {entry}`",
            "信頼できる相手なら `--allow-private {entry}` を付けてください"
        )),
        error => error.hint(),
    };
    let address = address.as_str();
    let error =
        Error::failed(phrase!("cannot fetch {address}: {error}", "{address} を取得できません：{error}"));
    hint.into_iter().fold(error, Error::hint)
}

fn web_address(input: &str) -> Option<Url> {
    url::resolve_web(None, input).filter(|_| input.contains("://"))
}

fn open(input: &str) -> Result<Box<dyn BufRead>> {
    if input == "-" {
        return Ok(Box::new(BufReader::new(io::stdin())));
    }
    let file = File::open(Path::new(input)).map_err(|error| not_read(input, &error))?;
    Ok(Box::new(BufReader::with_capacity(64 * 1024, file)))
}

fn names(entries: &[String]) -> Result<BTreeMap<String, Vec<IpAddr>>> {
    let mut names: BTreeMap<String, Vec<IpAddr>> = BTreeMap::new();
    for entry in entries {
        let wrong = || {
            Error::usage(phrase!(
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

/// Writes one line for each line of `input`, with only one in memory.
pub(crate) fn batch(
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
        // Flush each line: a program may wait for it.
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
