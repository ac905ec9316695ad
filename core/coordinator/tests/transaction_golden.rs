//! The bytes of every kind of record of `__transaction_state`, as they stand in `tests/golden/transactions.txt` (key,
//! value, both in hex; `-` for a tombstone). Apache's `TransactionLog` and `TransactionLogValue` of Kafka 4.4.0 read
//! each of them and write the same bytes again.

// A test may read and write its files.
#![allow(clippy::disallowed_methods)]

mod page;
mod transactions;

use barnabas_coordinator::TransactionConfig;
use transactions::Rig;
use transactions::speech::{Words, tell};

const TALK: [&str; 24] = [
    "tv to=0",
    "init id=old",
    "add id=old partitions=t-0,t-1,u-7",
    "add-offsets id=old group=3",
    "commit id=old v=4",
    "markers",
    "add id=old partitions=t-0",
    "abort id=old v=4",
    "markers",
    "tv to=2",
    "init id=new p=1000 epoch=0",
    "init id=x",
    "bump to=32766",
    "add v=5 p=1002 epoch=32766 partitions=t-0,t-1,u-7",
    "commit p=1002 epoch=32766",
    "markers",
    "add v=5 p=1003 partitions=t-0",
    "abort p=1003",
    "markers",
    "abort p=1003 epoch=1",
    "init",
    "add v=3 p=1003 epoch=3 partitions=t-5",
    "wait ms=60001",
    "wait ms=700000000",
];

#[test]
fn records_are_kafkas_to_the_byte() {
    let mut rig = Rig::new(TransactionConfig::default());
    for command in TALK {
        tell(&mut rig, &Words::of(command));
    }
    page::check("transactions.txt", rig.log.iter());
}
