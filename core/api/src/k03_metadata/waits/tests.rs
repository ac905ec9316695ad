//! What an answer waits for, and when it waits no longer.

use super::*;
use barnabas_metadata::Delta;
use barnabas_wire::MetadataRecord;
use barnabas_wire::messages::{FenceBrokerRecord, RegisterBrokerRecord};

const LOST: BrokerId = BrokerId(2);

fn image(epoch: i64, is_fenced: bool) -> Image {
    let register = RegisterBrokerRecord {
        broker_id: LOST.get(),
        broker_epoch: epoch,
        fenced: false,
        ..RegisterBrokerRecord::default()
    };
    let mut delta = Delta::new(Image::default());
    delta.replay(&MetadataRecord::from(register)).unwrap();
    if is_fenced {
        let fence = FenceBrokerRecord { id: LOST.get(), epoch, ..FenceBrokerRecord::default() };
        delta.replay(&MetadataRecord::from(fence)).unwrap();
    }
    delta.take().0
}

fn at(ms: u64) -> MonotonicMs {
    MonotonicMs(1000 + ms)
}

#[test]
fn answer_waits_for_the_first_broker_and_not_for_ever() {
    let timeout = FIRST_BROKER_TIMEOUT.0.unsigned_abs();
    let awaits = |image: &Image, ms| awaits_first_broker(image, at(0), at(ms));
    for empty in [image(7, true), Image::default()] {
        assert_eq!([0, timeout - 1, timeout].map(|ms| awaits(&empty, ms)), [true, true, false]);
    }
    assert!(!awaits(&image(7, false), 0));
}

#[test]
fn answer_waits_until_the_broker_is_fenced() {
    let mut unreachable = Unreachable::default();
    assert!(!unreachable.awaits_verdict(&image(7, false), at(0)));
    unreachable.lost(&image(7, false), LOST, at(0));
    assert!(unreachable.awaits_verdict(&image(7, false), at(0)));
    assert!(!unreachable.awaits_verdict(&image(7, true), at(1)));
    // A new life of the broker is a verdict too.
    unreachable.lost(&image(7, false), LOST, at(2));
    assert!(!unreachable.awaits_verdict(&image(9, false), at(3)));
}

#[test]
fn broker_that_answers_again_is_not_waited_for() {
    let mut unreachable = Unreachable::default();
    unreachable.lost(&image(7, false), LOST, at(0));
    unreachable.found(LOST);
    assert!(!unreachable.awaits_verdict(&image(7, false), at(0)));
}

#[test]
fn broker_without_a_verdict_is_waited_for_once() {
    let mut unreachable = Unreachable::default();
    unreachable.lost(&image(7, false), LOST, at(0));
    let over = VERDICT_TIMEOUT.0.unsigned_abs();
    assert!(unreachable.awaits_verdict(&image(7, false), at(over - 1)));
    assert!(!unreachable.awaits_verdict(&image(7, false), at(over)));
    unreachable.lost(&image(7, false), LOST, at(over));
    assert!(!unreachable.awaits_verdict(&image(7, false), at(over)));
}

#[test]
fn fenced_broker_is_not_waited_for() {
    let mut unreachable = Unreachable::default();
    unreachable.lost(&image(7, true), LOST, at(0));
    assert!(unreachable.is_empty() && !unreachable.awaits_verdict(&image(7, true), at(0)));
}

/// A connection to a broker that lives was closed, and nothing was sent to it since. When it dies later, that is
/// another loss.
#[test]
fn broker_lost_again_later_is_waited_for_again() {
    let mut unreachable = Unreachable::default();
    unreachable.lost(&image(7, false), LOST, at(0));
    let later = APART.0.unsigned_abs();
    unreachable.lost(&image(7, false), LOST, at(later - 1));
    assert!(!unreachable.awaits_verdict(&image(7, false), at(later - 1)), "it stays away");
    assert!(!unreachable.awaits_verdict(&image(7, false), at(2 * later)));
    assert_eq!(unreachable.len(), 0, "it costs nothing meanwhile");
    unreachable.lost(&image(7, false), LOST, at(2 * later));
    assert!(unreachable.awaits_verdict(&image(7, false), at(2 * later)));
}
