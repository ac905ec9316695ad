//! One partition: which offset comes next, what is safe, who may be told.
//!
//! It knows neither storage nor wire: the partition worker introduces them. See [`Partition`] (being written) for:
//! ```text
//! Partition::new() -> Partition                                   offline, a few words of memory
//! load(Loaded { log_start, log_end, durable_end, high_watermark, producers }), replay(base, &BatchInfo)
//! become_leader(Leadership { epoch, replicas, in_sync, min_in_sync, .. }, &mut Vec<Effect>)
//! become_follower(epoch, &mut Vec<Effect>), fail(&mut Vec<Effect>)    (waiting tickets are answered)
//! append(&BatchInfo, Append, &mut Vec<Effect>) -> Result<Placed, Refusal>
//! written(end, &mut Vec<Effect>)      the leader's write call has returned: answers acks=1
//! durable(end, &mut Vec<Effect>)      safe on this replica: moves the high watermark, answers acks=all
//! replicated(BrokerId, end, &mut Vec<Effect>)                     a follower has everything below `end`
//! expire(now, &mut Vec<Effect>), next_deadline() -> Option<MonotonicMs>
//! bounds(Isolation, Option<LeaderEpoch>) -> Result<Bounds, Refusal>
//! delete_records(Option<Offset>, &mut Vec<Effect>) -> Result<Offset, Refusal>     None: up to the high watermark
//! advance_log_start(Offset, &mut Vec<Effect>)                     retention
//! truncate(end), producers() -> iterator of ProducerState (snapshots, DescribeProducers), expire_producers(now, DurationMs)
//! high_watermark(), last_stable(), log_end(), log_start(), leader_epoch()
//! ```

mod types;

pub use types::{
    AbortedTxn, Acked, Acks, Append, BatchInfo, BatchKind, Bounds, Effect, Isolation, Marker, Origin,
    Outcome, Placed, Refusal, Ticket,
};
