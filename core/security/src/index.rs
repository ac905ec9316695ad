//! All ACLs of one image, arranged so that a decision looks only at those that can match.
//!
//! Principals and hosts are numbered once. A pair of them that some ACL names is one number, and the entries of one
//! pattern are rows sorted by it: permissions of one pair on one pattern are two sets of bits. LITERAL patterns are
//! found by hash, PREFIXED ones by one binary search ([`prefixes`]), the wildcard pattern is resolved when a caller is.
//!
//! Memory: 8 bytes for each pair on a pattern, and each distinct name once.

mod prefixes;

use std::net::IpAddr;
use std::ops::Range;

use barnabas_base::{Map, Text};
use barnabas_metadata::access::{Acl, Acls};
use smallvec::SmallVec;

use crate::acl::{self, Operation, Operations, ResourceType, WILDCARD, WILDCARD_PRINCIPAL};
use crate::host::{Cidr, Host};
use prefixes::Prefixes;

/// Counts the steps of a decision: names and rows that were compared, hash tables that were asked.
///
/// `()` counts nothing and costs nothing.
pub trait Work {
    fn step(&mut self);
}

impl Work for () {
    #[inline]
    fn step(&mut self) {}
}

impl Work for usize {
    fn step(&mut self) {
        *self += 1;
    }
}

/// The number of a (principal, host) pair that an ACL names.
pub(crate) type Pair = u32;

/// What entries allow and deny, not counting what operations imply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Entries {
    allow: Operations,
    deny: Operations,
}

impl Entries {
    fn add(&mut self, other: Self) {
        self.allow |= other.allow;
        self.deny |= other.deny;
    }

    pub(crate) fn denies(self, operation: Operation) -> bool {
        self.deny & operation.bit() != 0
    }

    /// Whether an entry allows it, by name, by ALL or by implication.
    pub(crate) fn allows(self, operation: Operation) -> bool {
        self.allow & operation.allowed_by() != 0
    }

    /// Whether an entry allows it by name or by ALL.
    pub(crate) fn allows_by_name(self, operation: Operation) -> bool {
        self.allow & operation.bit() != 0
    }
}

#[derive(Debug, Clone, Copy)]
struct Row {
    pair: Pair,
    entries: Entries,
}

/// The rows of one pattern.
pub(crate) type Bucket = Range<u32>;

#[derive(Debug, Default)]
pub(crate) struct OfType {
    literals: Map<Text, Bucket>,
    prefixes: Prefixes,
    wildcard: Option<Bucket>,
    rows: Vec<Row>,
}

#[derive(Debug)]
pub(crate) struct Index {
    of_types: [OfType; ResourceType::COUNT],
    principals: Map<Text, u32>,
    hosts: Map<Text, u32>,
    ranges: Map<Cidr, u32>,
    /// The prefix lengths that ranges have, each once: (IPv6, length).
    range_lengths: Vec<(bool, u8)>,
    pairs: Map<(u32, u32), Pair>,
}

/// What of an index concerns one caller.
#[derive(Debug, Clone, Default)]
pub(crate) struct Matched {
    pub(crate) pairs: SmallVec<[Pair; 4]>,
    /// By [`ResourceType::place`]: what the wildcard pattern says.
    pub(crate) wildcard: [Entries; ResourceType::COUNT],
}

impl Index {
    pub(crate) fn new(acls: &Acls) -> Self {
        let mut index = Self {
            of_types: Default::default(),
            principals: Map::default(),
            hosts: Map::default(),
            ranges: Map::default(),
            range_lengths: Vec::new(),
            pairs: Map::default(),
        };
        let mut sorted: [Vec<(bool, &Text, Row)>; ResourceType::COUNT] = Default::default();
        for acl in acls.values() {
            // A resource type that is unknown here is in no request either.
            if let Some(resource_type) = ResourceType::from_code(acl.resource_type) {
                let row = Row { pair: index.pair(acl), entries: entries(acl) };
                let is_literal = acl::is_literal(acl.pattern_type);
                sorted[resource_type.place()].push((is_literal, &acl.resource_name, row));
            }
        }
        for (of_type, mut rows) in index.of_types.iter_mut().zip(sorted) {
            rows.sort_unstable_by(|a, b| (a.0, a.1, a.2.pair).cmp(&(b.0, b.1, b.2.pair)));
            of_type.fill(&rows);
        }
        index.range_lengths =
            index.ranges.keys().map(|range| (range.is_v6(), range.prefix_length())).collect();
        index.range_lengths.sort_unstable();
        index.range_lengths.dedup();
        index
    }

    fn pair(&mut self, acl: &Acl) -> Pair {
        let principal = number(&mut self.principals, &acl.principal);
        // Ranges are numbered together with other hosts, so that no two share a number.
        let next = self.hosts.len() + self.ranges.len();
        let host = match Cidr::parse(&acl.host) {
            Some(range) => *self.ranges.entry(range).or_insert(next as u32),
            None => match self.hosts.get(&acl.host) {
                Some(&known) => known,
                None => *self.hosts.entry(acl.host.clone()).or_insert(next as u32),
            },
        };
        let next = self.pairs.len() as u32;
        *self.pairs.entry((principal, host)).or_insert(next)
    }

    /// What concerns a caller. Its cost does not depend on the number of ACLs either.
    pub(crate) fn matched(&self, principal: &str, host: &Host) -> Matched {
        let numbers = |map: &Map<Text, u32>, own: &str, every: &str| {
            let own_number = (own != every).then(|| map.get(own).copied()).flatten();
            [own_number, map.get(every).copied()]
        };
        let principals = numbers(&self.principals, principal, WILDCARD_PRINCIPAL);
        let mut hosts: SmallVec<[u32; 4]> =
            numbers(&self.hosts, host.text(), WILDCARD).into_iter().flatten().collect();
        if let Some(address) = host.address() {
            hosts.extend(self.ranges_with(address));
        }
        let mut matched = Matched::default();
        for principal in principals.into_iter().flatten() {
            matched
                .pairs
                .extend(hosts.iter().filter_map(|&host| self.pairs.get(&(principal, host)).copied()));
        }
        matched.pairs.sort_unstable();
        for (of_type, entries) in self.of_types.iter().zip(&mut matched.wildcard) {
            if let Some(bucket) = &of_type.wildcard {
                *entries = of_type.entries(bucket, &matched.pairs, &mut ());
            }
        }
        matched
    }

    fn ranges_with(&self, address: IpAddr) -> impl Iterator<Item = u32> {
        let lengths = self.range_lengths.iter().filter(move |length| length.0 == address.is_ipv6());
        lengths.filter_map(move |length| self.ranges.get(&Cidr::around(address, length.1)).copied())
    }

    pub(crate) fn of_type(&self, resource_type: ResourceType) -> &OfType {
        &self.of_types[resource_type.place()]
    }
}

impl OfType {
    /// Takes over the rows: prefixes first, each kind sorted by name and pair.
    fn fill(&mut self, sorted: &[(bool, &Text, Row)]) {
        for pattern in sorted.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let (is_literal, name, _) = pattern[0];
            let bucket = self.append(pattern.iter().map(|(_, _, row)| *row));
            match is_literal {
                true if name == WILDCARD => self.wildcard = Some(bucket),
                true => {
                    self.literals.insert(name.clone(), bucket);
                }
                false => self.prefixes.push(name, bucket),
            }
        }
        self.prefixes.finish();
        self.rows.shrink_to_fit();
    }

    /// Adds the rows of one pattern, those of one pair as one row.
    fn append(&mut self, rows: impl Iterator<Item = Row>) -> Bucket {
        let start = self.rows.len();
        for row in rows {
            match self.rows[start..].last_mut() {
                Some(last) if last.pair == row.pair => last.entries.add(row.entries),
                _ => self.rows.push(row),
            }
        }
        // The metadata log cannot hold 2^32 ACLs.
        start as u32..self.rows.len() as u32
    }

    /// What a pattern's entries say about pairs, which are sorted.
    pub(crate) fn entries(&self, bucket: &Bucket, pairs: &[Pair], work: &mut impl Work) -> Entries {
        let mut rows = &self.rows[bucket.start as usize..bucket.end as usize];
        let mut sum = Entries::default();
        for &pair in pairs {
            let before = rows.partition_point(|row| {
                work.step();
                row.pair < pair
            });
            rows = &rows[before..];
            if let Some(row) = rows.first().filter(|row| row.pair == pair) {
                sum.add(row.entries);
            }
        }
        sum
    }

    pub(crate) fn has_wildcard(&self) -> bool {
        self.wildcard.is_some()
    }

    /// The pattern of exactly this name.
    pub(crate) fn literal(&self, name: &str, work: &mut impl Work) -> Option<&Bucket> {
        work.step();
        self.literals.get(name)
    }

    /// The PREFIXED patterns that match the name, the longest first.
    pub(crate) fn prefixes_of<'a, W: Work>(
        &'a self,
        name: &str,
        work: &mut W,
    ) -> impl Iterator<Item = &'a Bucket> + use<'a, W> {
        self.prefixes.of(name, work)
    }

    pub(crate) fn literals(&self) -> impl Iterator<Item = (&str, &Bucket)> {
        self.literals.iter().map(|(name, bucket)| (name.as_str(), bucket))
    }

    pub(crate) fn prefixes(&self) -> impl Iterator<Item = (&str, &Bucket)> {
        self.prefixes.iter()
    }
}

fn entries(acl: &Acl) -> Entries {
    let operations = acl::entry_operations(acl.operation);
    if acl::allows(acl.permission) {
        Entries { allow: operations, deny: 0 }
    } else {
        Entries { allow: 0, deny: operations }
    }
}

fn number(numbers: &mut Map<Text, u32>, text: &Text) -> u32 {
    if let Some(&known) = numbers.get(text) {
        return known;
    }
    let next = numbers.len() as u32;
    numbers.insert(text.clone(), next);
    next
}
