//! Who may do what and how much of it: ACLs, SCRAM credentials, delegation tokens, client quotas.
//!
//! | file | answers |
//! |---|---|
//! | `access/acls.rs` | CreateAcls, DeleteAcls |
//! | `access/client_quotas.rs` | AlterClientQuotas |
//! | `access/scram.rs` | AlterUserScramCredentials |
//! | `access/tokens.rs` | Create-, Renew-, ExpireDelegationToken; removal of expired tokens |
//!
//! All of it is in the memory of every node, so the number of entries of each kind and the length of their names are
//! bounded. Kafka has no such bounds.

pub(crate) mod acls;
pub(crate) mod client_quotas;
pub(crate) mod scram;
pub(crate) mod tokens;

use barnabas_base::ErrorCode;
use barnabas_metadata::config::BrokerConfig;

use super::Refusal;

const ENTRIES: &str = "metadata.access.entries.max";

/// Records of one request. Source: Kafka `QuorumController.MAX_RECORDS_PER_USER_OP`.
const RECORDS_MAX: usize = 10_000;
/// A name of a principal, user, client, host or resource: far more than any has.
const NAME_BYTES_MAX: usize = 4096;

/// Whether a kind of entry may grow to `will` entries.
fn check_entries(config: &BrokerConfig, have: usize, will: usize, of: &str) -> Result<(), Refusal> {
    let max = config.long(ENTRIES);
    if will <= have || will as i64 <= max {
        return Ok(());
    }
    let message =
        format!("The cluster has {have} {of}, and may have {max} ({ENTRIES}); {will} are too many.");
    Err(Refusal::new(ErrorCode::PolicyViolation, message))
}

/// Source: Kafka `EventHandlerExceptionInfo`, which answers so to a list that outgrows its bound.
fn too_large() -> Refusal {
    Refusal::new(ErrorCode::PolicyViolation, "Unable to perform excessively large batch operation.")
}

fn check_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<(), Refusal> {
    match names.into_iter().map(str::len).find(|&bytes| bytes > NAME_BYTES_MAX) {
        None => Ok(()),
        Some(bytes) => {
            let message = format!("A name has {bytes} bytes; at most {NAME_BYTES_MAX} are taken.");
            Err(Refusal::new(ErrorCode::PolicyViolation, message))
        }
    }
}
