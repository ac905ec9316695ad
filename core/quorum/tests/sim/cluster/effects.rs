//! What a node asks for is carried out: on its disk, on the network, in the ledger.

use std::rc::Rc;

use barnabas_base::{ErrorCode, LeaderEpoch, Offset};

use super::{ADMIN, Cluster, Event, Said, Step, What};
use crate::raft::message::{Request, Response};
use crate::raft::state::quorum_state::QuorumState;
use crate::raft::{Effect, Read};
use crate::sim::DiskMistake;
use crate::sim::disk::Stored;
use crate::sim::wire;

impl Cluster {
    pub(super) fn carry_out(&mut self, id: i32, step: &mut Step) {
        loop {
            let Some(raft) = self.nodes.get_mut(&id).and_then(|node| node.raft.as_mut()) else { return };
            let effects = raft.take_effects();
            if effects.is_empty() {
                return;
            }
            for effect in effects {
                if self.plan.crash_within > 0 && self.rng.below(1_000_000) < self.plan.crash_within {
                    self.crash(id);
                    return;
                }
                self.carry_out_one(id, effect, step);
            }
        }
    }

    pub(super) fn carry_out_one(&mut self, id: i32, effect: Effect, step: &mut Step) {
        if self.trace && !matches!(effect, Effect::SnapshotPiece { .. }) {
            println!("{} node {id}: {effect:?}", self.now);
        }
        let mistake = self.mistake;
        let node = self.nodes.get_mut(&id).expect("it is there");
        match effect {
            Effect::Persist { state, kraft_version } => {
                let forgets = mistake == Some(DiskMistake::ForgetsState)
                    || (mistake == Some(DiskMistake::ForgetsVotes) && state.voted.is_some());
                if !forgets {
                    node.disk.state = Some(state.to_text(kraft_version));
                }
            }
            Effect::Append(batch) => {
                let stored = Stored::new(&batch);
                let before = node.disk.view.batches.back().cloned();
                node.disk.append(&stored);
                node.batches_since_snapshot += 1;
                step.appended.push((stored, before));
                self.plan_sync(id);
            }
            Effect::Truncate(end) => {
                self.counts.truncations += 1;
                node.disk.truncate(end);
                self.plan_sync(id);
            }
            Effect::RestartLog(snapshot) => node.disk.restart(snapshot.end),
            Effect::SnapshotPiece { id: snapshot, position, bytes } => {
                node.disk.piece(snapshot, position, &bytes);
            }
            Effect::StoreSnapshot(snapshot) => {
                let life = node.life;
                let delay = self.rng.between(0, 20);
                self.after(delay, Event::Stored { node: id, life, id: snapshot });
            }
            Effect::Leader(_) => {}
            Effect::Committed(end) => self.committed(id, end, step),
            Effect::Send { to, endpoint, number, request } => {
                let what = match &request {
                    Request::Vote(vote) if !vote.pre_vote => What::Asked,
                    Request::Fetch(fetch) => What::Fetched(fetch.from),
                    _ => What::Other,
                };
                if let Some(epoch) = epoch_of_request(&request) {
                    self.say(id, epoch, what, step);
                }
                let to_id = if to.get() < 0 { i32::from(endpoint.port) - 9000 } else { to.get() };
                self.send_request(id, to.get(), to_id, number, request);
            }
            Effect::Answer { ticket, response, read } => {
                let granted = matches!(&response, Response::Vote { granted: true, .. });
                let voted = node.raft.as_ref().and_then(|raft| raft.voted()).filter(|_| granted);
                if let Some(epoch) = epoch_of_response(&response) {
                    self.say(id, epoch, voted.map_or(What::Other, What::Granted), step);
                }
                self.answer(id, ticket, response, read);
            }
        }
    }

    pub(super) fn say(&mut self, id: i32, epoch: LeaderEpoch, what: What, step: &mut Step) {
        let node = &self.nodes[&id];
        let durable = node.disk.state.as_deref().map(|text| QuorumState::parse(text).unwrap());
        let durable_end = node.disk.durable.end();
        step.said.push(Said { epoch: epoch.get(), durable, durable_end, what });
    }

    pub(super) fn plan_sync(&mut self, id: i32) {
        let slow = self.rng.permille(self.plan.slow_sync) && !self.is_calm;
        let delay = if slow { self.rng.between(50, 900) } else { self.rng.between(0, 4) };
        let node = self.nodes.get_mut(&id).expect("it is there");
        if self.mistake == Some(DiskMistake::SyncsNothing) {
            let end = node.disk.view.end();
            let now = node.now(self.now);
            node.raft.as_mut().expect("it is up").synced(end, now).unwrap();
            return;
        }
        if node.syncing {
            return;
        }
        node.syncing = true;
        let life = node.life;
        self.after(delay, Event::Synced { node: id, life });
    }

    /// A node calls everything below `end` committed: that goes into the ledger, for all time.
    pub(super) fn committed(&mut self, id: i32, end: Offset, step: &mut Step) {
        step.committed = Some(end);
        let node = &self.nodes[&id];
        let known = self.ledger.last().map_or(Offset::ZERO, |last| last.end);
        if end <= known {
            return;
        }
        let view = &node.disk.view;
        if view.start > known {
            self.failure = Some(format!("node {id} commits up to {end} what was not committed: {known}"));
            return;
        }
        let new: Vec<Rc<Stored>> =
            view.batches.iter().filter(|batch| batch.base >= known && batch.end <= end).cloned().collect();
        self.counts.committed += new.len() as u64;
        let epoch = node.raft.as_ref().map_or(0, |raft| raft.epoch().get());
        self.ledger_epochs.extend(new.iter().map(|_| epoch));
        self.ledger.extend(new);
    }

    pub(super) fn delay(&mut self) -> u64 {
        let max = if self.is_calm { 5 } else { self.plan.delay_max };
        // Now and then one takes much longer than the others: that is what reorders.
        let long = self.rng.permille(30) && !self.is_calm;
        self.rng.between(0, if long { max * 10 } else { max })
    }

    pub(super) fn is_lost(&mut self, from: i32, to: i32) -> bool {
        self.cut.contains(&(from, to)) || (!self.is_calm && self.rng.permille(self.plan.loss))
    }

    pub(super) fn send_request(&mut self, from: i32, named: i32, to: i32, number: u64, body: Request) {
        let copies = if !self.is_calm && self.rng.permille(self.plan.duplicates) { 2 } else { 1 };
        // The answer's sender is whom the request named: an address without an id stays one.
        let number = (number << 8) | (named as u64 & 0xff);
        let Some(body) = wire::request(body, self.versions) else {
            let event = Event::Response {
                from: named,
                to: from,
                number: number >> 8,
                body: Some(Box::new(wire::no_word())),
            };
            self.after(1, event);
            return;
        };
        for _ in 0..copies {
            if !self.is_lost(from, to) {
                let delay = self.delay();
                self.after(delay, Event::Request { from, to, number, body: Box::new(body.clone()) });
            }
        }
    }

    pub(super) fn answer(&mut self, id: i32, ticket: u64, response: Response, read: Option<Read>) {
        let node = self.nodes.get_mut(&id).expect("it is there");
        let Some((to, number)) = node.tickets.remove(&ticket) else {
            self.failure = Some(format!("node {id} answers ticket {ticket} twice, or unasked"));
            return;
        };
        let response = match read {
            None => response,
            Some(Read::Log { from, end, bytes_max }) => response.fill(node.disk.read(from, end, bytes_max)),
            Some(Read::Snapshot { id, position, bytes_max }) => {
                let Some(bytes) = node.disk.snapshots.get(&id) else { return };
                let from = position as usize;
                let end = (from + bytes_max as usize).min(bytes.len());
                let piece = bytes.slice(from..end);
                response.fill(piece)
            }
        };
        if to == ADMIN {
            let ok = matches!(
                response,
                Response::AddVoter { error: ErrorCode::None, .. }
                    | Response::RemoveVoter { error: ErrorCode::None, .. }
            );
            self.counts.voter_changes += u64::from(ok);
            return;
        }
        let response = wire::response(response, self.versions);
        self.reply(id, to, number, Some(response));
    }

    pub(super) fn reply(&mut self, from: i32, to: i32, number: u64, body: Option<Response>) {
        if self.is_lost(from, to) {
            return;
        }
        let named = i32::from((number & 0xff) as u8 as i8);
        let delay = self.delay();
        let copies = if !self.is_calm && self.rng.permille(self.plan.duplicates) { 2 } else { 1 };
        for _ in 0..copies {
            let body = body.clone().map(Box::new);
            self.after(delay, Event::Response { from: named, to, number: number >> 8, body });
        }
    }
}

fn epoch_of_request(request: &Request) -> Option<LeaderEpoch> {
    match request {
        Request::Vote(vote) => Some(vote.epoch),
        Request::BeginEpoch(begin) => Some(begin.epoch),
        Request::EndEpoch(end) => Some(end.epoch),
        Request::Fetch(fetch) => Some(fetch.epoch),
        Request::FetchSnapshot(fetch) => Some(fetch.epoch),
        Request::UpdateVoter(update) => Some(update.epoch),
        Request::AddVoter(_) | Request::RemoveVoter(_) | Request::ApiVersions => None,
    }
}

fn epoch_of_response(response: &Response) -> Option<LeaderEpoch> {
    match response {
        Response::Vote { head, .. }
        | Response::BeginEpoch(head)
        | Response::EndEpoch(head)
        | Response::UpdateVoter(head) => Some(head.epoch),
        Response::Fetch(fetched) => Some(fetched.head.epoch),
        Response::FetchSnapshot(fetched) => Some(fetched.head.epoch),
        _ => None,
    }
}
