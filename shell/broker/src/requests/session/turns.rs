//! A Produce request's turn among those of its connection: core/api's `Forwarding` decides, here is waited.
//!
//! Neighbours: requests/produce/forwarding.rs, which waits for its turn; core/api/src/k00_produce/forwarding.rs.

use super::Session;
use barnabas_api::k00_produce::forwarding::Key;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

/// A request's place among those of its connection, until it is answered.
#[derive(Debug)]
pub struct Turn {
    session: Rc<Session>,
    number: u64,
}

impl Turn {
    /// To be taken in the order of the requests.
    pub fn take(session: &Rc<Session>, keys: Vec<Key>) -> Self {
        let number = session.forwarding.borrow_mut().begin(keys);
        Self { session: session.clone(), number }
    }

    /// Waits until no earlier request for one of these partitions is in flight. No wake-up is needed: with each
    /// answer the connection polls the requests behind it as well.
    pub async fn comes(&self, keys: &[Key]) {
        poll_fn(|_| match self.session.forwarding.borrow().is_turn_of(self.number, keys) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.session.forwarding.borrow_mut().ended(self.number);
    }
}
