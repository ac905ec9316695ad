//! Appends keep their order while a journal is full, and their bytes are bounded.

use crate::AwaitJournal;

#[test]
fn append_waits_while_a_journal_is_full() {
    let mut held = AwaitJournal::default();
    assert!(!held.must_wait(|| false));
    assert!(held.must_wait(|| true));
    held.hold(10, 'a');
    assert_eq!(held.next(|| true), None);
    assert_eq!(held.next(|| false), Some('a'));
    assert!(!held.must_wait(|| false));
}

#[test]
fn append_behind_a_held_one_waits_too() {
    let mut held = AwaitJournal::default();
    held.hold(10, 'a');
    assert!(held.must_wait(|| false), "it would overtake");
    held.hold(10, 'b');
    assert_eq!((held.next(|| false), held.next(|| false), held.next(|| false)), (Some('a'), Some('b'), None));
}

#[test]
fn mailbox_waits_while_32_mib_are_held() {
    let mut held = AwaitJournal::default();
    held.hold((32 << 20) - 1, 'a');
    assert!(held.has_room());
    held.hold(1, 'b');
    assert!(!held.has_room());
    assert_eq!(held.next(|| false), Some('a'));
    assert!(held.has_room());
}
