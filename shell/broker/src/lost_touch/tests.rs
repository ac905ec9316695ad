//! Whose word is waited for, and when it is no more.

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
fn an_answer_waits_until_the_cluster_has_said_what_became_of_the_broker() {
    let lost_touch = LostTouch::default();
    assert!(!lost_touch.is_in_doubt(&image(7, false), at(0)));
    lost_touch.lost(&image(7, false), LOST, at(0));
    assert!(lost_touch.is_in_doubt(&image(7, false), at(0)));
    assert!(!lost_touch.is_in_doubt(&image(7, true), at(1)));
    // That it is another life again is nothing to wait for either.
    lost_touch.lost(&image(7, false), LOST, at(2));
    assert!(!lost_touch.is_in_doubt(&image(9, false), at(3)));
}

#[test]
fn one_that_answers_again_is_waited_for_no_more() {
    let lost_touch = LostTouch::default();
    lost_touch.lost(&image(7, false), LOST, at(0));
    lost_touch.found(LOST);
    assert!(!lost_touch.is_in_doubt(&image(7, false), at(0)));
}

#[test]
fn one_that_stays_away_and_is_not_given_up_is_waited_for_once() {
    let lost_touch = LostTouch::default();
    lost_touch.lost(&image(7, false), LOST, at(0));
    let over = PATIENCE.0.unsigned_abs();
    assert!(!lost_touch.is_in_doubt(&image(7, false), at(over)));
    lost_touch.lost(&image(7, false), LOST, at(over));
    assert!(!lost_touch.is_in_doubt(&image(7, false), at(over)));
}

#[test]
fn whoever_is_fenced_already_is_not_missed() {
    let lost_touch = LostTouch::default();
    lost_touch.lost(&image(7, true), LOST, at(0));
    assert!(!lost_touch.is_in_doubt(&image(7, true), at(0)));
}

/// A connection was closed to one that lives and of which nothing was asked since: when it dies after all, that is news.
#[test]
fn who_is_lost_again_after_a_while_is_waited_for_again_and_costs_nothing_meanwhile() {
    let lost_touch = LostTouch::default();
    lost_touch.lost(&image(7, false), LOST, at(0));
    let later = APART.0.unsigned_abs();
    lost_touch.lost(&image(7, false), LOST, at(later - 1));
    assert!(!lost_touch.is_in_doubt(&image(7, false), at(later - 1)), "it stays away");
    assert!(!lost_touch.is_in_doubt(&image(7, false), at(2 * later)));
    assert_eq!(lost_touch.count.load(Ordering::Relaxed), 0);
    lost_touch.lost(&image(7, false), LOST, at(2 * later));
    assert!(lost_touch.is_in_doubt(&image(7, false), at(2 * later)));
}
