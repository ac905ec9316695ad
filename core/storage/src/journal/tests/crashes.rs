//! Nothing acknowledged is lost, whenever the power goes.

use super::rig::{Bug, Rig};

/// One directory's story: a few lives with a crash after each.
fn story(seed: u64, bug: Option<Bug>) -> Result<(), String> {
    let mut rig = Rig::new(seed, bug);
    for life in 0..6 {
        // Now and then one kill follows another at once.
        let steps = if rig.random.one_in(4) { rig.random.below(10) } else { 120 };
        for _ in 0..steps {
            if rig.step().is_err() {
                break;
            }
        }
        rig.crash_and_recover().map_err(|why| format!("seed {seed}, life {life}: {why}"))?;
    }
    Ok(())
}

/// `JOURNAL_SEEDS=n` for more.
fn seeds() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "a test may be told how long to search")]
    let told = std::env::var("JOURNAL_SEEDS").ok();
    told.map_or(1500, |text| text.parse().unwrap())
}

/// A cut that a start repeated, and a kill in the middle of that start.
#[test]
fn a_cut_is_not_taken_back_by_a_second_crash() {
    story(22790, None).unwrap();
}

#[test]
fn nothing_acknowledged_is_lost() {
    for seed in 0..seeds() {
        if let Err(why) = story(seed, None) {
            panic!("{why}");
        }
    }
}

/// The first seed that trips over `bug`, and its finding or assertion.
fn caught(bug: Bug) -> Option<(u64, String)> {
    (0..1000).find_map(|seed| match std::panic::catch_unwind(|| story(seed, Some(bug))) {
        Ok(Ok(())) => None,
        Ok(Err(why)) => Some((seed, why)),
        Err(panic) => Some((seed, panic.downcast_ref::<String>().cloned().unwrap_or_default())),
    })
}

#[test]
fn each_mistake_of_a_caller_is_caught() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let bugs = [
        Bug::AckBeforeSync,
        Bug::WrittenBackBeforeSync,
        Bug::ForgetCut,
        Bug::AckRangeEarly,
        Bug::OpenBeforeSync,
        Bug::ReplayPointEarly,
        Bug::PendingDropped,
        Bug::GoOnUnsynced,
    ];
    let found = bugs.map(|bug| (bug, caught(bug)));
    std::panic::set_hook(hook);
    for (bug, caught) in found {
        println!("{bug:?}: {caught:?}");
        assert!(caught.is_some(), "{bug:?}");
    }
}

#[cfg(planted)]
#[test]
fn planted_mistakes_of_a_journal_are_noticed() {
    barnabas_base::planted::hunt("journal", |seed| story(seed, None));
}
