//! Partitions in and out of their chunks; names that collide.

use super::*;

fn partition(leader: i32) -> Partition {
    Partition {
        leader: BrokerId(leader),
        leader_epoch: LeaderEpoch(0),
        partition_epoch: PartitionEpoch(0),
        placement: Arc::default(),
    }
}

fn topics(names: &[&str]) -> Topics {
    let mut topics = Topics::default();
    for (at, name) in names.iter().enumerate() {
        topics.insert(Topic::new(Text::from(*name), TopicId::from_random([at as u8; 16])));
    }
    topics
}

#[test]
fn partitions_come_in_any_order_and_go_out_by_number() {
    let orders: [&[i32]; 4] = [&[0, 1, 2], &[2, 0, 1], &[700, 0, 300], &[0]];
    for order in orders {
        let mut topic = Topic::new(Text::from("t"), TopicId::ZERO);
        for &index in order {
            topic.set(PartitionIndex(index), partition(index));
            topic.set(PartitionIndex(index), partition(index));
        }
        let mut sorted = order.to_vec();
        sorted.sort_unstable();
        let read: Vec<i32> = topic.partitions().map(|(index, _)| index.get()).collect();
        assert_eq!(read, sorted);
        assert_eq!(topic.partition_count(), order.len());
        for first in [0, 1, 2, 299, 300, 301, 700, 701] {
            let read: Vec<i32> =
                topic.partitions_from(PartitionIndex(first)).map(|(index, _)| index.get()).collect();
            assert_eq!(read, sorted.iter().copied().filter(|&index| index >= first).collect::<Vec<_>>());
        }
        for &index in order {
            assert_eq!(topic.partition(PartitionIndex(index)), Some(&partition(index)));
        }
        assert_eq!(topic.partition(PartitionIndex(1_000)), None);
        assert_eq!(topic.partition(PartitionIndex(-1)), None);
    }
}

#[test]
fn a_partition_of_a_copy_changes_only_the_copy() {
    let mut topic = Topic::new(Text::from("t"), TopicId::ZERO);
    for index in 0..600 {
        topic.set(PartitionIndex(index), partition(1));
    }
    let before = topic.clone();
    topic.set(PartitionIndex(300), partition(2));
    assert_eq!(before.partition(PartitionIndex(300)), Some(&partition(1)));
    assert_ne!(before, topic);
    let (Rows::Many(old), Rows::Many(new)) = (&before.rows, &topic.rows) else { panic!("many") };
    assert!(Arc::ptr_eq(&old[0], &new[0]) && !Arc::ptr_eq(&old[1], &new[1]));
}

#[test]
fn equal_placements_are_one_and_unused_ones_are_forgotten() {
    let mut topics = Topics::default();
    let placement = Placement { replicas: vec![BrokerId(1)], ..Placement::default() };
    let first = topics.share(placement.clone());
    assert!(Arc::ptr_eq(&first, &topics.share(placement)));
    topics.share(Placement::default());
    assert_eq!(topics.placement_count(), 2);
    topics.forget_unused_placements();
    assert_eq!(topics.placement_count(), 1);
}

#[test]
fn names_collide_that_differ_in_nothing_but_dots_and_underscores() {
    let known = topics(&["a.b", "c_d.e", "plain", "x.y.z.w"]);
    let collides = |name: &str| known.colliding(name).map(|other| other.to_string());
    assert_eq!(collides("a_b"), Some("a.b".into()));
    assert_eq!(collides("c.d_e"), Some("c_d.e".into()));
    assert_eq!(collides("x_y_z_w"), Some("x.y.z.w".into()));
    assert_eq!(collides("a.b"), None);
    assert_eq!(collides("a_b_c"), None);
    assert_eq!(collides("a_"), None);
    assert_eq!(collides("plain"), None);
    assert_eq!(collides("ab"), None);
}

#[test]
fn a_look_from_a_name_on_is_in_order() {
    let known = topics(&["b", "a", "d", "c"]);
    let from: Vec<String> = known.iter_from("b").map(|topic| topic.name.to_string()).collect();
    assert_eq!(from, ["b", "c", "d"]);
    assert_eq!(known.iter_from("bb").count(), 2);
    assert_eq!(known.iter().count(), 4);
}

#[test]
fn a_partition_is_24_bytes_and_costs_no_more_where_it_may_be_missing() {
    assert_eq!(size_of::<Partition>(), 24);
    assert_eq!(size_of::<Option<Partition>>(), 24);
}
