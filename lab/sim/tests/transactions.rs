//! Days of transactions: coordinators and partitions move while InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn,
//! Produce, TxnOffsetCommit, EndTxn and WriteTxnMarkers come late, twice and in another order. The longer form: `make
//! sim`.

use std::sync::Mutex;

use barnabas_sim::{Mistake, TransactionVersion, World, hunt};

fn holds(version: TransactionVersion, seeds: u64) {
    let (mut committed, mut aborted) = (0, 0);
    for seed in 0..seeds {
        let day = World::of_transactions(seed, version).run();
        let day = day.unwrap_or_else(|why| panic!("seed {seed} of {version:?}: {why}"));
        (committed, aborted) = (committed + day.committed, aborted + day.aborted);
    }
    println!("{version:?}: {committed} parts committed, {aborted} aborted in {seeds} days");
    // The mean of 2,000 days is 3.5 committed and 10.7 aborted, since coordinators move. Few days may have half of it.
    assert!(2 * committed > 3 * seeds as usize && aborted > seeds as usize, "{committed} and {aborted}");
}

#[test]
fn version_2_holds() {
    holds(TransactionVersion::V2, 40);
}

#[test]
fn version_1_holds() {
    holds(TransactionVersion::V1, 20);
}

#[test]
fn version_0_holds() {
    holds(TransactionVersion::V0, 20);
}

/// A replica is opened while the first batch of a transaction is damaged. It is mended, and the transaction aborted.
#[test]
fn transaction_over_a_mended_batch_is_hidden_whole() {
    for version in [TransactionVersion::V0, TransactionVersion::V1, TransactionVersion::V2] {
        World::of_transactions(259, version).run().unwrap_or_else(|why| panic!("{version:?}: {why}"));
    }
}

#[test]
fn mistakes_are_noticed_in_the_first_days() {
    let left = Mutex::new(Mistake::SOON_OF_TRANSACTIONS.to_vec());
    let missed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let next = left.lock().expect("nobody panics while holding it").pop();
                    let Some(mistake) = next else { return };
                    match hunt::in_transactions(mistake) {
                        Some((seed, why)) => println!("{mistake:?}: seed {seed}: {why}"),
                        None => missed.lock().expect("likewise").push(mistake),
                    }
                }
            });
        }
    });
    let missed = missed.into_inner().expect("likewise");
    assert!(missed.is_empty(), "not noticed: {missed:?}");
}

#[test]
fn the_same_seed_is_the_same_day() {
    for seed in 0..5 {
        let day = || World::of_transactions(seed, TransactionVersion::V2).run();
        assert_eq!(day(), day());
    }
}
