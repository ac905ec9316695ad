use super::*;
use barnabas_base::Uuid;

fn topic(number: u8) -> TopicId {
    Uuid([number; 16])
}

/// A registry with two workers.
fn two(max: usize) -> (Arc<Topics>, [TopicPen; 2]) {
    let topics = Arc::new(Topics::new(2, max));
    let pens = [0, 1].map(|worker| TopicPen::new(topics.clone(), worker));
    (topics, pens)
}

fn add(pen: &TopicPen, number: u8, messages: u64) {
    pen.count(topic(number), |cells| cells.messages_in.add(messages));
}

fn messages(topics: &Topics) -> Vec<(u8, u64)> {
    let mut all: Vec<_> =
        topics.each().into_iter().map(|(topic, counts)| (topic.0[0], counts.messages_in)).collect();
    all.sort_unstable();
    all
}

#[test]
fn workers_counts_of_a_topic_are_added_up() {
    let (topics, [one, other]) = two(4);
    add(&one, 1, 5);
    add(&other, 1, 7);
    add(&other, 2, 1);
    add(&one, 1, 100);
    assert_eq!(messages(&topics), [(1, 112), (2, 1)]);
    assert_eq!(topics.others(), TopicCounts::default());
}

#[test]
fn topics_beyond_the_maximum_share_one_place() {
    let (topics, [one, other]) = two(2);
    add(&one, 1, 1);
    add(&one, 2, 1);
    // This worker meets a topic without a place before those that have one.
    add(&other, 3, 10);
    add(&other, 4, 10);
    add(&other, 1, 1);
    add(&other, 2, 1);
    add(&one, 4, 10);
    assert!(topics.is_full());
    assert_eq!(messages(&topics), [(1, 2), (2, 2)]);
    assert_eq!(topics.others().messages_in, 30);
}

#[test]
fn deleted_topic_makes_room_for_another() {
    let (topics, [one, other]) = two(1);
    add(&one, 1, 1);
    add(&other, 2, 5);
    topics.keep(|known| known == topic(1));
    add(&other, 2, 5);
    assert_eq!((messages(&topics), topics.others().messages_in), (vec![(1, 1)], 10), "nothing has gone");
    topics.keep(|known| known != topic(1));
    assert_eq!(messages(&topics), []);
    add(&other, 2, 5);
    add(&one, 2, 1);
    // What others have counted stays, as counters do.
    assert_eq!((messages(&topics), topics.others().messages_in), (vec![(2, 6)], 10));
}

#[test]
fn no_topic_has_cells_where_the_maximum_is_0() {
    let (topics, [one, _]) = two(0);
    add(&one, 1, 3);
    assert_eq!((messages(&topics), topics.others().messages_in), (vec![], 3));
}
