//! MQOPEN and MQCLOSE. A queue manager and queues can be opened, and temporary queues be made; topics, processes and
//! the like cannot.

use super::{Answer, Conversation};
use crate::browser::Browser;
use crate::names;
use crate::refusal::reason_of;
use crate::source::{Place, Source};
use barnabas_mq::{Object, Open, Reply, oo, reason};
use barnabas_queue_access::{Address, MQ_TEMPORARY, is_temporary, temporary};
use std::collections::BTreeMap;

/// Handles of a conversation: MQ's default of `MAXHANDS`.
const HANDLES_MAX: usize = 256;
const QUEUE: u32 = 1;
const QUEUE_MANAGER: u32 = 5;
/// MQCO_DELETE and MQCO_DELETE_PURGE.
const DELETE: u32 = 0x1 | 0x2;

/// An object that is open.
#[derive(Debug)]
pub struct Handle {
    /// `None`: the queue manager.
    pub queue: Option<Queue>,
    pub options: u32,
}

#[derive(Debug)]
pub struct Queue {
    pub name: String,
    pub address: Address,
    /// For input.
    pub source: Option<Source>,
    pub browser: Option<Browser>,
    /// Made by this handle: it goes with it.
    pub is_own: bool,
    pub streaming: super::getting::Streaming,
}

#[derive(Debug, Default)]
pub struct Handles {
    all: BTreeMap<u32, Handle>,
    last: u32,
}

impl Handles {
    pub fn get(&mut self, number: u32) -> Option<&mut Handle> {
        self.all.get_mut(&number)
    }

    /// The queue of a handle that was opened with one of `options`.
    ///
    /// # Errors
    /// `HOBJ_ERROR`, or `otherwise`.
    pub fn queue(&mut self, number: u32, options: u32, otherwise: u32) -> Result<&mut Queue, u32> {
        let handle = self.all.get_mut(&number).ok_or(reason::HOBJ_ERROR)?;
        let may = handle.options & options != 0;
        handle.queue.as_mut().filter(|_| may).ok_or(otherwise)
    }

    pub fn numbers(&self) -> Vec<u32> {
        self.all.keys().copied().collect()
    }

    /// How many handles get from this topic, and put to it.
    pub fn open_counts(&self, topic: &str) -> (u32, u32) {
        let of = |options: u32| {
            let is = |handle: &&Handle| {
                handle.options & options != 0
                    && handle.queue.as_ref().is_some_and(|queue| queue.address.topic == topic)
            };
            self.all.values().filter(is).count() as u32
        };
        (of(oo::INPUT), of(oo::OUTPUT))
    }

    fn add(&mut self, handle: Handle) -> u32 {
        self.last = self.last.wrapping_add(1).max(1);
        while self.all.contains_key(&self.last) {
            self.last = self.last.wrapping_add(1).max(1);
        }
        self.all.insert(self.last, handle);
        self.last
    }
}

impl Conversation {
    pub(super) async fn open(&mut self, open: Open) -> Answer {
        match self.opened(&open.object, open.options).await {
            Ok((handle, name)) => Answer::with(reason::NONE, handle, Reply::Open { open, name }),
            Err(why) => Answer::with(why, 0, Reply::Open { open, name: None }),
        }
    }

    /// The handle, and the queue's name where it is another one than was asked for.
    async fn opened(&mut self, object: &Object, options: u32) -> Result<(u32, Option<String>), u32> {
        if self.handles.all.len() >= HANDLES_MAX {
            return Err(reason::HANDLE_NOT_AVAILABLE);
        }
        if object.kind == QUEUE_MANAGER {
            return Ok((self.handles.add(Handle { queue: None, options }), None));
        }
        self.judge(object, options)?;
        let model = names::is_model(&object.name);
        let topic = if model {
            let made = temporary::make(&mut self.cluster, MQ_TEMPORARY).await;
            let topic = made.map_err(|error| reason_of(&error))?;
            self.task.temporaries.borrow_mut().insert(topic.clone(), None);
            Some(topic)
        } else {
            None
        };
        let name = topic.as_deref().unwrap_or(&object.name);
        let opened = self.queue(name, options, model).await;
        if let (Err(_), Some(topic)) = (&opened, &topic) {
            self.remove_temporary(topic).await;
        }
        let queue = opened?;
        Ok((self.handles.add(Handle { queue: Some(queue), options }), topic))
    }

    fn judge(&self, object: &Object, options: u32) -> Result<(), u32> {
        let manager = &object.queue_manager;
        if object.kind != QUEUE {
            return Err(reason::OBJECT_TYPE_ERROR);
        }
        // A client that looks for policies of AMS names a queue manager of its own; it wants to hear of the queue.
        if !names::is_model(&object.name) && self.task.shared.names.address(&object.name).is_none() {
            return Err(reason::UNKNOWN_OBJECT_NAME);
        }
        if !manager.is_empty() && *manager != self.task.shared.queue_manager {
            return Err(reason::UNKNOWN_OBJECT_Q_MGR);
        }
        if object.has_selector {
            return Err(reason::SELECTION_NOT_AVAILABLE);
        }
        if object.is_distribution_list || object.has_long_name {
            return Err(reason::OD_ERROR);
        }
        if options & oo::SET != 0 {
            return Err(reason::OPTIONS_ERROR);
        }
        Ok(())
    }

    async fn queue(&mut self, name: &str, options: u32, is_own: bool) -> Result<Queue, u32> {
        let address = self.task.shared.names.address(name).ok_or(reason::UNKNOWN_OBJECT_NAME)?;
        let fail = |error: barnabas_client::ClientError| reason_of(&error);
        self.find(&address).await.map_err(fail)?;
        let source = if options & oo::INPUT != 0 { Some(self.source(&address).await?) } else { None };
        let browser = if options & oo::BROWSE != 0 {
            Some(Browser::open(&self.task.kafka, &address).await.map_err(fail)?)
        } else {
            None
        };
        let name = name.to_owned();
        Ok(Queue { name, address, source, browser, is_own, streaming: Default::default() })
    }

    /// The topic is there, or is made where the broker makes topics.
    async fn find(&mut self, address: &Address) -> Result<(), barnabas_client::ClientError> {
        let creates = !is_temporary(&address.topic);
        let tries = self.cluster.tries(format!("finding topic {}", address.topic));
        while let Err(error) = self.cluster.topic(&address.topic, creates).await {
            tries.after(error).await?;
        }
        Ok(())
    }

    /// A temporary queue has one reader, of the connection that made it.
    async fn source(&mut self, address: &Address) -> Result<Source, u32> {
        let open = async || {
            let opened = Source::open(&self.task.kafka, address).await;
            opened.map_err(|error| reason_of(&error))
        };
        if !is_temporary(&address.topic) {
            return open().await;
        }
        let known = self.task.temporaries.borrow().get(&address.topic).cloned();
        match known {
            None => Err(reason::OBJECT_IN_USE),
            Some(Some(source)) => Ok(source),
            Some(None) => {
                let source = open().await?;
                let mut all = self.task.temporaries.borrow_mut();
                // It may have been opened or deleted by another conversation meanwhile.
                match all.get_mut(&address.topic) {
                    Some(place) => Ok(place.get_or_insert(source).clone()),
                    None => Err(reason::UNKNOWN_OBJECT_NAME),
                }
            }
        }
    }

    pub(super) async fn close(&mut self, number: u32, options: u32) -> Answer {
        let Some(handle) = self.handles.all.remove(&number) else {
            return Answer::with(reason::HOBJ_ERROR, 0, Reply::Bare);
        };
        let mut queue = handle.queue;
        if let Some(queue) = &mut queue {
            let waiting: Vec<Place> = queue.streaming.take_waiting().into_iter().collect();
            self.give_back(queue, waiting).await;
            let is_temporary = is_temporary(&queue.address.topic);
            if queue.is_own || (is_temporary && options & DELETE != 0) {
                self.remove_temporary(&queue.address.topic).await;
            }
        }
        Answer::ok(Reply::Bare)
    }

    async fn give_back(&self, queue: &Queue, places: Vec<Place>) {
        if let (Some(source), false) = (&queue.source, places.is_empty())
            && let Err(error) = source.settle(places, crate::source::Outcome::Back).await
        {
            tracing::debug!(%error, "a message comes again when its lock ends");
        }
    }

    /// The queue may be gone already: by another handle.
    async fn remove_temporary(&mut self, topic: &str) {
        let known = self.task.temporaries.borrow_mut().remove(topic);
        if known.is_some() {
            drop(known);
            temporary::remove(&mut self.cluster, topic).await;
        }
    }

    pub(super) async fn close_all(&mut self) {
        for number in self.handles.numbers() {
            self.close(number, 0).await;
        }
    }
}
