//! Words in dates: zones, months and Japanese eras.

use std::borrow::Cow;

use jiff::tz::TimeZone;

use super::clock::Zone;

/// The zone in all of `text`: missing if it is empty, `None` if it is not a zone.
pub(super) fn read(text: &str) -> Option<Zone> {
    let text = text.trim_matches([' ', '.', ',', '"', ')', '(']);
    if text.is_empty() {
        return Some(Zone::Missing);
    }
    if let Some(offset) = offset(text) {
        return Some(Zone::Offset(offset));
    }
    let (zone, rest) = named(text).or_else(|| {
        // `-0700 MST`: use the number; the name repeats it.
        let (number, name) = text.split_once(' ')?;
        Some((Zone::Offset(offset(number)?), name))
    })?;
    rest.chars().all(|c| c.is_alphabetic() || c.is_whitespace()).then_some(zone)
}

/// `+0900`, `-05:00`, `+9`, `-0530` in seconds.
pub(super) fn offset(text: &str) -> Option<i64> {
    let (sign, rest) = match text.strip_prefix('+') {
        Some(rest) => (1, rest),
        None => (-1, text.strip_prefix('-')?),
    };
    let rest = rest.trim();
    let (hours, minutes) = match rest.split_once(':') {
        Some((hours, minutes)) => (hours, minutes.get(..2).unwrap_or(minutes)),
        None if rest.len() > 2 => rest.split_at_checked(rest.len().min(4) - 2)?,
        None => (rest, "0"),
    };
    let (hours, minutes): (i64, i64) = (digits(hours)?, digits(minutes)?);
    // Check the range first: the product of arbitrary digits might overflow.
    (hours <= 24 && minutes < 60).then(|| sign * (hours * 3600 + minutes * 60))
}

fn digits(text: &str) -> Option<i64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// A named zone at the start of `text`, with an optional offset, and the rest.
pub(super) fn named(text: &str) -> Option<(Zone, &str)> {
    let length =
        text.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '/' | '_'))).unwrap_or(text.len());
    let (word, rest) = text.split_at(length);
    if word.contains('/') {
        let name = word.strip_prefix("etc/").unwrap_or(word);
        let region = || TimeZone::get(word).ok().map(Zone::Region);
        return Some((abbreviation(name).map(Zone::Offset).or_else(region)?, rest));
    }
    let letters = word.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(word.len());
    // A letter before a dot is an abbreviation: `p.m.` is not a military zone.
    if letters < word.len() || (letters == 1 && rest.starts_with('.')) {
        return None;
    }
    let base = abbreviation(word)?;
    if rest.starts_with(['+', '-']) && base == 0 {
        let length =
            rest[1..].find(|c: char| !(c.is_ascii_digit() || c == ':')).map_or(rest.len(), |at| at + 1);
        if let Some(offset) = offset(&rest[..length]) {
            return Some((Zone::Offset(offset), &rest[length..]));
        }
    }
    Some((Zone::Offset(base), rest))
}

fn abbreviation(word: &str) -> Option<i64> {
    let minutes = match word {
        "z" | "ut" | "utc" | "gmt" | "wet" | "uct" | "zulu" => 0,
        "est" | "et" => -300,
        "edt" => -240,
        "cst" | "ct" => -360,
        "cdt" => -300,
        "mst" | "mt" => -420,
        "mdt" => -360,
        "pst" | "pt" => -480,
        "pdt" => -420,
        "akst" => -540,
        "akdt" => -480,
        "hst" => -600,
        "ast" => -240,
        "adt" => -180,
        "nst" => -210,
        "ndt" => -150,
        "brt" | "art" | "uyt" => -180,
        "clt" | "bot" | "vet" => -240,
        "pet" | "cot" => -300,
        "bst" | "cet" | "met" | "mez" | "west" | "wat" => 60,
        "cest" | "mest" | "mesz" | "eet" | "sast" | "cat" => 120,
        "eest" | "msk" | "eat" | "trt" => 180,
        "msd" | "gst" => 240,
        "pkt" => 300,
        "ist" => 330,
        "npt" => 345,
        "ict" | "wib" => 420,
        "sgt" | "hkt" | "awst" | "pht" | "myt" | "wita" => 480,
        "jst" | "kst" | "wit" => 540,
        "acst" => 570,
        "aest" => 600,
        "acdt" => 630,
        "aedt" => 660,
        "nzst" => 720,
        "nzdt" => 780,
        // Single letters, as in RFC 822.
        _ => match *word.as_bytes() {
            [letter @ b'a'..=b'i'] => -60 * i64::from(letter - b'a' + 1),
            [letter @ b'k'..=b'm'] => -60 * i64::from(letter - b'a'),
            [letter @ b'n'..=b'y'] => 60 * i64::from(letter - b'n' + 1),
            _ => return None,
        },
    };
    Some(minutes * 60)
}

/// The beginnings of month names in many languages, without accents; January first.
const MONTHS: [&str; 12] = [
    "jan ene gen sty led oca tam янв січ ιαν",
    "feb fev fav lut uno sub hel фев лют φεβ",
    "maalis mar mrt maa mrz bre мар бер μαρ",
    "apr abr avr kwi dub nis huh апр кві απρ",
    "may mai maj mei mag kve tou май мая тра μαι",
    "juin ιουν cerv jun giu cze cvn haz kes июн чер",
    "cervenec cervence juil ιουλ jul lug lip cvc tem hei июл лип",
    "aug ago aou agu agt sie srp elo авг сер αυγ",
    "szep sep set wrz zar eyl syy сен вер σεπ",
    "oct okt out ott paz rij eki lok окт жов οκτ",
    "marras listopad nov lis kas ноя лис νοε",
    "dec dic dez des gru pro ara jou дек гру δεκ",
];

/// The month of a name in lower case.
pub(super) fn month(word: &str) -> Option<i32> {
    let bare: String = word.chars().map(unaccented).collect();
    if matches!(bare.as_str(), "mardi" | "martes" | "martedi" | "mart" | "tue" | "maandag") && bare != "mart"
    {
        return None;
    }
    let starts =
        (1..).zip(MONTHS).flat_map(|(month, starts)| starts.split(' ').map(move |start| (start, month)));
    // Use the longest match: `marras` is November, `mars` is March.
    let found = starts.filter(|(start, _)| bare.starts_with(start)).max_by_key(|(start, _)| start.len());
    found.map(|(_, month)| month)
}

fn unaccented(c: char) -> char {
    match c {
        'á' | 'à' | 'â' | 'ä' | 'ã' | 'å' => 'a',
        'é' | 'è' | 'ê' | 'ë' | 'ě' => 'e',
        'í' | 'ì' | 'î' | 'ï' | 'ı' => 'i',
        'ó' | 'ò' | 'ô' | 'ö' | 'õ' | 'ő' => 'o',
        'ú' | 'ù' | 'û' | 'ü' | 'ű' | 'ů' => 'u',
        'ñ' => 'n',
        'ç' | 'č' | 'ć' => 'c',
        'ř' => 'r',
        'ś' | 'š' | 'ş' => 's',
        'ź' | 'ž' | 'ż' => 'z',
        'ğ' => 'g',
        'ά' => 'α',
        'έ' => 'ε',
        'ή' => 'η',
        'ί' | 'ϊ' | 'ΐ' => 'ι',
        'ό' => 'ο',
        'ύ' | 'ϋ' | 'ΰ' => 'υ',
        'ώ' => 'ω',
        'ς' => 'σ',
        'ё' => 'е',
        _ => c,
    }
}

/// Converts a year of a Japanese era: `令和8年` becomes `2026年`.
pub(super) fn western_year(text: &str) -> Cow<'_, str> {
    const ERAS: &[(&str, i64)] = &[
        ("令和", 2018),
        ("㋿", 2018),
        ("平成", 1988),
        ("㍻", 1988),
        ("昭和", 1925),
        ("㍼", 1925),
        ("大正", 1911),
        ("㍽", 1911),
    ];
    for (era, before) in ERAS {
        let Some(at) = text.find(era) else { continue };
        let rest = text[at + era.len()..].trim_start();
        let Some(end) = rest.find('年') else { continue };
        let number = rest[..end].trim();
        let year = match number {
            "元" => Some(1),
            _ => number
                .chars()
                .try_fold(0_i64, |sum, c| sum.checked_mul(10)?.checked_add(i64::from(digit(c)?))),
        };
        if let Some(year) = year.filter(|year| (1..100).contains(year)) {
            return Cow::Owned(format!("{}{}{}", &text[..at], before + year, &rest[end..]));
        }
    }
    // The short form, as in `R8.1.15`.
    let bytes = text.as_bytes();
    if let [letter @ (b'r' | b'h' | b's'), b'0'..=b'9', ..] = bytes
        && let Some(dot) = text.find('.').filter(|dot| *dot <= 3)
        && let Ok(year) = text[1..dot].parse::<i64>()
    {
        let before = match letter {
            b'r' => 2018,
            b'h' => 1988,
            _ => 1925,
        };
        return Cow::Owned(format!("{}{}", before + year, &text[dot..]));
    }
    Cow::Borrowed(text)
}

fn digit(c: char) -> Option<u32> {
    match c {
        '０'..='９' => Some(c as u32 - '０' as u32),
        _ => c.to_digit(10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn years_of_eras_are_read_and_endless_ones_left_alone() {
        assert_eq!(western_year("令和8年1月15日"), "2026年1月15日");
        assert_eq!(western_year("平成元年"), "1989年");
        let endless = format!("令和{}年", "6".repeat(93));
        assert_eq!(western_year(&endless), endless);
        // 2^64 + 8 must not be truncated to a year.
        assert_eq!(western_year("令和18446744073709551624年"), "令和18446744073709551624年");
    }

    #[test]
    fn of_several_beginnings_of_a_month_the_longest_is_meant() {
        for (word, wanted) in [
            ("mars", Some(3)),
            ("maaliskuu", Some(3)),
            ("marraskuu", Some(11)),
            ("červen", Some(6)),
            ("července", Some(7)),
            ("juin", Some(6)),
            ("juillet", Some(7)),
            ("listopadu", Some(11)),
            ("mardi", None),
        ] {
            assert_eq!(month(word), wanted, "{word}");
        }
        let mut starts: Vec<&str> = MONTHS.iter().flat_map(|starts| starts.split(' ')).collect();
        starts.sort_unstable();
        assert!(starts.windows(2).all(|pair| pair[0] != pair[1]), "each beginning is that of one month");
    }

    #[test]
    fn offsets_are_read_and_endless_ones_refused() {
        for (text, wanted) in [
            ("+0900", Some(32_400)),
            ("-05:30", Some(-19_800)),
            ("+9", Some(32_400)),
            ("-25:00", None),
            ("+09:60", None),
            ("-018888888888888882:11", None),
            ("+99999999999999999999:00", None),
        ] {
            assert_eq!(offset(text), wanted, "{text}");
        }
    }
}
