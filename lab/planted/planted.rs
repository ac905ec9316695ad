//! The switch of planted mistakes, and the hunt for them. It exists only in the copy that `xtask plant` makes.
//!
//! One mistake at a time, for the thread that plants it.

use std::cell::Cell;

#[derive(Debug, Clone, Copy)]
pub struct Mistake {
    pub name: &'static str,
    /// The test or the simulation that hunts it.
    pub noticed_by: &'static str,
    pub what: &'static str,
}

thread_local! {
    static PLANTED: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Whether the mistake with this number is planted.
#[inline]
pub fn is(number: usize) -> bool {
    PLANTED.get() == number
}

/// Does `work` with a mistake.
///
/// # Panics
/// There is none of that name.
pub fn with<R>(name: &str, work: impl FnOnce() -> R) -> R {
    struct Ends;
    impl Drop for Ends {
        fn drop(&mut self) {
            PLANTED.set(usize::MAX);
        }
    }
    let number = MISTAKES.iter().position(|mistake| mistake.name == name);
    PLANTED.set(number.unwrap_or_else(|| panic!("no mistake is called {name}")));
    let _ends = Ends;
    work()
}

/// Those that a test hunts.
pub fn noticed_by(test: &str) -> impl Iterator<Item = Mistake> {
    MISTAKES.iter().filter(move |mistake| mistake.noticed_by == test).copied()
}

/// Hunts all that a test is to notice, prints each with what was seen, and fails if one was not noticed. An assertion
/// that fails is a notice, too.
///
/// # Panics
/// A mistake was not noticed within a thousand seeds.
pub fn hunt(test: &str, run: impl Fn(u64) -> Result<(), String>) {
    let mut missed = Vec::new();
    let mut count = 0;
    std::panic::set_hook(Box::new(|_| {}));
    for mistake in noticed_by(test) {
        count += 1;
        let once = |seed| std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(seed)));
        let noticed = with(mistake.name, || {
            (0..1000).find_map(|seed| match once(seed) {
                Ok(Ok(())) => None,
                Ok(Err(why)) => Some((seed, why)),
                Err(panic) => {
                    let text = panic.downcast_ref::<String>().cloned();
                    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
                    Some((seed, format!("an assertion: {}", text.unwrap_or_default())))
                }
            })
        });
        match noticed {
            Some((seed, why)) => {
                let why: String = why.lines().next().unwrap_or_default().chars().take(160).collect();
                println!("{test}: {}: seed {seed}: {why}", mistake.name);
            }
            None => missed.push(mistake.name),
        }
    }
    drop(std::panic::take_hook());
    assert!(count > 0, "no mistake is noticed by {test}");
    assert!(missed.is_empty(), "{test}: not noticed within 1,000 seeds: {missed:?}");
}
