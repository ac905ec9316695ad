//! What is to be brought to other brokers, gathered: what is handed in for a broker goes at once, and where several
//! requests to it are under way already, waits and goes in one request with all that waits.
//!
//! Always true:
//! 1. for each broker the queue and the requests in flight are bounded; callers wait at the bound
//! 2. a parcel is delivered once, or dropped (the broker was fenced, the node stops); then its reply channel closes,
//!    which the caller notices
//! 3. two parcels of the same name never travel in one request: answers tell parcels apart by their names
//!
//! Source: the shape is that of Kafka 4.4's `AddPartitionsToTxnManager` and `TransactionMarkerChannelManager`, which
//! gather while one request is under way.

use super::{is_there, while_there};
use crate::node::Node;
use crate::node::peers::broker_links::{Courier, Purpose, Waiting};
use barnabas_base::{BrokerId, Set};
use barnabas_net::links::{Entry, Link};
use std::collections::VecDeque;
use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;
use std::sync::{Arc, PoisonError};
use tokio::sync::{Semaphore, mpsc};

/// Parcels that wait for one broker.
const WAITING_MAX: usize = 1024;
/// Requests to one broker that are under way. Fewer make larger requests, more make shorter waits.
const UNDER_WAY_MAX: usize = 4;
/// What one request holds, in [`Parcel::size`]; one parcel may exceed it.
const SIZE_MAX: usize = 5_000;

/// Something for another broker that can go with others.
pub trait Parcel: Debug + Send + Sized + 'static {
    const PURPOSE: Purpose;
    /// What an answer tells it by.
    type Name: Eq + Hash;
    fn name(&self) -> Self::Name;
    fn size(&self) -> usize;
    /// Sends the request and passes the answers to the callers. `None`: the broker has no known address.
    fn deliver(
        node: Arc<Node>,
        link: Option<Link>,
        parcels: Vec<Self>,
    ) -> impl Future<Output = ()> + Send + 'static;
}

impl<P: Parcel> Courier<P> {
    /// Hands a parcel in; waits while too many do.
    pub async fn bring(&self, node: &Arc<Node>, to: BrokerId, parcel: P) {
        let queue = self.queue(node, to);
        let entry = node.peers.broker_links.awaited(P::PURPOSE).begin();
        // Where the links' thread has ended, the parcel is dropped, and that is its answer.
        drop(queue.send((parcel, entry)).await);
    }

    fn queue(&self, node: &Arc<Node>, to: BrokerId) -> mpsc::Sender<Waiting<P>> {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        let queue = queues.entry(to).or_insert_with(|| {
            let (sender, parcels) = mpsc::channel(WAITING_MAX);
            node.peers.links.handle().spawn(run(node.clone(), to, parcels));
            sender
        });
        queue.clone()
    }
}

/// Brings what is handed in for one broker.
async fn run<P: Parcel>(node: Arc<Node>, to: BrokerId, mut parcels: mpsc::Receiver<Waiting<P>>) {
    let under_way = Arc::new(Semaphore::new(UNDER_WAY_MAX));
    let mut waiting = VecDeque::new();
    loop {
        if waiting.is_empty() {
            match parcels.recv().await {
                Some(parcel) => waiting.push_back(parcel),
                None => return,
            }
        }
        let Ok(permit) = under_way.clone().acquire_owned().await else { return };
        while waiting.len() < WAITING_MAX
            && let Ok(parcel) = parcels.try_recv()
        {
            waiting.push_back(parcel);
        }
        let (going, entries): (Vec<P>, Vec<Entry>) = together(&mut waiting).into_iter().unzip();
        let link = is_there(&node, to).then(|| node.peers.broker_links.to(&node, to, P::PURPOSE)).flatten();
        let node = node.clone();
        tokio::spawn(async move {
            let delivered = P::deliver(node.clone(), link, going);
            if while_there(&node, (to, P::PURPOSE), delivered).await.is_none() {
                tracing::debug!(broker = %to, "a broker was fenced: what it was asked is asked elsewhere");
            }
            drop((entries, permit));
        });
    }
}

/// Takes what may go in one request, oldest first; the rest keeps its order.
fn together<P: Parcel, E>(waiting: &mut VecDeque<(P, E)>) -> Vec<(P, E)> {
    let (mut going, mut names, mut size) = (Vec::new(), Set::default(), 0_usize);
    for (parcel, entry) in std::mem::take(waiting) {
        let more = size.saturating_add(parcel.size());
        if (going.is_empty() || more <= SIZE_MAX) && names.insert(parcel.name()) {
            size = more;
            going.push((parcel, entry));
        } else {
            waiting.push_back((parcel, entry));
        }
    }
    going
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    struct Letter(u8, usize);

    impl Parcel for Letter {
        const PURPOSE: Purpose = Purpose::Markers;
        type Name = u8;

        fn name(&self) -> u8 {
            self.0
        }

        fn size(&self) -> usize {
            self.1
        }

        async fn deliver(_: Arc<Node>, _: Option<Link>, _: Vec<Self>) {}
    }

    fn letters<const N: usize>(letters: [Letter; N]) -> VecDeque<(Letter, ())> {
        letters.map(|letter| (letter, ())).into()
    }

    fn go(waiting: &mut VecDeque<(Letter, ())>) -> Vec<Letter> {
        together(waiting).into_iter().map(|(letter, ())| letter).collect()
    }

    #[test]
    fn what_has_the_same_name_goes_one_after_the_other() {
        let mut waiting = letters([Letter(1, 1), Letter(2, 1), Letter(1, 2), Letter(3, 1)]);
        assert_eq!(go(&mut waiting), [Letter(1, 1), Letter(2, 1), Letter(3, 1)]);
        assert_eq!(go(&mut waiting), [Letter(1, 2)]);
        assert!(waiting.is_empty());
    }

    #[test]
    fn a_request_is_no_larger_than_it_may_be_but_for_one_parcel_that_is_too_large() {
        let mut waiting =
            letters([Letter(1, SIZE_MAX + 1), Letter(2, SIZE_MAX - 1), Letter(3, 1), Letter(4, 1)]);
        assert_eq!(go(&mut waiting), [Letter(1, SIZE_MAX + 1)]);
        assert_eq!(go(&mut waiting), [Letter(2, SIZE_MAX - 1), Letter(3, 1)]);
        assert_eq!(go(&mut waiting), [Letter(4, 1)]);
    }
}
