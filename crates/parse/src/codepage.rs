//! Single-byte code pages that the WHATWG standard left out but old feeds still declare: DOS, Macintosh and others.

/// A code page: bytes below 0x80 are ASCII, the others are in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodePage {
    /// Its usual name in lower case.
    pub name: &'static str,
    table: &'static str,
}

/// One line per page: its names, the usual one first, then `|` and the characters of 0x80 to 0xFF.
const PAGES: &str = include_str!("codepages.txt");

impl CodePage {
    /// The code page with that label (lower case, hyphens instead of underscores).
    pub fn for_label(label: &str) -> Option<CodePage> {
        PAGES.lines().find_map(|line| {
            let (names, table) = line.split_once('|')?;
            let name = names.split(' ').next()?;
            names.split(' ').any(|known| known == label).then_some(CodePage { name, table })
        })
    }

    /// Decodes bytes; undefined ones become U+FFFD.
    pub fn decode(self, bytes: &[u8]) -> String {
        let upper: Vec<char> = self.table.chars().collect();
        bytes
            .iter()
            .map(|&byte| match byte {
                0..0x80 => char::from(byte),
                _ => upper.get(usize::from(byte - 0x80)).copied().unwrap_or('\u{fffd}'),
            })
            .collect()
    }
}

/// The WHATWG label of an encoding that only other registries list.
pub fn whatwg_label(label: &str) -> Option<&'static str> {
    Some(match label {
        "ansi" | "ms-ansi" | "1252" | "latin-1" | "iso-latin-1" | "8859-1" => "windows-1252",
        "ms-ee" | "1250" => "windows-1250",
        "ms-cyrl" | "1251" => "windows-1251",
        "ms-greek" | "1253" => "windows-1253",
        "ms-turk" | "1254" => "windows-1254",
        "ms-hebr" | "1255" => "windows-1255",
        "ms-arab" | "1256" => "windows-1256",
        "winbaltrim" | "1257" => "windows-1257",
        "1258" => "windows-1258",
        "macroman" | "mac-roman" => "macintosh",
        "mac-cyrillic" | "maccyrillic" => "x-mac-cyrillic",
        "utf-8-sig" | "u8" | "utf" | "utf8-ucs2" | "utf-8-mac" => "utf-8",
        "cp932" | "932" | "ms932" | "mskanji" | "ms-kanji" | "shiftjis" | "s-jis" => "shift_jis",
        "eucjp" | "ujis" | "u-jis" | "cp51932" | "eucjp-ms" => "euc-jp",
        "iso2022jp" | "iso-2022-jp-1" | "iso-2022-jp-2" | "iso-2022-jp-3" | "iso-2022-jp-ms" | "cp50220"
        | "cp50221" => "iso-2022-jp",
        "cp936" | "936" | "ms936" | "euc-cn" | "euccn" | "gb2312-1980" => "gbk",
        "cp949" | "949" | "ms949" | "uhc" | "euckr" | "ks-x-1001" => "euc-kr",
        "cp950" | "950" | "big5-tw" => "big5",
        "tis620" | "cp874" | "874" => "windows-874",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_defines_the_whole_upper_half() {
        for line in PAGES.lines() {
            let (names, table) = line.split_once('|').unwrap();
            assert_eq!(table.chars().count(), 128, "{names}");
        }
    }

    #[test]
    fn old_pages_are_found_by_any_of_their_names() {
        for (label, byte, character) in [
            ("cp437", 0x81, "ü"),
            ("850", 0xd5, "ı"),
            ("csibm855", 0x80, "ђ"),
            ("mac-greek", 0xb0, "Α"),
            ("viscii", 0x80, "Ạ"),
        ] {
            assert_eq!(CodePage::for_label(label).unwrap().decode(&[byte]), character, "{label}");
        }
        assert_eq!(CodePage::for_label("bogus"), None);
        assert_eq!(CodePage::for_label(""), None);
    }
}
