//! A small and truthful controller: registrations, fencing, elections from the ISR and the ELR, AlterPartition.
//!
//! Every state that it was ever in is kept: brokers learn of them late, and now and then of an old one again.
//!
//! Source: KIP-841, KIP-903, KIP-966; Kafka `ReplicationControlManager.alterPartition`, `PartitionChangeBuilder`.

use barnabas_base::{BrokerEpoch, BrokerId, ErrorCode, LeaderEpoch, PartitionEpoch};

use super::network::Altered;
use crate::IsrChange;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Broker {
    pub id: BrokerId,
    pub epoch: BrokerEpoch,
    pub is_fenced: bool,
}

/// What the metadata log says at one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct State {
    pub replicas: Vec<BrokerId>,
    pub in_sync: Vec<BrokerId>,
    pub eligible: Vec<BrokerId>,
    pub leader: Option<BrokerId>,
    pub leader_epoch: LeaderEpoch,
    pub partition_epoch: PartitionEpoch,
    pub brokers: Vec<Broker>,
}

impl State {
    pub fn registered(&self, id: BrokerId) -> Option<BrokerEpoch> {
        let broker = self.brokers.iter().find(|broker| broker.id == id && !broker.is_fenced);
        broker.map(|broker| broker.epoch)
    }
}

#[derive(Debug)]
pub(super) struct Controller {
    pub states: Vec<State>,
    pub min_in_sync: u16,
    /// Elects at the price of records where there is no other way.
    pub is_reckless: bool,
    next_epoch: i64,
}

impl Controller {
    pub fn new(replicas: Vec<BrokerId>, min_in_sync: u16) -> Self {
        let state = State {
            in_sync: replicas.clone(),
            replicas,
            eligible: Vec::new(),
            leader: None,
            leader_epoch: LeaderEpoch(0),
            partition_epoch: PartitionEpoch(0),
            brokers: Vec::new(),
        };
        Self { states: vec![state], min_in_sync, is_reckless: false, next_epoch: 10 }
    }

    pub fn now(&self) -> &State {
        self.states.last().expect("invariant: there is a first state")
    }

    /// A broker in a new life; `knows` what it had, or begins with an empty disk. It is fenced until it is heard of.
    pub fn register(&mut self, id: BrokerId, knows: bool) -> BrokerEpoch {
        self.next_epoch += 1;
        let epoch = BrokerEpoch(self.next_epoch);
        let mut next = self.now().clone();
        let is_first = next.brokers.iter().all(|broker| broker.id != id);
        next.brokers.retain(|broker| broker.id != id);
        next.brokers.push(Broker { id, epoch, is_fenced: true });
        if !is_first {
            self.without(&mut next, id);
        }
        if !knows {
            next.eligible.retain(|&eligible| eligible != id);
        }
        self.commit(next);
        epoch
    }

    pub fn unfence(&mut self, id: BrokerId) {
        let mut next = self.now().clone();
        next.brokers.iter_mut().filter(|broker| broker.id == id).for_each(|broker| broker.is_fenced = false);
        self.commit(next);
    }

    pub fn fence(&mut self, id: BrokerId) {
        let mut next = self.now().clone();
        next.brokers.iter_mut().filter(|broker| broker.id == id).for_each(|broker| broker.is_fenced = true);
        self.without(&mut next, id);
        self.commit(next);
    }

    /// Another leader of the in-sync ones, for no reason.
    pub fn move_leader(&mut self, to: BrokerId) {
        let mut next = self.now().clone();
        if next.in_sync.contains(&to) && next.registered(to).is_some() && next.leader != Some(to) {
            next.leader = Some(to);
            next.leader_epoch.0 += 1;
            self.commit(next);
        }
    }

    pub fn alter(
        &mut self,
        from: BrokerId,
        life: BrokerEpoch,
        change: &IsrChange,
    ) -> Result<Altered, ErrorCode> {
        let now = self.now();
        let is_registered = now.brokers.iter().any(|broker| broker.id == from && broker.epoch == life);
        if !is_registered {
            return Err(ErrorCode::StaleBrokerEpoch);
        }
        if change.leader_epoch < now.leader_epoch {
            return Err(ErrorCode::FencedLeaderEpoch);
        }
        if now.leader != Some(from) {
            return Err(ErrorCode::InvalidRequest);
        }
        if change.partition_epoch < now.partition_epoch {
            return Err(ErrorCode::InvalidUpdateVersion);
        }
        let may_join = |&(id, epoch): &(BrokerId, BrokerEpoch)| {
            let registered = now.registered(id);
            registered.is_some_and(|known| epoch == BrokerEpoch::NONE || epoch == known)
        };
        if !change.in_sync.iter().all(may_join) || now.registered(from).is_none() {
            return Err(ErrorCode::IneligibleReplica);
        }
        let mut next = now.clone();
        let asked = |id: &BrokerId| *id == from || change.in_sync.iter().any(|(member, _)| member == id);
        let target = now.replicas.iter().copied().filter(asked).collect();
        self.set_in_sync(&mut next, target);
        self.commit(next);
        let State { leader_epoch, partition_epoch, in_sync, .. } = self.now().clone();
        Ok(Altered { leader_epoch, partition_epoch, in_sync })
    }

    fn without(&self, next: &mut State, id: BrokerId) {
        let target = next.in_sync.iter().copied().filter(|&member| member != id).collect();
        self.set_in_sync(next, target);
    }

    fn set_in_sync(&self, next: &mut State, target: Vec<BrokerId>) {
        let enough = target.len() >= usize::from(self.min_in_sync);
        let mut eligible: Vec<BrokerId> = next.eligible.iter().chain(&next.in_sync).copied().collect();
        eligible.sort_unstable();
        eligible.dedup();
        eligible.retain(|id| !target.contains(id) && !enough);
        (next.in_sync, next.eligible) = (target, eligible);
    }

    /// Elects where the leader cannot lead, and writes down what changed.
    fn commit(&mut self, mut next: State) {
        let may_lead = |state: &State, id: BrokerId| {
            let is_candidate =
                state.in_sync.contains(&id) || state.in_sync.is_empty() && state.eligible.contains(&id);
            is_candidate && state.registered(id).is_some()
        };
        if !next.leader.is_some_and(|leader| may_lead(&next, leader)) {
            let clean = next.replicas.iter().copied().find(|&id| may_lead(&next, id));
            let anybody = next.replicas.iter().copied().find(|&id| next.registered(id).is_some());
            let elected = clean.or(anybody.filter(|_| self.is_reckless));
            if elected != next.leader {
                next.leader = elected;
                next.leader_epoch.0 += 1;
            }
            if let Some(elected) = elected
                && clean.is_none()
            {
                (next.in_sync, next.eligible) = (vec![elected], Vec::new());
            } else if let Some(elected) = elected
                && !next.in_sync.contains(&elected)
            {
                next.eligible.retain(|&id| id != elected);
                next.in_sync = vec![elected];
            }
        }
        let now = self.now();
        let same = (&next.in_sync, &next.eligible, next.leader, next.leader_epoch)
            == (&now.in_sync, &now.eligible, now.leader, now.leader_epoch);
        if !same {
            next.partition_epoch.0 += 1;
        }
        if next != *now {
            self.states.push(next);
        }
    }
}
