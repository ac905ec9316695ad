//! A classic group ↔ its record.

use std::collections::BTreeMap;

use barnabas_base::{Text, TimestampMs};
use barnabas_wire::Str;
use barnabas_wire::messages::GroupMetadataValue;
use barnabas_wire::messages::group_metadata_value::MemberMetadata;
use bytes::Bytes;

use super::group::{ClassicGroup, State};
use super::member::Member;
use crate::framework::Record;
use crate::records;
use crate::request::Protocols;

impl ClassicGroup {
    /// The record of this generation with these assignments; who is not named in them is assigned nothing.
    pub fn record(&self, assignments: &BTreeMap<Text, Bytes>) -> Record {
        let members = self.members.iter().map(|(id, member)| MemberMetadata {
            member_id: Str::from(id),
            group_instance_id: member.instance.as_ref().map(Str::from),
            client_id: Str::from(&member.client_id),
            client_host: Str::from(&member.client_host),
            rebalance_timeout: member.rebalance_timeout_ms,
            session_timeout: member.session_timeout_ms,
            subscription: member.metadata(self.protocol.as_ref()),
            assignment: assignments.get(id).cloned().unwrap_or_default(),
            ..Default::default()
        });
        let value = GroupMetadataValue {
            protocol_type: self.protocol_type.as_ref().map(Str::from).unwrap_or_default(),
            generation: self.generation,
            protocol: self.protocol.as_ref().map(Str::from),
            leader: self.leader.as_ref().map(Str::from),
            current_state_timestamp: self.state_since.unwrap_or(TimestampMs::NONE).0,
            members: members.collect(),
            ..Default::default()
        };
        records::group_metadata(&self.id, value)
    }

    /// The record of a stable group as it stands.
    pub fn record_as_is(&self) -> Record {
        let assignments = self.members.iter().map(|(id, member)| (id.clone(), member.assignment.clone()));
        self.record(&assignments.collect())
    }

    /// The group that a record speaks of.
    ///
    /// # Source
    /// Kafka `GroupMetadataManager.replay(GroupMetadataKey, GroupMetadataValue)`.
    pub fn from_record(id: Text, value: GroupMetadataValue) -> Self {
        let since = TimestampMs(value.current_state_timestamp);
        let mut group = Self::new(id, since);
        group.state_since = (since != TimestampMs::NONE).then_some(since);
        group.generation = value.generation;
        group.protocol = value.protocol.as_ref().map(Str::text);
        group.leader = value.leader.as_ref().map(Str::text);
        let name = group.protocol.clone().unwrap_or_default();
        for member in value.members {
            let loaded = Member {
                instance: member.group_instance_id.as_ref().map(Str::text),
                client_id: member.client_id.text(),
                client_host: member.client_host.text(),
                rebalance_timeout_ms: match member.rebalance_timeout {
                    -1 => member.session_timeout,
                    given => given,
                },
                session_timeout_ms: member.session_timeout,
                protocols: Protocols::one(name.clone(), Bytes::copy_from_slice(&member.subscription)),
                assignment: Bytes::copy_from_slice(&member.assignment),
                join: None,
                sync: None,
                is_new: false,
            };
            // No coordinator writes a record with a duplicate member; the first one counts.
            let id = member.member_id.text();
            let instance = loaded.instance.as_ref();
            if !group.members.contains_key(&id)
                && instance.is_none_or(|known| !group.static_members.contains_key(known))
            {
                group.add(id, loaded, &value.protocol_type);
            }
        }
        if group.leader.as_ref().is_none_or(|leader| !group.members.contains_key(leader)) {
            group.leader = group.members.keys().next().cloned();
        }
        group.state = if group.members.is_empty() { State::Empty } else { State::Stable };
        let kind = &value.protocol_type;
        group.protocol_type = (!kind.is_empty()).then(|| kind.text());
        group.find_subscribed();
        group
    }
}
