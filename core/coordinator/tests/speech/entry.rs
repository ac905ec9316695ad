//! Records of consumer, share and streams groups → lines: `NAME GROUP [MEMBER] VALUE`, a tombstone as
//! `-NAME GROUP [MEMBER]`.

use barnabas_wire::messages::{GroupRecordKey, GroupRecordValue};

use super::{consumer, share, short_id, streams};

pub fn record(key: &GroupRecordKey, value: Option<&GroupRecordValue>) -> String {
    let Some(entry) = entry(key) else { return format!("{key:?}") };
    let said = value.map(|value| {
        let said = consumer::said(value).or_else(|| share::said(value)).or_else(|| streams::said(value));
        said.expect("a value of the key's type")
    });
    said.map_or_else(|| format!("-{entry}"), |said| format!("{entry} {said}"))
}

/// `None`: it is of another kind.
fn entry(key: &GroupRecordKey) -> Option<String> {
    use GroupRecordKey as Key;
    let of = |name: &str, group: &str, rest: &str| format!("{name} {group} {}", short_id(rest));
    Some(match key {
        Key::ConsumerGroupMetadata(key) => format!("consumer-group {}", key.group_id),
        Key::ConsumerGroupTargetAssignmentMetadata(key) => format!("target-epoch {}", key.group_id),
        Key::ConsumerGroupMemberMetadata(key) => of("member", &key.group_id, &key.member_id),
        Key::ConsumerGroupTargetAssignmentMember(key) => of("target", &key.group_id, &key.member_id),
        Key::ConsumerGroupCurrentMemberAssignment(key) => of("current", &key.group_id, &key.member_id),
        Key::ConsumerGroupRegularExpression(key) => of("regex", &key.group_id, &key.regular_expression),
        Key::ShareGroupMetadata(key) => format!("share-group {}", key.group_id),
        Key::ShareGroupTargetAssignmentMetadata(key) => format!("share-target-epoch {}", key.group_id),
        Key::ShareGroupMemberMetadata(key) => of("share-member", &key.group_id, &key.member_id),
        Key::ShareGroupTargetAssignmentMember(key) => of("share-target", &key.group_id, &key.member_id),
        Key::ShareGroupCurrentMemberAssignment(key) => of("share-current", &key.group_id, &key.member_id),
        Key::ShareGroupStatePartitionMetadata(key) => format!("share-set-up {}", key.group_id),
        Key::StreamsGroupMetadata(key) => format!("streams-group {}", key.group_id),
        Key::StreamsGroupTargetAssignmentMetadata(key) => format!("target-epoch {}", key.group_id),
        Key::StreamsGroupMemberMetadata(key) => of("member", &key.group_id, &key.member_id),
        Key::StreamsGroupTargetAssignmentMember(key) => of("target", &key.group_id, &key.member_id),
        Key::StreamsGroupCurrentMemberAssignment(key) => of("current", &key.group_id, &key.member_id),
        Key::StreamsGroupTopology(key) => format!("topology {}", key.group_id),
        _ => return None,
    })
}
