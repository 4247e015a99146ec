//! The two READMEs have the same content, and their configs are valid.

use std::path::Path;

use tsuzuki::app;
use tsuzuki::config::{self, Colour, Env};

fn load(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

/// The code blocks of a page, each with its language.
fn blocks(page: &str) -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    let mut open: Option<(String, String)> = None;
    for line in page.lines() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(language), None) => open = Some((language.to_owned(), String::new())),
            (Some(_), block) => blocks.extend(block.take()),
            (None, Some((_, text))) => *text += &format!("{line}\n"),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block is never closed");
    blocks
}

/// A page without its words: headings by level, tables by size, links by target, in order.
fn shape(page: &str) -> Vec<String> {
    let mut shape = Vec::new();
    let mut is_code = false;
    for line in page.lines() {
        is_code ^= line.starts_with("```");
        if is_code {
            continue;
        }
        let level = line.bytes().take_while(|byte| *byte == b'#').count();
        match line.bytes().next() {
            Some(b'#') => shape.push(format!("heading {level}")),
            Some(b'|') => shape.push(format!("row of {}", line.matches('|').count())),
            Some(b'-') => shape.push("point".to_owned()),
            _ => {}
        }
        let targets = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        shape.extend(
            targets.filter(|target| !target.starts_with("README")).map(|target| format!("-> {target}")),
        );
    }
    shape
}

/// The parts that are equal in every language: configs, and commands without their comments, but not their output.
fn list_code(page: &str) -> Vec<(String, String)> {
    let without_comment =
        |line: &str| line.split("  # ").next().unwrap_or_default().trim_end().to_owned() + "\n";
    let code = |(language, text): (String, String)| match language.as_str() {
        "sh" => (language, text.lines().map(without_comment).collect()),
        "text" => (language, String::new()),
        _ => (language, text),
    };
    blocks(page).into_iter().map(code).collect()
}

#[test]
fn both_readmes_have_the_same_structure_and_the_same_code() {
    let (english, japanese) = (load("README.md"), load("README.ja.md"));
    assert!(blocks(&english).len() >= 10);
    assert_eq!(list_code(&english), list_code(&japanese));
    let japanese = japanese.replace("docs/ja/", "docs/");
    let (english, japanese) = (shape(&english), shape(&japanese));
    let differs = english.iter().zip(&japanese).find(|(english, japanese)| english != japanese);
    assert_eq!(differs, None);
    assert_eq!(english.len(), japanese.len());
}

#[test]
fn every_link_of_the_readmes_leads_somewhere() {
    for name in ["README.md", "README.ja.md"] {
        for target in shape(&load(name)).iter().filter_map(|line| line.strip_prefix("-> ")) {
            assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join(target).exists(), "{name}: {target}");
        }
    }
}

#[test]
fn every_page_of_the_documentation_is_linked() {
    let readme = load("README.md");
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    for page in std::fs::read_dir(docs).unwrap() {
        let name = page.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".md") {
            assert!(readme.contains(&format!("(docs/{name})")), "docs/{name} is linked from nowhere");
        }
    }
}

#[test]
fn every_config_of_the_readme_is_good() {
    let mut seen = 0;
    for (language, text) in blocks(&load("README.md")) {
        if language == "toml" {
            seen += 1;
            config::parse(&text, Path::new("tsuzuki.toml"), app::kinds(), &Env::of([]))
                .unwrap_or_else(|problems| panic!("{}\n{text}", problems.render(Colour::Never)));
        }
    }
    assert!(seen >= 6, "{seen} configs");
}

#[test]
fn the_configs_of_the_japanese_pages_are_good() {
    for name in ["press", "books", "blogs", "commits"] {
        let page = load(&format!("docs/ja/{name}.md"));
        let config = blocks(&page).into_iter().find(|(language, _)| language == "toml").unwrap().1;
        // The page leaves out where the mail goes to: any channel of that name will do.
        let is_defined = config.contains("[channel.mail]") || !config.contains("\"mail\"");
        let mail = "[channel.mail]\nkind = \"webhook\"\nurl = \"https://example.com/\"\n";
        let config = format!("{}{config}", if is_defined { "" } else { mail });
        config::parse(&config, Path::new("tsuzuki.toml"), app::kinds(), &Env::of([]))
            .unwrap_or_else(|problems| panic!("{name}: {}", problems.render(Colour::Never)));
    }
}
