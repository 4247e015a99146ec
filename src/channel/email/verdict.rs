//! What a refusal by a mail server means: whose fault it is, and for how long. Pure.

use std::time::Duration;

use super::wire::{Fault, Reply};
use crate::channel::error::SendError;
use crate::phrase;
use crate::phrase::Phrase;

/// How long to pause a channel whose account has reached its sending limit: such limits cover the last 24 hours, so
/// that some of it becomes available again all the time.
const LIMIT_PAUSE: Duration = Duration::from_secs(3 * 60 * 60);

/// The phase of the dialogue in which the server refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Sender,
    Recipient,
    Data,
    Text,
}

impl Phase {
    pub(super) fn phrase(self) -> Phrase {
        match self {
            Phase::Sender => "MAIL FROM".into(),
            Phase::Recipient => "RCPT TO".into(),
            Phase::Data => "DATA".into(),
            Phase::Text => phrase!("the text", "本文"),
        }
    }
}

/// Whether the connection can be used for the next mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reuse {
    Yes,
    No,
}

/// What a failure before the mail was accepted means.
pub(super) fn judge(fault: &Fault, phase: Phase) -> (SendError, Reuse) {
    let Fault::Refused(reply) = fault else {
        return (SendError::later(broke(phase, fault)), Reuse::No);
    };
    let (answer, at) = (reply.to_string(), phase.phrase());
    let why = phrase!("refused at {at}: {answer}", "拒否されました（{at}）：{answer}");
    match reply.code {
        // These codes may come in any phase.
        530 | 535 => (SendError::Locked { why }, Reuse::No),
        421 => (SendError::later(why), Reuse::No),
        _ if is_limit(reply) => (SendError::Busy { why, after: LIMIT_PAUSE }, Reuse::Yes),
        500.. if is_about_us(reply, phase) => (SendError::Locked { why }, Reuse::Yes),
        500.. => (SendError::Refused { why }, Reuse::Yes),
        _ => (SendError::later(why), Reuse::Yes),
    }
}

/// The connection broke while a mail was being sent.
pub(super) fn broke(phase: Phase, fault: &Fault) -> Phrase {
    let (at, why) = (phase.phrase(), Phrase::from(fault));
    phrase!("the connection broke at {at}: {why}", "接続が切れました（{at}）：{why}")
}

/// Whether our account has reached its sending limit. Gmail, Exchange Online and others report that as a permanent
/// failure, although it ends within hours.
fn is_limit(reply: &Reply) -> bool {
    const LIMITS: [&str; 4] =
        ["sending limit", "sending quota", "message quota exceeded", "submissionquotaexceeded"];
    reply.lines.iter().any(|line| line.starts_with("5.4.5 ")) || contains_any(reply, &LIMITS)
}

/// Whether a permanent refusal is about our account: then every other mail would be refused, too.
fn is_about_us(reply: &Reply, phase: Phase) -> bool {
    match phase {
        Phase::Sender => true,
        // Postfix and Exim report what they hold against a sender or a machine only after RCPT.
        Phase::Recipient => contains_any(
            reply,
            &["sender address rejected", "sender verify failed", "helo command rejected", "client host"],
        ),
        // Exchange Online: the account may not send from this address, is full, or was blocked.
        Phase::Data | Phase::Text => contains_any(reply, &["storedrv.submission", "sendasdenied"]),
    }
}

fn contains_any(reply: &Reply, words: &[&str]) -> bool {
    let answer = reply.lines.join(" ").to_lowercase();
    words.iter().any(|word| answer.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_no_is_told_apart_by_whose_fault_it_is() {
        use Phase::{Data, Recipient, Sender, Text};
        for (phase, answer, verdict) in [
            (Text, "550-5.4.5 Daily user sending limit exceeded. For more\n550 5.4.5 see x - gsmtp", "busy"),
            (Sender, "550 5.4.5 Daily sending quota exceeded. a1 - gsmtp", "busy"),
            (Text, "454 Throttling failure: Daily message quota exceeded.", "busy"),
            (Text, "454 Throttling failure: Maximum sending rate exceeded.", "later"),
            (Text, "554 5.2.0 STOREDRV.Submission.Exception:SubmissionQuotaExceededException; x", "busy"),
            (Text, "554 5.2.252 SendAsDenied; a not allowed to send as b; STOREDRV.Submission.x", "locked"),
            (Text, "554 5.2.2 mailbox full; STOREDRV.Submission.Exception:QuotaExceededException", "locked"),
            (Text, "554 5.7.1 Message rejected under suspicion of SPAM", "refused"),
            (Text, "552 5.3.4 message file too big", "refused"),
            (Data, "554 5.5.1 no valid recipients", "refused"),
            (Sender, "553 5.7.1 not your address", "locked"),
            (Sender, "432 4.3.2 Concurrent connections limit exceeded.", "later"),
            (Sender, "530 5.7.0 Must issue a STARTTLS command first", "locked"),
            (Recipient, "553 5.7.1 <a@b.c>: Sender address rejected: not owned by user a", "locked"),
            (Recipient, "504 5.5.2 <pi>: Helo command rejected: need fully-qualified hostname", "locked"),
            (Recipient, "554 5.7.1 Service unavailable; Client host [192.0.2.1] blocked using x", "locked"),
            (Recipient, "450 4.1.8 <a@b.c>: Sender address rejected: Domain not found", "later"),
            (Recipient, "550 5.1.1 <a@b.c>: Recipient address rejected: User unknown", "refused"),
            (Recipient, "554 5.7.1 <a@b.c>: Relay access denied", "refused"),
            (Recipient, "552 5.2.2 mailbox full, its quota is exceeded", "refused"),
            (Recipient, "452 4.5.3 Too many recipients", "later"),
            (Recipient, "421 4.7.0 Try again later, closing connection.", "later"),
        ] {
            let lines: Vec<&str> = answer.split('\n').collect();
            let code = lines[0][..3].parse().unwrap();
            let reply = Reply { code, lines: lines.iter().map(|line| line[4..].to_owned()).collect() };
            let (error, _) = judge(&Fault::Refused(reply), phase);
            let found = match error {
                SendError::Busy { .. } => "busy",
                SendError::Locked { .. } => "locked",
                SendError::Refused { .. } => "refused",
                SendError::Later { .. } => "later",
                other => panic!("{answer}: {other:?}"),
            };
            assert_eq!(found, verdict, "{answer}");
        }
    }
}
