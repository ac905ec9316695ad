//! Which client ids have a place of their own in the figures: at most [`CLIENTS_MAX`]; everybody else is `other`.
//!
//! A place is taken when a connection first names the id, and kept while any connection does. When all are taken, the
//! one goes whose clients have been away the longest; its figures are counted into `other` from then on, so that no
//! total ever falls. Looked up when a connection names another id than before, not for each request.

use crate::recorder::{CLIENTS_MAX, ClientCounts};
use barnabas_base::Text;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The place of all others.
pub const OTHER: u16 = CLIENTS_MAX as u16;
/// How clients without an id, and all that have no place, are called: a client that calls itself so is counted with
/// them.
const NONE_NAME: &str = "(none)";
const OTHERS_NAME: &str = "(others)";
/// Longer client ids are shown cut.
const NAME_BYTES_MAX: usize = 128;

/// The places. See the file's header.
#[derive(Debug, Default)]
pub struct Clients {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    places: Vec<Place>,
    /// Of places that were given to others.
    retired: ClientCounts,
    /// Counts how often places were left: who left first is the first to go.
    left: u64,
}

#[derive(Debug)]
struct Place {
    name: Text,
    users: u32,
    left_at: u64,
    /// What was counted here under earlier names.
    before: ClientCounts,
}

impl Clients {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The place of a client id, from now until [`Clients::leave`]. `counted` is asked where a place changes hands.
    pub fn enter(&self, id: Option<&str>, counted: impl Fn(u16) -> ClientCounts) -> u16 {
        let name = shown(id.unwrap_or_default());
        if name == OTHERS_NAME {
            return OTHER;
        }
        let mut state = self.lock();
        if let Some(at) = state.places.iter().position(|place| &*place.name == name) {
            state.places[at].users += 1;
            return at as u16;
        }
        let mut place =
            Place { name: Text::from(name), users: 1, left_at: 0, before: ClientCounts::default() };
        if state.places.len() < CLIENTS_MAX {
            state.places.push(place);
            return state.places.len() as u16 - 1;
        }
        let unused = state.places.iter().enumerate().filter(|(_, place)| place.users == 0);
        let Some(at) = unused.min_by_key(|(_, place)| place.left_at).map(|(at, _)| at) else { return OTHER };
        place.before = counted(at as u16);
        let own = place.before.since(&state.places[at].before);
        state.retired.merge(&own);
        state.places[at] = place;
        at as u16
    }

    pub fn leave(&self, at: u16) {
        let mut state = self.lock();
        state.left += 1;
        let left = state.left;
        if let Some(place) = state.places.get_mut(usize::from(at)) {
            place.users -= 1;
            place.left_at = left;
        }
    }

    /// Every client id with its own figures; `None`: all others.
    pub fn each(&self, counted: impl Fn(u16) -> ClientCounts) -> Vec<(Option<Text>, ClientCounts)> {
        let state = self.lock();
        let mut all: Vec<_> = state
            .places
            .iter()
            .enumerate()
            .map(|(at, place)| (Some(place.name.clone()), counted(at as u16).since(&place.before)))
            .collect();
        let mut other = counted(OTHER);
        other.merge(&state.retired);
        all.push((None, other));
        all
    }
}

/// The part of a client id that is shown; empty where there is none.
fn shown(id: &str) -> &str {
    let id = &id[..id.floor_char_boundary(NAME_BYTES_MAX)];
    if id == NONE_NAME { "" } else { id }
}

/// What [`Clients::each`] names, for people.
pub fn label(name: Option<&str>) -> &str {
    match name {
        None => OTHERS_NAME,
        Some("") => NONE_NAME,
        Some(name) => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::ClientCells;

    #[test]
    fn places_are_shared_kept_and_given_on() {
        let cells: Vec<ClientCells> = (0..=CLIENTS_MAX).map(|_| ClientCells::default()).collect();
        let counted = |at: u16| {
            let mut counts = ClientCounts::default();
            counts.add(&cells[usize::from(at)]);
            counts
        };
        let count = |at: u16| cells[usize::from(at)].one_more(0);
        let clients = Clients::default();
        let places: Vec<u16> = (0..CLIENTS_MAX)
            .map(|number| clients.enter(Some(&format!("client-{number}")), counted))
            .collect();
        assert_eq!(places, (0..CLIENTS_MAX as u16).collect::<Vec<_>>());
        assert_eq!(clients.enter(Some("client-3"), counted), 3);
        assert_eq!(clients.enter(Some("late"), counted), OTHER, "everybody is there");
        count(OTHER);
        count(7);
        count(9);
        clients.leave(3);
        assert_eq!(clients.enter(Some("late"), counted), OTHER, "client-3 has another connection");
        clients.leave(7);
        clients.leave(9);
        assert_eq!(clients.enter(Some("late"), counted), 7, "who left first goes first");
        count(7);
        count(7);
        let of = |name: Option<&str>| {
            let all = clients.each(counted);
            let found = all.into_iter().find(|(known, _)| known.as_deref() == name);
            found.map(|(_, counts)| counts.requests[0])
        };
        assert_eq!(
            (of(Some("late")), of(Some("client-7")), of(Some("client-9")), of(None)),
            (Some(2), None, Some(1), Some(2))
        );
        assert_eq!(clients.enter(Some("client-9"), counted), 9, "it comes back to its own");
        assert_eq!(of(Some("client-9")), Some(1));
    }

    #[test]
    fn one_address_cannot_use_up_the_names_of_others() {
        let clients = Clients::default();
        let nothing = |_| ClientCounts::default();
        assert_eq!(clients.enter(None, nothing), clients.enter(Some("(none)"), nothing));
        assert_eq!(clients.enter(Some("(others)"), nothing), OTHER);
        clients.leave(OTHER);
        let names: Vec<_> =
            clients.each(nothing).into_iter().map(|(name, _)| label(name.as_deref()).to_owned()).collect();
        assert_eq!(names, ["(none)", "(others)"]);
    }

    #[test]
    fn long_names_are_cut_between_letters() {
        assert_eq!(shown(&"é".repeat(100)).len(), 128);
        assert_eq!(shown(&format!("x{}", "é".repeat(100))).len(), 127);
    }
}
