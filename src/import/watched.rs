//! `config.toml` of blog-watcher: its blogs, in the formats of its versions.

use toml::{Table, Value};

use super::list::Candidate;
use crate::phrase;
use crate::phrase::Phrase;

/// Parses the blogs of a `config.toml`: `[[blogs]]` with an id or a name, or `[blogs.ID]`.
pub fn parse(text: &str) -> Result<(Vec<Candidate>, Vec<Phrase>), Phrase> {
    let root: Table = text.parse().map_err(|error: toml::de::Error| {
        phrase!("this is no TOML: {why}", "TOML として読めません：{why}", why = error.message())
    })?;
    let Some(blogs) = root.get("blogs").or_else(|| root.get("blog")) else {
        return Err(phrase!(
            "this is no config.toml of blog-watcher: it has neither `[[blogs]]` nor `[blogs.ID]`",
            "blog-watcher の config.toml ではありません：`[[blogs]]` も `[blogs.ID]` もありません"
        ));
    };
    let mut named: Vec<(Option<&str>, &Value)> = Vec::new();
    match blogs {
        Value::Array(items) => named.extend(items.iter().map(|item| (None, item))),
        Value::Table(table) => named.extend(table.iter().map(|(id, item)| (Some(id.as_str()), item))),
        _ => {
            return Err(phrase!(
                "`blogs` is neither a list nor a table",
                "`blogs` がリストでもテーブルでもありません"
            ));
        }
    }
    let mut found = Vec::new();
    let mut notices = Vec::new();
    for (number, (id, blog)) in named.into_iter().enumerate() {
        let text = |names: &[&str]| {
            let value = names.iter().find_map(|name| blog.get(name)?.as_str());
            value.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let url = blog.as_str().map(str::to_owned).or_else(|| text(&["url", "blog_url"]));
        let Some(url) = url else {
            notices.push(phrase!(
                "blog number {number} of config.toml is left out: it has no url",
                "config.toml の {number} 番目のブログは url がないため対象外です",
                number = number + 1
            ));
            continue;
        };
        if blog.get("enabled").and_then(Value::as_bool) == Some(false) {
            notices.push(phrase!(
                "`{url}` is left out: it is switched off",
                "`{url}` は無効になっているため対象外です"
            ));
            continue;
        }
        found.push(Candidate {
            id: id.map(str::to_owned).or_else(|| text(&["id", "blog_id"])),
            title: text(&["name", "title"]),
            folder: None,
            page: Some(url),
            feed: text(&["feed_url", "feed"]),
            sitemap: text(&["sitemap_url", "sitemap"]),
        });
    }
    Ok((found, notices))
}

/// Gives every blog without its own id the one it has in the state file.
pub fn adopt_ids(blogs: &mut [Candidate], known: &[String]) {
    for blog in blogs.iter_mut().filter(|blog| blog.id.is_none()) {
        let is_known = |name: &Option<String>| name.clone().filter(|name| known.contains(name));
        blog.id = is_known(&blog.title).or_else(|| is_known(&blog.page));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blogs_are_read_in_every_shape() {
        let list = "[[blogs]]\nid = \"a\"\nurl = \"https://a.example\"\n[[blogs]]\nname = \"B\"\nurl = \"https://b.example\"\n\
            feed_url = \"https://b.example/feed\"\n[[blogs]]\nname = \"none\"\n";
        let (mut blogs, notices) = parse(list).unwrap();
        adopt_ids(&mut blogs, &["https://b.example".to_owned()]);
        let shown: Vec<_> = blogs.iter().map(|blog| (blog.id.as_deref(), blog.page.as_deref())).collect();
        assert_eq!(
            shown,
            [(Some("a"), Some("https://a.example")), (Some("https://b.example"), Some("https://b.example"))]
        );
        assert_eq!(notices.len(), 1);
        let (blogs, _) = parse("[blogs.x]\nurl = \"https://x.example\"\n").unwrap();
        assert_eq!(blogs[0].id.as_deref(), Some("x"));
        assert!(parse("a = 1").is_err());
        assert!(parse("[[").is_err());
    }
}
