//! What a member is at the moment.
//!
//! | file | answers |
//! |---|---|
//! | `state/epochs.rs` | which epochs are taken |
//! | `state/quorum_state.rs` | the `quorum-state` file |
//! | `state/role.rs` | its role, and what it remembers for it |

pub(crate) mod epochs;
pub mod quorum_state;
pub(crate) mod role;
