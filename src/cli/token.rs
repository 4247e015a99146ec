//! `token`: tokens for programs that use the API and the feeds, and links to prompts.

use clap::Subcommand;
use serde::Serialize;

use super::table::row;
use super::{Column, Context, Error, Exit, Result};
use tsuzuki::books::view::{self, Revoked, TokenView};
use tsuzuki::config::value::BadValue;
use tsuzuki::phrase;
use tsuzuki::phrase::Value;
use tsuzuki::web::store;
use tsuzuki::web::token::{AccessToken, NewSecret, Scope};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Make a token for a program, and print it: it is shown this once
    Create {
        /// What to call it
        #[arg(long, value_parser = parse_name)]
        name: String,
        /// feed, read or act: what it may be used for; each may do what those before it may
        #[arg(long)]
        scope: Scope,
    },
    /// List tokens that work: those of programs, then links to prompts, those that end last first
    Ls {
        /// Also links that are over
        #[arg(long)]
        all: bool,
        /// At most this many links
        #[arg(long, default_value_t = 50)]
        limit: usize,
    },
    /// End a token: a program is refused from now on, a link answers "gone"
    Revoke {
        /// The name of a program's token; of a link the token, or its first eight characters or more
        token: String,
    },
}

pub(super) async fn run(command: Command, context: &Context) -> Result {
    match command {
        Command::Create { name, scope } => create(name, scope, context).await,
        Command::Ls { all, limit } => list(all, limit, context).await,
        Command::Revoke { token } => revoke(token, context).await,
    }
}

fn parse_name(text: &str) -> Result<String, BadValue> {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_short = (1..=64).contains(&text.chars().count());
    let is_name = is_short && text.chars().all(is_plain);
    // `token revoke` takes a name that looks like the prefix of a link for one.
    let is_link = text.len() >= 8 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if is_name && !is_link {
        Ok(text.to_owned())
    } else {
        Err(BadValue::new(phrase!(
            "a name has up to 64 letters, digits, dots and dashes, not only 0-9 and a-f",
            "名前は 64 文字以内の文字・数字・`.`・`-`・`_` です（0-9 と a-f だけの名前は使えません）"
        )))
    }
}

async fn create(name: String, scope: Scope, context: &Context) -> Result {
    let NewSecret { secret, hash } = NewSecret::token()?;
    let (wanted, now) = (name.clone(), context.clock.now());
    let is_new =
        context.db().await?.write(move |tx| store::add_token(tx, &wanted, &hash, scope, now)).await?;
    if !is_new {
        return Err(Error::failed(phrase!(
            "there is a token named `{name}` already",
            "トークン `{name}` はすでにあります"
        ))
        .hint(phrase!(
            "choose another name, or end it with `tsuzuki token revoke {name}`",
            "別の名前にするか、`tsuzuki token revoke {name}` で失効させてください"
        )));
    }
    if context.out.is_json() {
        context.out.json(&serde_json::json!({ "name": name, "scope": scope, "token": secret }))?;
        return Ok(Exit::Fine);
    }
    context.out.line(secret)?;
    context.out.done(phrase!(
        "Token `{name}` may {what}; it is not shown again",
        "トークン `{name}` の権限：{what}（二度と表示されません）",
        what = scope.phrase()
    ))
}

/// A token of either sort.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Listed {
    Access(AccessToken),
    Prompt(TokenView),
}

async fn list(all: bool, limit: usize, context: &Context) -> Result {
    let now = context.clock.now();
    let db = context.view().await?;
    let tokens = db.read(move |tx| {
        let programs = store::list_tokens(tx)?.into_iter().map(Listed::Access);
        let links = view::list_tokens(tx, all, limit, now)?.into_iter().map(Listed::Prompt);
        Ok(programs.chain(links).collect::<Vec<_>>())
    });
    let columns = [
        Column::left(phrase!("token", "トークン")),
        Column::left(phrase!("for", "用途")),
        Column::left(phrase!("state", "状態")),
        Column::moment(phrase!("ends", "期限")),
        Column::long(phrase!("about", "内容")),
    ];
    context.out.listing(&columns, &tokens.await?, |token| match token {
        Listed::Access(token) => {
            let may = phrase!("a program may {what}", "プログラム用：{what}", what = token.scope.phrase());
            row![&token.name, token.scope.word(), phrase!("works", "有効"), Value::Nothing, may]
        }
        Listed::Prompt(token) => {
            let title = token.title.as_deref().unwrap_or_default();
            row![
                &token.token,
                "prompt",
                token.state.phrase(),
                token.expires_at,
                format!("{} {title}", token.isbn13).trim_end(),
            ]
        }
    })
}

async fn revoke(prefix: String, context: &Context) -> Result {
    let (wanted, now) = (prefix.clone(), context.clock.now());
    if let Some(token) = context.db().await?.write(move |tx| store::delete_token(tx, &wanted)).await? {
        if context.out.is_json() {
            context.out.json(&Listed::Access(token))?;
        } else {
            context.out.note(phrase!(
                "Revoked token `{name}`",
                "トークン `{name}` を失効させました",
                name = &token.name
            ));
        }
        return Ok(Exit::Fine);
    }
    let wanted = prefix.clone();
    let answer = context.db().await?.write(move |tx| view::revoke(tx, &wanted, now)).await?;
    let list = "`tsuzuki token ls --all` lists them";
    let token = match answer {
        Revoked::Done(token) => token,
        Revoked::Before(token) => {
            return context.out.done(phrase!(
                "Token {token} was revoked before",
                "トークン {token} はすでに失効しています",
                token = &token.token
            ));
        }
        Revoked::Missing => {
            return Err(Error::failed(phrase!(
                "no token begins with `{prefix}`",
                "`{prefix}` で始まるトークンはありません"
            ))
            .hint(list));
        }
        Revoked::Ambiguous => {
            return Err(Error::failed(phrase!(
                "several tokens begin with `{prefix}`",
                "`{prefix}` で始まるトークンが複数あります"
            ))
            .hint(phrase!("write more of it", "もう少し長く書いてください")));
        }
        Revoked::Malformed => {
            return Err(Error::usage(phrase!(
                "no program has a token named `{prefix}`, and a link is named by its first eight characters or more, each 0-9 or a-f",
                "`{prefix}` という名前のプログラム用トークンはありません。リンクは先頭の 8 文字以上（0-9、a-f）で指定します"))
            .hint(list));
        }
    };
    if context.out.is_json() {
        context.out.json(&Listed::Prompt(token))?;
    } else {
        context.out.note(phrase!(
            "Revoked token {token} of {isbn13}",
            "{isbn13} のトークン {token} を失効させました",
            token = &token.token,
            isbn13 = token.isbn13.to_string()
        ));
    }
    Ok(Exit::Fine)
}
