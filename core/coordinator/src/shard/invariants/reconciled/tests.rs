//! One planted bug for each invariant that all three kinds share.

use std::sync::Arc;

use barnabas_base::{ErrorCode, MonotonicMs, TimestampMs};

use super::super::tests::caught;
use crate::GroupShard;
use crate::framework::{BatchId, Now};
use crate::groups::find_mut;
use crate::groups::reconciled::{Member, ReconciledGroup, Records};
use crate::outbox::TimerKey;
use crate::records::Entry;

pub(in super::super) const NOW: Now = Now { wall: TimestampMs(1_000), mono: MonotonicMs(1_000) };

pub(in super::super) fn group<K: Records>(shard: &mut GroupShard) -> &mut ReconciledGroup<K> {
    find_mut(&mut shard.groups, "g").expect("a group")
}

/// As the group itself would.
pub(in super::super) fn change<K: Records>(
    shard: &mut GroupShard,
    id: &str,
    how: impl FnOnce(&mut Member<K>),
) {
    let group = group::<K>(shard);
    let mut member = (**group.member(id).expect("a member")).clone();
    how(&mut member);
    group.put(member);
}

/// `shard` makes a shard with a group of two, `a` and `b`.
pub(in super::super) fn planted_bugs_are_caught<K: Records>(shard: fn() -> GroupShard) {
    let check = |sentence: &str, bug: &dyn Fn(&mut GroupShard)| caught(shard(), sentence, bug);
    check("is called", &|shard| group::<K>(shard).id = "other".into());
    check("stands for", &|shard| group::<K>(shard).plant_instance("i", "gone"));
    check("stands for", &|shard| group::<K>(shard).plant_instance("j", "a"));
    check("has a target and is no member", &|shard| {
        group::<K>(shard).targets.insert("gone".into(), Arc::default());
    });
    check("its target is of", &|shard| group::<K>(shard).assignment_epoch = 99);
    check("a is in 99", &|shard| change::<K>(shard, "a", |member| member.epoch = 99));
    check("was not handed out", &|shard| group::<K>(shard).note(Entry::Group));
    check("no timer for member a", &|shard| {
        shard.out.timers.cancel(&TimerKey::Session { group: "g".into(), member: "a".into() });
    });
    check("a lost record is not written again", &|shard| {
        let group = find_mut::<K>(&mut shard.groups, "g").expect("a group");
        group.lost(vec![Entry::Group], &mut shard.out);
        shard.out.timers.cancel(&TimerKey::Save("g".into()));
    });
    let effects = shard().failed(BatchId(50), ErrorCode::KafkaStorageError, NOW);
    assert_eq!(effects, []);
}
