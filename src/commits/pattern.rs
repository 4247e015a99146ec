//! Patterns over names of projects, branches, authors and titles: `*` is any text, `?` one character.

pub fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?'])
}

/// Whether one of `patterns` matches `name`.
pub fn any_matches(patterns: &[String], name: &str) -> bool {
    patterns.iter().any(|pattern| matches(pattern, name))
}

/// The same, ignoring case.
pub fn any_matches_loosely(patterns: &[String], name: &str) -> bool {
    let name = name.to_lowercase();
    patterns.iter().any(|pattern| matches(&pattern.to_lowercase(), &name))
}

/// Whether `name` matches `pattern`: `*` is any text, `?` one character.
pub fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut at, mut in_name) = (0, 0);
    let mut star = None;
    while in_name < name.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, in_name));
                at += 1;
            }
            Some('?') => {
                at += 1;
                in_name += 1;
            }
            Some(c) if *c == name[in_name] => {
                at += 1;
                in_name += 1;
            }
            _ => match star {
                // Let the last star match one more character.
                Some((star_at, taken)) => {
                    star = Some((star_at, taken + 1));
                    at = star_at + 1;
                    in_name = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, expected) in [
            ("main", "main", true),
            ("main", "mainline", false),
            ("release/*", "release/1.2", true),
            ("release/*", "release", false),
            ("*", "feature/x", true),
            ("v?.*-rc", "v1.20-rc", true),
            ("v?.*-rc", "v1.20-rc1", false),
            ("*a*b", "xxaxxb", true),
            ("*a*b", "xxaxxbc", false),
            ("", "x", false),
            ("機能/*", "機能/検索", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn a_hostile_pattern_ends() {
        assert!(!matches(&"*a".repeat(60), &"a".repeat(59)));
    }
}
