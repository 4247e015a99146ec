//! What is wrong according to the database: long pauses and messages that need a decision. Pure but for its reads.

use std::collections::BTreeMap;
use std::time::Duration;

use super::store::{self, Alert};
use super::{AlertKind, raise};
use crate::db::{self, Tx};
use crate::engine::attention::{self, Waiting};
use crate::ledger::Subject;
use crate::ledger::pause::{self, Pause};
use crate::phrase;
use crate::phrase::Phrase;
use crate::time::Timestamp;

/// Shorter pauses, or series of pauses, are normal.
const LONG: Duration = Duration::from_secs(3600);

/// Something that is wrong now.
#[derive(Clone, Debug, PartialEq)]
struct Cause {
    kind: AlertKind,
    subject: Subject,
    message: Phrase,
}

/// How the alerts in the database differ from the present causes.
pub(super) struct Changes {
    begun: Vec<Cause>,
    over: Vec<Alert>,
}

impl Changes {
    /// Compares the alerts with what is wrong now. `is_configured` tests whether the config has a job or channel.
    pub(super) fn find(
        tx: &mut Tx<'_>,
        is_configured: &impl Fn(&Subject) -> bool,
        now: Timestamp,
    ) -> db::Result<Self> {
        // A pause that has just ended may begin again with the next attempt; if that attempt works, the pause is
        // deleted.
        let pauses = pause::list(tx, now.minus(pause::SERIES))?;
        let present = list_causes(&pauses, &attention::list_waiting(tx, now)?, is_configured);
        let open = store::list_open(tx)?;
        let over = list_over(&open, &present, is_configured).cloned().collect();
        let is_known = |cause: &Cause| {
            let name = cause.kind.cause(&cause.subject);
            open.iter().any(|alert| alert.cause == name && alert.message == cause.message)
        };
        Ok(Self { over, begun: present.into_iter().filter(|cause| !is_known(cause)).collect() })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.begun.is_empty() && self.over.is_empty()
    }

    /// Saves the changes.
    pub(super) fn apply(&self, tx: &mut Tx<'_>, now: Timestamp) -> db::Result<()> {
        self.over.iter().try_for_each(|alert| store::clear_cause(tx, &alert.cause, now))?;
        self.begun.iter().try_for_each(|cause| raise(tx, cause.kind, &cause.subject, &cause.message, now))
    }
}

fn list_causes(
    pauses: &[Pause],
    held: &BTreeMap<String, Waiting>,
    is_configured: &impl Fn(&Subject) -> bool,
) -> Vec<Cause> {
    let is_long = |pause: &Pause| pause.paused_until.is_none_or(|until| until.since(pause.since) >= LONG);
    // A person who pauses a job needs no alert about it.
    let pauses = pauses.iter().filter(|pause| pause.name.word() != "job" && is_long(pause));
    let pauses = pauses.filter(|pause| is_configured(&pause.name)).map(|pause| Cause {
        kind: AlertKind::Paused,
        subject: pause.name.clone(),
        message: paused(pause),
    });
    let held = held.iter().filter_map(|(job, waiting)| {
        let (kind, subject) = (AlertKind::Approval, Subject::job(job));
        Some(Cause { kind, subject, message: waiting.held_phrase()? })
    });
    pauses.chain(held).collect()
}

fn paused(pause: &Pause) -> Phrase {
    let why = &pause.reason;
    match pause.paused_until {
        Some(until) => phrase!("paused until {until}: {why}", "{until} まで一時停止中：{why}"),
        None => phrase!("paused: {why}", "一時停止中：{why}"),
    }
}

/// Open alerts that are over: the cause is gone, or the subject is no longer in the config.
fn list_over<'a>(
    open: &'a [Alert],
    present: &'a [Cause],
    is_configured: &'a impl Fn(&Subject) -> bool,
) -> impl Iterator<Item = &'a Alert> {
    open.iter().filter(move |alert| match alert.kind() {
        Some(AlertKind::Paused | AlertKind::Approval) => {
            !present.iter().any(|cause| cause.kind.cause(&cause.subject) == alert.cause)
        }
        // The code that raised these clears them.
        Some(AlertKind::Failing | AlertKind::Silent) => !is_configured(&alert.subject()),
        None => true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;

    fn at(hours: i64) -> Timestamp {
        Timestamp::from_millis(1_768_435_331_000 + hours * HOUR)
    }

    fn pause_of(name: &str, until: Option<i64>) -> Pause {
        Pause {
            name: Subject::verbatim(name),
            paused_at: at(0),
            since: at(0),
            paused_until: until.map(at),
            reason: "401".into(),
        }
    }

    #[test]
    fn long_pauses_and_held_messages_are_causes_and_everyday_life_is_not() {
        let is_configured = |subject: &Subject| subject.as_str() != "channel:old";
        for (name, until, is_cause) in [
            ("channel:mail", None, true),
            ("channel:old", None, false),
            ("provider:gemini", Some(6), true),
            ("provider:gemini", Some(0), false),
            ("feed:news", None, true),
            ("job:news", None, false),
        ] {
            let causes = list_causes(&[pause_of(name, until)], &BTreeMap::new(), &is_configured);
            assert_eq!(causes.len(), usize::from(is_cause), "{name} {until:?}");
        }
        let held = BTreeMap::from([("news".to_owned(), Waiting { held: 2, failed: 0 })]);
        let causes = list_causes(&[], &held, &is_configured);
        assert_eq!(causes[0].kind.cause(&causes[0].subject), "approval job:news");
        assert_eq!(causes[0].message.to_string(), "2 messages on hold until you decide");
        let failed = BTreeMap::from([("news".to_owned(), Waiting { held: 0, failed: 2 })]);
        assert!(list_causes(&[], &failed, &is_configured).is_empty());
    }

    #[test]
    fn an_alert_is_over_when_its_cause_is_gone_or_its_thing_has_left_the_config() {
        let alert =
            |cause: &str| Alert { cause: cause.into(), since: at(0), message: "x".into(), over_at: None };
        let present = list_causes(&[pause_of("channel:mail", None)], &BTreeMap::new(), &|_: &Subject| true);
        let is_configured = |subject: &Subject| subject.as_str() != "job:old";
        for (cause, is_over) in [
            ("paused channel:mail", false),
            ("paused channel:hook", true),
            ("approval job:news", true),
            ("failing job:news", false),
            ("failing job:old", true),
            ("silent feed:news", false),
        ] {
            let open = [alert(cause)];
            assert_eq!(list_over(&open, &present, &is_configured).count(), usize::from(is_over), "{cause}");
        }
    }
}
