//! Which of several log directories a replica lies in, or begins in: core/storage's `placement` decides, with what the
//! metadata log says.
//!
//! As shell/broker's upkeep/placement/locate.rs.

use barnabas_base::Uuid;
use barnabas_partition::ReplicaKey;
use barnabas_replica::is_checkpointed;
use barnabas_storage::journal::JournalPartition;
use barnabas_storage::placement::locate::{
    Assigned, Here, Located, Owner, Sight, keep_of_two, locate as decide,
};
use barnabas_storage::placement::{Candidate, choose};
use barnabas_storage::{DirKind, PartitionDir, StorageError, remove_dir};

use super::start::directory_id;
use super::{Failure, HostTime, News, ReplicaHost, Unopened};
use crate::random::Random;

impl ReplicaHost {
    /// The directory of a replica that is to be opened, and whether something of it is there.
    pub(super) fn locate(
        &mut self,
        key: ReplicaKey,
        partition: &JournalPartition,
        time: &HostTime<'_>,
    ) -> Result<(usize, bool), Unopened> {
        let waiting = self.unreplayed.get(&key).map(|(at, _)| *at);
        let failed = |error: StorageError| Unopened::Failed(error.into());
        if self.dirs.len() == 1 {
            let is_there = self.lies_in(0, partition).map_err(failed)?;
            return Ok((0, is_there || waiting.is_some()));
        }
        let found = self.find(key, partition, time).map_err(Unopened::Failed)?.or(waiting);
        let name = &partition.topic_partition;
        let sight = Sight {
            found,
            has_vanished: found.is_none()
                && self
                    .dirs
                    .iter()
                    .any(|dir| is_checkpointed(dir, name) && dir.checkpointed().any(|other| other == name)),
            assigned: self.assigned.get(&key).map_or(Assigned::Nowhere, |at| Assigned::Here(here(*at))),
            placed: None,
            some_offline: false,
        };
        let at = match decide(&sight) {
            Located::Found(at) => return Ok((at, true)),
            Located::New(at) => at,
            Located::Unplaced => self.choose(),
            other => {
                let why = format!("{name}: {other:?} by {sight:?}");
                return Err(Unopened::Failed(Failure::Lost(why)));
            }
        };
        self.assign(key, at);
        Ok((at, false))
    }

    /// The directory that has the replica's folder. Of two copies, of which a move was cut off, the one stays that the
    /// metadata log names.
    fn find(
        &mut self,
        key: ReplicaKey,
        partition: &JournalPartition,
        time: &HostTime<'_>,
    ) -> Result<Option<usize>, Failure> {
        let mut found = Vec::new();
        for at in 0..self.dirs.len() {
            if self.lies_in(at, partition)? && self.owns(at, partition)? {
                found.push(at);
            }
        }
        let [first, second] = found[..] else { return Ok(found.first().copied()) };
        let assigned = self.assigned.get(&key).map(|at| directory_id(self.id, *at));
        let copies = [first, second];
        let Some(kept) = keep_of_two(copies.map(|at| directory_id(self.id, at)), assigned) else {
            return Err(Failure::Lost(format!(
                "{partition:?} lies in two directories, and none is assigned"
            )));
        };
        let other = copies[1 - kept];
        let mut random = Random(time.now.0);
        let unique = Uuid::from_random(random.bytes());
        let name = &partition.topic_partition;
        let is_of_a_move = self.dirs[other].high_watermark(name).is_some();
        let aside = match is_of_a_move {
            true => self.dirs[other].rename_to_future(name, unique)?,
            false => self.dirs[other].rename_to_stray(name, unique)?,
        };
        aside.map_or(Ok(()), |path| remove_dir(&self.disk, &path))?;
        Ok(Some(copies[kept]))
    }

    /// Whether the folder is of the topic that is asked for, by what it says itself.
    fn owns(&self, at: usize, partition: &JournalPartition) -> Result<bool, StorageError> {
        let name = partition.topic_partition.clone();
        let folder = PartitionDir { name: name.to_string(), topic_partition: name, kind: DirKind::Current };
        let Some(found) = self.dirs[at].topic_id(&folder)? else {
            self.dirs[at].write_topic_id(&folder, partition.topic_id)?;
            return Ok(true);
        };
        Ok(Owner::of(found, partition.topic_id, || true) == Owner::This)
    }

    fn choose(&self) -> usize {
        let lies_in = |at| self.replicas.values().filter(|hosted| hosted.replica.directory == at).count();
        let candidate = |at: usize| Candidate {
            device: 1,
            free_bytes: self.dirs[at].space().map_or(0, |space| space.free),
            partitions: lies_in(at) as u64,
            written_per_s: 0,
            unmeasured: 0,
        };
        let candidates: Vec<Candidate> = (0..self.dirs.len()).map(candidate).collect();
        choose(&candidates).unwrap_or(0)
    }

    /// The controller learns where the replica lies.
    pub(super) fn assign(&mut self, key: ReplicaKey, at: usize) {
        self.assigned.insert(key, at);
        self.news.push_back(News::Assigned { key, directory: at });
    }
}

fn here(directory: usize) -> Here {
    Here { directory, is_online: true, is_usable: true }
}
