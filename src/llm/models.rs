//! Suggests models in place of one that does not exist: of the same family, aliases before versions.

/// Models to suggest at most.
const MAX_SUGGESTED: usize = 3;

/// The models of `names` that are most similar to `wanted`, best first.
pub(super) fn suggest<'a>(wanted: &str, names: &'a [String]) -> Vec<&'a str> {
    let family = words(wanted);
    let mut ranked: Vec<_> = names
        .iter()
        .filter_map(|name| {
            let theirs = words(name);
            let shared = family.iter().filter(|word| theirs.contains(word)).count();
            let apart = family.len() + theirs.len() - 2 * shared;
            let is_alias = name.ends_with("-latest");
            let is_preview = name.contains("preview") || name.contains("exp");
            (shared > 0).then_some((apart, !is_alias, is_preview, std::cmp::Reverse(versions(name)), name))
        })
        .collect();
    ranked.sort();
    let closest = ranked.first().map(|ranked| ranked.0);
    let close = ranked.into_iter().take_while(|ranked| Some(ranked.0) == closest);
    close.map(|ranked| ranked.4.as_str()).take(MAX_SUGGESTED).collect()
}

/// The words that name the family: without versions, dates and stages of release.
fn words(name: &str) -> Vec<&str> {
    let split = name.split(['-', ':', '/', '_']).filter(|word| !word.is_empty());
    split
        .filter(|word| !word.starts_with(|c: char| c.is_ascii_digit()))
        .filter(|word| !matches!(*word, "latest" | "preview" | "exp"))
        .collect()
}

fn versions(name: &str) -> Vec<u32> {
    name.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_family_is_named_and_its_alias_first() {
        let names = [
            "gemini-3.1-flash-lite",
            "gemini-3.5-flash",
            "gemini-3.8-flash",
            "gemini-flash-latest",
            "gemini-flash-lite-latest",
            "gemini-pro-latest",
            "gemini-3-flash-preview",
            "gpt-5-mini",
        ]
        .map(str::to_owned);
        for (wanted, suggested) in [
            ("gemini-2.5-flash", vec!["gemini-flash-latest", "gemini-3.8-flash", "gemini-3.5-flash"]),
            ("gemini-2.5-flash-lite", vec!["gemini-flash-lite-latest", "gemini-3.1-flash-lite"]),
            ("gpt-4-mini", vec!["gpt-5-mini"]),
            ("llama", vec![]),
        ] {
            assert_eq!(suggest(wanted, &names), suggested, "{wanted}");
        }
    }
}
