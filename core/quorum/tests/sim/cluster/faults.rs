//! Who writes, who changes voters, and what breaks.

use barnabas_base::{DurationMs, Offset};

use super::{ADMIN, Cluster, Event};
use crate::raft::membership::history::History;
use crate::raft::message::{AddVoter, RemoveVoter, Request, UpdateVoter};
use crate::sim::disk::keys;
use crate::sim::node::{Node, endpoint};
use crate::sim::rng::hash;
use crate::voters::Voters;

impl Cluster {
    pub(super) fn crash(&mut self, id: i32) {
        // Its system may tell the others that it is gone.
        let is_heard = self.rng.permille(500);
        self.crash_heard(id, is_heard);
    }

    pub(super) fn crash_heard(&mut self, id: i32, is_heard: bool) {
        let node = self.nodes.get_mut(&id).expect("it is there");
        if node.raft.take().is_none() {
            return;
        }
        self.counts.crashes += 1;
        if self.trace {
            println!("{} node {id} crashes", self.now);
        }
        node.tickets.clear();
        node.disk.crash(&mut self.rng);
        node.life += 1;
        let delay = if self.is_calm { 10 } else { self.rng.between(5, 2_500) };
        self.after(delay, Event::Restart { node: id });
        if is_heard {
            self.hang_up(id);
        }
    }

    pub(super) fn client(&mut self) {
        let ids: Vec<i32> = self.nodes.keys().copied().collect();
        for id in ids {
            let records = self.rng.between(1, 3);
            let every = self.plan.snapshot_every;
            self.step(id, |node, now| {
                node.write(records, now);
                if every > 0 && node.batches_since_snapshot >= every && node.snapshot(now).is_some() {
                    node.batches_since_snapshot = 0;
                }
            });
        }
        let delay = self.rng.between(1, self.plan.client_every * 2);
        self.after(delay, Event::Client);
    }

    /// Those that can be reached see that their connections to a node are closed.
    fn hang_up(&mut self, peer: i32) {
        let others: Vec<i32> = self.nodes.keys().copied().filter(|&id| id != peer).collect();
        for node in others {
            if !self.cut.contains(&(peer, node)) {
                let delay = self.rng.between(0, self.plan.notices_within_ms);
                self.after(delay, Event::Closed { node, peer });
            }
        }
    }

    /// An operator adds, removes or moves a voter, or gives up a node that is none for one with an empty disk.
    pub(super) fn admin(&mut self) {
        let delay = self.rng.between(1, self.plan.admin_every * 2);
        self.after(delay, Event::Admin);
        if self.is_calm {
            return;
        }
        let leaders = self.nodes.values().filter(|node| node.raft.as_ref().is_some_and(|raft| raft.leads()));
        let leaders: Vec<i32> = leaders.map(|node| node.id).collect();
        let controllers: Vec<i32> =
            self.nodes.values().filter(|node| node.is_controller).map(|node| node.id).collect();
        let (Some(leader), Some(target)) = (self.rng.pick(&leaders), self.rng.pick(&controllers)) else {
            return;
        };
        if self.nodes[&leader].raft.as_ref().is_some_and(|raft| raft.kraft_version() < 1) {
            return self.raise(leader);
        }
        let voter = self.nodes[&target].key();
        let timeout = DurationMs(1_000);
        let raft = self.nodes[&leader].raft.as_ref().expect("it leads");
        let votes = keys(raft.voters()).contains(&voter);
        let request = match self.rng.below(12) {
            0..=7 if votes => Request::RemoveVoter(RemoveVoter { voter }),
            0..=8 => Request::AddVoter(AddVoter {
                voter,
                endpoints: vec![endpoint(target)],
                ack_when_committed: self.rng.permille(700),
                timeout,
            }),
            9 => Request::RemoveVoter(RemoveVoter { voter }),
            10 => {
                let epoch = self.nodes[&leader].raft.as_ref().expect("it leads").epoch();
                let endpoints = vec![endpoint(target)];
                Request::UpdateVoter(UpdateVoter { epoch, voter, endpoints, kraft_min: 0, kraft_max: 1 })
            }
            _ => return self.replace(target),
        };
        if matches!(request, Request::AddVoter(_)) {
            self.asked_for.insert(voter, self.now);
        }
        self.deliver(ADMIN, leader, 0, request);
    }

    /// Voters who stand in files are brought into the log, if their leader knows all that is to be written.
    fn raise(&mut self, leader: i32) {
        let raft = self.nodes[&leader].raft.as_ref().expect("it leads");
        if raft.refuse_kraft_version(1).is_some() {
            return;
        }
        self.counts.raised += 1;
        self.step(leader, |node, now| {
            node.raft.as_mut().expect("it leads").raise_kraft_version(1, now).unwrap();
        });
    }

    /// A node that no other takes for a voter comes back with an empty disk, as another replica.
    pub(super) fn replace(&mut self, id: i32) {
        let key = self.nodes[&id].key();
        let names = |node: &Node| {
            let of_log = node.disk.view.batches.iter().chain(&node.disk.durable.batches);
            let in_log = of_log.filter_map(|batch| batch.voters.as_ref()).any(|voters| voters.contains(&key));
            let means = |voters: &Voters| keys(voters).iter().any(|voter| voter.means(&key));
            in_log
                || node.raft.as_ref().is_some_and(|raft| means(raft.voters()))
                || means(node.formatted.voters())
        };
        // Another operator may be about to make it one: an operator does not throw a disk away then.
        let asked = self.asked_for.get(&key).is_some_and(|&at| at + 4_000 > self.now);
        let joins = self.plan.auto_join && self.nodes[&id].is_controller;
        if asked || joins || self.nodes.values().any(names) || self.nodes[&id].raft.is_none() {
            return;
        }
        self.counts.replaced += 1;
        self.crash(id);
        let directory = self.directory();
        let mut formatted = self.nodes[&id].formatted.clone();
        if self.plan.dynamic {
            formatted = History::new(Voters::default());
            formatted.reset(Offset::ZERO, 1, None);
        }
        let node = self.nodes.get_mut(&id).expect("it is there");
        let life = node.life;
        *node = Node::new(id, directory, formatted, node.is_controller, node.clock);
        node.life = life;
    }

    pub(super) fn fault(&mut self) {
        let delay = self.rng.between(1, self.plan.fault_every * 2);
        self.after(delay, Event::Fault);
        if self.is_calm {
            return;
        }
        let ids: Vec<i32> = self.nodes.keys().copied().collect();
        let mut draw = self.rng.below(self.plan.faults.iter().sum());
        let mut kind = 0;
        for (at, &weight) in self.plan.faults.iter().enumerate() {
            kind = at;
            if draw < weight {
                break;
            }
            draw -= weight;
        }
        match kind {
            0 => {
                // Leaders crash more often than their share: that is where it hurts.
                let leader =
                    self.nodes.values().find(|node| node.raft.as_ref().is_some_and(|raft| raft.leads()));
                let leader = leader.map(|node| node.id).filter(|_| self.rng.permille(400));
                if let Some(id) = leader.or_else(|| self.rng.pick(&ids)) {
                    self.crash(id);
                }
            }
            1 if self.rng.permille(200) => {
                // Connections break and the node lives.
                let id = self.rng.pick(&ids).unwrap_or(1);
                self.hang_up(id);
            }
            1 => self.cut_off(&ids),
            2 => self.cut.clear(),
            _ if self.rng.permille(300) => self.stop(&ids),
            _ => {
                self.counts.pauses += 1;
                let until = self.now + self.rng.between(50, 2_000);
                if let Some(node) = self.rng.pick(&ids).and_then(|id| self.nodes.get_mut(&id)) {
                    node.paused_until = until;
                }
            }
        }
    }

    /// Stops a node in good order.
    fn stop(&mut self, ids: &[i32]) {
        let Some(id) = self.rng.pick(ids) else { return };
        self.step(id, |node, now| node.raft.as_mut().expect("it is up").resign(now).unwrap());
        let (delay, life) = (self.rng.between(10, 200), self.nodes[&id].life);
        self.after(delay, Event::Stop { node: id, life });
    }

    /// Two sides, one node by itself, or single links, both ways or one.
    pub(super) fn cut_off(&mut self, ids: &[i32]) {
        self.counts.cuts += 1;
        let one_way = self.rng.permille(400);
        let shape = self.rng.below(3);
        let alone = self.rng.pick(ids).unwrap_or(1);
        for &a in ids {
            for &b in ids {
                let apart = match shape {
                    0 => {
                        hash(&[a as u8, self.counts.cuts as u8]) % 2
                            != hash(&[b as u8, self.counts.cuts as u8]) % 2
                    }
                    1 => (a == alone) != (b == alone),
                    _ => self.rng.permille(250),
                };
                if a < b && apart {
                    self.cut.insert((a, b));
                    if !one_way {
                        self.cut.insert((b, a));
                    }
                }
            }
        }
    }

    /// The end of all faults; but that, now and then, a minority of the voters is dead for good.
    pub(super) fn calm(&mut self) {
        self.is_calm = true;
        self.cut.clear();
        self.plan.crash_within = 0;
        for node in self.nodes.values_mut() {
            node.paused_until = 0;
        }
        if !self.plan.dynamic && !self.plan.raises && self.rng.permille(400) {
            // Voters 1 and on are fixed: any of them may go, if a majority stays.
            let first = self.rng.below(self.plan.voters as u64) as i32;
            for at in 0..(self.plan.voters - 1) / 2 {
                let id = 1 + (first + at) % self.plan.voters;
                self.dead.insert(id);
                self.crash(id);
            }
        }
    }
}
