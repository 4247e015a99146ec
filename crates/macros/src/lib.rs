//! Macros that have to look into what they are given. They are used through `phrase!` of `stdx` and `FromRow` of `db`.

mod phrase;
mod row;

use proc_macro::{Delimiter, Span, TokenStream, TokenTree};

/// Gives every place in the words of a phrase its value: that of the same name, unless another is given.
///
/// `name_values! { path, "{count entry}", "{count} 件" }` becomes `path! { @ "{count entry}", "{count} 件", count = &count }`.
/// Words that name different values in the two languages do not compile.
#[proc_macro]
pub fn name_values(input: TokenStream) -> TokenStream {
    phrase::name_values(input).unwrap_or_else(Mistake::render)
}

/// Reads a struct from a row that has a column for each of its fields, by name.
#[proc_macro_derive(FromRow)]
pub fn from_row(input: TokenStream) -> TokenStream {
    row::from_row(input).unwrap_or_else(Mistake::render)
}

/// What is wrong with the use of a macro, and where.
struct Mistake {
    at: Span,
    why: String,
}

impl Mistake {
    fn new(at: Span, why: impl Into<String>) -> Self {
        Self { at, why: why.into() }
    }

    fn render(self) -> TokenStream {
        let code: TokenStream =
            format!("::core::compile_error! {{ {:?} }}", self.why).parse().expect("plain code");
        code.into_iter().map(|token| at(token, self.at)).collect()
    }
}

fn at(mut token: TokenTree, span: Span) -> TokenTree {
    token.set_span(span);
    token
}

/// The parts between commas; a comma after the last one makes no part of its own.
fn split(input: TokenStream) -> Vec<Vec<TokenTree>> {
    let mut parts = vec![Vec::new()];
    for token in input {
        match &token {
            TokenTree::Punct(comma) if comma.as_char() == ',' => parts.push(Vec::new()),
            _ => parts.last_mut().expect("there is always a last part").push(bare(token)),
        }
    }
    if parts.last().is_some_and(Vec::is_empty) {
        parts.pop();
    }
    parts
}

/// The single token that another macro has handed on in a group of its own.
fn bare(token: TokenTree) -> TokenTree {
    match &token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
            let mut inner = group.stream().into_iter();
            match (inner.next(), inner.next()) {
                (Some(only), None) => only,
                _ => token,
            }
        }
        _ => token,
    }
}
