//! Roles fit what a node knows (TLA+ `StatesMatchRoles`, `NoIllegalState`).

use super::Invariant;
use crate::raft::RoleName;
use crate::sim::cluster::{Cluster, Step};
use crate::sim::node::Brief;

pub struct Roles;

impl Invariant for Roles {
    fn name(&self) -> &'static str {
        "roles"
    }

    fn check(&mut self, _: &Cluster, step: &Step) -> Result<(), String> {
        let Some(after) = &step.after else { return Ok(()) };
        let me = Some(step.node);
        // Who asked for votes may learn on the way that it is voted out: then this election is its last.
        let asks = |before: &Brief| matches!(before.role, RoleName::Prospective | RoleName::Candidate);
        let may_lead = after.may_lead || step.before.as_ref().is_some_and(asks);
        let is_right = match after.role {
            RoleName::Leader | RoleName::Resigned => after.leader == me,
            RoleName::Follower => after.leader.is_some() && after.leader != me && after.is_voter,
            RoleName::Candidate => {
                after.may_lead
                    && after.leader.is_none()
                    && after.voted.is_some_and(|key| Some(key.id.get()) == me)
            }
            RoleName::Prospective => may_lead && after.leader != me,
            RoleName::Unattached => after.is_voter && after.leader != me,
            RoleName::Observer => !after.is_voter && after.leader != me,
        };
        if is_right { Ok(()) } else { Err(format!("node {} is {after:?}", step.node)) }
    }
}
