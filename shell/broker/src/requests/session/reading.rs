//! What the Fetches and ShareFetches of one connection hold in memory before their answers are made.
//!
//! A client may send a hundred Fetches of many MiB at once. Beside one that reads much nothing more is started, as
//! beside an answer that waits for the socket; a Fetch that waits for records holds nothing.

use super::{Half, Session};
use std::rc::Rc;

/// One Fetch's part.
#[derive(Debug)]
pub struct Reading {
    session: Rc<Session>,
    bytes: usize,
}

impl Reading {
    pub fn new(session: Rc<Session>) -> Self {
        Self { session, bytes: 0 }
    }

    /// It holds so many bytes now.
    pub fn set(&mut self, bytes: usize) {
        let all = &self.session.reading;
        all.set(all.get() + bytes - self.bytes);
        let is_less = bytes < self.bytes;
        self.bytes = bytes;
        if is_less {
            self.session.wake(Half::Read);
        }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.set(0);
    }
}
