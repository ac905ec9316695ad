//! Repair of a replica that has to stay where it is: it fetches the damaged places beside its other fetches, as a
//! consumer does. core/replica's `repair/aside` decides.

use barnabas_base::{DurationMs, ErrorCode, Offset};
use barnabas_partition::{FetchPosition, Isolation, ReplicaKey};
use barnabas_replica::{ReadRequest, RequestError};
use bytes::Bytes;

use super::{Around, PATIENCE, Process};
use crate::network::{Message, Place};

const PLACE_BYTES: usize = 1500;
/// Before a place is asked for again.
const PAUSE: DurationMs = DurationMs(20);

impl Process {
    pub(super) fn fetch_aside(&mut self, key: ReplicaKey, from: Offset, around: &mut Around<'_>) {
        let waits = self.asides.get(&key).is_some_and(|until| *until > around.now);
        if !self.host.ways().fetches_aside || waits {
            return;
        }
        let Some(replica) = self.host.replica(key) else { return };
        let Some((asked, (leader, _))) = replica.aside_position(from).zip(replica.following) else { return };
        self.asides.insert(key, around.now.plus(PATIENCE));
        self.send(Place::Broker(leader), Message::FetchAside { key, asked }, around);
    }

    /// Of a leader.
    pub(super) fn serve_aside(
        &mut self,
        from: Place,
        key: ReplicaKey,
        asked: FetchPosition,
        around: &mut Around<'_>,
    ) {
        let request = ReadRequest {
            from: asked.offset,
            max_bytes: PLACE_BYTES,
            at_least_one: true,
            isolation: Isolation::ReadUncommitted,
            from_any: false,
            leader_epoch: Some(asked.leader_epoch),
            last_fetched_epoch: asked.last_epoch,
        };
        let read = self.host.step(key, around.now, |replica, around| {
            let bounds = replica.bounds_for(&request).map_err(RequestError::from)?;
            replica.read(&request, bounds, around.files, around.outbox)
        });
        let answer = match read {
            Some(Ok(read)) if read.diverging.is_some() => Err(ErrorCode::UnknownLeaderEpoch),
            Some(Ok(read)) => Ok(read.records),
            Some(Err(error)) => Err(error.code()),
            None => Err(ErrorCode::NotLeaderOrFollower),
        };
        if let (Err(ErrorCode::CorruptMessage), Place::Broker(follower)) = (&answer, from) {
            self.refused_follower(key, asked.offset, follower);
        }
        self.send(from, Message::FetchedAside { key, asked, answer }, around);
    }

    pub(super) fn fetched_aside(
        &mut self,
        key: ReplicaKey,
        asked: &FetchPosition,
        answer: Result<Bytes, ErrorCode>,
        around: &mut Around<'_>,
    ) {
        self.asides.remove(&key);
        let Some(hosted) = self.host.replicas.get_mut(&key) else { return };
        let replica = &mut hosted.replica;
        let waits = match answer {
            Ok(records) => {
                let is_empty = records.is_empty();
                let files = &mut self.host.files[replica.directory];
                if let Err(error) = replica.take_aside(asked, records, files) {
                    return self.host.truncation_failed(key, error);
                }
                is_empty
            }
            Err(ErrorCode::CorruptMessage) => {
                replica.leader_is_damaged_aside(asked);
                false
            }
            Err(_) => true,
        };
        if waits {
            self.asides.insert(key, around.now.plus(PAUSE));
        }
        self.repair(key, around);
    }
}
