//! From `kraft.version` 0, where the voters stand in every node's file, to 1, where they stand in the log and can
//! change (KIP-853).
//!
//! A file knows neither which directory a voter lives on nor what it supports, so each voter tells every new leader
//! (UpdateRaftVoter); the leader remembers it, and writes it down when the level is raised: KRaftVersionRecord and
//! VotersRecord in one batch. The ids do not change by it, so that every majority before shares a member with every one
//! after.
//!
//! Source: Kafka `LeaderState.maybeAppendUpgradedKRaftVersion`, `KRaftVersionUpgrade`, `UpdateVoterHandler` (4.1 on).

use barnabas_base::ErrorCode;
use barnabas_wire::messages::KRaftVersionRecord;

use crate::QuorumError;
use crate::batches::Control;
use crate::now::Now;
use crate::raft::membership::reconfiguration::Refused;
use crate::raft::message::{ReplicaKey, UpdateVoter};
use crate::raft::state::role::Role;
use crate::raft::{Raft, RoleName};
use crate::voters::{Voter, Voters};

impl Raft {
    /// Takes what a voter says of itself at `kraft.version` 0: nothing of it is written.
    pub(crate) fn note_voter(&mut self, update: UpdateVoter) -> Result<(), Refused> {
        if !self.is_established() {
            return Err((ErrorCode::RequestTimedOut, ""));
        }
        let level = self.kraft_version();
        if level < update.kraft_min || level > update.kraft_max {
            return Err((ErrorCode::InvalidRequest, ""));
        }
        let UpdateVoter { voter: ReplicaKey { id, directory }, endpoints, kraft_min, kraft_max, .. } = update;
        if self.voters().get(id).is_none() {
            return Err((ErrorCode::VoterNotFound, ""));
        }
        if let Role::Leader(leading) = &mut self.role {
            leading.told.insert(id, Voter { id, directory, endpoints, kraft_min, kraft_max });
        }
        Ok(())
    }

    /// The voters as they would be written at `level`.
    ///
    /// # Errors
    /// Why `kraft.version` cannot be raised to it now, in words.
    fn voters_at_level(&self, level: i16) -> Result<Voters, String> {
        let Role::Leader(leading) = &self.role else { return Err("This node does not lead.".to_owned()) };
        if !self.is_established() {
            return Err("The leader has not committed anything yet; try again.".to_owned());
        }
        let me = &self.config.me;
        let mut known = Vec::new();
        let (mut silent, mut old) = (Vec::new(), Vec::new());
        for id in self.voters().ids() {
            let voter = if id == me.id { Some(me) } else { leading.told.get(&id) };
            match voter.filter(|voter| !voter.directory.is_zero()) {
                None => silent.push(id.to_string()),
                Some(voter) if level < voter.kraft_min || level > voter.kraft_max => {
                    old.push(id.to_string());
                }
                Some(voter) => known.push(voter.clone()),
            }
        }
        if !old.is_empty() {
            return Err(format!("Voters {} do not support it.", old.join(", ")));
        }
        if !silent.is_empty() {
            let silent = silent.join(", ");
            return Err(format!(
                "The leader does not know the directories of voters {silent} yet: do they run?"
            ));
        }
        Ok(Voters::new(known))
    }

    /// Why `kraft.version` cannot be raised to `level` now, in words.
    pub fn refuse_kraft_version(&self, level: i16) -> Option<String> {
        if level <= self.kraft_version() {
            return Some("It is there already.".to_owned());
        }
        self.voters_at_level(level).err()
    }

    /// Raises `kraft.version`, where [`Raft::refuse_kraft_version`] has nothing against it. It has come about once the
    /// end of the log as it is after this is committed.
    ///
    /// # Errors
    /// What stops the node.
    pub fn raise_kraft_version(&mut self, level: i16, now: Now) -> Result<(), QuorumError> {
        assert!(self.role() == RoleName::Leader && level > self.kraft_version(), "only a leader raises it");
        let Ok(voters) = self.voters_at_level(level) else { return Ok(()) };
        let record = KRaftVersionRecord { version: 0, kraft_version: level, ..KRaftVersionRecord::default() };
        self.append_controls(&[Control::KRaftVersion(record), Control::Voters(voters.to_record())], now)?;
        // The state file has voters at level 0, and none at level 1.
        self.persist();
        self.advance_high_watermark(now);
        self.poll(now)
    }
}
