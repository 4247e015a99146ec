//! Interprets refusals of GitLab or of a proxy before it.

use super::super::Error;
use super::{GitLab, NAME, wire};
use crate::fetch::ApiAnswer;
use crate::phrase;

impl GitLab {
    /// Interprets an answer that is neither successful nor temporary.
    pub(super) fn refusal(&self, answer: &ApiAnswer) -> Error {
        let there = &answer.head.final_url;
        if self.token.is_some() && there.origin() != self.base.origin() {
            return Error::Failed(phrase!(
                "{host} redirects to {there}, where the token is not sent (HTTP {status}): check `gitlab`",
                "{host} から {there} へ転送されましたが、そこへトークンは送りません（HTTP {status}）。`gitlab` の URL を確認してください",
                host = self.base.origin().ascii_serialization(),
                there = there.origin().ascii_serialization(),
                status = i64::from(answer.head.status)
            ));
        }
        // A proxy without a route to GitLab answers with its own page, which says nothing about the requested resource.
        let is_missing = matches!(answer.head.status, 404 | 410);
        if wire::is_page(&answer.body) || (is_missing && wire::is_text(&answer.body)) {
            return self.no_answer_of_gitlab(answer);
        }
        let why = wire::read_message(&answer.body).unwrap_or_else(|| "no reason given".to_owned());
        let host = self.base.host_str().unwrap_or_default();
        match answer.head.status {
            401 if self.token.is_none() => Error::Credentials(phrase!(
                "{host} wants a token: set `token` of the job to an access token with the scope read_api",
                "{host} にはトークンが必要です。スコープ read_api のアクセストークンをジョブの `token` に設定してください"
            )),
            401 => Error::Credentials(phrase!(
                "{host} rejects the token ({why}): it is wrong, expired or revoked; make a new one with the scope read_api",
                "{host} にトークンを拒否されました（{why}）。誤り・期限切れ・失効のいずれかです。スコープ read_api で作り直してください"
            )),
            403 if why.contains("insufficient_scope") || why.contains("higher privileges") => {
                Error::Credentials(phrase!(
                    "the token for {host} may not read this ({why}): make one with the scope read_api",
                    "{host} のトークンには権限がありません（{why}）。スコープ read_api で作り直してください"
                ))
            }
            // Blocked, deactivated, not yet approved: GitLab addresses the user, whatever was requested.
            403 if why.contains(" - You") => Error::Credentials(phrase!(
                "{host} refuses the user of the token ({why})",
                "{host} にトークンのユーザーを拒否されました（{why}）"
            )),
            403 => Error::Forbidden { host: NAME, why },
            404 | 410 => Error::Missing { host: NAME, why },
            status => Error::Refused { host: NAME, status, why },
        }
    }

    /// A page of a proxy before GitLab, or of another server: it says nothing about the requested resource.
    pub(super) fn no_answer_of_gitlab(&self, answer: &ApiAnswer) -> Error {
        Error::Failed(phrase!(
            "{host} did not answer like the GitLab API (HTTP {status}): check `gitlab`, and whether a login page or a proxy is in front of it",
            "{host} の応答は GitLab の API のものではありません（HTTP {status}）。`gitlab` の URL と、手前のログイン画面やプロキシを確認してください",
            host = self.base.host_str().unwrap_or_default(),
            status = i64::from(answer.head.status)
        ))
    }
}
