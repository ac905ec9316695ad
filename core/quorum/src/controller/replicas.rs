//! The replicas of partitions that there are: who leads, who is in sync, where they lie.
//!
//! | file | answers |
//! |---|---|
//! | `replicas/alter_partition.rs` | AlterPartition: the ISR as its leader sees it |
//! | `replicas/balance.rs` | what the controller does unasked, now and then |
//! | `replicas/directories.rs` | AssignReplicasToDirs |
//! | `replicas/elections.rs` | ElectLeaders |
//! | `replicas/reassignments.rs` | AlterPartitionReassignments |

pub(crate) mod alter_partition;
pub(crate) mod balance;
pub(crate) mod directories;
pub(crate) mod elections;
pub(crate) mod reassignments;
