//! The answers of the demo's model: a verdict by simple rules, and a summary that fits the title.

use serde_json::json;

use super::gemini::Asked;

/// Its answers about documents, by a word of the title.
const ABOUT: [(&str, &str, &str); 8] = [
    (
        "意見募集",
        "Most of the comments welcome the plan; two ask for a longer transition.",
        "寄せられた意見の多くは案に賛成で、移行期間の延長を求めるものもあった。",
    ),
    (
        "消費状況",
        "Household spending rose by 1.2 percent; most went into travel and less into food.",
        "世帯の支出は前年同月比1.2%増で、旅行が伸び、食料は減った。",
    ),
    (
        "物価",
        "Prices rose by 2.4 percent over a year, slower than in the month before.",
        "総合指数は前年同月比2.4%の上昇で、伸びは前月より縮んだ。",
    ),
    (
        "通信品質",
        "Median speeds reached 214 Mbit/s in cities and 98 in the country.",
        "実効速度の中央値は都市部で214Mbps、地方で98Mbpsだった。",
    ),
    (
        "見守り",
        "Twelve towns took part; false alarms fell by a third.",
        "12の自治体が参加し、誤報は3分の1減った。",
    ),
    (
        "セキュリティ",
        "Updates are to be installed before the holidays; backups should be kept offline.",
        "長期休暇の前の更新と、オフラインでのバックアップを呼びかけている。",
    ),
    (
        "労働力",
        "Unemployment stayed at 2.5 percent; more people work part-time.",
        "完全失業率は2.5%で横ばい、短時間就業者が増えた。",
    ),
    (
        "調査の結果",
        "The survey covers 9,000 households in all prefectures.",
        "全国の9000世帯を対象とした調査である。",
    ),
];

/// The text between the marks around `what`.
fn fenced<'a>(text: &'a str, what: &str) -> &'a str {
    let Some(start) = text.find(&format!("<<<{what} ")) else { return "" };
    let inner = text[start..].split_once(">>>\n").map_or("", |(_, inner)| inner);
    inner.split_once(&format!("\n<<<END {what}")).map_or("", |(inner, _)| inner)
}

/// An answer by plain rules: "later" is not ready, files are worth it, the rest is not.
pub(super) fn think(asked: &Asked) -> String {
    let text = asked.text();
    let (title, page) = (fenced(text, "TITLE"), fenced(text, "PAGE"));
    let files = fenced(text, "ATTACHMENTS").lines().filter(|line| line.starts_with("- ")).count();
    let is_english = asked.body["systemInstruction"]["parts"][0]["text"]
        .as_str()
        .is_some_and(|system| system.contains("in English") || system.contains("not_worth: personnel"));
    if !asked.is_summary() {
        let (verdict, reason) = match (page.contains("後日"), files) {
            (true, _) => ("not_ready", "資料は後日掲載される"),
            (false, 0) => ("not_worth", "資料がなく、要約する内容がない"),
            (false, _) => ("worth", "公表資料がある"),
        };
        return json!({ "verdict": verdict, "reason": reason, "criteria": [format!("添付 {files} 件")] })
            .to_string();
    }
    let about = ABOUT.iter().find(|(word, ..)| title.contains(word));
    let (_, en, ja) = about.unwrap_or(&("", "The details are in them.", "詳しくは資料を参照。"));
    let summary = if is_english {
        format!("The ministry published {files} document{}. {en}", if files == 1 { "" } else { "s" })
    } else {
        format!("架空省は「{title}」について資料{files}件を公表した。{ja}")
    };
    json!({ "key_points": [page.chars().take(40).collect::<String>()], "draft": summary, "missing": [], "final": summary })
        .to_string()
}
