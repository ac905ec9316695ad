//! The accounts of limited clients: which one a client has, how much it has used, and what that costs it.
//!
//! Accounts are bounded, in number and size. At [`ACCOUNTS_MAX`] those that are idle go, which is tried once in
//! [`SWEEP_MS`]. If that makes no room, further clients of a user share one account, with the limit of each: a client
//! that makes up client ids limits itself and its user, and no client is without a limit. Kafka keeps an account for
//! each, without a bound.
//!
//! Neighbour: shell/broker/src/node/workers/quotas.rs, which locks them.

use barnabas_base::{DurationMs, Map, MonotonicMs, Text};

use super::{Account, Kind, Rate, Windows};

/// About 1 KiB each.
pub const ACCOUNTS_MAX: usize = 50_000;
/// Shared accounts of users, on top of those. Further users share one in all.
const SHARED_MAX: usize = 10_000;
/// Between two looks at all accounts for idle ones.
const SWEEP_MS: i64 = 1000;
/// Longer names have accounts under their digests.
pub const NAME_BYTES_MAX: usize = 128;
/// The client id of a shared account.
const SHARED: &str = "\0shared";

/// What one account has used, by kind of quota.
#[derive(Debug, Default)]
pub struct Rates([Rate; Kind::ALL.len()]);

impl Rates {
    pub fn is_idle(&self, now: MonotonicMs, windows: Windows) -> bool {
        self.0.iter().all(|rate| rate.is_idle(now, windows))
    }

    /// Counts what a client used. Returns how long it must wait.
    pub fn charge(
        &mut self,
        (kind, per_second): (Kind, f64),
        used: f64,
        now: MonotonicMs,
        windows: Windows,
    ) -> DurationMs {
        let rate = &mut self.0[kind as usize];
        rate.record(used, now, windows);
        let wait = rate.wait(per_second, now, windows);
        // Source: Kafka `ClientRequestQuotaManager`.
        if kind == Kind::Request { wait.min(windows.window()) } else { wait }
    }

    /// Counts the records of an answer to a consumer. Returns how long it must wait, and whether the answer leaves
    /// without the records: then they are not counted.
    ///
    /// An account that has used nothing gets its records, however many: a batch may be larger than what the windows
    /// hold, and Kafka would never answer with it.
    pub fn charge_records(
        &mut self,
        per_second: f64,
        bytes: f64,
        now: MonotonicMs,
        windows: Windows,
    ) -> (DurationMs, bool) {
        let rate = &mut self.0[Kind::Fetch as usize];
        let is_unused = rate.per_second(now, windows) < 1.0;
        rate.record(bytes, now, windows);
        let wait = rate.wait(per_second, now, windows);
        let is_withheld = wait.0 > 0 && !is_unused;
        if is_withheld {
            rate.record(-bytes, now, windows);
        }
        (wait, is_withheld)
    }
}

/// See the file's header. `A` holds a client's [`Rates`], shared by its connections.
#[derive(Debug)]
pub struct Accounts<A> {
    of: Map<Account, A>,
    swept_at: Option<MonotonicMs>,
    /// Accounts that sweeps looked at.
    looked_at: u64,
}

impl<A> Default for Accounts<A> {
    fn default() -> Self {
        Self { of: Map::default(), swept_at: None, looked_at: 0 }
    }
}

impl<A: Default + Clone> Accounts<A> {
    pub fn len(&self) -> usize {
        self.of.len()
    }

    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// Accounts that were looked at for idle ones, so far.
    pub fn looked_at(&self) -> u64 {
        self.looked_at
    }

    /// The account of a client, which is a client of `user`. `true`: it shares it with others. `digest`: a short name
    /// for a long one. `is_idle`: no connection holds it, and it has nothing left to remember.
    pub fn of(
        &mut self,
        Account { user, client_id }: Account,
        of: &str,
        digest: impl Fn(&str) -> Text,
        now: MonotonicMs,
        is_idle: impl Fn(&A) -> bool,
    ) -> (A, bool) {
        let bounded = |name: Text| if name.len() > NAME_BYTES_MAX { digest(&name) } else { name };
        let account = Account { user: bounded(user), client_id: bounded(client_id) };
        let known = self.of.get(&account).cloned();
        if let Some(own) = known.or_else(|| {
            self.sweep(now, is_idle);
            self.below(ACCOUNTS_MAX, &account)
        }) {
            return (own, false);
        }
        let shared = |user: Text| Account { user, client_id: Text::from(SHARED) };
        let of_user = self.below(ACCOUNTS_MAX + SHARED_MAX, &shared(bounded(Text::from(of))));
        let account =
            of_user.unwrap_or_else(|| self.of.entry(shared(Text::from(SHARED))).or_default().clone());
        (account, true)
    }

    /// `None`: there are as many as there may be.
    fn below(&mut self, most: usize, account: &Account) -> Option<A> {
        if let Some(known) = self.of.get(account) {
            return Some(known.clone());
        }
        (self.of.len() < most).then(|| self.of.entry(account.clone()).or_default().clone())
    }

    /// Drops what is idle, unless that was tried just now.
    fn sweep(&mut self, now: MonotonicMs, is_idle: impl Fn(&A) -> bool) {
        if self.of.len() < ACCOUNTS_MAX || self.swept_at.is_some_and(|last| now.since(last).0 < SWEEP_MS) {
            return;
        }
        self.swept_at = Some(now);
        self.looked_at += self.of.len() as u64;
        self.of.retain(|_, account| !is_idle(account));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;

    fn account(user: &str, client_id: &str) -> Account {
        Account { user: Text::from(user), client_id: Text::from(client_id) }
    }

    #[test]
    fn accounts_are_bounded_and_a_user_shares_one_beyond() {
        let mut accounts = Accounts::<Rc<u8>>::default();
        let now = MonotonicMs(5_000);
        let mut of = |user: &str, id: &str, now| {
            let digest = |name: &str| Text::from(name.len().to_string());
            accounts.of(account(user, id), user, digest, now, |account| Rc::strong_count(account) == 1)
        };
        let mut held: Vec<_> = (0..ACCOUNTS_MAX).map(|at| of("a", &at.to_string(), now)).collect();
        assert!(held.iter().all(|(_, is_shared)| !is_shared));
        let (one, other) = (of("a", "x", now), of("a", "y", now));
        assert!(one.1 && other.1 && Rc::ptr_eq(&one.0, &other.0));
        assert!(!Rc::ptr_eq(&one.0, &of("b", "x", now).0), "another user's");
        assert!(!of("a", "7", now).1, "one that is known");
        // Idle ones make room, a second later.
        held.truncate(10);
        assert!(of("a", "x", now).1);
        let later = now.plus(DurationMs(SWEEP_MS));
        assert!(!of("a", "x", later).1);
        // The ten, the shared one of `a` and the new one.
        assert_eq!((accounts.len(), accounts.looked_at()), (12, 2 * ACCOUNTS_MAX as u64 + 2));
    }

    #[test]
    fn long_names_have_accounts_under_their_digests() {
        let mut accounts = Accounts::<Rc<u8>>::default();
        let long = "x".repeat(NAME_BYTES_MAX + 1);
        let digest = |name: &str| Text::from(name.len().to_string());
        accounts.of(account("", &long), "", digest, MonotonicMs(0), |_| false);
        assert!(accounts.of.keys().all(|account| *account.client_id == *"129"));
    }
}
