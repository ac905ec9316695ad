//! Share sessions: which partitions a member fetches, so that it need not say so again and again; and when it is gone.
//!
//! A session is one member's of one group on this node, whatever connection its requests come by; it ends with the
//! connection that began it, or by the member's word.
//!
//! Always true:
//! 1. there are at most `sessions_max` sessions, of at most [`PARTS_MAX`] partitions each
//! 2. what a session takes was lent to it before, and goes back with it (session_memory.rs)
//! 3. a request counts once: each names the epoch that the one before it left behind
//!
//! Source: Kafka 4.4 `SharePartitionManager.newContext`, `ShareSessionCache`, `ShareSession`, `CachedSharePartition`.

use std::collections::BTreeMap;
use std::fmt;

use barnabas_base::{ErrorCode, Map, PartitionIndex, Text, TopicId};

use crate::SessionShare;
use crate::session_memory::{WORK_BYTES, entry_bytes};

/// More than any member is assigned.
const PARTS_MAX: usize = 100_000;
const INITIAL: i32 = 0;
const FINAL: i32 = -1;

/// A member of a group.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct MemberKey {
    pub group: Text,
    pub member: Text,
}

/// A client's connection. Numbers are not given twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Connection(pub u64);

/// A partition by its topic's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SharePart {
    pub topic: TopicId,
    pub partition: PartitionIndex,
}

/// Who opens a session, and what a new one's memory is taken from.
pub struct Opener<'a> {
    pub connection: Connection,
    pub share: &'a dyn Fn() -> SessionShare,
}

impl fmt::Debug for Opener<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Opener").field(&self.connection).finish()
    }
}

/// The sessions of a node.
#[derive(Debug)]
pub struct ShareSessions {
    sessions: Map<MemberKey, Session>,
    sessions_max: usize,
    /// Sessions of each group.
    groups: Map<Text, usize>,
    /// Sessions by the connection that began them.
    connections: Map<Connection, Vec<MemberKey>>,
}

struct Session {
    /// What the next request is to name.
    epoch: i32,
    connection: Connection,
    /// Whether each must be answered though there is nothing to say.
    parts: BTreeMap<SharePart, bool>,
    share: SessionShare,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { epoch, connection, parts, .. } = self;
        let mut f = f.debug_struct("Session");
        f.field("epoch", epoch)
            .field("connection", connection)
            .field("parts", &parts.len())
            .finish_non_exhaustive()
    }
}

impl Session {
    /// Whether there is memory for a session of so many partitions.
    fn lend(share: &SessionShare, key: &MemberKey, parts: usize) -> bool {
        let parts = parts as u64 * entry_bytes(size_of::<(SharePart, bool)>());
        let texts = (key.group.len() + key.member.len()) as u64;
        // The key stands in the sessions, with its connection and its group.
        let fixed = entry_bytes(size_of::<(MemberKey, Self)>()) + 2 * entry_bytes(size_of::<MemberKey>());
        share.lend(fixed + texts + parts)
    }
}

/// What a fetch is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opened {
    /// The session begins: everything is answered.
    First(Vec<SharePart>),
    /// It goes on.
    Next(Vec<SharePart>),
    /// It ends, once what is acknowledged is answered.
    Last,
}

/// A session that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    pub key: MemberKey,
    pub parts: Vec<SharePart>,
    /// The group has no session on this node any more.
    pub is_last: bool,
}

fn next(epoch: i32) -> i32 {
    if epoch == i32::MAX { 1 } else { epoch + 1 }
}

impl ShareSessions {
    pub fn new(sessions_max: usize) -> Self {
        Self { sessions: Map::default(), sessions_max, groups: Map::default(), connections: Map::default() }
    }

    pub fn set_max(&mut self, sessions_max: usize) {
        self.sessions_max = sessions_max;
    }

    pub fn count(&self) -> usize {
        self.sessions.len()
    }

    /// What a request takes for partitions of its member's session that it does not name.
    pub fn work_bytes(&self, key: &MemberKey) -> u64 {
        self.sessions.get(key).map_or(0, |session| session.parts.len() as u64 * WORK_BYTES)
    }

    /// Takes a fetch's epoch and what it adds and forgets.
    ///
    /// # Errors
    /// SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH; INVALID_REQUEST for acknowledgements before anything was
    /// fetched; SHARE_SESSION_LIMIT_REACHED, also where there is no memory for what the session would take.
    pub fn open(
        &mut self,
        key: &MemberKey,
        epoch: i32,
        wanted: &[SharePart],
        forgotten: &[SharePart],
        has_acknowledgements: bool,
        opener: &Opener<'_>,
    ) -> Result<Opened, ErrorCode> {
        match epoch {
            FINAL if self.sessions.contains_key(key) => Ok(Opened::Last),
            FINAL => Err(ErrorCode::ShareSessionNotFound),
            INITIAL if has_acknowledgements => Err(ErrorCode::InvalidRequest),
            INITIAL => self.begin(key, wanted, opener).map(Opened::First),
            epoch => {
                let session = self.sessions.get_mut(key).ok_or(ErrorCode::ShareSessionNotFound)?;
                if session.epoch != epoch {
                    return Err(ErrorCode::InvalidShareSessionEpoch);
                }
                // At the most: what is named twice counts twice.
                let more = wanted.iter().filter(|part| !session.parts.contains_key(part)).count();
                let parts = (session.parts.len() + more).min(PARTS_MAX);
                if !Session::lend(&session.share, key, parts) {
                    return Err(ErrorCode::ShareSessionLimitReached);
                }
                for part in wanted {
                    if session.parts.len() < PARTS_MAX {
                        session.parts.entry(*part).or_insert(true);
                    }
                }
                for part in forgotten {
                    session.parts.remove(part);
                }
                Session::lend(&session.share, key, session.parts.len());
                session.epoch = next(epoch);
                Ok(Opened::Next(session.parts.keys().copied().collect()))
            }
        }
    }

    fn begin(
        &mut self,
        key: &MemberKey,
        wanted: &[SharePart],
        opener: &Opener<'_>,
    ) -> Result<Vec<SharePart>, ErrorCode> {
        // What the former one had acquired stays so until its locks end.
        self.end(key);
        if self.sessions.len() >= self.sessions_max {
            return Err(ErrorCode::ShareSessionLimitReached);
        }
        let share = (opener.share)();
        if !Session::lend(&share, key, wanted.len().min(PARTS_MAX)) {
            return Err(ErrorCode::ShareSessionLimitReached);
        }
        let parts: BTreeMap<SharePart, bool> =
            wanted.iter().take(PARTS_MAX).map(|part| (*part, false)).collect();
        let list = parts.keys().copied().collect();
        Session::lend(&share, key, parts.len());
        let connection = opener.connection;
        self.sessions.insert(key.clone(), Session { epoch: next(INITIAL), connection, parts, share });
        *self.groups.entry(key.group.clone()).or_default() += 1;
        self.connections.entry(connection).or_default().push(key.clone());
        Ok(list)
    }

    /// Takes the epoch of a request that only acknowledges.
    ///
    /// # Errors
    /// INVALID_SHARE_SESSION_EPOCH, SHARE_SESSION_NOT_FOUND.
    pub fn acknowledge(&mut self, key: &MemberKey, epoch: i32) -> Result<(), ErrorCode> {
        if epoch == INITIAL {
            return Err(ErrorCode::InvalidShareSessionEpoch);
        }
        let session = self.sessions.get_mut(key).ok_or(ErrorCode::ShareSessionNotFound)?;
        if epoch == FINAL {
            return Ok(());
        }
        if session.epoch != epoch {
            return Err(ErrorCode::InvalidShareSessionEpoch);
        }
        session.epoch = next(epoch);
        Ok(())
    }

    /// Ends a session. What its member has acquired is to be released.
    pub fn end(&mut self, key: &MemberKey) -> Option<Ended> {
        let session = self.sessions.remove(key)?;
        if let Some(of) = self.connections.get_mut(&session.connection) {
            of.retain(|known| known != key);
            if of.is_empty() {
                self.connections.remove(&session.connection);
            }
        }
        let left = self.groups.get_mut(&key.group).map_or(0, |count| {
            *count = count.saturating_sub(1);
            *count
        });
        if left == 0 {
            self.groups.remove(&key.group);
        }
        Some(Ended { key: key.clone(), parts: session.parts.into_keys().collect(), is_last: left == 0 })
    }

    /// Ends the sessions that were begun on a connection that is gone.
    pub fn disconnected(&mut self, connection: Connection) -> Vec<Ended> {
        let keys = self.connections.remove(&connection).unwrap_or_default();
        keys.iter().filter_map(|key| self.end(key)).collect()
    }

    /// Which of the answered partitions must stand in the answer, of a session that goes on; each with whether it has
    /// records and whether it is an error. `None`: the session has moved on, as only a repeated request can have done.
    pub fn must_answer(
        &mut self,
        key: &MemberKey,
        epoch: i32,
        answered: &[(SharePart, bool, bool)],
    ) -> Option<Vec<bool>> {
        let session = self.sessions.get_mut(key).filter(|session| session.epoch == next(epoch))?;
        let must = answered.iter().map(|(part, has_records, is_error)| {
            let Some(is_due) = session.parts.get_mut(part) else { return *has_records || *is_error };
            // The first answer after an error clears it.
            let must = *has_records || *is_due || *is_error;
            *is_due = *is_error;
            must
        });
        Some(must.collect())
    }
}
