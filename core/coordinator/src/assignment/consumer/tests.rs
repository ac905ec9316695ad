//! What every assignment must be, on specs drawn at random, and the examples that are easy to read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use barnabas_base::{Text, TopicId, Uuid};

use super::{Candidate, Spec, assign};
use crate::assignment::Partitions;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        barnabas_base::split_mix_64(&mut self.0) % bound
    }
}

fn topic(number: u8) -> TopicId {
    Uuid([number; 16])
}

/// Members as `name:topics`, topics as `number:partitions`.
fn spec(topics: &[(u8, i32)], members: &[(&str, &[u8])]) -> Spec {
    let partitions = topics.iter().map(|(number, partitions)| (topic(*number), *partitions)).collect();
    let mut spec = Spec { partitions, ..Spec::default() };
    for (name, subscribed) in members {
        let subscription = spec.subscription(subscribed.iter().map(|number| topic(*number)).collect());
        let (id, has) = (Text::from(*name), Arc::default());
        spec.candidates.push(Candidate { id, instance: None, subscription, has });
    }
    spec
}

fn apply(spec: &mut Spec, targets: Vec<Arc<Partitions>>) {
    spec.candidates.iter_mut().zip(targets).for_each(|(candidate, target)| candidate.has = target);
}

fn shown(targets: &[Arc<Partitions>]) -> Vec<String> {
    let target = |target: &Arc<Partitions>| {
        let topics = target.iter().map(|(topic, partitions)| format!("{}:{partitions:?}", topic.0[0]));
        topics.collect::<Vec<_>>().join(" ")
    };
    targets.iter().map(target).collect()
}

/// Every partition of a subscribed topic has exactly one owner, which subscribes to the topic.
fn check(spec: &Spec, targets: &[Arc<Partitions>], what: &str) {
    let mut owned: BTreeSet<(TopicId, i32)> = BTreeSet::new();
    for (candidate, target) in spec.candidates.iter().zip(targets) {
        for (topic, partitions) in target.iter() {
            assert!(spec.topics_of(candidate).contains(topic), "{what}: not subscribed");
            assert!(partitions.is_sorted() && !partitions.is_empty(), "{what}");
            for partition in partitions {
                assert!((0..spec.partitions_of(*topic)).contains(partition), "{what}: no such partition");
                assert!(owned.insert((*topic, *partition)), "{what}: given twice");
            }
        }
    }
    let wanted: usize = spec.subscribers().keys().map(|topic| spec.partitions_of(*topic) as usize).sum();
    assert_eq!(owned.len(), wanted, "{what}: not all given");
}

fn loads(targets: &[Arc<Partitions>]) -> Vec<usize> {
    targets.iter().map(|target| target.values().map(Vec::len).sum()).collect()
}

fn moved(before: &[Arc<Partitions>], after: &[Arc<Partitions>]) -> usize {
    let kept = |(old, new): (&Arc<Partitions>, &Arc<Partitions>)| {
        let topics = old.iter().filter_map(|(topic, partitions)| Some((partitions, new.get(topic)?)));
        topics.map(|(old, new)| old.iter().filter(|each| new.contains(each)).count()).sum::<usize>()
    };
    loads(before).iter().sum::<usize>() - before.iter().zip(after).map(kept).sum::<usize>()
}

#[test]
fn uniform_is_even_and_moves_no_more_than_it_must() {
    let mut group = spec(&[(1, 4), (2, 3)], &[("a", &[1, 2]), ("b", &[1, 2])]);
    let first = assign("uniform", &group);
    assert_eq!(shown(&first), ["1:[0, 1, 2, 3]", "2:[0, 1, 2]"]);
    apply(&mut group, first.clone());
    let subscription = group.candidates[0].subscription;
    let has: Arc<Partitions> = Arc::default();
    group.candidates.push(Candidate { id: "c".into(), instance: None, subscription, has });
    let second = assign("uniform", &group);
    assert_eq!(shown(&second), ["1:[0, 1, 2]", "2:[0, 1]", "1:[3] 2:[2]"]);
    // A member with one more partition keeps it when a member without any leaves.
    apply(&mut group, second);
    group.candidates.remove(0);
    assert_eq!(shown(&assign("uniform", &group)), ["1:[0, 1] 2:[0, 1]", "1:[2, 3] 2:[2]"]);
}

#[test]
fn range_gives_neighbours_and_static_members_come_first() {
    let mut group = spec(&[(1, 3), (2, 3)], &[("a", &[1, 2]), ("b", &[1, 2])]);
    assert_eq!(shown(&assign("range", &group)), ["1:[0, 1] 2:[0, 1]", "1:[2] 2:[2]"]);
    group.candidates[1].instance = Some("z".into());
    assert_eq!(shown(&assign("range", &group)), ["1:[2] 2:[2]", "1:[0, 1] 2:[0, 1]"]);
    let group = spec(&[(1, 3), (2, 1)], &[("a", &[1]), ("b", &[1, 2]), ("c", &[2])]);
    assert_eq!(shown(&assign("range", &group)), ["1:[0, 1]", "1:[2] 2:[0]", ""]);
}

#[test]
fn more_members_than_partitions() {
    let group = spec(&[(1, 1)], &[("a", &[1]), ("b", &[1])]);
    assert_eq!(shown(&assign("uniform", &group)), ["1:[0]", ""]);
    assert_eq!(shown(&assign("range", &group)), ["1:[0]", ""]);
    let group = spec(&[], &[("a", &[]), ("b", &[])]);
    assert_eq!(shown(&assign("uniform", &group)), ["", ""]);
    assert!(assign("uniform", &spec(&[(1, 1)], &[])).is_empty());
}

#[test]
fn what_two_members_have_is_the_firsts() {
    let mut group = spec(&[(1, 2)], &[("a", &[1]), ("b", &[1])]);
    let both: Arc<Partitions> = Arc::new(BTreeMap::from([(topic(1), vec![0, 1, 7])]));
    apply(&mut group, vec![both.clone(), both]);
    let targets = assign("uniform", &group);
    assert_eq!(shown(&targets), ["1:[0]", "1:[1]"]);
}

#[test]
fn mixed_subscriptions_come_out_even() {
    let group = spec(&[(1, 6), (2, 2)], &[("a", &[1, 2]), ("b", &[1])]);
    assert_eq!(loads(&assign("uniform", &group)), [4, 4]);
    let group = spec(&[(1, 10), (2, 10)], &[("a", &[1]), ("b", &[1, 2]), ("c", &[2])]);
    let even = loads(&assign("uniform", &group));
    assert!(even.iter().max().unwrap() - even.iter().min().unwrap() <= 1, "{even:?}");
}

#[test]
fn whatever_comes_an_assignment_is_whole() {
    for seed in 0..600 {
        let mut random = Random(seed);
        let topics: Vec<(u8, i32)> =
            (1..=1 + random.below(5) as u8).map(|number| (number, random.below(9) as i32)).collect();
        let mut group = spec(&topics, &[]);
        let is_mixed = random.below(2) == 0;
        let all: BTreeSet<TopicId> = topics.iter().map(|(number, _)| topic(*number)).collect();
        let mut next = 0;
        for _ in 0..12 {
            if random.below(3) > 0 || group.candidates.is_empty() {
                let mut subscribed = all.clone();
                if is_mixed {
                    subscribed.retain(|_| random.below(3) > 0);
                }
                let subscription = group.subscription(subscribed);
                let (id, has) = (Text::from(format!("m{next:03}")), Arc::default());
                group.candidates.push(Candidate { id, instance: None, subscription, has });
                next += 1;
            } else {
                let at = random.below(group.candidates.len() as u64) as usize;
                group.candidates.remove(at);
            }
            let before: Vec<Arc<Partitions>> = group.candidates.iter().map(|each| each.has.clone()).collect();
            for name in ["uniform", "range"] {
                let targets = assign(name, &group);
                check(&group, &targets, &format!("seed {seed} {name}"));
                if name == "range" || group.candidates.is_empty() {
                    continue;
                }
                let loads = loads(&targets);
                if !is_mixed {
                    let (least, most) = (loads.iter().min().unwrap(), loads.iter().max().unwrap());
                    assert!(most - least <= 1, "seed {seed}: {loads:?}");
                    // A member with no more than its share loses nothing.
                    let excess: usize = super::tests::loads(&before)
                        .iter()
                        .zip(&loads)
                        .map(|(old, new)| old.saturating_sub(*new))
                        .sum();
                    assert_eq!(moved(&before, &targets), excess, "seed {seed}");
                }
                apply(&mut group, targets.clone());
                let again = assign(name, &group);
                assert!(
                    again.iter().zip(&targets).all(|(a, b)| Arc::ptr_eq(a, b)),
                    "seed {seed}: not stable"
                );
            }
        }
    }
}

/// `cargo test -p barnabas-coordinator --release -- --ignored --nocapture how_long`
#[test]
#[ignore = "a measurement"]
#[allow(clippy::disallowed_methods, clippy::disallowed_types)]
fn how_long_large_groups_take() {
    for (members, topics, partitions) in [(1_000, 10, 1_000), (10_000, 100, 1_000), (10_000, 1_000, 100)] {
        for mixed in [false, true] {
            let mut group = Spec::default();
            let ids: Vec<TopicId> = (0..topics as u32)
                .map(|number| {
                    let mut id = [0; 16];
                    id[..4].copy_from_slice(&number.to_be_bytes());
                    Uuid(id)
                })
                .collect();
            group.partitions = ids.iter().map(|id| (*id, partitions)).collect();
            for member in 0..members {
                let kept = ids.iter().enumerate().filter(|(at, _)| !mixed || (at + member) % 7 != 0);
                let subscription = group.subscription(kept.map(|(_, id)| *id).collect());
                let (id, has) = (Text::from(format!("member-{member:06}")), Arc::default());
                group.candidates.push(Candidate { id, instance: None, subscription, has });
            }
            for name in ["uniform", "range"] {
                let began = std::time::Instant::now();
                let targets = assign(name, &group);
                let first = began.elapsed();
                apply(&mut group, targets);
                let gone = group.candidates.pop().expect("there are members");
                let began = std::time::Instant::now();
                let targets = assign(name, &group);
                println!(
                    "{members} members × {} partitions, {}, {name}: first {first:?}, one leaves {:?}",
                    topics * partitions,
                    if mixed { "7 subscriptions" } else { "one subscription" },
                    began.elapsed()
                );
                drop(targets);
                group.candidates.push(gone);
            }
        }
    }
}
