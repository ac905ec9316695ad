//! The client side of a fetch session: the id and epoch of each request, and when the session has to start over.
//!
//! Source: KIP-227; Kafka `FetchSessionHandler`, `FetchMetadata`.

use barnabas_base::ErrorCode;

/// The session's words in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionRequest {
    /// 0: no session yet.
    pub id: i32,
    /// 0: a full request, which begins a session (and ends the one that `id` names); from 1 on, one of the session's
    /// requests.
    pub epoch: i32,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Session {
    id: i32,
    epoch: i32,
}

impl Session {
    /// Whether the next request names everything.
    pub fn is_full(&self) -> bool {
        self.epoch == 0
    }

    pub fn request(&self) -> SessionRequest {
        SessionRequest { id: self.id, epoch: self.epoch }
    }

    /// Whether an error is about the session alone, so that the next request may follow at once.
    pub fn is_its_own(error: ErrorCode) -> bool {
        matches!(
            error,
            ErrorCode::FetchSessionIdNotFound
                | ErrorCode::InvalidFetchSessionEpoch
                | ErrorCode::FetchSessionTopicIdError
        )
    }

    pub fn refused(&mut self, error: ErrorCode) {
        // A session that the leader does not know need not be ended.
        if error == ErrorCode::FetchSessionIdNotFound {
            self.id = 0;
        }
        self.epoch = 0;
    }

    /// It is unknown whether the leader counted the last request as one of the session's.
    pub fn lost(&mut self) {
        self.epoch = 0;
    }

    pub fn answered(&mut self, was_full: bool, id: i32) {
        if was_full {
            // No room for a session: the next request is full again.
            (self.id, self.epoch) = if id == 0 { (0, 0) } else { (id, 1) };
        } else if id != self.id {
            // It was thrown out meanwhile.
            (self.id, self.epoch) = (0, 0);
        } else {
            self.epoch = if self.epoch == i32::MAX { 1 } else { self.epoch + 1 };
        }
    }
}
