//! Whole files, built object by object: the text of valid ones, and the limited cost of hostile ones.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use proptest::prelude::*;

use super::*;

const LATIN: &str = "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>";

/// A PDF builder: bodies of objects by number.
struct Pdf(Vec<u8>);

impl Pdf {
    fn new() -> Self {
        Self(b"%PDF-1.7\n".to_vec())
    }

    fn put(mut self, number: u32, body: impl AsRef<[u8]>) -> Self {
        writeln!(self.0, "{number} 0 obj").unwrap();
        self.0.extend_from_slice(body.as_ref());
        self.0.extend_from_slice(b"\nendobj\n");
        self
    }

    fn stream(self, number: u32, keys: &str, data: &[u8]) -> Self {
        let head = format!("<<{keys}/Length {}>>stream\n", data.len());
        self.put(number, [head.as_bytes(), data, b"\nendstream"].concat())
    }

    fn end(mut self, trailer: &str) -> Vec<u8> {
        write!(self.0, "trailer<<{trailer}>>\n%%EOF").unwrap();
        self.0
    }
}

/// A page with the font F1 and the given content.
fn page_with(font: &str, keys: &str, content: &[u8]) -> Pdf {
    Pdf::new()
        .put(1, "<</Type/Catalog/Pages 2 0 R>>")
        .put(2, "<</Type/Pages/Kids[3 0 R]/Count 1/Resources<</Font<</F1 5 0 R>>/XObject<</X 7 0 R>>>>>>")
        .put(3, "<</Type/Page/Parent 2 0 R/Contents 4 0 R>>")
        .stream(4, keys, content)
        .put(5, font)
}

fn read(bytes: &[u8]) -> Result<PdfText, Error> {
    text(bytes, Limit::default())
}

fn shown(font: &str, content: &[u8]) -> String {
    read(&page_with(font, "", content).end("/Root 1 0 R")).unwrap().text
}

fn zlib(data: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn hex(data: &[u8]) -> String {
    data.iter().map(|byte| format!("{byte:02x}")).collect()
}

const HELLO: &[u8] = b"BT /F1 12 Tf 10 700 Td (Hello) Tj ET";

#[test]
fn every_filter_leads_to_the_text() {
    let rows: Vec<u8> = HELLO.chunks(6).flat_map(|row| [&[0][..], row].concat()).collect();
    let run: Vec<u8> = [&[HELLO.len() as u8 - 1][..], HELLO, &[128]].concat();
    let hexadecimal = format!("{}>", hex(HELLO)).into_bytes();
    for (keys, data) in [
        ("", HELLO.to_vec()),
        ("/Filter/FlateDecode", zlib(HELLO)),
        ("/Filter[/ASCIIHexDecode/FlateDecode]", format!("{}>", hex(&zlib(HELLO))).into_bytes()),
        ("/Filter/ASCIIHexDecode", hexadecimal),
        ("/Filter/LZWDecode", filter::tests::lzw(HELLO, true)),
        ("/Filter/LZWDecode/DecodeParms<</EarlyChange 0>>", filter::tests::lzw(HELLO, false)),
        ("/Filter/RunLengthDecode", run),
        ("/Filter/FlateDecode/DecodeParms<</Predictor 12/Columns 6>>", zlib(&rows)),
    ] {
        let pdf = page_with(LATIN, keys, &data).end("/Root 1 0 R");
        assert_eq!(read(&pdf).map(|text| text.text).as_deref(), Ok("Hello"), "{keys}");
    }
    let picture = page_with(LATIN, "/Filter/DCTDecode", HELLO).end("/Root 1 0 R");
    assert_eq!(read(&picture), Err(Error::NoText { unreadable: 0 }));
}

#[test]
fn objects_in_object_streams_are_found_and_the_last_definition_wins() {
    let packed = b"1 0 2 30 3 65 5 110 <</Type/Catalog/Pages 2 0 R>>  <</Kids[3 0 R]/Type/Pages>>        \
        <</Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>                                         ";
    let at = |needle: &[u8]| packed.windows(needle.len()).position(|part| part == needle).unwrap();
    let first = at(b"<</Type/Catalog");
    let numbers = format!(
        "1 0 2 {} 3 {} 5 {} ",
        at(b"<</Kids") - first,
        at(b"<</Contents") - first,
        packed.len() - first
    );
    let body = [numbers.as_bytes(), &packed[first..], LATIN.as_bytes()].concat();
    let keys = format!("/Type/ObjStm/N 4/First {}/Filter/FlateDecode", numbers.len());
    let pdf = Pdf::new()
        .stream(4, "", b"BT /F1 9 Tf (old) Tj ET")
        .stream(9, &keys, &zlib(&body))
        .stream(4, "", HELLO)
        .stream(10, "/Type/XRef/Root 1 0 R", b"");
    assert_eq!(read(&pdf.0).unwrap().text, "Hello");
}

#[test]
fn each_operator_writes_where_it_should() {
    for (content, wanted) in [
        (&b"/F1 10 Tf [(W) 80 (orld) -300 (a) -20 (b)] TJ"[..], "World ab"),
        (b"/F1 10 Tf 12 TL (a) Tj (b) ' 1 0 (c) \" T* (d) Tj", "a\nb\nc\nd"),
        (b"/F1 10 Tf 1 0 0 1 50 700 Tm (a) Tj 1 0 0 1 50 680 Tm (b) Tj 90 0 Td (c) Tj", "a\nb c"),
        (b"/F1 10 Tf (a) Tj 0 -12 TD (b) Tj T* (c) Tj", "a\nb\nc"),
        (b"/F1 10 Tf (x) Tj 4 Ts (2) Tj", "x2"),
        (b"/F1 10 Tf BI /W 2 ID \x00(no) Tj EI\xff EI Q (yes) Tj", "yes"),
        (b"/F1 10 Tf /Span <</ActualText <FEFF3042>>> BDC (xyz) Tj EMC (b) Tj", "あb"),
        (b"q /F1 10 Tf Q q q Q Q Q Q (no font) Tj", "no font"),
        (b"/F1 10 Tf (\\223q\\224 \\351) Tj", "“q” é"),
    ] {
        let content = [b"BT ", content, b" ET"].concat();
        assert_eq!(shown(LATIN, &content), wanted, "{}", String::from_utf8_lossy(&content));
    }
}

#[test]
fn fonts_say_what_their_codes_mean() {
    let wide = |encoding: &str| {
        format!("<</Subtype/Type0/Encoding/{encoding}/DescendantFonts[<</Subtype/CIDFontType0>>]>>")
    };
    let mac = "<</Subtype/Type1/Encoding/MacRomanEncoding>>".to_owned();
    let own = "<</Subtype/Type1/Encoding<</Differences[65/eacute/f_f_i/uni3042 200/u20BB7]>>>>".to_owned();
    for (font, code, wanted) in [
        (mac, &b"\x8e"[..], "é"),
        ("<</Subtype/Type1>>".to_owned(), b"\xae'", "fi’"),
        (own, b"ABC\xc8D", "éffiあ𠮷D"),
        (wide("90ms-RKSJ-H"), b"\x93\xfa\x96{A", "日本A"),
        (wide("UniJIS-UCS2-H"), b"\x65\xe5\x67\x2c", "日本"),
        (wide("UniJIS-UTF16-V"), b"\xd8\x42\xdf\xb7\x65\xe5", "𠮷日"),
        (wide("EUC-H"), b"\xc6\xfc", "日"),
        (wide("V"), b"\x46\x7c", "日"),
        (wide("GBK-EUC-H"), b"\xc8\xd5", "日"),
        (wide("ETen-B5-H"), b"\xa4\xe9", "日"),
        (wide("KSCms-UHC-H"), b"\xc7\xd1", "한"),
    ] {
        let content = format!("BT /F1 10 Tf <{}> Tj ET", hex(code));
        assert_eq!(shown(&font, content.as_bytes()), wanted, "{font}");
    }
}

#[test]
fn widths_end_with_the_last_code() {
    let simple = "<</Subtype/Type1/FirstChar 4294967295/Widths[500 500 500]>>";
    assert_eq!(shown(simple, HELLO), "Hello");
    let own =
        "<</Subtype/Type0/Encoding/Identity-H/DescendantFonts[<</W[4294967295[1 2 3]]>>]/ToUnicode 8 0 R>>";
    let pdf = page_with(own, "", b"BT /F1 10 Tf <0001> Tj ET");
    let pdf = pdf.stream(8, "", b"1 beginbfchar <0001> <65e5> endbfchar");
    assert_eq!(read(&pdf.end("/Root 1 0 R")).unwrap().text, "日");
}

#[test]
fn glyphs_without_meaning_are_counted_and_marked() {
    let font = "<</Subtype/Type0/Encoding/Identity-H/DescendantFonts[<<>>]/ToUnicode 8 0 R>>";
    let content = b"BT /F1 10 Tf <0001000200030001> Tj ET";
    let pdf = page_with(font, "", content).stream(8, "", b"1 beginbfchar <0001> <65e5> endbfchar");
    let found = read(&pdf.end("/Root 1 0 R")).unwrap();
    assert_eq!((found.text.as_str(), found.unreadable), ("日\u{FFFD}日", 2));
    let silent = page_with(font, "", content).end("/Root 1 0 R");
    assert_eq!(read(&silent), Err(Error::NoText { unreadable: 4 }));
}

#[test]
fn vertical_writing_stays_in_columns() {
    let font = "<</Subtype/Type0/Encoding/UniJIS-UCS2-V/DescendantFonts[<<>>]>>";
    let content = "BT /F1 10 Tf 500 700 Td <7e26> Tj [<66f8> 0 <304d>] TJ -16 0 Td <6b21> Tj ET";
    assert_eq!(shown(font, content.as_bytes()), "縦書き\n次");
}

#[test]
fn forms_are_read_and_loops_end() {
    let form = "/Subtype/Form/Resources<</Font<</F1 5 0 R>>/XObject<</X 7 0 R>>>>";
    let pdf = page_with(LATIN, "", b"/X Do /X Do").stream(7, form, &[b"/X Do ", HELLO].concat());
    assert_eq!(read(&pdf.end("/Root 1 0 R")).unwrap().text, "Hello");

    let mut pdf = page_with(LATIN, "", &[HELLO, b" /X Do"].concat());
    for number in 7..30 {
        let next = number + 1;
        let keys = format!("/Subtype/Form/Resources<</Font<</F1 5 0 R>>/XObject<</X {next} 0 R>>>>");
        pdf = pdf.stream(number, &keys, &[&b"/X Do ".repeat(100), &b"BT /F1 9 Tf (a) Tj ET "[..]].concat());
    }
    let small = Limit { work: 3_000_000, ..Limit::default() };
    let found = text(&pdf.end("/Root 1 0 R"), small).unwrap();
    assert!(found.is_cut && found.text.starts_with("Hello"));
}

#[test]
fn trees_of_pages_with_loops_and_without_a_root_are_read() {
    let looped =
        page_with(LATIN, "", HELLO).put(2, "<</Kids[2 0 R 3 0 R 3 0 R]/Resources<</Font<</F1 5 0 R>>>>>>");
    let found = read(&looped.end("/Root 1 0 R")).unwrap();
    assert_eq!((found.text.as_str(), found.pages), ("Hello", 1));
    let rootless = page_with(LATIN, "", HELLO);
    assert_eq!(read(&rootless.0).unwrap().text, "Hello");
    let treeless = Pdf::new()
        .put(8, "<</Type/Page/Contents[4 0 R 9 0 R]/Resources<</Font<</F1 5 0 R>>>>>>")
        .stream(4, "", HELLO)
        .stream(9, "", b"BT /F1 12 Tf 10 650 Td (there) Tj ET")
        .put(5, LATIN);
    assert_eq!(read(&treeless.0).unwrap().text, "Hello\nthere");
}

#[test]
fn nodes_that_wait_in_a_tree_of_pages_do_not_pile_up() {
    let again = "3 0 R ".repeat(15_000);
    let mut pdf = page_with(LATIN, "", HELLO)
        .put(2, format!("<</Kids[3 0 R 10 0 R {again}]/Resources<</Font<</F1 5 0 R>>>>>>"));
    for number in 10..14 {
        pdf = pdf.put(number, format!("<</Kids[{} 0 R {again}]>>", number + 1));
    }
    let found = read(&pdf.end("/Root 1 0 R")).unwrap();
    assert_eq!((found.text.as_str(), found.pages, found.is_cut), ("Hello", 1, true));
}

#[test]
fn wrong_lengths_and_cut_files_are_read() {
    let content = [b"<</Length 999999>>stream\r\n", HELLO, b"\r\nendstream"].concat();
    let wrong = page_with(LATIN, "", b"").put(4, content);
    assert_eq!(read(&wrong.end("/Root 1 0 R")).unwrap().text, "Hello");
    let content = [b"<</Length 6 0 R>>stream\n", HELLO, b"\nendstream"].concat();
    let indirect = page_with(LATIN, "", b"").put(4, content).put(6, HELLO.len().to_string());
    assert_eq!(read(&indirect.end("/Root 1 0 R")).unwrap().text, "Hello");
    let whole = page_with(LATIN, "", b"").put(4, [b"<<>>stream\n", HELLO].concat()).0;
    let cut = whole.len() - b" ET\nendobj\n".len();
    assert_eq!(read(&whole[..cut]).unwrap().text, "Hello");
}

#[test]
fn refusals_have_names() {
    assert_eq!(read(b"<html>"), Err(Error::NotPdf));
    assert_eq!(read(b""), Err(Error::NotPdf));
    assert_eq!(read(b"%PDF-1.4"), Err(Error::NoText { unreadable: 0 }));
    let locked = page_with(LATIN, "", HELLO).end("/Root 1 0 R/Encrypt 6 0 R");
    assert_eq!(read(&locked), Err(Error::Encrypted));
    let locked = page_with(LATIN, "", HELLO).stream(9, "/Type/XRef/Encrypt<<>>", b"");
    assert_eq!(read(&locked.0), Err(Error::Encrypted));
    assert!(Error::NoText { unreadable: 3 }.to_string().contains("fonts"));
}

#[test]
fn the_callers_limit_cuts_the_text() {
    let pdf = page_with(LATIN, "", HELLO).end("/Root 1 0 R");
    let found = text(&pdf, Limit { chars: 3, ..Limit::default() }).unwrap();
    assert_eq!((found.text.as_str(), found.is_cut), ("Hel", true));
}

#[test]
fn bombs_end_within_the_budget() {
    let bomb = zlib(&b"q Q ".repeat(25_000_000));
    assert!(bomb.len() < 200_000);
    let mut pdf = page_with(LATIN, "", HELLO)
        .put(2, "<</Kids[3 0 R 10 0 R 11 0 R]/Resources<</Font<</F1 5 0 R>>>>>>")
        .stream(6, "/Filter/FlateDecode", &bomb);
    for number in 10..12 {
        pdf = pdf.put(number, format!("<</Contents[{}]>>", "6 0 R ".repeat(100)));
    }
    let found = read(&pdf.end("/Root 1 0 R")).unwrap();
    assert_eq!((found.text.as_str(), found.is_cut), ("Hello", true));
}

#[test]
fn streams_that_decode_to_nothing_use_up_the_budget() {
    let keys = "/Filter/FlateDecode/DecodeParms<</Predictor 12/Columns 0>>";
    let pdf = page_with(LATIN, "", HELLO)
        .put(2, "<</Kids[3 0 R 10 0 R]/Resources<</Font<</F1 5 0 R>>>>>>")
        .stream(6, keys, &zlib(&vec![0; 1 << 20]))
        .put(10, format!("<</Contents[{}]>>", "6 0 R ".repeat(500)));
    let found = read(&pdf.end("/Root 1 0 R")).unwrap();
    assert_eq!((found.text.as_str(), found.is_cut), ("Hello", true));
}

#[test]
fn deep_nesting_and_a_million_objects_end_at_once() {
    let deep = page_with(LATIN, "", &[&b"[".repeat(2_000_000)[..], b" ", HELLO].concat());
    assert!(matches!(read(&deep.end("/Root 1 0 R")), Ok(_) | Err(Error::NoText { .. })));
    let deep = page_with(LATIN, "", HELLO).put(9, b"<</A[".repeat(500_000));
    assert_eq!(read(&deep.end("/Root 1 0 R")).unwrap().text, "Hello");
    let many = (0..1_000_000).fold(Pdf::new(), |pdf, number| pdf.put(number, ""));
    assert_eq!(read(&many.0), Err(Error::TooBig));
    let streams = b"%PDF-1.4 1 0 obj <<>>stream ".repeat(100_000);
    assert_eq!(read(&streams), Err(Error::NoText { unreadable: 0 }));
}

#[test]
fn comparing_glyphs_is_paid_for() {
    // A long line, followed by one glyph repeated at the same place before its end.
    let line = "b".repeat(2000);
    let content = format!("BT /F1 10 Tf 1 0 0 1 0 700 Tm ({line}) Tj [{}] TJ ET", "(a)1000".repeat(20_000));
    let pdf = page_with(LATIN, "", content.as_bytes()).end("/Root 1 0 R");
    let found = text(&pdf, Limit { work: 1_000_000, ..Limit::default() }).unwrap();
    assert!(found.is_cut, "{}", found.text.len());
    assert!(!read(&pdf).unwrap().is_cut);
}

#[test]
fn large_dictionaries_are_not_copied_at_each_use() {
    let entries: String = (0..40_000).map(|number| format!("/n{number} 1")).collect();
    let resources = format!(
        "/Font<</F1 5 0 R/D<</Differences[{}]>>{entries}>>/XObject<<{entries}>>/Properties<</b<<{entries}>>{entries}>>",
        "1 ".repeat(40_000)
    );
    let uses = b"/a/b BDC EMC /a/c BDC EMC /none 1 Tf /D 1 Tf /n1 1 Tf /n1 Do ".repeat(1000);
    let pdf = page_with(LATIN, "", &[&uses[..], HELLO].concat())
        .put(2, format!("<</Kids[3 0 R]/Resources<<{resources}>>>>"));
    let pdf = pdf.end("/Root 1 0 R");
    let start = std::time::Instant::now();
    let found = read(&pdf).unwrap();
    assert_eq!((found.text.as_str(), found.is_cut), ("Hello", false));
    assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
}

#[test]
fn cutting_strings_into_codes_is_paid_for() {
    // A hundred ranges without a match, in both maps, for each of many codes without a text of their own.
    let map = format!("begincodespacerange {} endcodespacerange", "<f0> <f1>".repeat(100));
    let font = "<</Subtype/Type0/Encoding 8 0 R/ToUnicode 8 0 R/DescendantFonts[<<>>]>>";
    let codes = "a".repeat(1_000_000);
    let content = format!("BT /F1 9 Tf /Span <</ActualText (Hello)>> BDC ({codes}) Tj EMC ET");
    let pdf = page_with(font, "", content.as_bytes()).stream(8, "", map.as_bytes()).end("/Root 1 0 R");
    let found = text(&pdf, Limit { work: 20_000_000, ..Limit::default() }).unwrap();
    assert_eq!((found.text.as_str(), found.is_cut), ("Hello", true));
    let usual = map.replace("<f0> <f1>", "").replace("range ", "range <00> <ff>");
    let pdf = page_with(font, "", content.as_bytes()).stream(8, "", usual.as_bytes()).end("/Root 1 0 R");
    let found = text(&pdf, Limit { work: 20_000_000, ..Limit::default() }).unwrap();
    assert_eq!((found.text.as_str(), found.is_cut), ("Hello", false));
}

#[test]
fn pages_have_their_own_resources_or_those_above_them() {
    let mac = "<</Subtype/Type1/Encoding/MacRomanEncoding>>";
    let page = |keys: &str| format!("<</Type/Page/Contents 4 0 R{keys}>>");
    let pdf = Pdf::new()
        .put(1, "<</Type/Catalog/Pages 2 0 R>>")
        .put(2, "<</Kids[10 0 R 20 0 R 13 0 R]/Resources 30 0 R>>")
        .put(10, page(""))
        .put(11, page(""))
        .put(12, page("/Resources<</Font<</F1 6 0 R>>>>"))
        .put(13, page("/Resources 99 0 R"))
        .put(20, "<</Kids[12 0 R 21 0 R]/Resources<</Font<</F1 6 0 R>>>>>>")
        .put(21, "<</Kids[11 0 R 14 0 R]>>")
        .put(14, page("/Resources 31 0 R"))
        .put(30, "<</Font<</F1 5 0 R>>>>")
        .put(31, "30 0 R")
        .stream(4, "", b"BT /F1 9 Tf 10 700 Td (\x8e) Tj ET".map(|b| b).as_slice())
        .put(5, LATIN)
        .put(6, mac);
    let found = read(&pdf.end("/Root 1 0 R")).unwrap();
    let lines: Vec<&str> = found.text.split_whitespace().collect();
    assert_eq!((lines, found.pages), (vec!["Ž", "é", "é", "Ž", "Ž"], 5));
}

fn small() -> Limit {
    Limit { chars: 10_000, decoded_bytes: 1 << 20, work: 2_000_000 }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
        let _ = text(&[b"%PDF-1.4\n", &bytes[..]].concat(), small());
    }

    #[test]
    fn any_words_are_read_or_refused(words in proptest::collection::vec(prop_oneof![
        Just("1 0 obj"), Just("endobj"), Just("<<"), Just(">>"), Just("["), Just("]"), Just("stream\n"),
        Just("endstream"), Just("/Type/ObjStm/N 9/First 4"), Just("/Kids"), Just("/Pages"), Just("/Root"), Just("1 0 R"),
        Just("trailer"), Just("/Length 9"), Just("(a"), Just("\\"), Just("<41"), Just("BT"), Just("Tj"), Just("/Type/Catalog"),
        Just("-1"), Just("99999999999999999999"), Just("/Predictor 15"), Just("/Filter/FlateDecode"),
    ], 0..60)) {
        let _ = text(format!("%PDF-1.4\n{}", words.join(" ")).as_bytes(), small());
    }

    #[test]
    fn changed_files_are_read_or_refused(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..30)) {
        let font = "<</Subtype/Type0/Encoding 8 0 R/ToUnicode 8 0 R/DescendantFonts[<</W[0[500 600]7 9 300]/DW 9>>]>>";
        let map = b"begincodespacerange <00> <ff> endcodespacerange beginbfrange <00> <ff> <0041> <01> <02> [<0041>]";
        let form = "/Subtype/Form/Matrix[1 0 0 1 0 0]/Filter/FlateDecode/DecodeParms<</Predictor 12/Columns 6>>";
        let mut pdf = page_with(font, "", b"BT /F1 9 Tf [(ab) -900 (c)] TJ ET /X Do BI ID x EI")
            .stream(7, form, &zlib(HELLO))
            .stream(8, "", map)
            .stream(9, "/Type/ObjStm/N 2/First 9", b"10 0 11 3 << >> null")
            .end("/Root 1 0 R");
        for (at, byte) in changes {
            let at = at.index(pdf.len());
            pdf[at] = byte;
        }
        let _ = text(&pdf, small());
    }
}
