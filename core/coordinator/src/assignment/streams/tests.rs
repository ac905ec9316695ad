use std::collections::{BTreeMap, BTreeSet};

use super::sticky::assign;
use super::tasks::Tasks;
use super::*;

fn subtopologies(all: &[(&str, i32, bool)]) -> BTreeMap<Text, Subtopology> {
    let of = |tasks, is_stateful| Subtopology { tasks, is_stateful };
    all.iter().map(|(id, tasks, is_stateful)| (Text::from(*id), of(*tasks, *is_stateful))).collect()
}

/// Members as `member/process`, without a past.
fn fresh(members: &[&str]) -> Vec<Candidate> {
    let of = |said: &&str| {
        let (id, process) = said.split_once('/').expect("member/process");
        Candidate { id: id.into(), process: process.into(), has: Arc::default(), offsets: Arc::default() }
    };
    members.iter().map(of).collect()
}

fn shown(targets: &[Target]) -> Vec<String> {
    let side = |tasks: &Tasks| {
        let all = each(tasks).map(|(id, partition)| format!("{id}{partition}"));
        all.collect::<Vec<_>>().join("+")
    };
    targets.iter().map(|target| format!("{}/{}", side(&target.active), side(&target.standby))).collect()
}

/// Every active task once, copies on other processes than the task's and each other's.
fn check(candidates: &[Candidate], targets: &[Target], tasks: usize, copies: usize) {
    let mut active = BTreeSet::new();
    let mut by_process: BTreeMap<&Text, BTreeSet<(&Text, i32)>> = BTreeMap::new();
    let mut standbys = 0;
    for (candidate, target) in candidates.iter().zip(targets) {
        for task in each(&target.active) {
            assert!(active.insert(task), "{task:?} twice");
            assert!(
                by_process.entry(&candidate.process).or_default().insert(task),
                "{task:?} twice on a process"
            );
        }
        for task in each(&target.standby) {
            standbys += 1;
            assert!(
                by_process.entry(&candidate.process).or_default().insert(task),
                "{task:?} twice on a process"
            );
        }
    }
    assert_eq!((active.len(), standbys), (tasks, copies));
}

fn active_counts(targets: &[Target]) -> Vec<usize> {
    targets.iter().map(|target| each(&target.active).count()).collect()
}

fn go_on(candidates: &mut [Candidate], targets: Vec<Target>) {
    for (candidate, target) in candidates.iter_mut().zip(targets) {
        candidate.has = Arc::new(target);
    }
}

#[test]
fn without_members_there_are_no_targets() {
    assert_eq!(assign(&[], &subtopologies(&[("0", 3, true)]), 1), []);
}

#[test]
fn what_is_new_is_spread_over_processes_and_then_over_threads() {
    let candidates = fresh(&["a/p", "b/p", "c/q", "d/q"]);
    let targets = assign(&candidates, &subtopologies(&[("0", 6, false), ("1", 2, false)]), 0);
    check(&candidates, &targets, 8, 0);
    assert_eq!(active_counts(&targets), [2, 2, 2, 2]);
    // A process with three threads takes three quarters.
    let candidates = fresh(&["a/p", "b/p", "c/p", "d/q"]);
    let targets = assign(&candidates, &subtopologies(&[("0", 8, false)]), 0);
    assert_eq!(active_counts(&targets), [2, 2, 2, 2]);
}

#[test]
fn tasks_stay_with_their_members_when_others_join_or_leave() {
    let all = subtopologies(&[("0", 4, true), ("1", 4, true)]);
    let mut candidates = fresh(&["a/p", "b/q"]);
    let targets = assign(&candidates, &all, 0);
    check(&candidates, &targets, 8, 0);
    go_on(&mut candidates, targets.clone());
    assert_eq!(assign(&candidates, &all, 0), targets, "nothing has changed");
    candidates.extend(fresh(&["c/r"]));
    let three = assign(&candidates, &all, 0);
    check(&candidates, &three, 8, 0);
    assert_eq!(active_counts(&three), [3, 3, 2]);
    for (before, after) in targets.iter().zip(&three) {
        assert!(each(&after.active).all(|(id, part)| contains(&before.active, id, part)));
    }
    go_on(&mut candidates, three.clone());
    candidates.remove(0);
    let two = assign(&candidates, &all, 0);
    check(&candidates, &two, 8, 0);
    for (before, after) in three[1..].iter().zip(&two) {
        assert!(each(&before.active).all(|(id, part)| contains(&after.active, id, part)));
    }
}

#[test]
fn a_copy_becomes_active_where_it_is() {
    let all = subtopologies(&[("0", 4, true)]);
    let mut candidates = fresh(&["a/p", "b/q"]);
    let targets = assign(&candidates, &all, 1);
    check(&candidates, &targets, 4, 4);
    go_on(&mut candidates, targets);
    let gone = candidates.remove(0);
    candidates.extend(fresh(&["c/r"]));
    let after = assign(&candidates, &all, 1);
    check(&candidates, &after, 4, 4);
    assert_eq!(active_counts(&after), [2, 2]);
    let all = subtopologies(&[("0", 2, true)]);
    let after = assign(&candidates[..1], &all, 1);
    for (id, partition) in each(&gone.has.active).filter(|(_, partition)| *partition < 2) {
        let had = |candidate: &Candidate| contains(&candidate.has.standby, id, partition);
        let has = |target: &Target| contains(&target.active, id, partition);
        let stayed = candidates.iter().zip(&after).any(|(candidate, target)| had(candidate) && has(target));
        assert!(stayed, "{id}_{partition}: {:?}", shown(&after));
    }
}

#[test]
fn copies_need_processes_of_their_own_and_state_to_copy() {
    let candidates = fresh(&["a/p", "b/p"]);
    let targets = assign(&candidates, &subtopologies(&[("0", 2, true)]), 1);
    check(&candidates, &targets, 2, 0);
    let candidates = fresh(&["a/p", "b/q"]);
    let targets = assign(&candidates, &subtopologies(&[("0", 2, false)]), 1);
    check(&candidates, &targets, 2, 0);
    let targets = assign(&candidates, &subtopologies(&[("0", 2, true)]), 5);
    check(&candidates, &targets, 2, 2);
}

/// A process that starts again has a new member id and its old disk.
#[test]
fn tasks_go_back_to_the_disk_that_has_their_state() {
    let all = subtopologies(&[("0", 4, true)]);
    let mut candidates = fresh(&["a/p", "b/q"]);
    candidates[1].offsets = Arc::new(BTreeMap::from([(("0".into(), 0), 50), (("0".into(), 3), 70)]));
    candidates[0].offsets = Arc::new(BTreeMap::from([(("0".into(), 0), 40)]));
    let targets = assign(&candidates, &all, 0);
    check(&candidates, &targets, 4, 0);
    assert_eq!(shown(&targets), ["01+02/", "00+03/"]);
}

/// Members join and leave, with and without standby tasks: every task always has an owner.
#[test]
fn whatever_happens_every_task_is_somebodys() {
    let all = subtopologies(&[("0", 7, true), ("1", 5, false), ("2", 3, true)]);
    let mut seed = 7u64;
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) % below
    };
    let mut candidates = fresh(&["m0/p0"]);
    for round in 1..200 {
        if candidates.is_empty() || random(2) == 0 {
            candidates.extend(fresh(&[&format!("m{round}/p{}", random(5))]));
        } else {
            let gone = random(candidates.len() as u64) as usize;
            candidates.remove(gone);
        }
        let targets = assign(&candidates, &all, random(3) as usize);
        let active: usize = active_counts(&targets).iter().sum();
        assert!(candidates.is_empty() || active == 15, "round {round}");
        let copies = targets.iter().map(|target| each(&target.standby).count()).sum();
        if !candidates.is_empty() {
            check(&candidates, &targets, 15, copies);
        }
        go_on(&mut candidates, targets);
    }
}
