//! Answers that a member did not hear: its tasks are repeated.

use super::group::StreamsGroup;
use super::member::StreamsMember;
use crate::assignment::streams::Target;

/// Whether a member missed the last answer: the answer repeats the member's tasks then. Kafka's would not, and the
/// member would keep what others wait for until it is fenced.
///
/// An older epoch than its own (`is_behind`) proves it at once. Within an epoch, tasks that do not agree may also be a
/// client's that names none each time, so the answer waits for the next heartbeat, and for a target that is due: that
/// one may bring other tasks. A member names its tasks only once, and the coordinator may move before the next
/// heartbeat. So a loaded group repeats the tasks of every member whose next heartbeat does not name just those.
pub(super) fn has_missed(
    group: &mut StreamsGroup,
    now: &StreamsMember,
    is_behind: bool,
    owned: Option<&Target>,
) -> bool {
    let disagrees = owned.map(|owned| !owned.is(&now.assigned));
    if is_behind || disagrees == Some(false) {
        group.own.doubted.remove(&now.id);
        return disagrees == Some(true);
    }
    if group.epoch > group.assignment_epoch || !group.own.doubted.contains(&now.id) {
        if disagrees == Some(true) {
            group.own.doubted.insert(now.id.clone());
        }
        return false;
    }
    group.own.doubted.remove(&now.id)
}
