//! How fast feeds are read, beside a bare tokenizer loop and the usual crate, on the same documents in one run.
//!
//! `cargo bench --bench parse`. Times are CPU of the reading thread, so that a busy machine does not matter. What to
//! look at: `read` against `feed-rs` (not slower; neither cleans), and against `tokens`, which keeps nothing. `read and
//! clean` is what `inspect feed` does.

#![allow(clippy::print_stdout, reason = "the table is the product")]

use std::fmt::Write;
use std::hint::black_box;

use quick_xml::Reader;
use quick_xml::events::Event;
use tsuzuki::parse::feed::inspect::shown;
use tsuzuki::parse::feed::{Context, parse};

use measure::verdict;

mod measure;

const TURNS: usize = 5;
/// Shorter turns would measure the clock.
const LEAST_SECS: f64 = 0.2;

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

/// The minimum of any parser: every token and text, nothing stored.
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

/// Runs `read` until it has taken [`LEAST_SECS`] of this thread's CPU; returns the seconds of one call.
fn time_one(read: &mut dyn FnMut()) -> f64 {
    let mut times = 1_u32;
    loop {
        let before = measure::thread_cpu_secs();
        (0..times).for_each(|_| read());
        let spent = measure::thread_cpu_secs() - before;
        if spent >= LEAST_SECS {
            return spent / f64::from(times);
        }
        times *= 2;
    }
}

fn main() {
    let context = Context::default();
    println!("CPU of one reading in µs, best of {TURNS} turns");
    println!(
        "{:<14} {:>9} {:>9} {:>9} {:>9} {:>15}",
        "", "tokens", "read", "feed-rs", "ratio", "read and clean"
    );
    for (name, text) in [("RSS of 35", rss(35)), ("Atom of 35", atom(35)), ("RSS of 2000", rss(2000))] {
        let mut readers: [Box<dyn FnMut() + '_>; 4] = [
            Box::new(|| _ = black_box(tokens(black_box(&text)))),
            Box::new(|| drop(black_box(parse(black_box(text.as_bytes()), &context)))),
            Box::new(|| drop(black_box(feed_rs::parser::parse(black_box(text.as_bytes()))))),
            Box::new(|| {
                drop(black_box(parse(black_box(text.as_bytes()), &context).map(|feed| shown(&feed))));
            }),
        ];
        let mut best = [f64::INFINITY; 4];
        for _ in 0..TURNS {
            for (best, reader) in best.iter_mut().zip(&mut readers) {
                *best = best.min(time_one(reader) * 1e6);
            }
        }
        let [tokens, read, feed_rs, clean] = best;
        let ratio = read / feed_rs;
        println!(
            "{name:<14} {tokens:>9.1} {read:>9.1} {feed_rs:>9.1} {ratio:>9.2} {clean:>15.1}   at most 1: {}",
            verdict(ratio <= 1.0)
        );
    }
}
