//! How long a refused client waits for its answer: longer the more often its address, or the user that it claims to be,
//! was refused lately.
//!
//! Only refusals wait. A right password is answered at once, whatever others have tried in that name, so that no one
//! can lock a user out.
//!
//! Always true:
//! 1. at most [`ENTRIES_MAX`] addresses and users are remembered; those refused longest ago make room
//! 2. a delay is at least `connection.failed.authentication.delay.ms`, and at most that or [`DELAY_MAX_MS`]
//!
//! # Source
//! KIP-306 for the constant delay.

use std::net::IpAddr;

use barnabas_base::{Map, MonotonicMs};
use sha2::{Digest as _, Sha256};

/// Addresses and users that are remembered. About 50 bytes each.
pub const ENTRIES_MAX: usize = 4096;
/// The longest delay that grows. The deadline of a login is longer.
pub const DELAY_MAX_MS: u64 = 5_000;
/// How many are forgotten at once. Finding the oldest reads the whole table, and a stranger may bring a new name each
/// time.
const FORGOTTEN: usize = ENTRIES_MAX / 4;
/// Refusals that cost Kafka's delay alone.
const FREE: u32 = 10;
/// What a refusal costs where the configured delay is none.
const STEP_MS: u64 = 100;
/// The count falls by half in so long.
const HALF_LIFE_MS: u64 = 30_000;

/// Who was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    V4([u8; 4]),
    /// Its first 64 bits: the rest is the client's to choose.
    V6([u8; 8]),
    /// A digest of the name.
    User([u8; 8]),
}

#[derive(Debug, Clone, Copy)]
struct Count {
    refusals: u32,
    last: MonotonicMs,
}

/// The table. See the file's header.
#[derive(Debug, Default)]
pub struct Delays(Map<Key, Count>);

impl Delays {
    /// A client was refused. Returns how long its answer is held back.
    pub fn refused(&mut self, address: IpAddr, user: Option<&str>, least_ms: u64, now: MonotonicMs) -> u64 {
        let by_address = self.count(of_address(address), now);
        let by_user = user.map_or(0, |user| self.count(of_user(user), now));
        let doublings = by_address.max(by_user).saturating_sub(FREE).min(16);
        if doublings == 0 {
            return least_ms;
        }
        let grown = least_ms.max(STEP_MS) << doublings;
        grown.min(DELAY_MAX_MS).max(least_ms)
    }

    /// Entries that are remembered.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn count(&mut self, key: Key, now: MonotonicMs) -> u32 {
        if self.0.len() >= ENTRIES_MAX && !self.0.contains_key(&key) {
            self.make_room(now);
        }
        let count = self.0.entry(key).or_insert(Count { refusals: 0, last: now });
        count.refusals = count.now(now).saturating_add(1);
        count.last = now;
        count.refusals
    }

    /// Forgets what has decayed, and if that is little, the oldest.
    fn make_room(&mut self, now: MonotonicMs) {
        self.0.retain(|_, count| count.now(now) > 0);
        let surplus = (self.0.len() + FORGOTTEN).saturating_sub(ENTRIES_MAX);
        if surplus == 0 {
            return;
        }
        let mut by_age: Vec<(MonotonicMs, Key)> =
            self.0.iter().map(|(key, count)| (count.last, *key)).collect();
        by_age.select_nth_unstable_by_key(surplus - 1, |(last, _)| *last);
        for (_, key) in &by_age[..surplus] {
            self.0.remove(key);
        }
    }
}

impl Count {
    fn now(self, now: MonotonicMs) -> u32 {
        let halvings = now.0.saturating_sub(self.last.0) / HALF_LIFE_MS;
        u32::try_from(halvings).ok().and_then(|halvings| self.refusals.checked_shr(halvings)).unwrap_or(0)
    }
}

fn of_address(address: IpAddr) -> Key {
    match address.to_canonical() {
        IpAddr::V4(address) => Key::V4(address.octets()),
        IpAddr::V6(address) => {
            let mut prefix = [0; 8];
            prefix.copy_from_slice(&address.octets()[..8]);
            Key::V6(prefix)
        }
    }
}

fn of_user(user: &str) -> Key {
    let mut digest = [0; 8];
    digest.copy_from_slice(&Sha256::digest(user.as_bytes())[..8]);
    Key::User(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    #[test]
    fn delay_of_one_address_grows_and_decays() {
        let mut delays = Delays::default();
        let mut refused = |at| delays.refused(address(1), None, 100, MonotonicMs(at));
        for _ in 0..FREE {
            assert_eq!(refused(0), 100);
        }
        assert_eq!([refused(0), refused(0), refused(0)], [200, 400, 800]);
        assert_eq!((0..20).map(|_| refused(0)).last(), Some(DELAY_MAX_MS));
        assert_eq!(refused(20 * HALF_LIFE_MS), 100);
    }

    #[test]
    fn delay_of_one_user_grows_over_addresses() {
        let mut delays = Delays::default();
        let mut last = 0;
        for from in 0..40 {
            last = delays.refused(address(from), Some("alice"), 100, MonotonicMs(0));
        }
        assert_eq!(last, DELAY_MAX_MS);
        assert_eq!(delays.refused(address(100), Some("bob"), 100, MonotonicMs(0)), 100);
        assert_eq!(delays.refused(address(101), None, 9_000, MonotonicMs(0)), 9_000, "as configured");
    }

    #[test]
    fn table_is_bounded_and_keeps_the_newest() {
        let mut delays = Delays::default();
        for number in 0..3 * ENTRIES_MAX as u64 {
            delays.refused(address(1), Some(&number.to_string()), 0, MonotonicMs(number / 10));
        }
        assert!((ENTRIES_MAX - FORGOTTEN..=ENTRIES_MAX).contains(&delays.len()), "{}", delays.len());
        let last = 3 * ENTRIES_MAX as u64 - 1;
        let newest = (last - 1_000..=last).map(|number| of_user(&number.to_string()));
        assert_eq!(newest.filter(|key| !delays.0.contains_key(key)).count(), 0, "the newest stay");
        let grown = delays.refused(address(1), None, 0, MonotonicMs(0));
        assert_eq!(grown, DELAY_MAX_MS, "the address that goes on is not forgotten");
    }
}
