//! The values of a phrase, by the names in its texts.

use proc_macro::{Delimiter, Group, Ident, Literal, Span, TokenStream, TokenTree};

use crate::{Mistake, split};

pub(crate) fn name_values(input: TokenStream) -> Result<TokenStream, Mistake> {
    let mut parts = split(input).into_iter();
    let path = parts.next().unwrap_or_default();
    let (en, ja) = (words(parts.next())?, words(parts.next())?);
    let (places, in_japanese) = (places(&en), places(&ja));
    if ja.to_string() == "\"\"" {
        return Err(Mistake::new(ja.span(), "the Japanese words are missing"));
    }
    if let Some(name) = in_japanese.iter().find(|name| !places.contains(name)) {
        return Err(Mistake::new(ja.span(), format!("the English words have no `{{{name}}}`")));
    }
    if let Some(name) = places.iter().find(|name| !in_japanese.contains(name)) {
        return Err(Mistake::new(ja.span(), format!("the Japanese words have no `{{{name}}}`")));
    }
    let mut values = TokenStream::new();
    let mut given = Vec::new();
    for part in parts {
        let Some(TokenTree::Ident(name)) = part.first() else {
            return Err(Mistake::new(part.first().map_or(en.span(), TokenTree::span), "a value has a name"));
        };
        if !places.contains(&name.to_string()) {
            return Err(Mistake::new(name.span(), format!("the words have no `{{{name}}}`")));
        }
        if part.len() > 1 {
            given.push(name.to_string());
            values.extend(code(",").into_iter().chain(part));
        }
    }
    for name in places.iter().filter(|name| !given.contains(name)) {
        // With the span of the text, this is the variable in scope there; it is borrowed.
        let name = TokenTree::from(Ident::new(name, en.span()));
        values.extend(code(",").into_iter().chain([name.clone()]).chain(code("= &")).chain([name]));
    }
    let words = [code("@"), TokenTree::from(en).into(), code(","), TokenTree::from(ja).into(), values];
    let call = Group::new(Delimiter::Brace, words.into_iter().collect());
    Ok(path.into_iter().chain(code("!")).chain([TokenTree::from(call)]).collect())
}

fn code(text: &str) -> TokenStream {
    text.parse().expect("plain code")
}

fn words(part: Option<Vec<TokenTree>>) -> Result<Literal, Mistake> {
    match part.unwrap_or_default().as_slice() {
        [TokenTree::Literal(words)] => Ok(words.clone()),
        other => {
            let at = other.first().map_or_else(Span::call_site, TokenTree::span);
            Err(Mistake::new(at, "here belong words, in English and then in Japanese"))
        }
    }
}

/// The names of `{name}` and `{name thing}` in a text, each once.
fn places(words: &Literal) -> Vec<String> {
    let source = words.to_string();
    let mut names: Vec<String> = Vec::new();
    let mut chars = source.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' if chars.next() == Some('u') => {
                chars.by_ref().find(|c| *c == '}');
            }
            '{' => {
                let place: String = chars.by_ref().take_while(|c| *c != '}').collect();
                let name = place.split(' ').next().unwrap_or_default().to_owned();
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            _ => {}
        }
    }
    names
}
