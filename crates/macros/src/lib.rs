//! Macros that inspect their arguments. Use them through `phrase!` of `stdx` and `FromRow` of `db`.

mod phrase;
mod row;

use proc_macro::{Delimiter, Span, TokenStream, TokenTree};

/// Adds the values of the places in a phrase's texts: the variable of the same name, unless another value is given.
///
/// `name_values! { path, "{count entry}", "{count} 件" }` becomes `path! { @ "{count entry}", "{count} 件", count = &count }`.
/// Texts that name different values in the two languages do not compile.
#[proc_macro]
pub fn name_values(input: TokenStream) -> TokenStream {
    phrase::name_values(input).unwrap_or_else(Mistake::render)
}

/// Converts a row into a struct; each field is the column of the same name.
#[proc_macro_derive(FromRow)]
pub fn from_row(input: TokenStream) -> TokenStream {
    row::from_row(input).unwrap_or_else(Mistake::render)
}

/// A wrong use of a macro, and its position.
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

/// The parts between commas; a trailing comma adds no part.
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

/// The single token that another macro has wrapped in a group.
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
