//! The `quorum-state` file: which epoch this node is in, whom it voted for, who leads.
//!
//! One line of JSON, as Kafka writes it: version 0 at `kraft.version` 0, version 1 at 1. Both are read whatever the
//! level, since the file may be older than the level.
//!
//! Source: Kafka `FileQuorumStateStore`, QuorumStateData.json.

use barnabas_base::{BrokerId, DirectoryId, LeaderEpoch, Uuid};
use serde_json::Value;

use crate::QuorumError;

/// The file's name in the directory of `__cluster_metadata-0`.
pub const FILE_NAME: &str = "quorum-state";

/// What must not be forgotten over a restart, or a node could vote twice in one epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuorumState {
    pub epoch: LeaderEpoch,
    pub leader: Option<BrokerId>,
    pub voted: Option<(BrokerId, DirectoryId)>,
    /// Version 0 only.
    pub voters: Vec<BrokerId>,
}

impl QuorumState {
    /// An epoch that is no `int32` is read as −1: out of range, as any negative one.
    ///
    /// # Errors
    /// Anything that is not this file in version 0 or 1.
    pub fn parse(text: &str) -> Result<Self, QuorumError> {
        let line = text.lines().next().unwrap_or_default();
        let bad = |what: String| QuorumError::State { what };
        let json: Value = serde_json::from_str(line).map_err(|error| bad(error.to_string()))?;
        let number = |field: &str| {
            json.get(field).and_then(Value::as_i64).ok_or_else(|| bad(format!("no number in field {field}")))
        };
        let id = |field: &str| -> Result<i32, QuorumError> {
            i32::try_from(number(field)?).map_err(|_| bad(format!("field {field} is out of range")))
        };
        let version = number("data_version")?;
        if !(0..=1).contains(&version) {
            return Err(bad(format!("data_version {version} is neither 0 nor 1")));
        }
        let some = |id: i32| (id >= 0).then_some(BrokerId(id));
        let directory = match json.get("votedDirectoryId").and_then(Value::as_str) {
            None => Uuid::ZERO,
            Some(text) => {
                Uuid::parse(text).ok_or_else(|| bad(format!("votedDirectoryId {text} is no id")))?
            }
        };
        let voters = json.get("currentVoters").and_then(Value::as_array).into_iter().flatten();
        let voters = voters.filter_map(|voter| voter.get("voterId").and_then(Value::as_i64));
        Ok(Self {
            epoch: i32::try_from(number("leaderEpoch")?).map_or(LeaderEpoch::NONE, LeaderEpoch),
            leader: some(id("leaderId")?),
            voted: some(id("votedId")?).map(|id| (id, directory)),
            voters: voters.filter_map(|id| i32::try_from(id).ok()).map(BrokerId).collect(),
        })
    }

    /// The file's text for a quorum at `kraft_version`, fields in Kafka's order.
    pub fn to_text(&self, kraft_version: i16) -> String {
        let leader = self.leader.unwrap_or(BrokerId::NONE);
        let epoch = self.epoch;
        let (voted, directory) = self.voted.unwrap_or((BrokerId::NONE, Uuid::ZERO));
        if kraft_version >= 1 {
            return format!(
                r#"{{"leaderId":{leader},"leaderEpoch":{epoch},"votedId":{voted},"votedDirectoryId":"{directory}","data_version":1}}"#
            );
        }
        let voters: Vec<String> = self.voters.iter().map(|id| format!(r#"{{"voterId":{id}}}"#)).collect();
        let voters = voters.join(",");
        format!(
            r#"{{"clusterId":"","leaderId":{leader},"leaderEpoch":{epoch},"votedId":{voted},"appliedOffset":0,"currentVoters":[{voters}],"data_version":0}}"#
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_written_as_kafka_writes_them() {
        let state = QuorumState {
            epoch: LeaderEpoch(2),
            leader: Some(BrokerId(1)),
            voted: None,
            voters: vec![BrokerId(1)],
        };
        let v0 = r#"{"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1}],"data_version":0}"#;
        let v1 = r#"{"leaderId":1,"leaderEpoch":2,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}"#;
        assert_eq!(state.to_text(0), v0);
        assert_eq!(state.to_text(1), v1);
        assert_eq!(QuorumState::parse(v0).unwrap(), state);
        assert_eq!(QuorumState::parse(v1).unwrap().voters, []);
    }

    #[test]
    fn damage_is_named() {
        for text in ["", "{}", "[1]", r#"{"leaderId":1,"leaderEpoch":2,"votedId":-1,"data_version":7}"#] {
            assert!(QuorumState::parse(text).is_err(), "{text}");
        }
    }
}
