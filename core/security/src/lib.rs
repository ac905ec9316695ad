//! Authorization: matches ACLs as Kafka's StandardAuthorizer does. Quotas: [`quotas`].
//!
//! Pure: an [`Authorizer`] is built from one metadata image and answers from memory. No socket, clock, log or cache.
//!
//! It does not know which API needs which operation (core/api does), how a client proved its name, or how a decision is
//! logged.
//!
//! Always true:
//! 1. a decision allocates nothing and its work does not grow with the number of ACLs, apart from two binary searches
//! 2. a matching DENY overrides every ALLOW; it does not apply to super users
//! 3. what a newer Kafka wrote and this node does not know never allows anything
//!
//! Source: Kafka 4.4 `StandardAuthorizerData`, `AclControlManager`, `Authorizer`; KIP-11, 290, 679, 1276.

pub mod acl;
mod any_resource;
mod authorizer;
pub mod binding;
pub mod explain;
mod filter;
mod host;
mod index;
pub mod quotas;
pub mod review;
mod super_users;

pub use acl::{Operation, PatternType, Permission, ResourceType};
pub use authorizer::settings::AuthorizerSettings;
pub use authorizer::{Authorizer, Caller, Verdict};
pub use filter::{AclFilter, FilterError};
pub use host::{Cidr, Host};
pub use index::Work;
pub use super_users::{SuperUserError, SuperUsers};
