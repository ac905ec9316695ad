//! The sticky assignor: who is to have which task.
//!
//! 1. An active task stays where it is, as long as its member has not more than its share; else it goes to a member
//!    that has its state (as a standby, or on its disk); else to the thread with the fewest tasks in the process with
//!    the least load.
//! 2. Standby tasks of what keeps state likewise, each on another process than the active one and than each other.
//!
//! Load is tasks by threads of a process. Between equals, the first by name, so that the same input gives the same
//! target.
//!
//! # Source
//! Kafka 4.4 `StickyTaskAssignor`, `ProcessState`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

use barnabas_base::{Map, Set, Text};

use super::Subtopology;
use super::tasks::{Target, contains, each, insert};

/// Where a member's task stands: the sum of its changelogs' offsets, by subtopology and partition.
pub(crate) type Offsets = BTreeMap<(Text, i32), i64>;

/// What the assignor knows of a member.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    pub id: Text,
    pub process: Text,
    /// The target so far.
    pub has: Arc<Target>,
    pub offsets: Arc<Offsets>,
}

/// Gives each candidate its target, in their order.
pub(crate) fn assign(
    candidates: &[Candidate],
    subtopologies: &BTreeMap<Text, Subtopology>,
    standbys: usize,
) -> Vec<Target> {
    if candidates.is_empty() {
        return Vec::new();
    }
    let mut assigning = Assigning::new(candidates, subtopologies, standbys);
    assigning.active(tasks(subtopologies, false));
    if standbys > 0 {
        assigning.standby(tasks(subtopologies, true), standbys);
    }
    assigning.targets
}

/// Number of its subtopology, and partition.
type Task = (usize, i32);

/// All tasks, or those that keep state: by partition first, as tasks of the same partition read the same keys.
fn tasks(subtopologies: &BTreeMap<Text, Subtopology>, stateful: bool) -> Vec<Task> {
    let of = subtopologies.values().enumerate().filter(|(_, each)| each.is_stateful || !stateful);
    let mut tasks: Vec<Task> =
        of.flat_map(|(number, each)| (0..each.tasks).map(move |partition| (number, partition))).collect();
    tasks.sort_by_key(|(number, partition)| (*partition, *number));
    tasks
}

/// How many each may have, counted down as members are full.
struct Quota {
    tasks: usize,
    members: usize,
    each: usize,
}

impl Quota {
    fn new(tasks: usize, members: usize) -> Self {
        Self { tasks, members, each: tasks.div_ceil(members.max(1)) }
    }

    /// A member has `count` now.
    fn has(&mut self, count: usize) {
        if count == self.each && self.members > 0 {
            self.members -= 1;
            self.tasks = self.tasks.saturating_sub(count);
            self.each = if self.members == 0 { 0 } else { self.tasks.div_ceil(self.members) };
        }
    }
}

struct Process {
    /// By number, with the tasks that each has; the least laden first.
    members: BinaryHeap<Reverse<(usize, usize)>>,
    capacity: usize,
    count: usize,
    tasks: Set<Task>,
}

impl Process {
    /// Tasks by threads, to be compared.
    fn load(&self) -> u64 {
        ((self.count as u64) << 32) / self.capacity.max(1) as u64
    }
}

struct Assigning<'a> {
    names: Vec<&'a Text>,
    processes: Vec<Process>,
    /// Of each candidate: its process, and its tasks.
    process_of: Vec<usize>,
    counts: Vec<usize>,
    targets: Vec<Target>,
    was_active: Map<Task, usize>,
    /// Who has the state of a task, the best first.
    has_state: Map<Task, Vec<usize>>,
    active_quota: Quota,
    quota: Quota,
}

impl<'a> Assigning<'a> {
    fn new(
        candidates: &'a [Candidate],
        subtopologies: &'a BTreeMap<Text, Subtopology>,
        standbys: usize,
    ) -> Self {
        let names: Vec<&Text> = subtopologies.keys().collect();
        let ids: BTreeSet<&Text> = candidates.iter().map(|each| &each.process).collect();
        let numbers: BTreeMap<&Text, usize> = ids.into_iter().zip(0..).collect();
        let process_of: Vec<usize> = candidates.iter().map(|each| numbers[&each.process]).collect();
        let mut processes: Vec<Process> = Vec::new();
        processes.resize_with(numbers.len(), || Process {
            members: BinaryHeap::new(),
            capacity: 0,
            count: 0,
            tasks: Set::default(),
        });
        for (member, process) in process_of.iter().enumerate() {
            processes[*process].members.push(Reverse((0, member)));
            processes[*process].capacity += 1;
        }
        let active: usize = subtopologies.values().map(|each| each.tasks.max(0) as usize).sum();
        let stateful = subtopologies.values().filter(|each| each.is_stateful);
        let copies: usize = stateful.map(|each| each.tasks.max(0) as usize * standbys).sum();
        let (was_active, has_state) = history(candidates, &names);
        Self {
            names,
            processes,
            process_of,
            counts: vec![0; candidates.len()],
            targets: vec![Target::default(); candidates.len()],
            was_active,
            has_state,
            active_quota: Quota::new(active, candidates.len()),
            quota: Quota::new(active + copies, candidates.len()),
        }
    }

    fn give(&mut self, task: Task, member: usize, is_active: bool) {
        let process = &mut self.processes[self.process_of[member]];
        process.count += 1;
        process.tasks.insert(task);
        self.counts[member] += 1;
        process.members.push(Reverse((self.counts[member], member)));
        let target = &mut self.targets[member];
        let side = if is_active { &mut target.active } else { &mut target.standby };
        insert(side, self.names[task.0], task.1);
        if is_active {
            self.active_quota.has(self.counts[member]);
        }
        self.quota.has(self.counts[member]);
    }

    fn active(&mut self, tasks: Vec<Task>) {
        let mut left = Vec::new();
        for task in tasks {
            match self.was_active.get(&task) {
                Some(member) if self.counts[*member] < self.active_quota.each => {
                    self.give(task, *member, true);
                }
                _ => left.push(task),
            }
        }
        let mut rest = Vec::new();
        for task in left {
            match self.least_with_state(task, false) {
                Some(member) if self.counts[member] < self.active_quota.each => self.give(task, member, true),
                _ => rest.push(task),
            }
        }
        // Unowned tasks are spread in ranges.
        rest.sort_unstable();
        let mut by_load = self.by_load();
        for task in rest {
            let Some(Reverse((_, process))) = by_load.pop() else { return };
            if let Some(member) = self.least(process) {
                self.give(task, member, true);
            }
            by_load.push(Reverse((self.processes[process].load(), process)));
        }
    }

    fn standby(&mut self, mut tasks: Vec<Task>, standbys: usize) {
        tasks.reverse();
        let mut rest = Vec::new();
        for task in tasks {
            let given = (0..standbys).take_while(|_| self.keep_standby(task)).count();
            if given < standbys {
                rest.push((task, standbys - given));
            }
        }
        rest.sort_unstable_by_key(|(task, _)| Reverse(*task));
        let mut by_load = self.by_load();
        for (task, count) in rest {
            for _ in 0..count {
                if !self.give_to_least(task, &mut by_load) {
                    break;
                }
            }
        }
    }

    /// Leaves a copy where the task was active, or where a copy was.
    fn keep_standby(&mut self, task: Task) -> bool {
        let was_active = self.was_active.get(&task).copied().filter(|member| !self.runs(*member, task));
        let member = match was_active.filter(|member| self.counts[*member] < self.quota.each) {
            Some(member) => Some(member),
            None => self.least_with_state(task, true).filter(|member| self.counts[*member] < self.quota.each),
        };
        if let Some(member) = member {
            self.give(task, member, false);
        }
        member.is_some()
    }

    /// Gives a copy to the process with the least load that does not run the task.
    fn give_to_least(&mut self, task: Task, by_load: &mut BinaryHeap<Reverse<(u64, usize)>>) -> bool {
        let (mut passed, mut given) = (Vec::new(), false);
        while let Some(Reverse((load, process))) = by_load.pop() {
            if self.processes[process].tasks.contains(&task) {
                passed.push(Reverse((load, process)));
                continue;
            }
            if let Some(member) = self.least(process) {
                self.give(task, member, false);
                given = true;
            }
            by_load.push(Reverse((self.processes[process].load(), process)));
            break;
        }
        by_load.extend(passed);
        given
    }

    fn runs(&self, member: usize, task: Task) -> bool {
        self.processes[self.process_of[member]].tasks.contains(&task)
    }

    fn by_load(&self) -> BinaryHeap<Reverse<(u64, usize)>> {
        let all = self.processes.iter().enumerate();
        all.map(|(number, process)| Reverse((process.load(), number))).collect()
    }

    /// The member of a process that has the fewest tasks. What the heap says of a member that has got more since is
    /// passed over.
    fn least(&mut self, process: usize) -> Option<usize> {
        let members = &mut self.processes[process].members;
        while let Some(Reverse((count, member))) = members.peek().copied() {
            if self.counts[member] == count {
                return Some(member);
            }
            members.pop();
        }
        None
    }

    /// Of those who have the task's state, the one with less load than those before it.
    fn least_with_state(&self, task: Task, as_standby: bool) -> Option<usize> {
        let mut best: Option<(usize, u64, usize)> = None;
        for member in self.has_state.get(&task)? {
            if as_standby && self.runs(*member, task) {
                continue;
            }
            let (load, count) = (self.processes[self.process_of[*member]].load(), self.counts[*member]);
            if best.is_none_or(|(_, least, fewest)| load < least && count < fewest) {
                best = Some((*member, load, count));
            }
        }
        best.map(|(member, ..)| member)
    }
}

/// Who had which task before: active, and as state. A standby comes before what merely lies on a disk, and who is
/// further comes first.
fn history(candidates: &[Candidate], names: &[&Text]) -> (Map<Task, usize>, Map<Task, Vec<usize>>) {
    let numbers: BTreeMap<&Text, usize> = names.iter().copied().zip(0..).collect();
    let task = |id: &Text, partition: i32| numbers.get(id).map(|number| (*number, partition));
    let mut was_active = Map::default();
    let mut states: Map<Task, Vec<(bool, Reverse<i64>, usize)>> = Map::default();
    for (member, candidate) in candidates.iter().enumerate() {
        was_active
            .extend(each(&candidate.has.active).filter_map(|(id, part)| Some((task(id, part)?, member))));
        for (id, partition) in each(&candidate.has.standby) {
            let Some(task) = task(id, partition) else { continue };
            let offset = candidate.offsets.get(&(id.clone(), partition)).copied().unwrap_or(0);
            states.entry(task).or_default().push((false, Reverse(offset), member));
        }
        for ((id, partition), offset) in candidate.offsets.iter() {
            let is_standby = contains(&candidate.has.standby, id, *partition);
            let Some(task) = task(id, *partition).filter(|_| !is_standby) else { continue };
            states.entry(task).or_default().push((true, Reverse(*offset), member));
        }
    }
    let ranked = states.into_iter().map(|(task, mut states)| {
        states.sort_unstable();
        (task, states.into_iter().map(|(_, _, member)| member).collect())
    });
    (was_active, ranked.collect())
}
