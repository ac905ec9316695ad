//! Events into facts: the one place that knows what an event means. Follows each consumer from poll to poll.

use crate::event::{Event, Phase, Rec, partition};
use crate::facts::{
    Batch, Bounds, Commit, Conflict, EndSeen, Facts, Final, Given, Kind, NONE, Regress, Sight, State, Step,
    Watched,
};
use serde_json::Value;
use std::collections::HashMap;

/// Facts in the making, and what must be remembered between two lines of one client.
#[derive(Debug, Default)]
pub struct Gather {
    facts: Facts,
    /// The last offset that a consumer was given, by client and partition.
    last: HashMap<(u32, u32), i64>,
    /// The last offsets that a client was told: epoch and offset by client, partition and kind.
    told: HashMap<(u32, u32, String), (i64, i64)>,
    /// When a client was last told that records of its are kept.
    acknowledged: HashMap<u32, u64>,
    /// Begun and not ended: commits and admin operations, by client and id.
    begun: HashMap<(u32, u64), u64>,
}

impl Gather {
    /// Takes one line in.
    ///
    /// # Errors
    /// The line is no event. A file's last line may be cut off where its client was killed; that is counted, not told.
    pub fn line(&mut self, line: &str) -> Result<(), String> {
        self.facts.lines += 1;
        let event = Event::parse(line)?;
        let client = self.facts.client(&event.client);
        match event.op.as_str() {
            "topic" => self.topic(&event)?,
            "send" => self.send(&event, client),
            "poll" => self.poll(&event, client),
            "assign" => self.last.retain(|(of, _), _| *of != client),
            "begin" | "end" => self.txn(&event, client),
            "commit" | "committed" => self.commit(&event, client)?,
            "offsets" => self.offsets(&event, client)?,
            "final" => self.last_reading(&event)?,
            "replica" => self.replica(&event)?,
            "admin" => self.admin(&event),
            "listing" => self.listing(&event),
            "group" => self.group(&event),
            "share" => self.share(&event, client)?,
            "ack" => self.acknowledge(&event)?,
            "sharegroup" => self.share_group(&event),
            "bounds" => self.bounds(&event)?,
            "watch" => self.watch(&event),
            "liveness" => self.facts.stuck.push(event.rest["what"].as_str().unwrap_or("?").to_owned()),
            "fault" if event.phase == Phase::Invoke => count(&mut self.facts.faults, &event.rest["kind"]),
            "client" => count(&mut self.facts.kinds, &event.rest["kind"]),
            _ => {}
        }
        Ok(())
    }

    pub fn torn(&mut self) {
        self.facts.torn_lines += 1;
    }

    pub fn done(mut self) -> Facts {
        // Several clients may have looked.
        self.facts.watched.values_mut().for_each(|seen| seen.sort());
        self.facts.ends_seen.values_mut().for_each(|seen| seen.sort_by_key(|end| end.time));
        self.facts
    }

    fn topic(&mut self, event: &Event) -> Result<(), String> {
        let topic = event.rest["topic"].as_str().ok_or("a topic without name")?;
        let kind = if event.rest["kind"].as_str() == Some("compact") { Kind::Compact } else { Kind::Log };
        for number in 0..partition(&event.rest["parts"])? {
            let part = self.facts.part(topic, number);
            self.facts.parts[part as usize].kind = kind;
        }
        Ok(())
    }

    fn send(&mut self, event: &Event, client: u32) {
        if event.phase == Phase::Ok
            && let Some(before) = self.acknowledged.insert(client, event.time)
        {
            self.facts.waits.entry(client).or_default().note(event.time.saturating_sub(before));
        }
        for rec in &event.records {
            let Some(value) = rec.value else { continue };
            let part = self.facts.part(&rec.topic, rec.partition);
            match event.phase {
                Phase::Invoke => self.sent(event, client, rec, value, part),
                Phase::Ok => {
                    let offset = rec.offset.unwrap_or(-1);
                    let send = self.facts.send_mut(value);
                    (send.state, send.offset) = (State::Ok, offset);
                    let is_tombstone = send.is_tombstone;
                    let sight = Sight { is_poll: false, is_committed: false, group: None };
                    self.note(client, part, offset, (!is_tombstone).then_some(value), sight);
                }
                Phase::Fail => self.facts.send_mut(value).state = State::Fail,
                Phase::Info => self.facts.send_mut(value).state = State::Info,
            }
        }
    }

    fn sent(&mut self, event: &Event, client: u32, rec: &Rec, value: u64, part: u32) {
        self.facts.sent += 1;
        let txn = event.txn.map(|number| self.facts.txn(client, number));
        let send = self.facts.send_mut(value);
        (send.part, send.invoked, send.is_tombstone) = (part, event.time, rec.tombstone);
        send.state = State::Open;
        if let Some(txn) = txn {
            send.txn = txn;
            self.facts.txns[txn as usize].values.push(value);
        }
        if let Some(source) = rec.source {
            self.facts.moved.push((source, value));
        }
        if let Some(key) = &rec.key {
            self.facts.keyed.push((part, key.clone(), value));
        }
    }

    fn poll(&mut self, event: &Event, client: u32) {
        if event.phase != Phase::Ok {
            return;
        }
        let group = event.group.as_deref().and_then(|name| self.facts.group(name));
        let txn = event.txn.map(|number| self.facts.txn(client, number));
        let mut inside: Vec<u32> = Vec::new();
        for rec in &event.records {
            let Some(offset) = rec.offset else { continue };
            let part = self.facts.part(&rec.topic, rec.partition);
            self.facts.polled += 1;
            self.step(client, part, offset, inside.contains(&part), event.is_committed);
            if !inside.contains(&part) {
                inside.push(part);
            }
            let sight = Sight { is_poll: true, is_committed: event.is_committed, group };
            self.note(client, part, offset, rec.value, sight);
            if let Some(value) = rec.value {
                self.read(value, part, offset, event);
                if let Some(txn) = txn {
                    self.facts.txns[txn as usize].reads.push(value);
                }
            }
            if let Some(key) = &rec.key {
                let seen = self.facts.last_of_key.entry((part, key.clone())).or_insert((offset, rec.value));
                if seen.0 <= offset {
                    *seen = (offset, rec.value);
                }
            }
        }
    }

    /// From one record of a consumer to the next.
    fn step(&mut self, client: u32, part: u32, offset: i64, is_inside: bool, is_committed: bool) {
        if let Some(from) = self.last.insert((client, part), offset) {
            self.facts.stepped += 1;
            if offset != from + 1 {
                self.facts.steps.push(Step { client, part, from, to: offset, is_inside, is_committed });
            }
        }
    }

    fn note(&mut self, client: u32, part: u32, offset: i64, value: Option<u64>, sight: Sight) {
        // A sender that was told no offset, or an impossible one, has said nothing about the log: A5 looks at it.
        if offset < 0 {
            return;
        }
        if let Some(was) = self.facts.parts[part as usize].note(offset, value, sight) {
            self.facts.conflicts.push(Conflict { part, offset, one: was.value(), other: value, client });
        }
    }

    fn read(&mut self, value: u64, part: u32, offset: i64, event: &Event) {
        let send = self.facts.send_mut(value);
        send.seen = send.seen.min(event.time);
        if event.is_committed {
            send.seen_committed = send.seen_committed.min(event.time);
        }
        let first = (send.read_part, send.read_at);
        if first.0 == NONE {
            (send.read_part, send.read_at) = (part, offset);
        } else if first != (part, offset) {
            self.facts.twice.push((value, first, (part, offset)));
        }
    }

    fn txn(&mut self, event: &Event, client: u32) {
        let Some(number) = event.txn else { return };
        let found = self.facts.txn(client, number);
        let txn = &mut self.facts.txns[found as usize];
        let is_commit = event.rest["commit"].as_bool().unwrap_or(false);
        match (event.op.as_str(), event.phase) {
            ("begin", _) => {
                txn.begun = txn.begun.min(event.time);
                txn.state = State::Open;
            }
            (_, Phase::Invoke) if is_commit => txn.commit_invoked = txn.commit_invoked.min(event.time),
            (_, Phase::Invoke) => {}
            // Aborted after a commit that nobody knows the end of: it may have been committed all the same.
            (_, Phase::Ok) if !is_commit && txn.commit_invoked != u64::MAX => txn.state = State::Info,
            (_, Phase::Ok) => {
                txn.ended = event.time;
                txn.state = if is_commit { State::Ok } else { State::Fail };
            }
            (_, Phase::Fail | Phase::Info) if txn.state != State::Ok => txn.state = State::Info,
            _ => {}
        }
    }

    fn commit(&mut self, event: &Event, client: u32) -> Result<(), String> {
        if event.phase == Phase::Invoke {
            self.begun.insert((client, event.id), event.time);
            return Ok(());
        }
        let invoked = self.begun.remove(&(client, event.id)).unwrap_or(event.time);
        let Some(group) = event.group.as_deref().and_then(|name| self.facts.group(name)) else {
            return Ok(());
        };
        if event.phase != Phase::Ok {
            return Ok(());
        }
        for row in event.rows("offs") {
            let part = self.row_part(row)?;
            let offset = row[2].as_i64().unwrap_or(-1);
            let is_read = event.op == "committed";
            self.facts.commits.entry(group).or_default().push(Commit {
                part,
                offset,
                invoked,
                ended: event.time,
                client,
                is_read,
            });
        }
        Ok(())
    }

    /// `[topic, partition, kind, offset, epoch]`: what ListOffsets says, epoch −1 where it says none.
    fn offsets(&mut self, event: &Event, client: u32) -> Result<(), String> {
        for row in event.rows("offs") {
            let part = self.row_part(row)?;
            let what = row[2].as_str().unwrap_or("?").to_owned();
            let now = (row[4].as_i64().unwrap_or(-1), row[3].as_i64().unwrap_or(-1));
            self.facts.offsets_told += 1;
            if what != "earliest" {
                let end = EndSeen { time: event.time, offset: now.1, is_stable: what == "lso" };
                self.facts.ends_seen.entry(part).or_default().push(end);
            }
            let key = (client, part, what.clone());
            let was = *self.told.get(&key).unwrap_or(&(-1, -1));
            // An answer of an older epoch comes from a leader that does not know yet that it is none. The log start has
            // no such excuse that would let it fall: nobody puts deleted records back.
            let is_later = what == "earliest" || now.0 >= was.0;
            if is_later && now.1 < was.1 {
                self.facts.regresses.push(Regress { client, part, what, from: was, to: now });
            }
            if is_later {
                self.told.insert(key, now);
            }
        }
        Ok(())
    }

    fn last_reading(&mut self, event: &Event) -> Result<(), String> {
        if event.phase == Phase::Invoke {
            return Ok(());
        }
        for row in event.rows("offs") {
            let part = self.row_part(row)?;
            let (end, position) = (row[2].as_i64().unwrap_or(-1), row[3].as_i64().unwrap_or(-1));
            self.facts.finals.push(Final { part, is_committed: event.is_committed, end, position });
        }
        Ok(())
    }

    fn replica(&mut self, event: &Event) -> Result<(), String> {
        let topic = event.rest["topic"].as_str().ok_or("a replica without topic")?;
        let part = self.facts.part(topic, partition(&event.rest["p"])?);
        let node = event.rest["node"].as_i64().ok_or("a replica without node")?;
        if let Some(end) = event.rest["end"].as_i64() {
            self.facts.replicated_to.insert(part, end);
        }
        let batches = self.facts.replicas.entry(part).or_default().entry(node).or_default();
        for row in event.rows("batches") {
            let number = |at: usize| row[at].as_i64().unwrap_or(-1);
            batches.push(Batch {
                base: number(0),
                last: number(1),
                crc: row[2].as_u64().unwrap_or(0),
                epoch: number(3),
            });
        }
        Ok(())
    }

    /// One admin client sets one thing after the other; what did not surely fail may be so.
    fn admin(&mut self, event: &Event) {
        let text = |name: &str| event.rest[name].as_str().map(str::to_owned);
        let (Some(kind), Some(name)) = (text("kind"), text("name")) else { return };
        let register = self.facts.registers.entry((kind, name)).or_default();
        let value = text("set");
        match event.phase {
            Phase::Ok => register.possible = vec![value],
            Phase::Invoke | Phase::Fail => {}
            Phase::Info if register.possible.is_empty() => register.possible = vec![None, value],
            Phase::Info => register.possible.push(value),
        }
    }

    /// What is there in the end, of one kind: what is not listed is not there.
    fn listing(&mut self, event: &Event) {
        let Some(kind) = event.rest["kind"].as_str() else { return };
        for ((of, name), register) in &mut self.facts.registers {
            if of == kind {
                register.told = Some(event.rest["values"][name.as_str()].as_str().map(str::to_owned));
            }
        }
    }

    fn group(&mut self, event: &Event) {
        if let Some(group) = event.group.as_deref().and_then(|name| self.facts.group(name)) {
            let topics = event.rows("topics").filter_map(|name| name.as_str().map(str::to_owned)).collect();
            let moves = event.rest["moves"].as_bool().unwrap_or(false);
            self.facts.group_topics.insert(group, (topics, moves));
        }
    }

    /// `[topic, partition, value, offset, delivery count]`: what a member of a share group was given.
    fn share(&mut self, event: &Event, client: u32) -> Result<(), String> {
        let name = event.group.clone().ok_or("a share without group")?;
        for row in event.rows("given") {
            let (part, offset) = (self.row_part(row)?, row[3].as_i64().ok_or("a share without offset")?);
            let count = row[4].as_u64().and_then(|count| u32::try_from(count).ok()).unwrap_or(0);
            let value = row[2].as_u64();
            // Share groups may read at either level: that a record is there is no word on its transaction.
            self.note(
                client,
                part,
                offset,
                value,
                Sight { is_poll: false, is_committed: false, group: None },
            );
            let group = self.facts.share_groups.entry(name.clone()).or_default();
            let record = group.records.entry((part, offset)).or_default();
            record.given.push(Given { client, count });
        }
        Ok(())
    }

    /// `[topic, partition, offset, type]`: acceptances and rejections settle a record, nothing else does.
    fn acknowledge(&mut self, event: &Event) -> Result<(), String> {
        if matches!(event.phase, Phase::Invoke | Phase::Fail) {
            return Ok(());
        }
        let name = event.group.clone().ok_or("an acknowledgement without group")?;
        for row in event.rows("acks") {
            let (part, offset) = (self.row_part(row)?, row[2].as_i64().ok_or("an ack without offset")?);
            if matches!(row[3].as_str(), Some("accept" | "reject")) {
                let group = self.facts.share_groups.entry(name.clone()).or_default();
                group.records.entry((part, offset)).or_default().is_settled = true;
            }
        }
        Ok(())
    }

    fn share_group(&mut self, event: &Event) {
        let Some(name) = event.group.clone() else { return };
        let topics = event.rows("topics").filter_map(|name| name.as_str().map(str::to_owned));
        let group = self.facts.share_groups.entry(name).or_default();
        group.topics.extend(topics);
        if let Some(limit) = event.rest["limit"].as_u64() {
            group.limit = u32::try_from(limit).unwrap_or(u32::MAX);
        }
        group.is_drained |= event.rest["drained"].as_bool().unwrap_or(false);
    }

    /// All is healed; from now on things take no longer than this.
    fn bounds(&mut self, event: &Event) -> Result<(), String> {
        let nanos = |name: &str| {
            let ms = event.rest[name].as_u64().ok_or_else(|| format!("bounds without {name}"))?;
            Ok::<u64, String>(ms.saturating_mul(1_000_000))
        };
        self.facts.bounds = Some(Bounds {
            healed: event.time,
            transaction: nanos("txn_ms")?,
            rebalance: nanos("rebalance_ms")?,
            loading: nanos("loading_ms")?,
        });
        Ok(())
    }

    /// A group, or a coordinator, was looked at: `state` says what it is doing, if it is not at rest.
    fn watch(&mut self, event: &Event) {
        let Some(name) = event.rest["name"].as_str().map(str::to_owned) else { return };
        let watched = match event.rest["kind"].as_str() {
            Some("group") => Watched::Group(name),
            Some("coordinator") => Watched::Coordinator(name),
            _ => return,
        };
        let state = event.rest["state"].as_str().map(str::to_owned);
        self.facts.watched.entry(watched).or_default().push((event.time, state));
    }

    fn row_part(&mut self, row: &Value) -> Result<u32, String> {
        let topic = row[0].as_str().ok_or("a row without topic")?;
        Ok(self.facts.part(topic, partition(&row[1])?))
    }
}

fn count(counts: &mut std::collections::BTreeMap<String, u64>, kind: &Value) {
    *counts.entry(kind.as_str().unwrap_or("?").to_owned()).or_default() += 1;
}
