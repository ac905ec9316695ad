//! How far the opening of connections has come, shared by all that one client opens: for who waits for them, and so
//! that a listener that closes each of them at once is named as what it may be.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// After so many connections in a row that were closed without an answer it is no accident.
const CLOSED_MAX: u32 = 3;

/// What a connection that is being opened waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Connecting,
    /// The TLS handshake.
    Greeting,
    /// The answer to the first request.
    Asking,
}

#[derive(Debug, Default)]
struct State {
    step: Option<(String, Step)>,
    /// In a row, each closed before the first answer.
    closed: u32,
}

/// See the file's header. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<Mutex<State>>);

impl Progress {
    /// What the connection that was begun last waits for, in words; `None`: nothing is being opened.
    pub fn waiting(&self) -> Option<String> {
        let state = self.state();
        let (address, step) = state.step.as_ref()?;
        Some(match step {
            Step::Connecting => format!("{address} does not take the connection"),
            Step::Greeting => format!(
                "{address} took the connection and does not answer the TLS handshake. Does its listener have TLS? Without it \
                 security.protocol is PLAINTEXT or SASL_PLAINTEXT"
            ),
            Step::Asking => format!(
                "{address} took the connection and does not answer the first request. Does its listener expect TLS? That is \
                 security.protocol=SSL or SASL_SSL"
            ),
        })
    }

    pub(super) fn enter(&self, address: &str, step: Step) {
        self.state().step = Some((address.to_owned(), step));
    }

    /// The first answer has come.
    pub(super) fn answered(&self) {
        *self.state() = State::default();
    }

    /// No connection came about.
    pub(super) fn ended(&self) {
        self.state().step = None;
    }

    /// The node closed a connection before its first answer. Returns whether it did so with several in a row.
    pub(super) fn closed(&self) -> bool {
        let mut state = self.state();
        state.closed = state.closed.saturating_add(1);
        state.closed >= CLOSED_MAX
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
