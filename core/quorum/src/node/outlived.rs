//! Whether a broker lived on after what its disk knows: then the disk was restored to an earlier moment.
//!
//! A broker that was killed has everything that it acknowledged on its disk, and says so when it registers
//! (KIP-966). A disk that was restored from an older copy would say the same, and lack the newer records. The
//! metadata log distinguishes them: after a kill the broker stays registered and unfenced until its session ends,
//! and no longer. A restored disk is older than that.
//!
//! Only time in which a controller was active counts. While one is, it writes a record each
//! `metadata.max.idle.interval.ms`; a longer pause between two batches counts as [`IDLE_INTERVALS_MAX`] of these. Where
//! that setting is off, all of it counts.
//!
//! Pure: batches and their times in, a word out. Neighbours: shell/broker/src/upkeep/last_life.rs, which
//! knows what the disk says.

use barnabas_base::{BrokerEpoch, BrokerId, DurationMs, TimestampMs};
use barnabas_metadata::Image;

/// What a pause between two batches counts at most.
const IDLE_INTERVALS_MAX: i64 = 4;

/// The last life of this node's broker, by the word of its disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BrokerLife {
    pub broker: BrokerId,
    pub epoch: BrokerEpoch,
    /// The time of the newest metadata record that it knew.
    pub seen: TimestampMs,
    /// For so long it may have been registered after that.
    pub spare: DurationMs,
}

/// See the file's header.
#[derive(Debug)]
pub(super) struct Outlived {
    life: Option<BrokerLife>,
    pause_max: i64,
    last: TimestampMs,
    served: bool,
    lived_ms: i64,
}

impl Outlived {
    pub fn new(life: Option<BrokerLife>, idle_interval: DurationMs) -> Self {
        let last = life.map_or(TimestampMs::NONE, |life| life.seen);
        let pause_max = match idle_interval.0 {
            ..=0 => i64::MAX,
            interval => interval.saturating_mul(IDLE_INTERVALS_MAX),
        };
        Self { life, pause_max, last, served: true, lived_ms: 0 }
    }

    /// The log was read up to here. `time`: of its newest batch; `is_batch`: one after the other, not a snapshot of
    /// many.
    pub fn read(&mut self, image: &Image, time: TimestampMs, is_batch: bool) {
        let Some(life) = self.life else { return };
        if time > self.last {
            let passed = time.0.saturating_sub(self.last.0);
            let counted = if is_batch { passed.min(self.pause_max) } else { passed };
            self.lived_ms = self.lived_ms.saturating_add(if self.served { counted } else { 0 });
            self.last = time;
        }
        let known = image.cluster.broker(life.broker);
        self.served = known.is_some_and(|known| known.epoch == life.epoch && !known.fenced);
    }

    pub fn is_so(&self) -> bool {
        self.life.is_some_and(|life| self.lived_ms > life.spare.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_metadata::Delta;
    use barnabas_wire::messages::RegisterBrokerRecord;

    const SEEN: i64 = 1_000_000;
    const IDLE: DurationMs = DurationMs(500);

    fn image(epoch: i64, fenced: bool) -> Image {
        let record = RegisterBrokerRecord {
            broker_id: 2,
            broker_epoch: epoch,
            fenced,
            ..RegisterBrokerRecord::default()
        };
        let mut delta = Delta::new(Image::default());
        delta.replay(&record.into()).expect("replayed");
        delta.take().0
    }

    fn outlived(idle: DurationMs) -> Outlived {
        let life = BrokerLife {
            broker: BrokerId(2),
            epoch: BrokerEpoch(7),
            seen: TimestampMs(SEEN),
            spare: DurationMs(60_000),
        };
        Outlived::new(Some(life), idle)
    }

    /// A batch each half second.
    fn read_on(outlived: &mut Outlived, image: &Image, from: i64, until: i64) {
        (from..until).step_by(500).for_each(|at| outlived.read(image, TimestampMs(SEEN + at), true));
    }

    #[test]
    fn session_that_ends_after_a_kill_is_no_life() {
        let mut outlived = outlived(IDLE);
        // What the disk knows as well.
        read_on(&mut outlived, &image(7, false), -3_600_000, 0);
        read_on(&mut outlived, &image(7, false), 0, 9_000);
        read_on(&mut outlived, &image(7, true), 9_000, 3_600_000);
        assert!(!outlived.is_so());
    }

    #[test]
    fn disk_of_an_earlier_moment_is_outlived() {
        let mut outlived = outlived(IDLE);
        read_on(&mut outlived, &image(7, false), 0, 59_000);
        assert!(!outlived.is_so());
        read_on(&mut outlived, &image(7, false), 59_000, 62_000);
        assert!(outlived.is_so());
    }

    #[test]
    fn time_without_a_controller_does_not_count() {
        let mut killed = outlived(IDLE);
        killed.read(&image(7, false), TimestampMs(SEEN + 86_400_000), true);
        assert!(!killed.is_so(), "all nodes were down for a day");
        let mut snapshot = outlived(IDLE);
        snapshot.read(&image(7, false), TimestampMs(SEEN + 86_400_000), false);
        assert!(snapshot.is_so(), "a snapshot does not say what passed");
        let mut unknown = outlived(DurationMs(0));
        unknown.read(&image(7, false), TimestampMs(SEEN + 86_400_000), true);
        assert!(unknown.is_so(), "without idle records it is unknown");
    }

    #[test]
    fn another_registration_is_not_the_disks() {
        let mut outlived = outlived(IDLE);
        read_on(&mut outlived, &image(8, false), 0, 3_600_000);
        assert!(!outlived.is_so());
        assert!(!Outlived::new(None, IDLE).is_so());
    }
}
