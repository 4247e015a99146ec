//! The command as used: batches, closed pipes, files.

use clap::{Args as _, Command, FromArgMatches as _};

use super::*;

fn args(words: &[&str]) -> Args {
    let command = Args::augment_args(Command::new("inspect").no_binary_name(true));
    Args::from_arg_matches(&command.get_matches_from(words)).unwrap()
}

fn answered(kind: Kind, lines: &[u8]) -> Vec<Value> {
    let mut out = Vec::new();
    batch(kind, &mut io::Cursor::new(lines), &AllowPrivate::none(), &mut out).unwrap();
    String::from_utf8(out).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_batch_answers_every_line_and_survives_wrong_ones() {
    let lines = b"{\"id\":1,\"input\":\"https://a.example\"}\nnonsense\n\xff\n\n{\"id\":2,\"input\":\"x\",\"base\":\"https://a.example/\"}";
    let answers = answered(Kind::Url, lines);
    let ids: Vec<&Value> = answers.iter().map(|answer| &answer["id"]).collect();
    assert_eq!(ids, [&Value::from(1), &Value::Null, &Value::Null, &Value::Null, &Value::from(2)]);
    assert_eq!(answers[4]["out"]["href"], "https://a.example/x");
    assert!(answers[1..4].iter().all(|answer| answer["out"].is_null() && answer["error"].is_string()));
}

#[test]
fn a_line_without_end_is_refused_and_the_next_one_answered() {
    let long = io::Read::chain(
        io::repeat(b'x').take(MAX_BYTES + 100),
        &b"\n{\"id\":1,\"input\":\"https://a.example\"}\n"[..],
    );
    let mut out = Vec::new();
    batch(Kind::Url, &mut BufReader::new(long), &AllowPrivate::none(), &mut out).unwrap();
    let out = String::from_utf8(out).unwrap();
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(lines[0].contains("longer than") && lines[1].contains("\"id\":1"));
}

#[test]
fn the_options_of_the_documents_are_understood() {
    let feed = args(&["feed", "--url", "https://a.example/", "--content-type", "text/xml", "file.xml"]);
    assert_eq!((feed.kind, feed.input.as_str(), feed.batch), (Kind::Feed, "file.xml", false));
    let batch = args(&["feed", "--batch", "-"]);
    assert_eq!((batch.input.as_str(), batch.batch), ("-", true));
    assert_eq!(args(&["robots", "--batch"]).input, "-");
}

struct ClosedPipe;

impl Write for ClosedPipe {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_closed_pipe_is_no_error() {
    run(&args(&["url", "https://a.example"]), &Clock::system(), Layout::Line, &mut ClosedPipe).await.unwrap();
}

#[tokio::test]
async fn refusals_name_the_document_and_the_way_out() {
    let error = run(&args(&["page", "/no/such/file"]), &Clock::system(), Layout::Line, &mut Vec::new())
        .await
        .unwrap_err();
    assert!(error.plain().starts_with("cannot read /no/such/file: "), "{error:?}");
    let error =
        run(&args(&["feed", "http://127.0.0.1:9999/feed"]), &Clock::system(), Layout::Line, &mut Vec::new())
            .await
            .unwrap_err();
    assert!(error.plain().contains("127.0.0.1"), "{error:?}");
    assert!(error.hints[0].to_string().contains("--allow-private 127.0.0.1"), "{error:?}");
    let error =
        run(&args(&["address", "http://a.example/"]), &Clock::system(), Layout::Line, &mut Vec::new())
            .await
            .unwrap_err();
    assert!(error.plain().contains("--resolve a.example="), "{error:?}");
}

#[tokio::test]
async fn the_guard_says_its_opinion_of_an_address() {
    let words = ["address", "http://a.example/", "--resolve", "a.example=10.0.0.1"];
    let mut out = Vec::new();
    run(&args(&words), &Clock::system(), Layout::Line, &mut out).await.unwrap();
    assert!(out.starts_with(b"{") && String::from_utf8(out).unwrap().contains("\"verdict\":\"deny\""));
    let mut out = Vec::new();
    run(
        &args(&[&words[..], &["--allow-private", "10.0.0.0/8"]].concat()),
        &Clock::system(),
        Layout::Line,
        &mut out,
    )
    .await
    .unwrap();
    assert!(String::from_utf8(out).unwrap().contains("\"verdict\":\"allow\""));
}
