//! What an answer may take, out of the node's memory budget.
//!
//! core/api counts (its `AnswerRoom`); here is the lender. A share is held until the answer is written to the socket.

use super::Answer;
use crate::requests::session::Session;
use barnabas_api::{AnswerRoom, Lender};
use barnabas_net::Claim;
use barnabas_wire::ResponseBody;
use std::cell::RefCell;
use std::ops::Deref;
use std::rc::Rc;

/// The room of one answer. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Room(Rc<AnswerRoom<Share>>);

/// A share of the node's budget, claimed once the answer is larger than most.
#[derive(Debug)]
pub struct Share {
    session: Rc<Session>,
    claim: RefCell<Option<Claim>>,
}

impl Lender for Share {
    fn lend(&self, total: u64) -> bool {
        let mut claim = self.claim.borrow_mut();
        let claim = claim.get_or_insert_with(|| self.session.claim());
        let is_lent = claim.try_grow_to(total);
        if !is_lent {
            // The connection gets no second answer before it has taken what it has.
            self.session.is_scarce.set(true);
        }
        is_lent
    }
}

impl Room {
    pub fn of(session: &Rc<Session>) -> Self {
        let share = Share { session: session.clone(), claim: RefCell::new(None) };
        Self(Rc::new(AnswerRoom::new(session.node.workers.answer_bytes_max as u64, share)))
    }

    pub fn as_dyn(&self) -> &AnswerRoom {
        &*self.0
    }

    /// The answer, with what was lent for it.
    pub fn reply(&self, body: impl Into<ResponseBody>) -> Answer {
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
