//! ACLs, SCRAM credentials, delegation tokens and client quotas, as the metadata log defines them.
//!
//! Matching, hashing and throttling are core/security's; here is only what was decided.
//!
//! Sources: Kafka `AclsImage`, `ScramImage`, `DelegationTokenImage`, `ClientQuotasImage`.

use barnabas_base::{Text, TimestampMs, Uuid};
use bytes::Bytes;
use imbl::OrdMap;
use imbl::ordmap::DiffItem;

/// One access rule. Types are Kafka's numbers (`ResourceType`, `PatternType`, `AclOperation`, `AclPermissionType`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Acl {
    pub resource_type: i8,
    pub resource_name: Text,
    pub pattern_type: i8,
    pub principal: Text,
    pub host: Text,
    pub operation: i8,
    pub permission: i8,
}

pub type Acls = OrdMap<Uuid, Acl>;

/// The numbers that records give to SCRAM mechanisms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(i8)]
pub enum ScramMechanism {
    Sha256 = 1,
    Sha512 = 2,
}

impl ScramMechanism {
    pub const fn code(self) -> i8 {
        self as i8
    }

    pub const fn from_code(code: i8) -> Option<Self> {
        match code {
            1 => Some(Self::Sha256),
            2 => Some(Self::Sha512),
            _ => None,
        }
    }
}

/// `Debug` hides the keys: with the stored key and one recorded login a client logs in as the user (RFC 5802 §9).
#[derive(Clone, PartialEq, Eq)]
pub struct ScramCredential {
    pub salt: Bytes,
    pub stored_key: Bytes,
    pub server_key: Bytes,
    pub iterations: i32,
}

impl std::fmt::Debug for ScramCredential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("ScramCredential");
        for hidden in ["salt", "stored_key", "server_key"] {
            shown.field(hidden, &"[hidden]");
        }
        shown.field("iterations", &self.iterations).finish()
    }
}

pub type Scram = OrdMap<(ScramMechanism, Text), ScramCredential>;

/// A delegation token's facts; its secret is computed from the cluster's key, never stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DelegationToken {
    pub owner: Text,
    pub requester: Text,
    pub renewers: Vec<Text>,
    pub issued: TimestampMs,
    pub expires: TimestampMs,
    pub expires_at_the_latest: TimestampMs,
}

pub type DelegationTokens = OrdMap<Text, DelegationToken>;

/// Ids of tokens that only one of the two has; `true`: it is `after`. What they share is not looked at.
pub fn token_ids_changed<'a>(
    before: &'a DelegationTokens,
    after: &'a DelegationTokens,
) -> impl Iterator<Item = (&'a Text, bool)> {
    before.diff(after).filter_map(|change| match change {
        DiffItem::Add(id, _) => Some((id, true)),
        DiffItem::Remove(id, _) => Some((id, false)),
        DiffItem::Update { .. } => None,
    })
}

/// Whom a quota is for: type (`user`, `client-id`, `ip`) → name, `None` for the default of that type.
pub type QuotaEntity = OrdMap<Text, Option<Text>>;
/// Quota key (`producer_byte_rate` …) → value.
pub type QuotaValues = OrdMap<Text, f64>;
pub type ClientQuotas = OrdMap<QuotaEntity, QuotaValues>;

/// The kinds of entities that quotas are for.
pub mod entity {
    pub const USER: &str = "user";
    pub const CLIENT_ID: &str = "client-id";
    pub const IP: &str = "ip";
    pub const ALL: [&str; 3] = [USER, CLIENT_ID, IP];
}

/// The names of quotas. Source: Kafka `QuotaConfig`.
pub mod quota {
    /// Bytes per second, whole.
    pub const PRODUCER_BYTE_RATE: &str = "producer_byte_rate";
    /// Bytes per second, whole.
    pub const CONSUMER_BYTE_RATE: &str = "consumer_byte_rate";
    /// Hundredths of one thread's time.
    pub const REQUEST_PERCENTAGE: &str = "request_percentage";
    /// Partitions created or deleted per second.
    pub const CONTROLLER_MUTATION_RATE: &str = "controller_mutation_rate";
    /// Connections per second of one address, whole.
    pub const CONNECTION_CREATION_RATE: &str = "connection_creation_rate";
    pub const ALL: [&str; 5] = [
        PRODUCER_BYTE_RATE,
        CONSUMER_BYTE_RATE,
        REQUEST_PERCENTAGE,
        CONTROLLER_MUTATION_RATE,
        CONNECTION_CREATION_RATE,
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scram_credential_in_debug_output_is_hidden() {
        let secret = || Bytes::from_static(b"s3cret");
        let credential =
            ScramCredential { salt: secret(), stored_key: secret(), server_key: secret(), iterations: 4096 };
        let mut image = crate::Image::default();
        image.scram.insert((ScramMechanism::Sha256, Text::from("alice")), credential);
        let shown = format!("{:?}", image.scram);
        assert!(shown.contains("alice") && shown.contains("4096") && !shown.contains("s3cret"), "{shown}");
        assert!(!format!("{image:?}").contains("s3cret"));
    }
}
