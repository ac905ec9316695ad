//! How fast a peer must go on with a frame that has begun, and with an answer that waits for it: slower ones hold
//! memory that others may need.
//!
//! Only time counts in which the node waited for the peer; time in which the peer waited for the budget does not. The
//! floors are far below any link that a producer is useful on, as long as nothing waits for memory ([`CALM`]). While
//! claims wait, a frame has to go on as on a slow link ([`PRESSED`]); a frame that exceeds the budget's limits, for
//! whose end others wait, as on a good one ([`PASS`]). Answers have a floor while claims wait ([`UNREAD`]), and
//! `connections.max.idle.ms`: a consumer may process records for minutes before it reads.
//!
//! Asked by: frame_reader.rs, shell/broker/src/requests/connection.rs.

use crate::budget::Press;
use std::time::Duration;

/// So many bytes must go by in so long.
#[derive(Debug, Clone, Copy)]
struct Floor {
    window: Duration,
    bytes: usize,
}

/// 546 bytes a second.
const CALM: Floor = Floor { window: Duration::from_secs(30), bytes: 16 << 10 };
/// 16 KiB a second.
const PRESSED: Floor = Floor { window: Duration::from_secs(3), bytes: 48 << 10 };
/// 1 MiB a second.
const PASS: Floor = Floor { window: Duration::from_secs(3), bytes: 3 << 20 };
/// 16 KiB a second, over longer: a consumer that is busy for a moment keeps its connection.
const UNREAD: Floor = Floor { window: Duration::from_secs(10), bytes: 160 << 10 };

/// One window, as far as it has gone.
#[derive(Debug, Default)]
struct Window {
    waited: Duration,
    bytes: usize,
}

/// Too slow: what came of the window that was not filled.
#[derive(Debug, PartialEq, Eq)]
pub struct TooSlow {
    pub late: usize,
    pub seconds: u64,
    pub is_pressed: bool,
}

/// The pace of one frame, or of a connection's answers.
#[derive(Debug)]
pub struct Pace {
    calm: Option<Floor>,
    pressed: Floor,
    long: Window,
    short: Window,
}

impl Pace {
    pub fn reading() -> Self {
        Self { calm: Some(CALM), pressed: PRESSED, long: Window::default(), short: Window::default() }
    }

    pub fn writing() -> Self {
        Self { calm: None, pressed: UNREAD, ..Self::reading() }
    }

    pub fn went_by(&mut self, bytes: usize) {
        self.long.bytes += bytes;
        self.short.bytes += bytes;
    }

    /// The node has waited for the peer so long. Whether it is to be given up.
    pub fn waited(&mut self, time: Duration, press: impl Fn() -> Press) -> Option<TooSlow> {
        self.long.waited += time;
        self.short.waited += time;
        if self.short.waited >= self.pressed.window {
            let floor = match press() {
                Press::Pass => Some(PASS),
                Press::Felt => Some(self.pressed),
                Press::None => None,
            };
            let short = std::mem::take(&mut self.short);
            if floor.is_some_and(|floor| short.bytes < floor.bytes) {
                return Some(short.too_slow(true));
            }
        }
        if let Some(calm) = self.calm
            && self.long.waited >= calm.window
        {
            let long = std::mem::take(&mut self.long);
            if long.bytes < calm.bytes {
                return Some(long.too_slow(false));
            }
        }
        None
    }
}

impl Window {
    fn too_slow(&self, is_pressed: bool) -> TooSlow {
        TooSlow { late: self.bytes, seconds: self.waited.as_secs(), is_pressed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Budget, Claim, Standing};

    /// How many seconds a sender of so many bytes a second lasts; `None`: two minutes and more.
    fn lasts(claim: &mut Claim, rate: usize, press: impl Fn()) -> Option<usize> {
        let mut pace = Pace::reading();
        (1..=120).find(|_| {
            press();
            pace.went_by(rate);
            pace.waited(Duration::from_secs(1), || claim.press_on(claim.bytes())).is_some()
        })
    }

    #[tokio::test]
    async fn floors_rise_with_what_waits() {
        let budget = Budget::new(1 << 20);
        let mut claim = budget.claim(None);
        claim.stand(Standing::Small);
        assert!(claim.try_grow_to(1 << 20));
        let nothing = || ();
        assert_eq!([0, 500, 600].map(|rate| lasts(&mut claim, rate, nothing)), [Some(30), Some(30), None]);
        let press = || assert!(claim_is_denied(&budget));
        assert_eq!(
            [0, 15 << 10, 17 << 10].map(|rate| lasts(&mut claim, rate, press)),
            [Some(3), Some(3), None]
        );
        claim.grow_to(2 << 20).await;
        assert!(claim.has_pass());
        assert_eq!([17 << 10, 2 << 20].map(|rate| lasts(&mut claim, rate, nothing)), [Some(3), None]);
    }

    fn claim_is_denied(budget: &Budget) -> bool {
        let mut denied = budget.claim(None);
        denied.stand(Standing::Small);
        !denied.try_grow_to(1)
    }
}
