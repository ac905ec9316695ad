//! DescribeGroups, for one classic group.

use barnabas_base::ErrorCode;
use barnabas_wire::Str;
use barnabas_wire::messages::describe_groups_response::{DescribedGroup, DescribedGroupMember};
use bytes::Bytes;

use super::group::{ClassicGroup, State};
use crate::framework::part;

/// From this version on, a group that is not there is an error and not just dead (KIP-1043).
const NOT_FOUND_SINCE: i16 = 6;

/// What members said is shown while the group is stable, and only then; what they were last assigned always is.
///
/// # Source
/// Kafka 4.4 `GroupMetadataManager.describeGroups`, `ClassicGroupMember.describeNoMetadata`.
pub(crate) fn describe(group: &ClassicGroup) -> DescribedGroup {
    let is_stable = group.state == State::Stable;
    let members = group.members.iter().map(|(id, member)| DescribedGroupMember {
        member_id: Str::from(id),
        group_instance_id: member.instance.as_ref().map(Str::from),
        client_id: Str::from(&member.client_id),
        client_host: Str::from(&member.client_host),
        member_metadata: if is_stable { member.metadata(group.protocol.as_ref()) } else { Bytes::new() },
        member_assignment: member.assignment.clone(),
        ..Default::default()
    });
    let protocol = group.protocol.as_ref().filter(|_| is_stable);
    DescribedGroup {
        group_id: Str::from(&group.id),
        group_state: group.state.name().into(),
        protocol_type: group.protocol_type.as_ref().map(Str::from).unwrap_or_default(),
        protocol_data: protocol.map(Str::from).unwrap_or_default(),
        members: members.collect(),
        ..Default::default()
    }
}

/// What a description takes, at most.
pub(crate) fn described_bytes(group: &ClassicGroup) -> usize {
    let members = group.members.iter().map(|(id, member)| {
        let who = [id.as_str(), member.client_id.as_str(), member.client_host.as_str()];
        let metadata = member.protocols.pairs().map(|(_, said)| said.len()).max().unwrap_or_default();
        part::texts(who) + part::text_if(member.instance.as_ref()) + metadata + member.assignment.len() + 16
    });
    let head = [Some(&group.id), group.protocol_type.as_ref(), group.protocol.as_ref()];
    part::taken(64 + head.map(part::text_if).iter().sum::<usize>() + members.sum::<usize>())
}

pub(crate) fn describe_missing(group_id: &Str, version: i16) -> DescribedGroup {
    let mut described =
        DescribedGroup { group_id: group_id.clone(), group_state: "Dead".into(), ..Default::default() };
    if version >= NOT_FOUND_SINCE {
        described.error_code = ErrorCode::GroupIdNotFound.code();
        described.error_message = Some(format!("Group {group_id} not found.").into());
    }
    described
}
