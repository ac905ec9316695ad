//! When a peer counts as dead, and when it has to hear something so that it does not take this end for dead.
//!
//! Both ends of a connection announce how long they bear silence (part 2, 2.4.5). An empty frame breaks it.

use barnabas_base::MonotonicMs;

use crate::AmqpError;

#[derive(Debug)]
pub(crate) struct Liveness {
    /// What was announced to the peer.
    idle_timeout_ms: u32,
    last_in: MonotonicMs,
    last_out: MonotonicMs,
    /// What the peer announced; 0: it bears any silence.
    pub(crate) peer_idle_ms: u64,
}

impl Liveness {
    pub(crate) fn new(idle_timeout_ms: u32, now: MonotonicMs) -> Self {
        Self { idle_timeout_ms, last_in: now, last_out: now, peer_idle_ms: 0 }
    }

    pub(crate) fn heard(&mut self, now: MonotonicMs) {
        self.last_in = now;
    }

    pub(crate) fn sent(&mut self, now: MonotonicMs) {
        self.last_out = now;
    }

    /// When [`Self::check`] or [`Self::must_speak`] changes, if nothing comes before.
    pub(crate) fn deadline(&self) -> MonotonicMs {
        let silent = self.last_in.0 + self.silence_ms();
        if self.peer_idle_ms == 0 {
            MonotonicMs(silent)
        } else {
            MonotonicMs(silent.min(self.keep_alive_at()))
        }
    }

    /// # Errors
    /// [`AmqpError::Silent`]: the peer is dead.
    pub(crate) fn check(&self, now: MonotonicMs) -> Result<(), AmqpError> {
        let quiet = now.0.saturating_sub(self.last_in.0);
        if quiet >= self.silence_ms() { Err(AmqpError::Silent(quiet)) } else { Ok(()) }
    }

    /// Whether the peer has to hear something.
    pub(crate) fn must_speak(&self, now: MonotonicMs) -> bool {
        self.peer_idle_ms > 0 && now.0 >= self.keep_alive_at()
    }

    fn silence_ms(&self) -> u64 {
        2 * u64::from(self.idle_timeout_ms.max(1))
    }

    /// Half of the peer's time, so that a frame that is late still comes in time.
    fn keep_alive_at(&self) -> u64 {
        self.last_out.0 + (self.peer_idle_ms / 2).max(1)
    }
}
