//! A connection's transactions (AMQP 1.0 part 4): what was put and retired in each, until it is discharged. Pure.
//!
//! A transaction belongs to the connection: any link of any session may work in it. It is ended by its controller
//! ([`Transactions::take`]), by the end of the link that declared it, or where it holds something and nothing was added
//! for [`IDLE_MS`] ([`Transactions::expire`]). One that failed is kept until its controller learns of it.
//!
//! Always true:
//! 1. what was put in a transaction is in it whole, or the transaction has failed: its commit is refused
//! 2. a delivery is retired in one transaction at most
//! 3. bounded: [`TRANSACTIONS_MAX`] transactions; in each [`PUTS_MAX`] records of [`PUT_BYTES_MAX`], in all of a
//!    connection [`ALL_BYTES_MAX`], those under way to the log included; deliveries as many as their links have
//!
//! Beside: transacting.rs.

use crate::link::Place;
use barnabas_amqp::{Condition, Outcome, TRANSACTION_ROLLBACK, TRANSACTION_TIMEOUT, UNKNOWN_TRANSACTION};
use barnabas_base::MonotonicMs;
use barnabas_client::Outgoing;
use barnabas_queue_access::{PUT_BYTES_MAX, PUTS_MAX, Puts, RECORD_BYTES, size_bytes};
use bytes::Bytes;
use std::collections::BTreeMap;

/// That are not discharged. Qpid JMS has one for each session.
pub const TRANSACTIONS_MAX: usize = 64;
/// Of records of all transactions of a connection.
const ALL_BYTES_MAX: usize = 4 * PUT_BYTES_MAX;
/// As Artemis has it.
const IDLE_MS: u64 = 300_000;

/// A delivery that has an outcome in a transaction. `L` is a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retired<L> {
    pub link: L,
    pub place: Place,
    pub outcome: Outcome,
    /// The receiver knows nothing of it any more.
    pub is_settled: bool,
}

/// One transaction. `L` is a link, `D` a delivery.
#[derive(Debug)]
pub struct Transaction<L, D> {
    coordinator: L,
    pub puts: Puts,
    pub put_bytes: usize,
    pub retired: BTreeMap<D, Retired<L>>,
    /// Why it cannot be committed.
    pub failed: Option<Condition>,
    touched: MonotonicMs,
}

impl<L, D> Transaction<L, D> {
    fn is_empty(&self) -> bool {
        self.puts.is_empty() && self.retired.is_empty()
    }

    fn expires_at(&self) -> Option<MonotonicMs> {
        let expires = self.failed.is_none() && !self.is_empty();
        expires.then_some(MonotonicMs(self.touched.0.saturating_add(IDLE_MS)))
    }
}

#[derive(Debug)]
pub struct Transactions<L, D> {
    open: BTreeMap<u64, Transaction<L, D>>,
    next: u64,
    /// Of records that are held, those that are being written among them.
    bytes: usize,
}

impl<L, D> Default for Transactions<L, D> {
    fn default() -> Self {
        Self { open: BTreeMap::new(), next: 1, bytes: 0 }
    }
}

impl<L: Copy + Eq, D: Copy + Ord> Transactions<L, D> {
    /// Begins a transaction: its id.
    ///
    /// # Errors
    /// There are too many.
    pub fn declare(&mut self, coordinator: L, now: MonotonicMs) -> Result<Bytes, Condition> {
        if self.open.len() >= TRANSACTIONS_MAX {
            let words = format!("a connection has {TRANSACTIONS_MAX} transactions at most: discharge one");
            return Err(Condition::new(crate::refusal::LIMIT, words));
        }
        let number = self.next;
        self.next += 1;
        let (puts, retired) = (Puts::new(), BTreeMap::new());
        let begun = Transaction { coordinator, puts, put_bytes: 0, retired, failed: None, touched: now };
        self.open.insert(number, begun);
        Ok(Bytes::copy_from_slice(&number.to_be_bytes()))
    }

    fn find(&mut self, txn_id: &Bytes) -> Result<&mut Transaction<L, D>, Condition> {
        let number = number_of(txn_id).ok_or_else(unknown)?;
        let found = self.open.get_mut(&number).ok_or_else(unknown)?;
        match &found.failed {
            Some(why) => Err(why.clone()),
            None => Ok(found),
        }
    }

    /// Adds a record.
    ///
    /// # Errors
    /// There is no such transaction; or it has failed, by this record perhaps.
    pub fn put(
        &mut self,
        txn_id: &Bytes,
        topic: &str,
        record: Outgoing,
        now: MonotonicMs,
    ) -> Result<(), Condition> {
        let bytes = size_bytes(&record) + RECORD_BYTES;
        let all = self.bytes + bytes;
        let found = self.find(txn_id)?;
        let words = if found.puts.len() >= PUTS_MAX {
            format!("a transaction has {PUTS_MAX} messages at most")
        } else if found.put_bytes + bytes > PUT_BYTES_MAX {
            format!("the messages of a transaction have {PUT_BYTES_MAX} bytes at most")
        } else if all > ALL_BYTES_MAX {
            format!("the messages of a connection's transactions have {ALL_BYTES_MAX} bytes at most")
        } else {
            found.touched = now;
            found.put_bytes += bytes;
            found.puts.push((topic.to_owned(), record));
            self.bytes = all;
            return Ok(());
        };
        self.fail(txn_id, &words);
        Err(Condition::new(crate::refusal::LIMIT, words))
    }

    /// What was said in a transaction cannot be done: its commit will be refused.
    pub fn fail(&mut self, txn_id: &Bytes, words: &str) {
        let words = format!("a message of the transaction was not taken: {words}");
        if let Ok(found) = self.find(txn_id) {
            found.failed = Some(Condition::new(TRANSACTION_ROLLBACK, words));
            found.puts.clear();
            let bytes = std::mem::take(&mut found.put_bytes);
            self.written(bytes);
        }
    }

    /// Gives a delivery an outcome.
    ///
    /// # Errors
    /// There is no such transaction, or it has failed: the delivery goes back.
    pub fn retire(
        &mut self,
        txn_id: &Bytes,
        id: D,
        retired: Retired<L>,
        now: MonotonicMs,
    ) -> Result<(), Condition> {
        self.find(txn_id)?;
        self.forget(&id);
        let found = self.find(txn_id)?;
        found.touched = now;
        found.retired.insert(id, retired);
        Ok(())
    }

    /// A delivery has got an outcome outside of any transaction.
    pub fn forget(&mut self, id: &D) {
        for transaction in self.open.values_mut() {
            transaction.retired.remove(id);
        }
    }

    /// Whether deliveries of a link are retired in a transaction.
    pub fn holds(&self, link: L) -> bool {
        let mut retired = self.open.values().flat_map(|transaction| transaction.retired.values());
        retired.any(|retired| retired.link == link)
    }

    /// A link has ended. Its deliveries that were not settled are not in transactions any more. Returns the
    /// transactions that were declared on it: they are rolled back.
    pub fn end_link(&mut self, link: L) -> Vec<Transaction<L, D>> {
        for transaction in self.open.values_mut() {
            transaction.retired.retain(|_, retired| retired.link != link || retired.is_settled);
        }
        let of_link: Vec<_> =
            self.open.iter().filter(|one| one.1.coordinator == link).map(|one| *one.0).collect();
        let ended: Vec<_> = of_link.iter().filter_map(|number| self.open.remove(number)).collect();
        ended.iter().for_each(|transaction| self.written(transaction.put_bytes));
        ended
    }

    /// Ends a transaction. Its records are counted until [`Self::written`].
    ///
    /// # Errors
    /// There is no such transaction.
    pub fn take(&mut self, txn_id: &Bytes) -> Result<Transaction<L, D>, Condition> {
        number_of(txn_id).and_then(|number| self.open.remove(&number)).ok_or_else(unknown)
    }

    /// Records of so many bytes are held no more.
    pub fn written(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// When [`Self::expire`] has something to do.
    pub fn deadline(&self) -> Option<MonotonicMs> {
        self.open.values().filter_map(Transaction::expires_at).min()
    }

    /// Fails the transactions that were idle for too long. Returns what was retired in them.
    pub fn expire(&mut self, now: MonotonicMs) -> Vec<(D, Retired<L>)> {
        let (mut given_back, mut bytes) = (Vec::new(), 0);
        for transaction in self.open.values_mut() {
            if transaction.expires_at().is_some_and(|at| at <= now) {
                let words = format!("nothing was done in the transaction for {} s", IDLE_MS / 1000);
                transaction.failed = Some(Condition::new(TRANSACTION_TIMEOUT, words));
                transaction.puts.clear();
                bytes += std::mem::take(&mut transaction.put_bytes);
                given_back.extend(std::mem::take(&mut transaction.retired));
            }
        }
        self.written(bytes);
        given_back
    }
}

fn number_of(txn_id: &Bytes) -> Option<u64> {
    Some(u64::from_be_bytes(txn_id[..].try_into().ok()?))
}

fn unknown() -> Condition {
    Condition::new(UNKNOWN_TRANSACTION, "there is no such transaction: it was discharged, or never declared")
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_base::{Offset, PartitionIndex};

    const COORDINATOR: u32 = 0;
    const LINK: u32 = 1;

    fn at(ms: u64) -> MonotonicMs {
        MonotonicMs(ms)
    }

    fn record(bytes: usize) -> Outgoing {
        Outgoing { value: Some(vec![0; bytes].into()), ..Outgoing::default() }
    }

    fn retired(offset: i64, is_settled: bool) -> Retired<u32> {
        let place = Place { partition: PartitionIndex(0), offset: Offset(offset) };
        Retired { link: LINK, place, outcome: Outcome::Accepted, is_settled }
    }

    fn begun() -> (Transactions<u32, u32>, Bytes) {
        let mut transactions = Transactions::default();
        let id = transactions.declare(COORDINATOR, at(0)).expect("room");
        (transactions, id)
    }

    fn why<T>(result: Result<T, Condition>) -> String {
        result.err().expect("refused").condition
    }

    #[test]
    fn transaction_holds_puts_and_retired_in_their_order() {
        let (mut all, id) = begun();
        all.put(&id, "a", record(1), at(1)).expect("room");
        all.put(&id, "b", record(2), at(1)).expect("room");
        all.retire(&id, 7, retired(7, true), at(1)).expect("there");
        let taken = all.take(&id).expect("there");
        assert_eq!(taken.puts.iter().map(|put| &put.0[..]).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(taken.retired.keys().collect::<Vec<_>>(), [&7]);
        assert_eq!(why(all.take(&id)), UNKNOWN_TRANSACTION, "it is discharged once");
        assert_eq!(why(all.put(&id, "a", record(1), at(1))), UNKNOWN_TRANSACTION);
        assert_eq!(
            why(all.retire(&Bytes::from_static(b"x"), 1, retired(1, true), at(1))),
            UNKNOWN_TRANSACTION
        );
    }

    #[test]
    fn put_over_the_bound_fails_the_transaction() {
        let (mut all, id) = begun();
        all.put(&id, "a", record(PUT_BYTES_MAX / 2), at(0)).expect("room");
        assert_eq!(why(all.put(&id, "a", record(PUT_BYTES_MAX / 2), at(0))), crate::refusal::LIMIT);
        assert_eq!(why(all.put(&id, "a", record(1), at(0))), TRANSACTION_ROLLBACK, "later ones too");
        assert_eq!(all.bytes, 0, "nothing is held for it");
        let taken = all.take(&id).expect("there");
        assert!(taken.puts.is_empty());
        assert_eq!(taken.failed.expect("failed").condition, TRANSACTION_ROLLBACK);
    }

    #[test]
    fn bytes_are_bounded_over_all_transactions() {
        let mut all = Transactions::<u32, u32>::default();
        let (mut bytes, mut refused) = (0, 0);
        for _ in 0..8 {
            let id = all.declare(COORDINATOR, at(0)).expect("room");
            match all.put(&id, "a", record(PUT_BYTES_MAX - 2 * RECORD_BYTES), at(0)) {
                // They count while they are written.
                Ok(()) => bytes += all.take(&id).expect("there").put_bytes,
                Err(_) => refused += 1,
            }
        }
        assert!(bytes <= ALL_BYTES_MAX && refused == 4, "{bytes} bytes, {refused} refused");
        all.written(bytes);
        let id = all.declare(COORDINATOR, at(0)).expect("room");
        all.put(&id, "a", record(PUT_BYTES_MAX / 2), at(0)).expect("room again");
    }

    #[test]
    fn transactions_are_bounded() {
        let mut all = Transactions::<u32, u32>::default();
        let ids: Vec<_> =
            (0..TRANSACTIONS_MAX).map(|_| all.declare(COORDINATOR, at(0)).expect("room")).collect();
        assert_eq!(why(all.declare(COORDINATOR, at(0))), crate::refusal::LIMIT);
        all.take(&ids[3]).expect("there");
        assert!(all.declare(COORDINATOR, at(0)).is_ok());
    }

    #[test]
    fn only_a_transaction_that_holds_something_expires() {
        let (mut all, id) = begun();
        assert_eq!(all.deadline(), None, "Qpid JMS declares one ahead of its first message");
        all.retire(&id, 7, retired(7, false), at(10)).expect("there");
        assert_eq!(all.deadline(), Some(at(10 + IDLE_MS)));
        assert_eq!(all.expire(at(9 + IDLE_MS)), []);
        assert_eq!(all.expire(at(10 + IDLE_MS)), [(7, retired(7, false))]);
        assert_eq!(all.deadline(), None);
        assert_eq!(why(all.put(&id, "a", record(1), at(11 + IDLE_MS))), TRANSACTION_TIMEOUT);
        assert_eq!(all.take(&id).expect("there").failed.expect("failed").condition, TRANSACTION_TIMEOUT);
    }

    #[test]
    fn end_of_a_link_ends_what_was_declared_on_it_and_keeps_what_is_settled() {
        let (mut all, id) = begun();
        all.put(&id, "a", record(1), at(0)).expect("room");
        all.retire(&id, 1, retired(1, true), at(0)).expect("there");
        all.retire(&id, 2, retired(2, false), at(0)).expect("there");
        assert!(all.end_link(LINK).is_empty() && all.holds(LINK));
        let ended = all.end_link(COORDINATOR);
        assert_eq!(ended[0].retired.keys().collect::<Vec<_>>(), [&1]);
        assert_eq!((all.holds(LINK), all.bytes), (false, 0));
        assert_eq!(why(all.take(&id)), UNKNOWN_TRANSACTION);
    }

    #[test]
    fn delivery_with_an_outcome_of_its_own_leaves_its_transaction() {
        let (mut all, id) = begun();
        all.retire(&id, 1, retired(1, false), at(0)).expect("there");
        let other = all.declare(COORDINATOR, at(0)).expect("room");
        all.retire(&other, 1, retired(1, true), at(0)).expect("there");
        assert!(all.take(&id).expect("there").retired.is_empty(), "it is in the other one");
        all.forget(&1);
        assert!(all.take(&other).expect("there").retired.is_empty());
    }
}
