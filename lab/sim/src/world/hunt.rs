//! Each planted mistake is noticed within a thousand days: the first that it spoils, and how.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use barnabas_coordinator::TransactionVersion;

#[cfg(planted)]
use crate::Climate;
use crate::{Mistake, ShareMistake, ShareWorld, World};

/// A seed, and what was noticed on its day.
pub type Noticed = Option<(u64, String)>;

/// Of brokers and their replicas.
pub fn among_brokers(mistake: Mistake) -> Noticed {
    first(0, |seed| World::new(seed).with(mistake).run().map(drop))
}

pub fn in_transactions(mistake: Mistake) -> Noticed {
    // Epochs that rise with each transaction leave no room for some of them.
    let is_harmless_since = matches!(mistake, Mistake::KeepsOldWords | Mistake::AnswersFromMemory);
    first(0, |seed| {
        let version = TransactionVersion(if is_harmless_since || seed % 2 == 1 { 1 } else { 2 });
        World::of_transactions(seed, version).with(mistake).run().map(drop)
    })
}

pub fn in_compaction(mistake: Mistake) -> Noticed {
    first(0, |seed| World::compacted(seed).with(mistake).run().map(drop))
}

/// A mistake of core's own, in the copy of the tree that has them.
#[cfg(planted)]
pub fn of_core(mistake: barnabas_base::planted::Mistake) -> Noticed {
    let version = |seed| TransactionVersion(if seed % 2 == 1 { 1 } else { 2 });
    barnabas_base::planted::with(mistake.name, || match mistake.noticed_by {
        "transactions" => first(0, |seed| World::of_transactions(seed, version(seed)).run().map(drop)),
        "compaction" => first(0, |seed| World::compacted(seed).run().map(drop)),
        "directories" => first(0, |seed| World::in_climate(seed, Climate::Directories).run().map(drop)),
        "rot" => first(0, |seed| World::in_climate(seed, Climate::Rot).run().map(drop)),
        _ => first(0, |seed| World::new(seed).run().map(drop)),
    })
}

pub fn in_shares(mistake: ShareMistake) -> Noticed {
    first(0, |seed| ShareWorld::new(seed).with(mistake).run().map(drop))
}

thread_local! {
    static SEED: Cell<u64> = const { Cell::new(0) };
}

/// Of the day that this thread looks at.
pub fn seed() -> u64 {
    SEED.get()
}

fn first(from: u64, day: impl Fn(u64) -> Result<(), String>) -> Noticed {
    let day = |seed| {
        SEED.set(seed);
        day(seed)
    };
    (from..from + 1000).find_map(|seed| match catch_unwind(AssertUnwindSafe(|| day(seed))) {
        Ok(Ok(())) => None,
        Ok(Err(why)) => Some((seed, why.chars().take(160).collect())),
        Err(_) => Some((seed, "an assertion".to_owned())),
    })
}
