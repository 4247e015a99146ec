//! The part of `stdx::phrase!` that reads words: which values they name, and whether both languages name the same.
//!
//! Use `stdx::phrase!`, which hands over its own crate and what it was given.

use proc_macro::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span, TokenStream, TokenTree};

/// Gives every `{name}` of the words a value and hands all of it back to `phrase!`, as `@ "English", "Japanese", name = value, …`.
///
/// A name that was given no value is that of a variable, which is borrowed.
#[proc_macro]
pub fn complete(input: TokenStream) -> TokenStream {
    let mut input = input.into_iter();
    let home = input.next().expect("`phrase!` names its crate");
    let mut arguments = split(input);
    let given = arguments.split_off(arguments.len().min(2));
    let [Some(en), Some(ja)] = [0, 1].map(|at| arguments.get(at).and_then(literal)) else {
        return refuse("write the English words, then the Japanese ones", Span::call_site());
    };
    let [in_english, in_japanese] = [&en, &ja].map(list_names);
    if ja.to_string() == "\"\"" {
        return refuse("the Japanese words are missing", ja.span());
    }
    if let Some(name) = in_english.iter().find(|name| !in_japanese.contains(name)) {
        return refuse(&format!("`{{{name}}}` has no place in the Japanese words"), ja.span());
    }
    if let Some(name) = in_japanese.iter().find(|name| !in_english.contains(name)) {
        return refuse(&format!("`{{{name}}}` has no place in the English words"), en.span());
    }
    let mut values = Vec::new();
    for argument in given {
        let Some(TokenTree::Ident(name)) = argument.first().cloned() else {
            return refuse("write `name` or `name = value`", span_of(&argument));
        };
        if !in_english.contains(&name.to_string()) {
            return refuse(&format!("the words have no place for `{name}`"), name.span());
        }
        let value = argument.get(2..).filter(|value| !value.is_empty()).unwrap_or(&argument[..1]).to_vec();
        values.push((name, value));
    }
    for name in in_english {
        if !values.iter().any(|(given, _)| given.to_string() == name) {
            let name = Ident::new(&name, en.span());
            let borrow = Punct::new('&', Spacing::Alone).into();
            values.push((name.clone(), vec![borrow, name.into()]));
        }
    }
    let mut whole = vec![punct('@'), en.into(), punct(','), ja.into()];
    for (name, value) in values {
        whole.extend([punct(','), name.into(), punct('=')].into_iter().chain(value));
    }
    call(home, "phrase", whole)
}

/// The arguments between top-level commas; one that ends in a comma is the last.
fn split(input: impl Iterator<Item = TokenTree>) -> Vec<Vec<TokenTree>> {
    let mut arguments = vec![Vec::new()];
    for token in input {
        match (&token, arguments.last_mut()) {
            (TokenTree::Punct(mark), _) if mark.as_char() == ',' => arguments.push(Vec::new()),
            (_, Some(argument)) => argument.push(token),
            (_, None) => {}
        }
    }
    arguments.retain(|argument| !argument.is_empty());
    arguments
}

/// A literal, also one that another macro hands on.
fn literal(argument: &Vec<TokenTree>) -> Option<Literal> {
    match argument.as_slice() {
        [TokenTree::Literal(literal)] => Some(literal.clone()),
        [TokenTree::Group(group)] if group.delimiter() == Delimiter::None => {
            literal(&group.stream().into_iter().collect())
        }
        _ => None,
    }
}

/// The names in the words, each once: `count` of `{count entry}`. The braces of `\u{1b}` are none of ours.
fn list_names(words: &Literal) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let source = words.to_string();
    for (at, _) in source.match_indices('{').filter(|(at, _)| !source[..*at].ends_with("\\u")) {
        let name = source[at + 1..].split(['}', ' ']).next().unwrap_or_default();
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

fn punct(mark: char) -> TokenTree {
    Punct::new(mark, Spacing::Alone).into()
}

fn span_of(argument: &[TokenTree]) -> Span {
    argument.first().map_or_else(Span::call_site, TokenTree::span)
}

/// `home::name! { arguments }`
fn call(home: TokenTree, name: &str, arguments: Vec<TokenTree>) -> TokenStream {
    let path = [Punct::new(':', Spacing::Joint).into(), punct(':')];
    let name = Ident::new(name, Span::call_site()).into();
    let arguments = Group::new(Delimiter::Brace, arguments.into_iter().collect()).into();
    [home].into_iter().chain(path).chain([name, punct('!'), arguments]).collect()
}

/// An error that points at `span`.
fn refuse(why: &str, span: Span) -> TokenStream {
    let name = Ident::new("compile_error", span).into();
    let why = Group::new(Delimiter::Brace, TokenTree::from(Literal::string(why)).into()).into();
    let pointing = |mut token: TokenTree| {
        token.set_span(span);
        token
    };
    [name, punct('!'), why].into_iter().map(pointing).collect()
}
