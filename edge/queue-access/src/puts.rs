//! Puts of many connections, written together: one producer for each caller and topic.
//!
//! [`Producers`] knows the producers of a listener's thread. A connection takes a [`Putter`] for each topic, and a put
//! is answered by its own record's outcome. Puts that come while a Produce request is under way go in the next one.
//!
//! | file | answers |
//! |---|---|
//! | `batching.rs` | which puts are a batch, and what is each of them answered |
//! | `driver.rs` | the task that sends the batches |
//!
//! Always true:
//! 1. a producer serves one caller alone: the login of its connections is that of each put, so the broker authorizes
//!    each put as its caller's
//! 2. a put is answered with success only after its record is acknowledged with acks=all
//! 3. puts of one connection for one partition keep their order; without a key they go to one partition
//! 4. bounded: [`ROOM_BYTES`] of puts without an outcome a producer (each counts for [`PUT_BYTES_MIN`] at least), and
//!    [`PRODUCERS_MAX`] producers. A put that finds no room waits
//!
//! A producer that had nothing to do for a minute ends, and the next put opens another one. So does one after an error
//! that outlasted its tries: the topic may have been deleted.
//!
//! Before: edge/queues/src/put.rs, edge/mq-queues/src/conversation/putting.rs.

mod batching;
mod driver;

pub use batching::{Origin, Outcome, size_bytes};

use crate::address::is_temporary;
use barnabas_base::ErrorCode;
use barnabas_client::{ClientError, Cluster, ClusterConfig, Outgoing};
use batching::Put;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use tokio::sync::{Notify, Semaphore};
use tokio::task::{spawn_local, yield_now};

/// Puts of a producer without an outcome.
const ROOM_BYTES: usize = 32 * 1024 * 1024;
/// What a put counts for at least: bounds their number.
const PUT_BYTES_MIN: usize = 4 * 1024;
/// Producers of a listener.
const PRODUCERS_MAX: usize = 2_000;
/// For an idle producer to end where another caller needs its place.
const EVICTION_TURNS: usize = 8;

/// The producers of one listener's thread.
#[derive(Debug, Clone, Default)]
pub struct Producers(Rc<All>);

#[derive(Debug, Default)]
struct All {
    /// By topic: mostly one or a few callers put to it.
    open: RefCell<BTreeMap<String, Vec<Rc<Shared>>>>,
    count: Cell<usize>,
    next_origin: Cell<u64>,
}

#[derive(Debug)]
enum State {
    Opening,
    Open,
    /// `None`: it had nothing to do any more.
    Gone(Option<Rc<ClientError>>),
}

/// What putters and the driver of one producer share.
#[derive(Debug)]
struct Shared {
    kafka: ClusterConfig,
    topic: String,
    state: RefCell<State>,
    /// The state is another one.
    changed: Notify,
    /// Puts that the driver has not seen.
    came: RefCell<Vec<Put<Ticket>>>,
    /// Rings when one of them may be sent at once.
    bell: Notify,
    /// Whether a put that comes now goes in a later batch: the driver looks for it by itself then.
    is_busy: Cell<bool>,
    is_unwanted: Cell<bool>,
    room: Semaphore,
}

/// Where an outcome goes.
#[derive(Debug)]
struct Ticket {
    sink: Rc<Sink>,
    tag: u64,
}

/// A putter's outcomes. Bounded by its puts without an outcome, and by what it has not taken.
#[derive(Debug, Default)]
struct Sink {
    done: RefCell<VecDeque<(u64, Outcome)>>,
    bell: Notify,
}

/// One connection's way to one topic.
#[derive(Debug)]
pub struct Putter {
    producers: Producers,
    kafka: ClusterConfig,
    topic: String,
    origin: Origin,
    shared: Option<Rc<Shared>>,
    sink: Rc<Sink>,
    outstanding: usize,
}

impl Producers {
    /// For a client's connection.
    pub fn origin(&self) -> Origin {
        let number = self.0.next_origin.get();
        self.0.next_origin.set(number + 1);
        Origin(number)
    }

    /// A way to `topic` for the caller that `kafka` logs in.
    pub fn putter(&self, kafka: &ClusterConfig, topic: &str, origin: Origin) -> Putter {
        Putter {
            producers: self.clone(),
            kafka: kafka.clone(),
            topic: topic.to_owned(),
            origin,
            shared: None,
            sink: Rc::default(),
            outstanding: 0,
        }
    }

    /// The caller's producer for the topic, which is open then.
    async fn open(&self, kafka: &ClusterConfig, topic: &str) -> Result<Rc<Shared>, Rc<ClientError>> {
        if is_temporary(topic) && self.find(kafka, topic).is_none() {
            // What comes late does not make its queue again.
            Cluster::new(kafka.clone()).topic(topic, false).await?;
        }
        for _ in 0..EVICTION_TURNS {
            if self.0.count.get() < PRODUCERS_MAX || self.find(kafka, topic).is_some() {
                break;
            }
            self.end_an_idle_one();
            yield_now().await;
        }
        let shared = match self.find(kafka, topic) {
            Some(shared) => shared,
            None => self.start(kafka, topic)?,
        };
        loop {
            let changed = shared.changed.notified();
            match &*shared.state.borrow() {
                State::Opening => {}
                State::Open => return Ok(shared.clone()),
                State::Gone(error) => return Err(error.clone().unwrap_or_else(|| Rc::new(busy()))),
            }
            changed.await;
        }
    }

    fn find(&self, kafka: &ClusterConfig, topic: &str) -> Option<Rc<Shared>> {
        let open = self.0.open.borrow();
        let mut of_topic = open.get(topic)?.iter();
        of_topic.find(|shared| shared.kafka.security == kafka.security).cloned()
    }

    fn start(&self, kafka: &ClusterConfig, topic: &str) -> Result<Rc<Shared>, Rc<ClientError>> {
        if self.0.count.get() >= PRODUCERS_MAX {
            return Err(Rc::new(busy()));
        }
        let shared = Rc::new(Shared {
            kafka: kafka.clone(),
            topic: topic.to_owned(),
            state: RefCell::new(State::Opening),
            changed: Notify::new(),
            came: RefCell::default(),
            bell: Notify::new(),
            is_busy: Cell::new(false),
            is_unwanted: Cell::new(false),
            room: Semaphore::new(ROOM_BYTES),
        });
        self.0.open.borrow_mut().entry(topic.to_owned()).or_default().push(shared.clone());
        self.0.count.set(self.0.count.get() + 1);
        let (producers, of_task) = (self.clone(), shared.clone());
        spawn_local(async move {
            let error = driver::run(&of_task).await.err();
            producers.forget(&of_task);
            of_task.end(error);
        });
        Ok(shared)
    }

    /// Makes room for the next caller.
    fn end_an_idle_one(&self) {
        let open = self.0.open.borrow();
        let mut all = open.values().flatten();
        if let Some(idle) = all.find(|shared| shared.room.available_permits() == ROOM_BYTES) {
            idle.is_unwanted.set(true);
            idle.bell.notify_one();
        }
    }

    fn forget(&self, shared: &Rc<Shared>) {
        let mut open = self.0.open.borrow_mut();
        let Some(of_topic) = open.get_mut(&shared.topic) else { return };
        of_topic.retain(|one| !Rc::ptr_eq(one, shared));
        if of_topic.is_empty() {
            open.remove(&shared.topic);
        }
        self.0.count.set(self.0.count.get() - 1);
    }
}

fn busy() -> ClientError {
    let what = format!("a listener has {PRODUCERS_MAX} producers (users and topics); try again");
    ClientError::refused(what, ErrorCode::ThrottlingQuotaExceeded.code(), None)
}

impl Shared {
    fn is_open(&self) -> bool {
        matches!(*self.state.borrow(), State::Open)
    }

    fn become_open(&self) {
        *self.state.borrow_mut() = State::Open;
        self.changed.notify_waiters();
    }

    /// The driver has ended. What it has not seen gets the error.
    fn end(&self, error: Option<Rc<ClientError>>) {
        *self.state.borrow_mut() = State::Gone(error.clone());
        self.changed.notify_waiters();
        self.room.close();
        for put in self.came.take() {
            put.tag.tell(Err(error.clone().unwrap_or_else(|| Rc::new(busy()))));
        }
    }
}

impl Ticket {
    fn tell(self, outcome: Outcome) {
        self.sink.done.borrow_mut().push_back((self.tag, outcome));
        self.sink.bell.notify_one();
    }
}

/// What a put counts for.
fn room_of(bytes: usize) -> u32 {
    bytes.clamp(PUT_BYTES_MIN, ROOM_BYTES) as u32
}

impl Putter {
    /// Finds the topic, which may create it.
    ///
    /// # Errors
    /// The topic's error, or the caller's.
    pub async fn open(&mut self) -> Result<(), Rc<ClientError>> {
        self.producer().await.map(drop)
    }

    async fn producer(&mut self) -> Result<Rc<Shared>, Rc<ClientError>> {
        if let Some(shared) = self.shared.as_ref().filter(|shared| shared.is_open()) {
            return Ok(shared.clone());
        }
        self.shared = None;
        let shared = self.producers.open(&self.kafka, &self.topic).await?;
        self.shared = Some(shared.clone());
        Ok(shared)
    }

    /// Puts a record, after those that were put before. Waits for room, not for the outcome, which [`Self::next`]
    /// returns with `tag`.
    ///
    /// # Errors
    /// There is no producer: nothing was put.
    pub async fn submit(&mut self, record: Outgoing, tag: u64) -> Result<(), Rc<ClientError>> {
        let bytes = size_bytes(&record);
        loop {
            let shared = self.producer().await?;
            let Ok(room) = shared.room.acquire_many(room_of(bytes)).await else { continue };
            if !shared.is_open() {
                continue;
            }
            room.forget();
            let ticket = Ticket { sink: self.sink.clone(), tag };
            shared.came.borrow_mut().push(Put { tag: ticket, from: self.origin, record, bytes });
            self.outstanding += 1;
            if !shared.is_busy.get() {
                shared.bell.notify_one();
            }
            return Ok(());
        }
    }

    /// Puts without an outcome that was taken.
    pub fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// An outcome that is there.
    pub fn try_next(&mut self) -> Option<(u64, Outcome)> {
        let done = self.sink.done.borrow_mut().pop_front()?;
        self.outstanding -= 1;
        Some(done)
    }

    /// The next outcome. Nothing is lost where this is dropped. Without puts it does not end.
    pub async fn next(&mut self) -> (u64, Outcome) {
        loop {
            if let Some(done) = self.try_next() {
                return done;
            }
            self.sink.bell.notified().await;
        }
    }
}
