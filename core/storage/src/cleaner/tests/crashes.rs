//! The power goes at any step of a cleaning: nothing that must stay is lost.

use std::ops::ControlFlow;

use barnabas_base::Offset;

use super::super::{CleanError, Replaced};
use super::rig::{Random, Rig};
use crate::{Faults, StorageError};

/// A life of writing, cleaning and crashes. `Err`: what was wrong.
fn live(seed: u64) -> Result<(), String> {
    let mut random = Random(seed);
    let mut rig = Rig::new();
    for round in 0..5 {
        for _ in 0..10 + random.below(40) {
            rig.write(&mut random).map_err(|error| error.to_string())?;
        }
        rig.now += random.below(700) as i64;
        if random.below(3) == 0 {
            rig.roll();
        }
        rig.sync().map_err(|error| error.to_string())?;
        rig.checkpoint().map_err(|error| error.to_string())?;
        let crashes = random.below(2) == 0;
        clean(&mut rig, &mut random, crashes).map_err(|error| format!("cleaning: {error}"))?;
        rig.check().map_err(|why| format!("seed {seed}, round {round}: {why}"))?;
        if crashes {
            rig.disk.crash(random.below(u64::MAX));
            rig.reopen().map_err(|error| format!("seed {seed}, round {round}: {error}"))?;
            rig.check().map_err(|why| format!("seed {seed}, round {round}, after the crash: {why}"))?;
            rig.sync().map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

/// A cleaning; with `breaks_off`, it ends anywhere.
fn clean(rig: &mut Rig, random: &mut Random, breaks_off: bool) -> Result<(), CleanError> {
    // A small map is full before the end of the dirty part.
    let map_bytes = if random.below(3) == 0 { 24 * 8 } else { 1 << 14 };
    let Some(mut cleaning) = rig.begin(map_bytes)? else { return Ok(()) };
    let mut left = if breaks_off { random.below(6_000) as usize } else { usize::MAX };
    let mut pace = |bytes: usize| {
        left = left.saturating_sub(bytes);
        if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    loop {
        match cleaning.next_group(&mut pace) {
            Err(CleanError::Stopped) => return Ok(()),
            Err(error) => return Err(error),
            Ok(None) => break,
            Ok(Some(replacement)) => {
                let replaced = rig.swap(&replacement).map_err(CleanError::Storage)?;
                assert!(matches!(replaced, Replaced::Done(_)));
            }
        }
        if breaks_off && random.below(3) == 0 {
            return Ok(());
        }
    }
    let end = cleaning.end();
    rig.finish(end).map_err(CleanError::Storage)
}

#[test]
fn nothing_that_must_stay_is_lost() {
    for seed in 0..150 {
        if let Err(why) = live(seed) {
            panic!("{why}");
        }
    }
}

#[cfg(planted)]
#[test]
fn planted_mistakes_of_a_cleaning_are_noticed() {
    barnabas_base::planted::hunt("cleaner", live);
}

/// A cleaning in which the disk fails; readers go on, the power goes, and the log is opened again.
fn fail(at: u64, faults: Faults) -> Result<(), String> {
    let mut random = Random(at);
    let mut rig = Rig::new();
    // The first segment has something that no later one has.
    rig.put("first", Some(b"stays"));
    for _ in 0..60 {
        rig.write(&mut random).unwrap();
    }
    rig.sync().unwrap();
    rig.checkpoint().unwrap();
    rig.disk.set_faults(faults);
    if let Err(error) = clean(&mut rig, &mut random, false) {
        assert!(matches!(error, CleanError::Storage(StorageError::Disk(_))), "{error}");
    }
    let end = rig.log.end();
    // Readers look for each file by its name.
    rig.close_files();
    for from in (0..end.get()).map(Offset) {
        // Some of it may have no name now.
        let _ = rig.log.read(&mut rig.files, from, 1, end, true);
    }
    // What a reader made is there after a kill, and after power loss perhaps.
    match random.below(2) {
        0 => rig.disk.crash(at),
        _ => rig.disk.kill(),
    }
    rig.reopen().map_err(|error| error.to_string())?;
    rig.check()
}

/// Every call on the disk fails once, at every point of a cleaning: the log goes on or says that it has failed, and the
/// next start finds everything.
#[test]
fn a_device_that_fails_at_any_point_loses_nothing() {
    for at in (0..60).step_by(3) {
        fail(at, Faults { syncs_until_error: Some(at), ..Faults::default() }).unwrap();
        fail(at, Faults { writes_until_error: Some(at), ..Faults::default() }).unwrap();
        fail(at, Faults { renames_until_error: Some(at / 3), ..Faults::default() }).unwrap();
    }
}

#[cfg(planted)]
#[test]
fn planted_empty_segment_after_a_failed_rename_is_noticed() {
    let fails = |at| fail(at, Faults { renames_until_error: Some(at), ..Faults::default() });
    let fooled = barnabas_base::planted::with("TakesEmptyForWhole", || (0..20).any(|at| fails(at).is_err()));
    assert!(fooled);
}

#[test]
fn a_full_disk_leaves_the_log_as_it_was() {
    for room in (0..4_000).step_by(130) {
        let mut random = Random(room);
        let mut rig = Rig::new();
        for _ in 0..60 {
            rig.write(&mut random).unwrap();
        }
        rig.sync().unwrap();
        rig.checkpoint().unwrap();
        let used = (1 << 40) - rig.files.disk().space(std::path::Path::new("/data")).unwrap().free;
        rig.disk.set_capacity(used + room);
        match clean(&mut rig, &mut random, false) {
            Ok(()) | Err(CleanError::Storage(StorageError::Full(_))) => {}
            Err(error) => panic!("{error}"),
        }
        let leftovers =
            rig.names().into_iter().filter(|name| name.ends_with(".cleaned") || name.ends_with(".swap"));
        assert_eq!(leftovers.count(), 0);
        rig.check().unwrap();
        rig.disk.set_capacity(1 << 40);
        rig.clean(1 << 14).unwrap();
        rig.check().unwrap();
    }
}
