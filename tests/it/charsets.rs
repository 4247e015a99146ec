//! Every way to declare an encoding, times every encoding: the text is decoded as intended.

use tsuzuki::parse::decode::{Decoded, Kind, decode};

const JAPANESE: &str = "続きを読む ①㈱ 日本語のフィードです。表示";
const WESTERN: &str = "Iñtërnâtiônàlizætiøn “quoted” – 5 €";

/// Where the encoding of a document is declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    ByMark,
    ByHttp,
    ByDeclaration,
    ByMeta,
    Nowhere,
}

fn encoded(label: &str, text: &str) -> Vec<u8> {
    let units = |bytes: fn(u32) -> [u8; 4]| text.chars().flatten4(bytes);
    match label {
        "utf-16le" => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        "utf-16be" => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        "utf-32le" => units(u32::to_le_bytes),
        "utf-32be" => units(u32::to_be_bytes),
        _ => {
            let encoding = encoding_rs::Encoding::for_label(label.as_bytes()).unwrap();
            let (bytes, _, lost) = encoding.encode(text);
            assert!(!lost, "{label} cannot hold the text");
            bytes.into_owned()
        }
    }
}

trait Flatten4 {
    fn flatten4(self, bytes: fn(u32) -> [u8; 4]) -> Vec<u8>;
}

impl<I: Iterator<Item = char>> Flatten4 for I {
    fn flatten4(self, bytes: fn(u32) -> [u8; 4]) -> Vec<u8> {
        self.flat_map(|c| bytes(c as u32)).collect()
    }
}

fn mark(label: &str) -> Option<&'static [u8]> {
    Some(match label {
        "utf-8" => &[0xef, 0xbb, 0xbf],
        "utf-16le" => &[0xff, 0xfe],
        "utf-16be" => &[0xfe, 0xff],
        "utf-32le" => &[0xff, 0xfe, 0, 0],
        "utf-32be" => &[0, 0, 0xfe, 0xff],
        _ => return None,
    })
}

fn read(label: &str, said: Said, kind: Kind, text: &str) -> Option<Decoded> {
    let head = match (said, kind) {
        (Said::ByDeclaration, Kind::Xml) => format!("<?xml version=\"1.0\" encoding='{label}' ?>"),
        (Said::ByMeta, Kind::Html) => {
            format!("<html><head><!-- x --><META http-equiv=x content=\"text/html; charset={label}\">")
        }
        (Said::ByDeclaration | Said::ByMeta, _) => return None,
        (_, Kind::Xml) => "<?xml version=\"1.0\"?>".to_owned(),
        (_, Kind::Html) => "<!DOCTYPE html><html>".to_owned(),
        (_, Kind::Plain) => "{\"x\":".to_owned(),
    };
    let mut bytes = Vec::new();
    if said == Said::ByMark {
        bytes.extend_from_slice(mark(label)?);
    }
    bytes.extend(encoded(label, &format!("{head}<t>{text}</t>")));
    let content_type = (said == Said::ByHttp).then(|| format!("text/xml; Charset=\"{label}\""));
    Some(decode(&bytes, content_type.as_deref(), kind))
}

#[test]
fn every_encoding_is_read_however_it_is_said() {
    let mut count = 0;
    for (label, text) in [
        ("utf-8", JAPANESE),
        ("utf-8", WESTERN),
        ("utf-16le", JAPANESE),
        ("utf-16be", JAPANESE),
        ("utf-32le", JAPANESE),
        ("utf-32be", JAPANESE),
        ("shift_jis", JAPANESE),
        ("euc-jp", JAPANESE),
        ("iso-2022-jp", JAPANESE),
        ("windows-1252", WESTERN),
    ] {
        for said in [Said::ByMark, Said::ByHttp, Said::ByDeclaration, Said::ByMeta, Said::Nowhere] {
            for kind in [Kind::Xml, Kind::Html, Kind::Plain] {
                let Some(decoded) = read(label, said, kind, text) else { continue };
                assert!(
                    decoded.text.contains(&format!("<t>{text}</t>")) && decoded.encoding == label,
                    "{label} {said:?} {kind:?}: {decoded:?}"
                );
                assert!(!decoded.text.starts_with('\u{feff}'));
                count += 1;
            }
        }
    }
    assert_eq!(count, 98);
}

#[test]
fn a_label_that_the_bytes_contradict_is_not_believed() {
    let xml = |label: &str, text: &str| format!("<?xml version=\"1.0\" encoding=\"{label}\"?><t>{text}</t>");
    for (bytes, content_type, text) in [
        // ASCII, by default or by name, is not a declaration.
        (xml("utf-8", JAPANESE).into_bytes(), Some("text/xml"), JAPANESE),
        (xml("utf-8", JAPANESE).into_bytes(), Some("text/xml; charset=us-ascii"), JAPANESE),
        // Valid UTF-8 under a western label is UTF-8.
        (xml("iso-8859-1", WESTERN).into_bytes(), None, WESTERN),
        (xml("utf-8", WESTERN).into_bytes(), Some("text/xml; charset=iso-8859-1"), WESTERN),
        // Another encoding labelled utf-8 is detected.
        (encoded("windows-1252", &xml("utf-8", WESTERN)), None, WESTERN),
        (encoded("shift_jis", &xml("utf-8", JAPANESE)), Some("text/xml; charset=utf-8"), JAPANESE),
        (encoded("euc-jp", &xml("shift_jis", JAPANESE)), None, JAPANESE),
        (encoded("iso-2022-jp", &xml("utf-8", JAPANESE)), None, JAPANESE),
        // Sixteen bits cannot be declared in eight.
        (xml("utf-16", JAPANESE).into_bytes(), None, JAPANESE),
        (xml("ucs-4", JAPANESE).into_bytes(), Some("text/xml; charset=utf-16"), JAPANESE),
        // Unknown labels are no labels; odd spellings are.
        (xml("bogus", JAPANESE).into_bytes(), Some("text/xml; charset=none"), JAPANESE),
        (encoded("shift_jis", &xml("x-sjis", JAPANESE)), None, JAPANESE),
        (encoded("shift_jis", &xml("Windows-31J", JAPANESE)), None, JAPANESE),
        (encoded("euc-jp", &xml("EUC_JP", JAPANESE)), None, JAPANESE),
        // The server wins over the document when both can be.
        (encoded("windows-1252", &xml("koi8-r", WESTERN)), Some("text/xml; charset=windows-1252"), WESTERN),
    ] {
        let decoded = decode(&bytes, content_type, Kind::Xml);
        assert!(decoded.text.contains(text), "{content_type:?}: {decoded:?}");
    }
}

#[test]
fn one_bad_byte_does_not_turn_a_text_into_another_encoding() {
    let mut bytes = JAPANESE.as_bytes().to_vec();
    bytes.push(0xe3);
    let decoded = decode(&bytes, None, Kind::Plain);
    assert_eq!(decoded.text, format!("{JAPANESE}\u{fffd}"));
    assert_eq!(decode(b"a\0b", None, Kind::Plain).text, "ab");
    assert_eq!(decode(b"", None, Kind::Xml), Decoded { text: String::new(), encoding: "utf-8".to_owned() });
}
