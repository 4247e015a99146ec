//! `channel test` and `mail test`: sends a message now through the same code as all others, and prints the result.

use super::super::names::no_such;
use super::super::{Context, Error, Exit, Result};
use tsuzuki::app::App;
use tsuzuki::channel::{Channel, SendError};
use tsuzuki::phrase;

/// A test message that the server accepted, with its answer.
#[derive(serde::Serialize)]
struct TestSent {
    channel: String,
    recipient: String,
    answer: Option<String>,
}

/// Sends a test message to `to` or to every recipient of the channel.
pub(in crate::cli) async fn send_test(
    channel: &Channel,
    to: Option<&str>,
    app: &App,
    context: &Context,
) -> Result {
    let env = &app.env;
    let outcomes = channel.send_test(&env.channel_env, env.app.message_language(), to).await;
    let name = channel.name.as_str();
    let (mut failure, mut sent) = (None, Vec::new());
    for (recipient, outcome) in outcomes.map_err(|error| Error::failed(error.to_string()))? {
        match outcome {
            Ok(accepted) => {
                sent.push(TestSent { channel: name.to_owned(), recipient, answer: accepted.remote_id });
            }
            Err(error) => failure = Some(explain(name, &recipient, &error)),
        }
    }
    if context.out.is_json() {
        context.out.json(&sent)?;
    } else {
        for TestSent { recipient, answer, .. } in &sent {
            let said = match answer {
                Some(answer) => phrase!(
                    "sent a test message to {name} ({recipient}); the server answered: {answer}",
                    "テストメッセージを {name}（{recipient}）に送りました。サーバーの応答：{answer}"
                ),
                None => phrase!(
                    "sent a test message to {name} ({recipient})",
                    "テストメッセージを {name}（{recipient}）に送りました"
                ),
            };
            context.out.prose(context.out.speech().phrase(&said))?;
        }
    }
    failure.map_or(Ok(Exit::Fine), Err)
}

fn explain(name: &str, recipient: &str, error: &SendError) -> Error {
    let exit = if matches!(error, SendError::Locked { .. }) { Exit::Credentials } else { Exit::Failed };
    let why = error.to_string();
    let said = match error {
        SendError::Unknown { .. } => phrase!(
            "the test message to {name} ({recipient}) may have been sent: {why}",
            "{name}（{recipient}）へのテストメッセージは送信できたか不明です：{why}"
        ),
        _ => phrase!(
            "the test message to {name} ({recipient}) was not sent: {why}",
            "{name}（{recipient}）へのテストメッセージを送れませんでした：{why}"
        ),
    };
    Error::new(exit, said).hint(phrase!(
        "`tsuzuki doctor` checks the address and the credentials",
        "`tsuzuki doctor` でアドレスと認証情報を確認できます"
    ))
}

/// The channel of that name, or the only one; `how` is the hint how to name one.
pub(in crate::cli) fn choose<'a>(
    channels: impl Iterator<Item = &'a Channel>,
    name: Option<&str>,
    what: &str,
    how: &str,
) -> Result<&'a Channel> {
    let channels: Vec<&Channel> = channels.collect();
    let names = || channels.iter().map(|channel| channel.name.as_str());
    match (name, channels.as_slice()) {
        (_, []) => Err(Error::new(
            Exit::Config,
            phrase!("the config has no {what} channel", "設定に {what} チャンネルがありません"),
        )
        .hint(phrase!("`tsuzuki channel add` adds one", "`tsuzuki channel add` で追加できます"))),
        (None, [only]) => Ok(only),
        (None, _) => {
            let names = names().collect::<Vec<_>>().join(", ");
            let said = phrase!("which channel? {names}", "どのチャンネルですか？ {names}");
            Err(Error::usage(said)
                .hint(phrase!("name one of them: `{how}`", "名前を指定してください：`{how}`")))
        }
        (Some(name), _) => {
            let found = channels.iter().find(|channel| channel.name == name).copied();
            found.ok_or_else(|| no_such("channel", name, names()))
        }
    }
}
