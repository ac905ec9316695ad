//! The assignor, against the rules that Kafka's keeps.

use std::sync::Arc;

use barnabas_base::{Map, TopicId, Uuid};

use super::{Candidate, Partitions, assign};

fn topic(number: u8) -> TopicId {
    Uuid([number; 16])
}

fn candidate(topics: &[u8], has: Partitions) -> Candidate {
    let topics = topics.iter().map(|number| topic(*number)).collect();
    Candidate { topics: Arc::new(topics), has: Arc::new(has) }
}

fn assignable(topics: &[(u8, i32)]) -> Map<TopicId, Vec<i32>> {
    topics.iter().map(|(number, partitions)| (topic(*number), (0..*partitions).collect())).collect()
}

fn count(target: &Partitions) -> usize {
    target.values().map(Vec::len).sum()
}

/// How many read each partition.
fn readers(targets: &[Arc<Partitions>], of: &Map<TopicId, Vec<i32>>) -> Vec<usize> {
    let slots = of.iter().flat_map(|(topic, partitions)| partitions.iter().map(move |each| (topic, each)));
    let reads = |target: &Arc<Partitions>, (topic, partition): (&TopicId, &i32)| {
        target.get(topic).is_some_and(|has| has.contains(partition))
    };
    slots.map(|slot| targets.iter().filter(|target| reads(target, slot)).count()).collect()
}

#[test]
fn shares_are_even_and_everybody_has_something() {
    for members in 1..=12 {
        for partitions in 1..=12 {
            let of = assignable(&[(1, partitions)]);
            let unassigned = vec![candidate(&[1], Partitions::new()); members];
            let mut targets = assign(&unassigned, &of);
            // From nothing, and again from there with one more, and one fewer.
            for change in [0i32, 1, -1] {
                let now = usize::try_from(members as i32 + change).expect("some members").max(1);
                let mut candidates: Vec<Candidate> =
                    targets.iter().take(now).map(|has| candidate(&[1], Partitions::clone(has))).collect();
                candidates.resize(now, candidate(&[1], Partitions::new()));
                let kept = targets.clone();
                targets = assign(&candidates, &of);
                let counts: Vec<usize> = targets.iter().map(|target| count(target)).collect();
                let (least, most) = (counts.iter().min().copied(), counts.iter().max().copied());
                assert!(
                    most.zip(least).is_some_and(|(most, least)| most - least <= 1 && least >= 1),
                    "{counts:?}"
                );
                let sharing = now.div_ceil(partitions as usize);
                let readers = readers(&targets, &of);
                assert!(
                    readers.iter().all(|each| (1..=sharing).contains(each)),
                    "{now}/{partitions}: {readers:?}"
                );
                if change == 0 {
                    assert_eq!(targets, kept, "{members}/{partitions}: what is even stays");
                }
            }
        }
    }
}

#[test]
fn who_subscribes_to_other_topics_reads_those() {
    let of = assignable(&[(1, 4), (2, 3)]);
    let candidates = [
        candidate(&[1], Partitions::new()),
        candidate(&[1, 2], Partitions::new()),
        candidate(&[2], Partitions::new()),
    ];
    let targets = assign(&candidates, &of);
    assert!(targets[0].keys().eq([&topic(1)]) && targets[2].keys().eq([&topic(2)]));
    assert!(readers(&targets, &of).iter().all(|each| *each == 1));
    let counts: Vec<usize> = targets.iter().map(|target| count(target)).collect();
    assert_eq!(counts.iter().sum::<usize>(), 7);
    assert!(counts.iter().all(|count| *count >= 2), "{counts:?}");
    let again: Vec<Candidate> = candidates
        .iter()
        .zip(&targets)
        .map(|(each, has)| Candidate { has: Arc::clone(has), ..each.clone() })
        .collect();
    assert_eq!(assign(&again, &of), targets);
}

#[test]
fn what_is_not_set_up_or_gone_is_nobodys() {
    let has = Partitions::from([(topic(1), vec![0, 5]), (topic(9), vec![0])]);
    let targets = assign(&[candidate(&[1], has)], &assignable(&[(1, 2)]));
    assert_eq!(*targets[0], Partitions::from([(topic(1), vec![0, 1])]));
    assert!(assign(&[candidate(&[1], Partitions::new())], &Map::default())[0].is_empty());
    assert!(assign(&[], &assignable(&[(1, 2)])).is_empty());
}
