//! Who this node is: whose its log directories are, how they are formatted, what it says of itself to its cluster.
//!
//! | file | answers |
//! |---|---|
//! | `place` | what lies at a log directory's path |
//! | `owner` | may this node use these directories, and of which cluster are they |
//! | `format` | what does formatting write |
//! | `initial` | what do the flags of `storage format` ask for |
//! | `scram` | which credentials does the cluster begin with |
//! | `lifecycle` | what does it do after each answer of the controller |
//! | `roles` | does `process.roles` fit what the directories were formatted and used for |
//! | `registration` | how does the node present itself, as a broker, a controller, a voter |
//!
//! It does not know: how a path is examined, threads, sockets, when the node registers (shell/broker's `server`).
//!
//! Source: Kafka `StorageTool`, `Formatter`, `MetaPropertiesEnsemble`, `BrokerLifecycleManager`.

mod format;
mod initial;
pub mod lifecycle;
mod owner;
mod place;
mod registration;
mod roles;
mod scram;

pub use format::{Beginning, InitialController, InitialVoters, Machine, format, voter};
pub use initial::{FormatFlags, beginning, check_owner, found_text};
pub use owner::{Judged, NONE_LEFT, Verdict, cannot_be, check_any_left, judge};
pub use place::{Place, partition_of_topics};
pub use registration::{
    Bound, broker_registration, controller_listener, controller_registration, raft_config, static_voters,
};
pub use roles::{Found, RoleNotice, role_notices};
pub use scram::credentials;

/// Why a node's directories cannot be formatted or used: what its operator has to put right, or the disk.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    #[error("{0}")]
    Operator(String),
    #[error(transparent)]
    Features(#[from] barnabas_quorum::bootstrap::FeatureChoiceError),
    #[error(transparent)]
    MetadataLog(#[from] barnabas_metadata_log::MetadataError),
    #[error(transparent)]
    Storage(#[from] barnabas_storage::StorageError),
}

impl From<String> for IdentityError {
    fn from(words: String) -> Self {
        Self::Operator(words)
    }
}

impl From<&str> for IdentityError {
    fn from(words: &str) -> Self {
        Self::Operator(words.to_owned())
    }
}
