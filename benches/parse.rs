//! How fast feeds are read, beside a bare tokenizer loop and the usual crate, on the same documents in one run.
//!
//! `cargo bench --bench parse`. What to look at: `read` against `feed-rs` (not slower; neither cleans), and against
//! `tokens`, which keeps nothing. `read and clean` is what `inspect feed` does.

use std::fmt::Write;
use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use quick_xml::Reader;
use quick_xml::events::Event;
use tsuzuki::parse::feed::inspect::shown;
use tsuzuki::parse::feed::{Context, parse};

fn rss(entries: usize) -> String {
    let mut feed = "<?xml version=\"1.0\" encoding=\"UTF-8\"?><rss version=\"2.0\" \
        xmlns:content=\"http://purl.org/rss/1.0/modules/content/\" xmlns:dc=\"http://purl.org/dc/elements/1.1/\">\
        <channel><title>A feed</title><link>https://example.org/</link><description>About</description>\n"
        .to_owned();
    for n in 0..entries {
        let _ = writeln!(
            feed,
            "<item><title>Entry {n} &amp; more</title><link>https://example.org/entries/{n}</link>\
             <guid isPermaLink=\"false\">tag:example.org,2026:{n}</guid><dc:creator>Ann</dc:creator>\
             <pubDate>Thu, 15 Jan 2026 09:{:02}:11 +0900</pubDate><category>one</category><category>two</category>\
             <description>A short &lt;b&gt;text&lt;/b&gt; about entry {n}.</description>\
             <content:encoded><![CDATA[{}]]></content:encoded></item>",
            n % 60,
            "<p>Some <em>longer</em> text with a <a href=\"/more\">link</a> and 日本語 in it.</p>".repeat(12)
        );
    }
    feed + "</channel></rss>"
}

fn atom(entries: usize) -> String {
    let mut feed = "<?xml version=\"1.0\"?><feed xmlns=\"http://www.w3.org/2005/Atom\"><title>A feed</title>\
        <id>urn:x</id><updated>2026-01-15T00:00:00Z</updated><link href=\"https://example.org/\"/>\n"
        .to_owned();
    for n in 0..entries {
        let _ = writeln!(
            feed,
            "<entry><title type=\"html\">Entry {n} &amp;amp; more</title><id>tag:example.org,2026:{n}</id>\
             <link href=\"https://example.org/entries/{n}\"/><updated>2026-01-15T09:{:02}:11+09:00</updated>\
             <author><name>Ann</name></author><summary>Short text {n}</summary>\
             <content type=\"html\">{}</content></entry>",
            n % 60,
            "&lt;p&gt;Some &lt;em&gt;longer&lt;/em&gt; text with a link.&lt;/p&gt;".repeat(12)
        );
    }
    feed + "</feed>"
}

/// The least that any reader does: every token, every text, nothing kept.
fn tokens(text: &str) -> usize {
    let mut reader = Reader::from_str(text);
    let mut seen = 0;
    loop {
        match reader.read_event() {
            Ok(Event::Eof) | Err(_) => return seen,
            Ok(Event::Text(text)) => seen += text.xml10_content().len(),
            Ok(Event::CData(text)) => seen += text.len(),
            Ok(_) => seen += 1,
        }
    }
}

fn feeds(criterion: &mut Criterion) {
    for (name, text) in [("rss of 35", rss(35)), ("atom of 35", atom(35)), ("rss of 2000", rss(2000))] {
        let context = Context::default();
        let mut group = criterion.benchmark_group(name);
        group.sample_size(20).throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function("tokens", |bench| bench.iter(|| tokens(black_box(&text))));
        group.bench_function("read", |bench| bench.iter(|| parse(black_box(text.as_bytes()), &context)));
        group.bench_function("read and clean", |bench| {
            bench.iter(|| parse(black_box(text.as_bytes()), &context).map(|feed| shown(&feed)));
        });
        group.bench_function("feed-rs", |bench| {
            bench.iter(|| feed_rs::parser::parse(black_box(text.as_bytes())));
        });
        group.finish();
    }
}

criterion_group!(benches, feeds);
criterion_main!(benches);
