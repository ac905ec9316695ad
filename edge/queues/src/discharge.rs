//! A link to the transaction coordinator: its task ends transactions, one after the other.
//!
//! A commit writes what was put (edge/queue-access/src/units.rs), whole or not at all. Then the share groups learn what
//! became of what was retired. A rollback releases what its receiver has settled; the rest its receiver still has.
//!
//! | what fails | a commit is answered with |
//! |---|---|
//! | the puts, and nothing was written | `amqp:transaction:rollback`; what was retired goes back |
//! | the puts, and it is not known | `amqp:internal-error`; what was retired goes back |
//! | what was retired, after puts were written | `amqp:internal-error`: it is delivered again |
//! | what was retired alone, all of it | `amqp:transaction:rollback` |
//! | what was retired alone, and perhaps not all of it | `amqp:internal-error` |
//!
//! Always true: a commit is answered with `accepted` only after all of it is done. `amqp:transaction:rollback` says
//! that nothing of it was.
//!
//! Before: open.rs, edge/queues/src/connection/transacting.rs. After: edge/queue-access/src/units.rs.

use crate::link::{Discharge, Ended, FromLink, LinkPart, Opening, Served, Settled, ToLink};
use barnabas_amqp::{Condition, DeliveryKey, Outcome, TRANSACTION_ROLLBACK};
use barnabas_client::Cluster;
use barnabas_queue_access::UnitWriter;
use tokio::sync::oneshot;

const UNKNOWN: &str = "amqp:internal-error";

/// What became of deliveries that their receivers did not settle: `None` where they still have them.
type Retired = Vec<(DeliveryKey, Option<Outcome>)>;

/// Serves the link, until the peer ends it. What was discharged before is done.
///
/// # Errors
/// None.
pub async fn serve(mut opening: Opening) -> Served {
    let mut cluster = Cluster::new(opening.kafka.clone());
    let mut writer = UnitWriter::new(opening.slots.clone());
    if !opening.report(FromLink::Ready(opening.link, None)).await {
        return Ok(());
    }
    while let Some(word) = opening.from_peer.recv().await {
        let ToLink::Discharge(discharge) = word else { continue };
        let Discharge { id, bytes, commits, refusal, puts, put_bytes, parts } = *discharge;
        let (outcome, retired) = if commits {
            match writer.write(&mut cluster, &puts).await {
                Ok(()) => commit(parts, !puts.is_empty()).await,
                Err(not) => {
                    let condition = if not.is_definite { TRANSACTION_ROLLBACK } else { UNKNOWN };
                    let sure = if not.is_definite { "nothing was written" } else { "it may be written" };
                    let why = Condition::new(condition, format!("{sure}: {}", not.error));
                    (Outcome::Rejected(why), roll_back(parts).await)
                }
            }
        } else {
            (refusal.map_or(Outcome::Accepted, Outcome::Rejected), roll_back(parts).await)
        };
        let ended = Ended { id, bytes, put_bytes, outcome, retired };
        opening.report(FromLink::Discharged(opening.link, Box::new(ended))).await;
    }
    Ok(())
}

/// Tells the groups.
async fn commit(parts: Vec<LinkPart>, has_written: bool) -> (Outcome, Retired) {
    let is_one = parts.iter().map(LinkPart::partitions).sum::<usize>() == 1;
    let (mut worst, mut retired) = (Settled::Taken, Vec::new());
    for part in parts {
        let places = part.retired.iter().map(|one| (one.1, one.2.clone())).collect();
        let settled = tell(&part, places).await;
        worst = worst.max(settled);
        for (id, _, outcome, is_settled) in part.retired {
            if !is_settled {
                // What the group did not take is delivered once more.
                let outcome = if settled == Settled::Taken { outcome } else { Outcome::Released };
                retired.push((id, Some(outcome)));
            }
        }
    }
    let rejected = |condition, words| Outcome::Rejected(Condition::new(condition, words));
    let outcome = match worst {
        Settled::Taken => Outcome::Accepted,
        Settled::Refused if is_one && !has_written => rejected(
            TRANSACTION_ROLLBACK,
            "the share group did not take what was accepted: its locks are over, and it is delivered again",
        ),
        _ if has_written => {
            rejected(UNKNOWN, "what was sent is written, and what was accepted may be delivered again")
        }
        _ => rejected(UNKNOWN, "what was accepted may be delivered again, in part"),
    };
    (outcome, retired)
}

async fn roll_back(parts: Vec<LinkPart>) -> Retired {
    let mut retired = Vec::new();
    for part in parts {
        let settled = part.retired.iter().filter(|one| one.3);
        let places: Vec<_> = settled.map(|one| (one.1, Outcome::Released)).collect();
        if !places.is_empty() {
            tell(&part, places).await;
        }
        let unsettled = part.retired.into_iter().filter(|one| !one.3);
        retired.extend(unsettled.map(|one| (one.0, None)));
    }
    retired
}

async fn tell(part: &LinkPart, places: Vec<(crate::link::Place, Outcome)>) -> Settled {
    let (answer, answered) = oneshot::channel();
    // A task that has ended has given back everything.
    if part.to.send(ToLink::Settle { places, answer }).await.is_err() {
        return Settled::Refused;
    }
    answered.await.unwrap_or(Settled::Unknown)
}
