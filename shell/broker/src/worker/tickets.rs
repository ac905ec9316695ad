//! Who waits for which append: requests with several batches on this worker, answered when the last one is decided.
//!
//! A ticket names a request's place, the batch within it, and the place's generation. So a late answer for a request
//! that was answered already (its write failed) does not reach another request.

use crate::mailbox::{AppendOutcome, Declined};
use barnabas_metrics::{AppendTimes, RoundTimes, Stamp};
use barnabas_partition::{Acked, Ticket};
use tokio::sync::oneshot;

const PLACE_BITS: u32 = 24;
/// More batches than any frame can hold.
const SLOT_BITS: u32 = 24;
/// More requests than this never wait on one worker: each holds at least its frame of the memory budget.
const PLACES_MAX: usize = 1 << PLACE_BITS;

/// The ticket of a batch without a waiting request.
pub const NO_TICKET: Ticket = Ticket(u64::MAX);

#[derive(Debug, Default)]
struct Place {
    generation: u64,
    undecided: usize,
    taken: Stamp,
    /// A bit for each slot that is decided.
    decided: Vec<u64>,
    outcomes: Vec<AppendOutcome>,
    reply: Option<oneshot::Sender<Vec<AppendOutcome>>>,
}

/// The requests that wait on one worker.
#[derive(Debug, Default)]
pub struct Tickets {
    places: Vec<Place>,
    free: Vec<usize>,
    /// When the worker's turn began, and the journal's round that it last heard of: they go along with the answers.
    pub turn: Stamp,
    pub round: RoundTimes,
    /// It hears of that round now.
    pub is_round_told: bool,
}

/// One request's place, until its last batch is decided.
#[derive(Debug, Clone, Copy)]
pub struct Opened {
    place: usize,
    generation: u64,
}

impl Tickets {
    /// A place for a request with `batches` batches.
    pub fn open(&mut self, batches: usize, reply: oneshot::Sender<Vec<AppendOutcome>>) -> Opened {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place::default());
            self.places.len() - 1
        });
        assert!(place < PLACES_MAX, "each request holds a share of the memory budget, which ends far sooner");
        let entry = &mut self.places[place];
        entry.undecided = batches;
        entry.taken = self.turn;
        entry.decided.clear();
        entry.outcomes = Vec::with_capacity(batches);
        entry.reply = Some(reply);
        Opened { place, generation: entry.generation }
    }

    /// The ticket of one of the request's batches, by the caller's number for it.
    pub fn ticket(&self, opened: Opened, slot: u32) -> Ticket {
        let generation = opened.generation << (PLACE_BITS + SLOT_BITS);
        Ticket(generation | (opened.place as u64) << SLOT_BITS | u64::from(slot & ((1 << SLOT_BITS) - 1)))
    }

    /// Sets one batch's outcome. A ticket of an earlier generation is ignored.
    pub fn answer(&mut self, ticket: Ticket, result: Result<Acked, Declined>) {
        if ticket == NO_TICKET {
            return;
        }
        let place = (ticket.0 >> SLOT_BITS) as usize & (PLACES_MAX - 1);
        let Some(entry) = self.places.get_mut(place) else { return };
        let generation_mask = u64::MAX >> (PLACE_BITS + SLOT_BITS);
        if entry.reply.is_none() || entry.generation & generation_mask != ticket.0 >> (PLACE_BITS + SLOT_BITS)
        {
            return;
        }
        let slot = (ticket.0 & ((1 << SLOT_BITS) - 1)) as u32;
        if !mark(&mut entry.decided, slot) {
            return;
        }
        let decided = if self.is_round_told { self.round.durable } else { self.turn };
        let times = AppendTimes { taken: entry.taken, round: self.round, decided };
        entry.outcomes.push(AppendOutcome { slot, result, times });
        entry.undecided -= 1;
        if entry.undecided == 0 {
            entry.generation += 1;
            let outcomes = std::mem::take(&mut entry.outcomes);
            if let Some(reply) = entry.reply.take() {
                // A connection that is gone does not hear its answer.
                let _ = reply.send(outcomes);
            }
            self.free.push(place);
        }
    }
}

/// Sets a slot's bit. `false`: it was set.
fn mark(decided: &mut Vec<u64>, slot: u32) -> bool {
    let (word, bit) = (slot as usize / 64, 1 << (slot % 64));
    if decided.len() <= word {
        decided.resize(word + 1, 0);
    }
    let is_new = decided[word] & bit == 0;
    decided[word] |= bit;
    is_new
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_base::Offset;

    fn acked(base: i64) -> Result<Acked, Declined> {
        Ok(Acked { base: Offset(base), log_start: Offset(0), duplicate_timestamp: None })
    }

    #[test]
    fn a_request_is_answered_with_its_last_batch() {
        let mut tickets = Tickets::default();
        let (reply, mut answer) = oneshot::channel();
        let opened = tickets.open(2, reply);
        let (one, two) = (tickets.ticket(opened, 7), tickets.ticket(opened, 9));
        tickets.answer(two, acked(5));
        tickets.answer(two, acked(6));
        assert!(answer.try_recv().is_err());
        tickets.answer(one, Err(Declined::Storage));
        let slots: Vec<u32> =
            answer.try_recv().expect("answered").iter().map(|outcome| outcome.slot).collect();
        assert_eq!(slots, [9, 7]);
    }

    #[test]
    fn result_names_the_slower_of_the_own_disk_and_the_followers() {
        let round = RoundTimes { begun: Stamp(20), durable: Stamp(30) };
        let mut tickets = Tickets { turn: Stamp(10), round, ..Tickets::default() };
        for (is_round_told, decided) in [(true, 30), (false, 50)] {
            let (reply, mut answer) = oneshot::channel();
            tickets.turn = Stamp(10);
            let opened = tickets.open(1, reply);
            (tickets.turn, tickets.is_round_told) = (Stamp(50), is_round_told);
            tickets.answer(tickets.ticket(opened, 0), acked(1));
            let outcomes = answer.try_recv().expect("answered");
            assert_eq!((outcomes[0].times.taken, outcomes[0].times.decided), (Stamp(10), Stamp(decided)));
        }
    }

    #[test]
    fn a_request_may_have_thousands_of_batches() {
        let mut tickets = Tickets::default();
        let (reply, mut answer) = oneshot::channel();
        let opened = tickets.open(10_000, reply);
        for slot in (0..10_000).rev() {
            assert!(answer.try_recv().is_err());
            let ticket = tickets.ticket(opened, slot);
            tickets.answer(ticket, acked(slot.into()));
            tickets.answer(ticket, acked(-1));
        }
        let outcomes = answer.try_recv().expect("answered");
        assert!(outcomes.iter().map(|outcome| outcome.slot).eq((0..10_000).rev()));
    }

    #[test]
    fn late_answer_does_not_reach_another_request() {
        let mut tickets = Tickets::default();
        let (reply, _first) = oneshot::channel();
        let opened = tickets.open(1, reply);
        let old = tickets.ticket(opened, 0);
        tickets.answer(old, Err(Declined::Storage));
        let (reply, mut second) = oneshot::channel();
        let opened = tickets.open(1, reply);
        tickets.answer(old, acked(1));
        assert!(second.try_recv().is_err());
        tickets.answer(tickets.ticket(opened, 0), acked(2));
        assert!(second.try_recv().is_ok());
        tickets.answer(NO_TICKET, acked(3));
    }
}
