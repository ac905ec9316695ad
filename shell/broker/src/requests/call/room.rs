//! What an answer may take, out of the node's memory budget.
//!
//! core/api counts (its `AnswerRoom`); here is the lender. A share is held until the answer is written to the socket.
//!
//! Answers that are larger than most are made one after the other. The next ones wait for their turn, and then for the
//! memory that written answers hold, up to [`PATIENCE`] in all. So many that are asked for at once never wait for each
//! other with a part of what they need.

use super::Answer;
use crate::requests::session::Session;
use barnabas_api::{AnswerRoom, Lender, TooLarge};
use barnabas_net::Claim;
use barnabas_wire::ResponseBody;
use std::cell::{Cell, RefCell};
use std::ops::Deref;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};

/// The answer that is made now.
static TURN: Semaphore = Semaphore::const_new(1);

/// How long an answer waits for memory and for others. Clients give up after 30 s, by default.
const PATIENCE: Duration = Duration::from_secs(20);

/// The room of one answer. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Room(Rc<AnswerRoom<Share>>);

/// A share of the node's budget, claimed once the answer is larger than most.
#[derive(Debug)]
pub struct Share {
    session: Rc<Session>,
    claim: RefCell<Option<Claim>>,
    turn: RefCell<Option<SemaphorePermit<'static>>>,
    /// [`PATIENCE`] is over.
    has_waited: Cell<bool>,
}

impl Share {
    fn take_claim(&self) -> Claim {
        self.claim.take().unwrap_or_else(|| self.session.claim())
    }
}

impl Lender for Share {
    fn lend(&self, total: u64) -> bool {
        let mut claim = self.take_claim();
        let is_lent = claim.try_grow_to(total);
        self.claim.replace(Some(claim));
        if !is_lent {
            // The connection gets no second answer before it has taken what it has.
            self.session.is_scarce.set(true);
        }
        is_lent
    }
}

impl Room {
    pub fn of(session: &Rc<Session>) -> Self {
        let share = Share {
            session: session.clone(),
            claim: RefCell::default(),
            turn: RefCell::default(),
            has_waited: Cell::default(),
        };
        Self(Rc::new(AnswerRoom::new(session.node.workers.answer_bytes_max as u64, share)))
    }

    pub fn as_dyn(&self) -> &AnswerRoom {
        &*self.0
    }

    /// Has lent what `bytes` more take, before they are built. Waits for its turn and for memory.
    ///
    /// # Errors
    /// The node's memory is spent, and was for [`PATIENCE`].
    pub async fn reserve(&self, bytes: usize) -> Result<(), TooLarge> {
        let Some(wanted) = self.0.missing(bytes) else { return Ok(()) };
        let share = self.0.lender();
        if !share.has_waited.get() {
            let mut claim = share.take_claim();
            let waits = async {
                let has_turn = share.turn.borrow().is_some();
                if !has_turn {
                    // Never closed.
                    share.turn.replace(TURN.acquire().await.ok());
                }
                claim.grow_within_limits(wanted).await;
            };
            let is_late = tokio::time::timeout(PATIENCE, waits).await.is_err();
            share.has_waited.set(is_late);
            share.claim.replace(Some(claim));
        }
        self.0.reserve(bytes)
    }

    /// A share of the budget was lent for it.
    pub fn holds_memory(&self) -> bool {
        self.0.lender().claim.borrow().is_some()
    }

    /// Another answer goes on while this one waits for its shard.
    pub fn leave_turn(&self) {
        self.0.lender().turn.take();
    }

    /// As [`Self::reserve`], and counts the bytes.
    ///
    /// # Errors
    /// Also that the answer would be too large.
    pub async fn hold(&self, bytes: usize) -> Result<(), TooLarge> {
        self.reserve(bytes).await?;
        self.0.take(bytes)
    }

    /// The answer, with what was lent for it.
    pub fn reply(&self, body: impl Into<ResponseBody>) -> Answer {
        self.leave_turn();
        match self.0.lender().claim.take() {
            Some(claim) => Answer::Held(body.into(), claim),
            None => Answer::Reply(body.into()),
        }
    }
}

impl Deref for Room {
    type Target = AnswerRoom;

    fn deref(&self) -> &AnswerRoom {
        self.as_dyn()
    }
}
