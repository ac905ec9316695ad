//! Work that would hold up a worker: a few threads of low priority inflate, walk and rebuild batches, decode large
//! requests and look up the topics of large Metadata requests.
//!
//! A worker does small pieces itself ([`Spare`]), because two thread switches cost more than a small batch. What it
//! does so is bounded twice: [`AT_ONCE`] for one batch, and [`SHARE`] of the thread's time for all of them. Everything
//! else comes here.
//!
//! Order: the caller waits for the answer before it goes on, and a connection starts its requests one after the other.
//! So a connection has at most one job here, and its batches keep their order.
//!
//! Bounded:
//! 1. jobs that run: one per thread, each of one batch, so memory is threads × what one batch may inflate to
//!    (`inflated_limit`: 64 times its bytes or 64 MiB), and as much again for what is rebuilt of it. Requests have
//!    claimed what they take before
//! 2. jobs that wait: one per address, in the order of arrival; others of the same address wait behind it. So an
//!    address that sends nothing but bombs delays another address by one batch per thread
//!
//! Asked by: requests/decode.rs, requests/cluster.rs (Metadata), requests/produce.rs, requests/fetch.rs (old
//! consumers), requests/offsets.rs (times), dead_letters.rs, coordinator_worker/host/load.rs.

use barnabas_wire::records::AtOnce;
use std::cell::Cell;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, oneshot};

/// What a worker does of one batch: less than a millisecond for the slowest codec.
pub const AT_ONCE: AtOnce = AtOnce { read_bytes_max: 128 << 10, rebuilt_bytes_max: 32 << 10 };
const NOTHING: AtOnce = AtOnce { read_bytes_max: 0, rebuilt_bytes_max: 0 };
/// One part in so many of a worker's time goes into compressed records.
const SHARE: u32 = 4;
/// What may be saved up of it.
const SAVED_MAX: Duration = Duration::from_millis(4);
/// After so long a request lets the worker's other connections have their turn.
pub const TURN: Duration = Duration::from_micros(500);
const THREADS_MAX: usize = 4;

/// The time that this thread may put into compressed records.
#[derive(Debug, Clone, Copy)]
struct Account {
    left: Duration,
    at: Instant,
}

thread_local! {
    static ACCOUNT: Cell<Option<Account>> = const { Cell::new(None) };
}

/// What this thread may do of the next batch itself.
#[derive(Debug)]
pub struct Spare;

impl Spare {
    pub fn at_once(now: Instant) -> AtOnce {
        let account = ACCOUNT.get().unwrap_or(Account { left: SAVED_MAX, at: now });
        let earned = now.saturating_duration_since(account.at) / SHARE;
        let account = Account { left: (account.left + earned).min(SAVED_MAX), at: now };
        ACCOUNT.set(Some(account));
        if account.left.is_zero() { NOTHING } else { AT_ONCE }
    }

    /// So much time went into a batch.
    pub fn spent(time: Duration) {
        if let Some(account) = ACCOUNT.get() {
            ACCOUNT.set(Some(Account { left: account.left.saturating_sub(time), ..account }));
        }
    }
}

type Job = Box<dyn FnOnce() + Send>;
/// A turn of an address, and how many wait for it or have it.
type Turn = (Arc<Semaphore>, usize);

/// The threads, and who has to wait for them. See the file's header.
#[derive(Debug)]
pub struct Unpacking {
    threads: usize,
    /// Made with the first job: a node to which no such batch comes has no such thread.
    way: OnceLock<Option<SyncSender<Job>>>,
    turns: Arc<Semaphore>,
    addresses: Arc<Mutex<HashMap<Option<IpAddr>, Turn>>>,
}

impl Unpacking {
    pub fn new(workers: usize) -> Self {
        let threads = workers.div_ceil(2).clamp(1, THREADS_MAX);
        Self {
            threads,
            way: OnceLock::new(),
            turns: Arc::new(Semaphore::new(threads)),
            addresses: Arc::default(),
        }
    }

    /// Has `work` done, and waits for it. `address`: of the client that it is done for; `None` for the node itself.
    ///
    /// `None`: the system gives no thread.
    pub async fn run<T: Send + 'static>(
        &self,
        address: Option<IpAddr>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let place = Place::take(self, address);
        let own = place.turn.clone().acquire_owned().await.ok()?;
        let turn = self.turns.clone().acquire_owned().await.ok()?;
        let (reply, answer) = oneshot::channel();
        // Turns and place go along: a job whose connection has ended runs to its end all the same, and the next of its
        // address waits for it.
        let job = move || {
            let done = (!reply.is_closed()).then(work);
            drop((own, turn, place));
            if let Some(done) = done {
                let _ = reply.send(done);
            }
        };
        let way = self.way.get_or_init(|| self.spawn()).as_ref()?;
        // Its turn is a place in the queue too.
        way.try_send(Box::new(job)).ok()?;
        answer.await.ok()
    }

    fn spawn(&self) -> Option<SyncSender<Job>> {
        let (way, jobs) = sync_channel(self.threads);
        let jobs = Arc::new(Mutex::new(jobs));
        let mut any = false;
        for number in 0..self.threads {
            let jobs = jobs.clone();
            let thread = std::thread::Builder::new().name(format!("unpack-{number}"));
            match thread.spawn(move || serve(&jobs)) {
                Ok(_) => any = true,
                Err(error) => tracing::warn!(%error, "a decompression thread could not be started"),
            }
        }
        any.then_some(way)
    }
}

fn serve(jobs: &Mutex<Receiver<Job>>) {
    if let Err(error) = rustix::process::setpriority_process(None, 5) {
        tracing::debug!(%error, "a thread that inflates batches keeps its priority");
    }
    loop {
        let next = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = next else { return };
        job();
    }
}

/// A job in the queue of its address, until it has ended. The last one to leave removes the queue.
struct Place {
    addresses: Arc<Mutex<HashMap<Option<IpAddr>, Turn>>>,
    address: Option<IpAddr>,
    turn: Arc<Semaphore>,
}

impl Place {
    fn take(of: &Unpacking, address: Option<IpAddr>) -> Self {
        let mut addresses = of.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        // The node itself gets as many threads as there are.
        let turns = if address.is_some() { 1 } else { of.threads };
        let (turn, count) = addresses.entry(address).or_insert_with(|| (Arc::new(Semaphore::new(turns)), 0));
        *count += 1;
        Self { addresses: of.addresses.clone(), address, turn: turn.clone() }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, count)) = addresses.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                addresses.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests;
