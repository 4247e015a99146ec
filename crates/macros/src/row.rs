//! Derives the conversion of rows into structs.

use std::fmt::Write as _;

use proc_macro::{Delimiter, Span, TokenStream, TokenTree};

use crate::Mistake;

pub(crate) fn from_row(input: TokenStream) -> Result<TokenStream, Mistake> {
    let mut tokens = input.into_iter().skip_while(|token| token.to_string() != "struct").skip(1);
    let (name, fields) = match (tokens.next(), tokens.next()) {
        (Some(name), Some(TokenTree::Group(fields))) if fields.delimiter() == Delimiter::Brace => {
            (name, fields)
        }
        (name, _) => {
            let at = name.map_or_else(Span::call_site, |name| name.span());
            return Err(Mistake::new(at, "only a struct with named fields can be read from a row"));
        }
    };
    let mut read = String::new();
    for field in names(fields.stream()) {
        let _ = write!(read, "{field}: row.get(\"{field}\")?, ");
    }
    let code = format!(
        "impl ::db::FromRow for {name} {{
            fn from_row(row: &::db::Row<'_>) -> ::db::Result<Self> {{ ::core::result::Result::Ok(Self {{ {read} }}) }}
        }}"
    );
    Ok(code.parse().expect("plain code"))
}

/// The name before the colon of each field; commas inside `<…>` do not end a field.
fn names(fields: TokenStream) -> Vec<String> {
    let (mut names, mut depth, mut is_type, mut last) = (Vec::new(), 0, false, String::new());
    for token in fields {
        match token.to_string().as_str() {
            ":" if !is_type => {
                names.push(std::mem::take(&mut last));
                is_type = true;
            }
            "<" => depth += 1,
            ">" => depth -= 1,
            "," if depth == 0 => is_type = false,
            word => last = word.to_owned(),
        }
    }
    names
}
