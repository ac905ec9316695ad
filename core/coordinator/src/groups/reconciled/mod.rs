//! What groups have in common whose coordinator assigns (KIP-848): consumer, share and streams groups. Kafka's `ModernGroup`.
//!
//! | file | answers |
//! |---|---|
//! | `refused.rs` | what a member is refused, whatever its kind of group |
//! | `world.rs` | which topics there are, and whether they have changed for a group |
//! | `pace.rs` | when a member is to send its next heartbeat |
//! | `unwritten.rs` | which records are to be written, and written again after a loss |
//!
//! Does not know: members, targets, assignors. Those are each kind's own.

/// The epoch of a new consumer, share or streams group and of its target, which is empty and written nowhere. The first target
/// that is made is of the next epoch; members that come before it are in this one.
///
/// # Source
/// KAFKA-20268; Kafka 4.3 `ModernGroup`, `StreamsGroup`, `TargetAssignmentMetadata.INITIAL`.
pub(crate) const FIRST_EPOCH: i32 = 1;

mod pace;
mod refused;
mod unwritten;
mod world;

pub(crate) use pace::{Standing, pace};
pub(crate) use refused::{Refused, check_instance, unknown, unknown_instance};
pub(crate) use unwritten::Unwritten;
pub(crate) use world::{METADATA_REFRESH, World};
