//! The result of a command: an exit code that scripts can rely on, and a message with cause and hints.

use std::process::ExitCode;

use tsuzuki::config::Problems;
use tsuzuki::engine::Failure;
use tsuzuki::phrase;
use tsuzuki::phrase::Phrase;
use tsuzuki::text::nearest;
use tsuzuki::{app, db, fetch, web};

/// Exit codes. The numbers are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// All is well; also when nothing was due or a quota was reached.
    Fine = 0,
    Failed = 1,
    /// The command line was wrong, or `--yes` is missing.
    Usage = 2,
    /// Some parts failed; the rest is saved.
    Partly = 3,
    /// A credential is missing or was refused.
    Credentials = 4,
    /// The config file is wrong.
    Config = 5,
    /// Another run holds the lease.
    Held = 6,
    /// Interrupted; everything up to here is saved.
    Interrupted = 130,
}

impl Exit {
    /// Its meaning, for a command without a more specific message; `None` for success.
    pub(super) fn phrase(self) -> Option<Phrase> {
        Some(match self {
            Exit::Fine => return None,
            Exit::Failed => {
                phrase!("it failed; without -q it says why", "失敗しました。-q を外すと理由を表示します")
            }
            Exit::Usage => phrase!(
                "the command line is wrong; --help says how it is written",
                "コマンドの書き方が違います。--help で確認してください"
            ),
            Exit::Partly => phrase!(
                "some parts failed, the rest is saved; without -q it says which",
                "一部が失敗しました（残りは保存済み）。-q を外すと詳細を表示します"
            ),
            Exit::Credentials => phrase!(
                "a credential is missing or was refused; `tsuzuki doctor` says which",
                "認証情報がないか、拒否されました。`tsuzuki doctor` で確認できます"
            ),
            Exit::Config => phrase!(
                "the config file is wrong; `tsuzuki check` says where",
                "設定ファイルに誤りがあります。`tsuzuki check` で場所を確認できます"
            ),
            Exit::Held => phrase!(
                "another run holds the lease; nothing was done",
                "ほかのプロセスが実行中です。何も行いませんでした"
            ),
            Exit::Interrupted => phrase!(
                "interrupted; everything up to here is saved",
                "中断しました。ここまでの内容は保存済みです"
            ),
        })
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

/// The result of a command.
pub(crate) type Result<T = Exit, E = Error> = std::result::Result<T, E>;

/// Why a command failed.
#[derive(Debug)]
pub(crate) struct Error {
    /// The exit code.
    pub exit: Exit,
    /// What failed and why; problems of a config file are already rendered and printed unchanged.
    pub message: Message,
    /// Hints, one line each.
    pub hints: Vec<Phrase>,
}

/// The text of an error.
#[derive(Debug)]
pub(crate) enum Message {
    /// One sentence.
    Text(Phrase),
    /// Problems with their places in the config file.
    Problems(Problems),
    /// The output pipe was closed; nothing is printed.
    ClosedPipe,
}

impl Error {
    /// An error with the given exit code.
    pub(crate) fn new(exit: Exit, message: impl Into<Phrase>) -> Self {
        Self { exit, message: Message::Text(message.into()), hints: Vec::new() }
    }

    pub(crate) fn failed(message: impl Into<Phrase>) -> Self {
        Self::new(Exit::Failed, message)
    }

    /// The command line was wrong.
    pub(crate) fn usage(message: impl Into<Phrase>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// The error of an irreversible command without `--yes`: what it would do.
    pub(super) fn unconfirmed(what: impl Into<Phrase>, command: impl std::fmt::Display) -> Self {
        Self::usage(what).hint(phrase!(
            "run `tsuzuki {command} --yes` if that is what you want",
            "実行するには `tsuzuki {command} --yes` としてください",
            command = command.to_string()
        ))
    }

    /// The text without hints, in English, for logs and programs.
    pub(crate) fn plain(&self) -> String {
        match &self.message {
            Message::Text(text) => text.to_string(),
            Message::Problems(problems) => problems.to_string(),
            Message::ClosedPipe => String::new(),
        }
    }

    /// Adds a hint.
    pub(crate) fn hint(mut self, hint: impl Into<Phrase>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Adds a hint with the name of `known` nearest to `name`, or else another hint.
    pub(super) fn hint_nearest<'a>(
        self,
        name: &str,
        known: impl IntoIterator<Item = &'a str>,
        otherwise: impl Into<Phrase>,
    ) -> Self {
        match nearest(name, known) {
            Some(near) => self.hint(phrase!("did you mean `{near}`?", "`{near}` ではありませんか？")),
            None => self.hint(otherwise),
        }
    }

    pub(super) fn to_json(&self) -> serde_json::Value {
        let mut error = serde_json::json!({ "exit_code": self.exit as u8, "hints": self.hints });
        match &self.message {
            Message::Problems(problems) => {
                error["message"] = "the config file is wrong".into();
                error["problems"] = serde_json::to_value(problems).unwrap_or_default();
            }
            _ => error["message"] = self.plain().into(),
        }
        serde_json::json!({ "error": error })
    }
}

/// For a command that changes something: a closed output pipe does not change its result.
pub(super) fn unless_unread(written: Result<()>) -> Result<()> {
    match written {
        Err(Error { message: Message::ClosedPipe, .. }) => Ok(()),
        written => written,
    }
}

impl From<Problems> for Error {
    fn from(problems: Problems) -> Self {
        Self { exit: Exit::Config, message: Message::Problems(problems), hints: Vec::new() }
    }
}

impl From<db::Error> for Error {
    fn from(error: db::Error) -> Self {
        let exit = match error {
            db::Error::BadAddress(_) => Exit::Config,
            _ => Exit::Failed,
        };
        let hint = error.hint();
        let error = Self::new(exit, error.phrase());
        match hint {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }
}

impl From<app::Error> for Error {
    fn from(error: app::Error) -> Self {
        match error {
            app::Error::Config(problems) => problems.into(),
            app::Error::Fetch(error) => error.into(),
            error @ app::Error::MissingProxy(_) => {
                Self::new(Exit::Credentials, error.phrase()).hint(phrase!(
                    "set the variable or file that it names",
                    "指定された環境変数またはファイルを用意してください"
                ))
            }
            error @ app::Error::BadProxy => Self::new(Exit::Config, error.phrase()),
        }
    }
}

impl From<fetch::Error> for Error {
    fn from(error: fetch::Error) -> Self {
        let hints = error.hint().into_iter().collect();
        Self { hints, ..Self::failed(error.phrase()) }
    }
}

impl From<web::Error> for Error {
    fn from(error: web::Error) -> Self {
        let exit = match error {
            web::Error::Open(_) | web::Error::Password(_) => Exit::Config,
            web::Error::Secret(_) => Exit::Credentials,
            web::Error::Listen { .. } => Exit::Failed,
        };
        Self::new(exit, error.phrase()).hint(error.hint())
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        let exit = match &failure {
            Failure::Interrupted => Exit::Interrupted,
            Failure::Overtaken => Exit::Held,
            Failure::Credentials(_) => Exit::Credentials,
            Failure::Config(_) => Exit::Config,
            Failure::Failed(_) => Exit::Failed,
            Failure::Db(error) => return error.clone().into(),
        };
        Self::new(exit, failure.phrase())
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => {
                Self { exit: Exit::Fine, message: Message::ClosedPipe, hints: Vec::new() }
            }
            _ => Self::failed(error.to_string()),
        }
    }
}
