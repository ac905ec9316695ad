//! Share fetches that wait for one partition: the one that has waited longest is woken first, one at a time for each
//! group, so that ten consumers do not run for one record. Who was woken and found more than it takes has the next one
//! woken.

use crate::mailbox::Waiter;
use barnabas_base::Text;
use std::collections::VecDeque;
use std::sync::Arc;

/// Those of each group. Bounded by the requests that connections have under way: who is over is swept.
#[derive(Debug, Default)]
pub struct ShareWaiters {
    groups: Vec<(Text, VecDeque<Arc<Waiter>>)>,
}

impl ShareWaiters {
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    pub fn register(&mut self, group: &Text, waiter: &Arc<Waiter>) {
        let queue = match self.groups.iter_mut().position(|(known, _)| known == group) {
            Some(at) => &mut self.groups[at].1,
            None => {
                self.groups.push((group.clone(), VecDeque::new()));
                let last = self.groups.len() - 1;
                &mut self.groups[last].1
            }
        };
        queue.retain(|known| !known.is_over() && !Arc::ptr_eq(known, waiter));
        queue.push_back(waiter.clone());
    }

    /// Wakes the one of a group that has waited longest.
    pub fn wake_next(&mut self, group: &Text) {
        let Some(at) = self.groups.iter().position(|(known, _)| known == group) else { return };
        let queue = &mut self.groups[at].1;
        while let Some(waiter) = queue.pop_front() {
            // One that is woken already comes anyway.
            if !waiter.is_over() {
                waiter.wake();
                break;
            }
        }
        if queue.is_empty() {
            self.groups.swap_remove(at);
        }
    }

    /// There is more to read: one of each group.
    pub fn wake_one_each(&mut self) {
        for at in (0..self.groups.len()).rev() {
            let group = self.groups[at].0.clone();
            self.wake_next(&group);
        }
    }

    /// The partition has changed hands, failed or gone.
    pub fn wake_all(&mut self) {
        for waiter in self.groups.drain(..).flat_map(|(_, queue)| queue) {
            waiter.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_of_each_group_in_turn() {
        let (a, b) = (Text::from("a"), Text::from("b"));
        let [first, second, other] = [(); 3].map(|()| Waiter::new(1, false));
        let mut waiters = ShareWaiters::default();
        for (group, waiter) in [(&a, &first), (&a, &second), (&b, &other), (&a, &first)] {
            waiters.register(group, waiter);
        }
        // Who registers again stands behind the others.
        waiters.wake_one_each();
        assert!(second.is_woken() && other.is_woken() && !first.is_woken());
        second.finish();
        waiters.wake_next(&a);
        first.woken().await;
        assert!(waiters.is_empty());
    }
}
