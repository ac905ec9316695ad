//! The session's incoming window: how many frames the peer may send before it is given more of them. Pure.
//!
//! Always true: the bytes that are held, and the frames that the peer may still send at their largest, are together no
//! more than the maximum. A peer is slowed down by its window, while the connection is read and kept alive.
//!
//! # Source
//! AMQP 1.0 part 2, section 2.5.6.

/// The most frames that are ever granted.
const FRAMES_MAX: u32 = 2048;

#[derive(Debug)]
pub(super) struct Incoming {
    /// The id of the next frame.
    pub next_id: u32,
    /// Frames that the peer may still send.
    pub left: u32,
    /// Bytes of payloads that the client keeps, and of those that its caller has not released.
    held_bytes: usize,
    held_bytes_max: usize,
    frame_bytes_max: usize,
}

impl Incoming {
    /// One message and one frame fit at least: else a message of several frames could never end.
    pub fn new(held_bytes_max: usize, message_bytes_max: usize, frame_bytes_max: usize) -> Self {
        let least = message_bytes_max.saturating_add(frame_bytes_max);
        let held_bytes_max = held_bytes_max.max(least);
        let mut window = Self { next_id: 0, left: 0, held_bytes: 0, held_bytes_max, frame_bytes_max };
        window.left = window.room();
        window
    }

    fn room(&self) -> u32 {
        let frames = self.held_bytes_max.saturating_sub(self.held_bytes) / self.frame_bytes_max.max(1);
        u32::try_from(frames).unwrap_or(u32::MAX).min(FRAMES_MAX)
    }

    /// A frame came. `false`: the peer had no window for it.
    pub fn take(&mut self) -> bool {
        let Some(left) = self.left.checked_sub(1) else { return false };
        self.left = left;
        self.next_id = self.next_id.wrapping_add(1);
        true
    }

    pub fn hold(&mut self, bytes: usize) {
        self.held_bytes += bytes;
    }

    pub fn release(&mut self, bytes: usize) {
        self.held_bytes = self.held_bytes.saturating_sub(bytes);
    }

    /// Opens the window again once half of what there is room for is used. `true`: the peer is to be told.
    pub fn reopen(&mut self) -> bool {
        let room = self.room();
        let is_due = room > self.left && self.left <= room / 2;
        if is_due {
            self.left = room;
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_and_held_bytes_stay_below_the_maximum() {
        let mut window = Incoming::new(1000, 100, 100);
        assert_eq!(window.left, 10);
        for _ in 0..5 {
            assert!(window.take());
            window.hold(100);
        }
        assert!(!window.reopen(), "five are held, five may come");
        for _ in 0..5 {
            assert!(window.take());
            window.hold(100);
        }
        assert!(!window.take() && !window.reopen(), "all of it is held");
        window.release(100);
        assert!(window.reopen());
        assert_eq!((window.left, window.next_id), (1, 10));
        window.release(usize::MAX);
        assert!(window.reopen());
        assert_eq!(window.left, 10);
    }

    #[test]
    fn small_frames_use_the_whole_window() {
        let mut window = Incoming::new(64 << 20, 1000, 1000);
        assert_eq!(window.left, FRAMES_MAX);
        for _ in 0..FRAMES_MAX / 2 {
            assert!(window.take() && !window.reopen() || window.left == FRAMES_MAX);
        }
        assert_eq!(window.left, FRAMES_MAX, "it was opened once, at its half");
    }

    #[test]
    fn one_message_and_a_frame_always_fit() {
        let window = Incoming::new(0, 1000, 100);
        assert_eq!(window.left, 11);
    }
}
