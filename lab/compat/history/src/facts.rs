//! What a history says, record by record and transaction by transaction, in little memory.
//!
//! Files of different clients come one after the other, so a record may be read here before it is known who sent it;
//! nothing is concluded before everything is in. Offsets live in pages of 512 words: a word holds the value that was
//! seen there, who saw it at which isolation, and which groups were given it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A value is `writer << 32 | sequence`; writers are numbered below 2²⁰, so the bits above 52 are free for marks.
const VALUE_BITS: u64 = (1 << 52) - 1;
const SEEN_COMMITTED: u64 = 1 << 63;
const SEEN: u64 = 1 << 62;
const TOMBSTONE: u64 = 1 << 61;
const KNOWN: u64 = 1 << 60;
const GROUP_SHIFT: u32 = 52;
/// So many groups can be followed.
pub const GROUPS_MAX: usize = 8;
const PAGE: i64 = 512;
const SENDS: u64 = 256;

/// No transaction, no partition, no offset.
pub const NONE: u32 = u32::MAX;

/// How a send or a transaction ended, as its client knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum State {
    /// Nobody said that it began.
    #[default]
    Never,
    /// Begun, and nothing more is known.
    Open,
    Ok,
    Fail,
    Info,
}

/// One record that a client sent, or that somebody read.
#[derive(Debug, Clone)]
pub struct Send {
    pub state: State,
    pub is_tombstone: bool,
    pub part: u32,
    pub txn: u32,
    /// What the sender was told.
    pub offset: i64,
    /// Where it was read first.
    pub read_part: u32,
    pub read_at: i64,
    pub invoked: u64,
    /// The earliest ends of a poll that gave it, at any isolation and at read_committed; `u64::MAX`: none.
    pub seen: u64,
    pub seen_committed: u64,
}

impl Default for Send {
    fn default() -> Self {
        Self {
            state: State::Never,
            is_tombstone: false,
            part: NONE,
            txn: NONE,
            offset: -1,
            read_part: NONE,
            read_at: -1,
            invoked: 0,
            seen: u64::MAX,
            seen_committed: u64::MAX,
        }
    }
}

/// One transaction.
#[derive(Debug, Clone)]
pub struct Txn {
    pub client: u32,
    pub number: u64,
    pub begun: u64,
    /// When its commit was asked for first; `u64::MAX`: never, so it may not take effect.
    pub commit_invoked: u64,
    pub ended: u64,
    pub state: State,
    pub values: Vec<u64>,
    /// What it polled.
    pub reads: Vec<u64>,
}

/// What a partition is for; a compacted one forgets on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Log,
    Compact,
}

/// A word of a page.
#[derive(Debug, Clone, Copy)]
pub struct Slot(u64);

impl Slot {
    pub fn is_known(self) -> bool {
        self.0 & KNOWN != 0
    }
    /// The value; none where a tombstone was read.
    pub fn value(self) -> Option<u64> {
        (self.is_known() && self.0 & TOMBSTONE == 0).then_some(self.0 & VALUE_BITS)
    }
    pub fn is_seen(self, committed: bool) -> bool {
        self.0 & if committed { SEEN_COMMITTED } else { SEEN } != 0
    }
    pub fn is_given_to(self, group: usize) -> bool {
        self.0 & (1 << (GROUP_SHIFT + group as u32)) != 0
    }
}

/// How a record was come by.
#[derive(Debug, Clone, Copy)]
pub struct Sight {
    pub is_poll: bool,
    pub is_committed: bool,
    pub group: Option<usize>,
}

#[derive(Debug)]
pub struct Part {
    pub topic: String,
    pub number: i32,
    pub kind: Kind,
    /// The highest offsets that a poll gave, at any isolation and at read_committed.
    pub highest: i64,
    pub highest_committed: i64,
    pages: BTreeMap<i64, Box<[u64; PAGE as usize]>>,
}

impl Part {
    /// Notes what stands at an offset; answers what had been noted before, if that is something else.
    pub fn note(&mut self, offset: i64, value: Option<u64>, sight: Sight) -> Option<Slot> {
        let page = self.pages.entry(offset.div_euclid(PAGE)).or_insert_with(|| Box::new([0; PAGE as usize]));
        let word = &mut page[offset.rem_euclid(PAGE) as usize];
        let was = Slot(*word);
        let mine = value.map_or(TOMBSTONE, |value| value & VALUE_BITS) | KNOWN;
        let conflict = was.is_known() && was.value() != value;
        if !was.is_known() {
            *word |= mine;
        }
        if sight.is_poll {
            *word |= SEEN | if sight.is_committed { SEEN_COMMITTED } else { 0 };
            self.highest = self.highest.max(offset);
            if sight.is_committed {
                self.highest_committed = self.highest_committed.max(offset);
            }
        }
        if let Some(group) = sight.group {
            *word |= 1 << (GROUP_SHIFT + group as u32);
        }
        conflict.then_some(was)
    }

    /// Everything known from `from` up to, not with, `to`, in order.
    pub fn between(&self, from: i64, to: i64) -> impl Iterator<Item = (i64, Slot)> {
        let pages = (from < to).then(|| from.div_euclid(PAGE)..=(to - 1).div_euclid(PAGE));
        let found = pages.map(|pages| self.pages.range(pages));
        found
            .into_iter()
            .flatten()
            .flat_map(|(number, page)| {
                page.iter().enumerate().map(move |(at, word)| (number * PAGE + at as i64, Slot(*word)))
            })
            .filter(move |(offset, slot)| *offset >= from && *offset < to && slot.is_known())
    }
}

/// Two neighbours in what one consumer was given, which were no neighbours in the log.
#[derive(Debug)]
pub struct Step {
    pub client: u32,
    pub part: u32,
    pub from: i64,
    pub to: i64,
    /// Both from one poll.
    pub is_inside: bool,
    pub is_committed: bool,
}

/// A partition and an offset.
pub type Place = (u32, i64);

/// A value where another one had been seen.
#[derive(Debug)]
pub struct Conflict {
    pub part: u32,
    pub offset: i64,
    pub one: Option<u64>,
    pub other: Option<u64>,
    pub client: u32,
}

/// A group's offset as it was stored or told.
#[derive(Debug, Clone)]
pub struct Commit {
    pub part: u32,
    pub offset: i64,
    pub invoked: u64,
    pub ended: u64,
    pub client: u32,
    /// Told by the coordinator, not asked of it.
    pub is_read: bool,
}

/// An offset that moved back, as one client saw it.
#[derive(Debug)]
pub struct Regress {
    pub client: u32,
    pub part: u32,
    pub what: String,
    pub from: (i64, i64),
    pub to: (i64, i64),
}

/// A batch as it lies on a replica's disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch {
    pub base: i64,
    pub last: i64,
    pub crc: u64,
    pub epoch: i64,
}

/// The last reading of a partition: where it should have come to and where it did.
#[derive(Debug)]
pub struct Final {
    pub part: u32,
    pub is_committed: bool,
    pub end: i64,
    pub position: i64,
}

/// A thing that admin operations set and a listing tells, and what it may be by now.
#[derive(Debug, Default)]
pub struct Register {
    pub possible: Vec<Option<String>>,
    pub told: Option<Option<String>>,
}

/// A record that a share group's member was given.
#[derive(Debug)]
pub struct Given {
    pub client: u32,
    /// For which time, as the broker told.
    pub count: u32,
}

/// One record, as a share group had it.
#[derive(Debug, Default)]
pub struct SharedRecord {
    pub given: Vec<Given>,
    /// Accepted or rejected, or perhaps.
    pub is_settled: bool,
}

impl SharedRecord {
    /// Acknowledged, perhaps, or given as often as it may be.
    pub fn is_done(&self, limit: u32) -> bool {
        self.is_settled || self.given.iter().any(|given| given.count >= limit)
    }
}

#[derive(Debug)]
pub struct ShareGroup {
    pub topics: BTreeSet<String>,
    /// How often a record may be given.
    pub limit: u32,
    /// It was said to have come to the end of its topics.
    pub is_drained: bool,
    pub records: BTreeMap<Place, SharedRecord>,
}

impl Default for ShareGroup {
    fn default() -> Self {
        // Nobody has said what the limit is.
        Self { topics: BTreeSet::new(), limit: u32::MAX, is_drained: false, records: BTreeMap::new() }
    }
}

/// When all was healed, and how long what may take how long after that. Nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    pub healed: u64,
    pub transaction: u64,
    pub rebalance: u64,
    pub loading: u64,
}

/// How long a client that sends all the time went without being told that something is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Waits {
    pub longest_ns: u64,
    /// So often it was more than a second.
    pub above_a_second: u64,
}

impl Waits {
    pub fn note(&mut self, wait_ns: u64) {
        self.longest_ns = self.longest_ns.max(wait_ns);
        self.above_a_second += u64::from(wait_ns > 1_000_000_000);
    }
}

/// What must come to rest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Watched {
    Group(String),
    Coordinator(String),
}

/// Where a partition ended, for everybody or for those who read at read_committed.
#[derive(Debug, Clone, Copy)]
pub struct EndSeen {
    pub time: u64,
    pub offset: i64,
    pub is_stable: bool,
}

#[derive(Debug, Default)]
pub struct Facts {
    pub clients: Vec<String>,
    client_numbers: HashMap<String, u32>,
    pub groups: Vec<String>,
    pub parts: Vec<Part>,
    part_numbers: HashMap<(String, i32), u32>,
    /// By value, in pages: a value that nobody can have sent costs one page.
    send_pages: BTreeMap<u64, Vec<Send>>,
    pub txns: Vec<Txn>,
    pub txn_numbers: HashMap<(u32, u64), u32>,
    pub conflicts: Vec<Conflict>,
    /// Read at a second place: value, first place, second place.
    pub twice: Vec<(u64, Place, Place)>,
    pub steps: Vec<Step>,
    pub stepped: u64,
    pub commits: BTreeMap<usize, Vec<Commit>>,
    pub regresses: Vec<Regress>,
    pub offsets_told: u64,
    /// By partition and node.
    pub replicas: BTreeMap<u32, BTreeMap<i64, Vec<Batch>>>,
    /// End offsets up to which replicas must agree.
    pub replicated_to: BTreeMap<u32, i64>,
    pub finals: Vec<Final>,
    /// Keyed sends of compacted topics, and what the last reading found last for each key.
    pub keyed: Vec<(u32, String, u64)>,
    pub last_of_key: HashMap<(u32, String), (i64, Option<u64>)>,
    /// Made in a transaction that also stored what was read: (what it was made of, what was made).
    pub moved: Vec<(u64, u64)>,
    /// By group: the topics that it reads, and whether it moves them.
    pub group_topics: BTreeMap<usize, (Vec<String>, bool)>,
    /// What did not get well in time, in words.
    pub stuck: Vec<String>,
    pub registers: BTreeMap<(String, String), Register>,
    pub share_groups: BTreeMap<String, ShareGroup>,
    pub bounds: Option<Bounds>,
    /// When it was looked at, and what it was if that was not at rest.
    pub watched: BTreeMap<Watched, Vec<(u64, Option<String>)>>,
    pub ends_seen: BTreeMap<u32, Vec<EndSeen>>,
    /// By client.
    pub waits: BTreeMap<u32, Waits>,
    pub faults: BTreeMap<String, u64>,
    pub kinds: BTreeMap<String, u64>,
    pub sent: u64,
    pub polled: u64,
    pub lines: u64,
    pub torn_lines: u64,
}

impl Facts {
    pub fn client(&mut self, name: &str) -> u32 {
        if let Some(number) = self.client_numbers.get(name) {
            return *number;
        }
        let number = self.clients.len() as u32;
        self.clients.push(name.to_owned());
        self.client_numbers.insert(name.to_owned(), number);
        number
    }

    pub fn part(&mut self, topic: &str, number: i32) -> u32 {
        let key = (topic.to_owned(), number);
        if let Some(found) = self.part_numbers.get(&key) {
            return *found;
        }
        let found = self.parts.len() as u32;
        self.parts.push(Part {
            topic: topic.to_owned(),
            number,
            kind: Kind::Log,
            highest: -1,
            highest_committed: -1,
            pages: BTreeMap::new(),
        });
        self.part_numbers.insert(key, found);
        found
    }

    /// The group's number; none when there are more groups than can be followed.
    pub fn group(&mut self, name: &str) -> Option<usize> {
        if let Some(found) = self.groups.iter().position(|known| known == name) {
            return Some(found);
        }
        self.groups.push(name.to_owned());
        Some(self.groups.len() - 1).filter(|number| *number < GROUPS_MAX)
    }

    pub fn txn(&mut self, client: u32, number: u64) -> u32 {
        let next = self.txns.len() as u32;
        let found = *self.txn_numbers.entry((client, number)).or_insert(next);
        if found == next {
            self.txns.push(Txn {
                client,
                number,
                begun: u64::MAX,
                commit_invoked: u64::MAX,
                ended: u64::MAX,
                state: State::Never,
                values: Vec::new(),
                reads: Vec::new(),
            });
        }
        found
    }

    pub fn send_mut(&mut self, value: u64) -> &mut Send {
        let page =
            self.send_pages.entry(value / SENDS).or_insert_with(|| vec![Send::default(); SENDS as usize]);
        &mut page[(value % SENDS) as usize]
    }

    pub fn send(&self, value: u64) -> Option<&Send> {
        self.send_pages.get(&(value / SENDS))?.get((value % SENDS) as usize)
    }

    /// Every record that was sent or read, with its value, by writer and in the order of sending.
    pub fn sends(&self) -> impl Iterator<Item = (u64, &Send)> {
        self.send_pages
            .iter()
            .flat_map(|(page, sends)| {
                sends.iter().enumerate().map(move |(at, send)| (page * SENDS + at as u64, send))
            })
            .filter(|(_, send)| send.state != State::Never || send.read_part != NONE)
    }

    pub fn txn_of(&self, send: &Send) -> Option<&Txn> {
        self.txns.get(send.txn as usize)
    }

    /// `topic-partition`.
    pub fn part_name(&self, part: u32) -> String {
        self.parts
            .get(part as usize)
            .map_or_else(|| "?".into(), |part| format!("{}-{}", part.topic, part.number))
    }

    pub fn client_name(&self, client: u32) -> &str {
        self.clients.get(client as usize).map_or("?", String::as_str)
    }

    /// Whether the partition keeps everything.
    pub fn keeps_all(&self, part: u32) -> bool {
        self.parts.get(part as usize).is_some_and(|part| part.kind == Kind::Log)
    }
}

/// A value as findings show it: writer and sequence.
pub fn shown(value: u64) -> String {
    format!("{value} (writer {}, #{})", value >> 32, value & 0xFFFF_FFFF)
}
