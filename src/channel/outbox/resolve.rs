//! Resolves messages whose outcome is unknown: were they delivered, and should they be sent again?

use tokio_util::sync::CancellationToken;

use super::decide::{self, Resolved, Unresolved};
use super::events::DeliveryCode;
use super::model::Row;
use super::sender::{Ended, Sender};
use super::{claim, store, topics};
use crate::channel::Channel;
use crate::channel::error::{Accepted, Finding, SendError};
use crate::channel::progress::SendBudget;
use crate::db;
use crate::fail;
use crate::phrase;

impl Sender {
    /// Checks with the channel what became of a message, and sends it again if decided so.
    pub(super) async fn resolve_unknown(
        &self,
        channel: &Channel,
        row: Row,
        stop: &CancellationToken,
    ) -> db::Result<Ended> {
        let looking = tokio::time::timeout(channel.settings.timeout, self.resolve(channel, &row));
        let finding = match looking.await {
            Ok(finding) => finding?,
            Err(_) => Finding::Later(SendError::later(phrase!(
                "looking took too long",
                "確認に時間がかかりすぎました"
            ))),
        };
        fail::point("outbox.looked");
        let now = self.channel_env.clock.now();
        let message = Unresolved {
            channel: &row.channel,
            attempts: row.attempts,
            resolve_attempts: row.resolve_attempts,
            attempted: row.attempted(),
            was_resent: row.resent_at.is_some(),
            suspicion: row.suspicion,
        };
        match decide::after_resolving(&message, &finding, channel.key_window(), &channel.settings, now) {
            Resolved::Transition(step) => self.record(channel, row, step).await,
            Resolved::SendAgain { is_blind } => {
                let (owner, held, lease) = (self.owner.clone(), row, channel.settings.lease());
                let (why, clock) = (finding.phrase(), self.channel_env.clock.clone());
                let again = self
                    .db
                    .claim(move |tx| {
                        let (now, uptime) = (tx.now(), clock.uptime());
                        let budget = SendBudget::new(&clock, tx.began().into(), lease);
                        let again =
                            claim::mark_sending_again(tx, &held, &owner, uptime.as_ref(), lease, is_blind)?;
                        if let Some(row) = &again {
                            // A message that was only suspected had never been sent, as far as is known.
                            let code = if held.attempts == 0 {
                                DeliveryCode::Cleared
                            } else {
                                DeliveryCode::SentAgain
                            };
                            topics::note(tx, row, code, Some(&why), now)?;
                        }
                        Ok(again.map(|row| (row, budget)))
                    })
                    .await?;
                match again {
                    Some((row, budget)) => {
                        fail::point("outbox.again");
                        Box::pin(self.send(channel, row, &budget, stop)).await
                    }
                    None => Ok(Ended::Lost),
                }
            }
        }
    }

    /// The channel's finding; a post that it finds may belong to another message of ours.
    async fn resolve(&self, channel: &Channel, row: &Row) -> db::Result<Finding> {
        for found in match channel.resolve(&self.channel_env, row).await {
            Ok(found) => found,
            Err(finding) => return Ok(finding),
        } {
            let (name, id, remote_id) = (channel.name.clone(), row.id, found.clone());
            if !self.db.read(move |tx| store::is_taken(tx, &name, &remote_id, id)).await? {
                return Ok(Finding::Accepted(Accepted { remote_id: Some(found), pause_until: None }));
            }
        }
        Ok(Finding::NotSent)
    }
}
