//! What the audit log holds: who did what, from where, and what came of it; which of it is wanted, and how much may
//! wait to be written.
//!
//! Always true: changes keep their room. Logins and denials, whose number clients choose, fill three quarters of the
//! queue.

use super::Subject;
use crate::Client;
use barnabas_base::{Text, TimestampMs};
use barnabas_wire::ApiKey;

/// Events that wait for the writer; most of them are one line of a few hundred bytes.
pub const QUEUE_EVENTS_MAX: usize = 8192;
/// What logins and denials may fill.
const QUEUE_OTHERS_MAX: usize = QUEUE_EVENTS_MAX / 4 * 3;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    Login,
    FailedLogin,
    Denied,
    /// Shadow mode: it was allowed.
    WouldDeny,
    Change,
}

/// A client, as its request names it and as its connection proved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Who {
    /// Empty: nothing was proved.
    pub principal: Text,
    pub client_id: Option<Text>,
    /// The address, without the port.
    pub host: Text,
    pub listener: Text,
    /// The principal of the broker that forwards the request.
    pub via: Option<Text>,
    /// How it logged in.
    pub mechanism: Option<&'static str>,
}

/// One event. A change has a subject for each resource, others one or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub kind: Kind,
    pub at: TimestampMs,
    pub who: Who,
    pub request: Option<ApiKey>,
    /// Each with `success`, or the name of its error.
    pub what: Vec<(Subject, &'static str)>,
    /// Why a login failed.
    pub reason: Option<String>,
}

/// Which events are wanted.
#[derive(Debug, Clone, Copy, Default)]
pub struct Kinds {
    logins: bool,
    failed_logins: bool,
    denials: bool,
    changes: bool,
}

impl Who {
    pub fn of(client: &Client) -> Self {
        Self {
            principal: client.principal.clone(),
            client_id: client.client_id.clone(),
            host: Text::from(client.host.trim_start_matches('/')),
            listener: client.listener.clone(),
            via: None,
            mechanism: None,
        }
    }
}

impl Kinds {
    /// Reads `audit.log.events`.
    ///
    /// # Errors
    /// A kind of event that does not exist.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut kinds = Self::default();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            match word {
                "logins" => kinds.logins = true,
                "failed-logins" => kinds.failed_logins = true,
                "denials" => kinds.denials = true,
                "changes" => kinds.changes = true,
                other => {
                    return Err(format!("{other:?} is none of logins, failed-logins, denials, changes"));
                }
            }
        }
        Ok(kinds)
    }

    pub fn has(self, kind: Kind) -> bool {
        match kind {
            Kind::Login => self.logins,
            Kind::FailedLogin => self.failed_logins,
            Kind::Denied | Kind::WouldDeny => self.denials,
            Kind::Change => self.changes,
        }
    }
}

impl Kind {
    /// So many events may wait when one of this kind is handed in.
    pub const fn room(self) -> usize {
        if matches!(self, Self::Change) { QUEUE_EVENTS_MAX } else { QUEUE_OTHERS_MAX }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_read_and_a_misspelled_one_is_named() {
        let kinds = Kinds::parse(" logins,, changes").expect("kinds");
        let wanted = [Kind::Login, Kind::FailedLogin, Kind::Denied, Kind::WouldDeny, Kind::Change];
        assert_eq!(wanted.map(|kind| kinds.has(kind)), [true, false, false, false, true]);
        let denials = Kinds::parse("denials").expect("kinds");
        assert!(denials.has(Kind::WouldDeny) && denials.has(Kind::Denied) && !denials.has(Kind::Login));
        assert!(Kinds::parse("login").expect_err("none").contains("\"login\" is none of"));
        assert!(Kind::Login.room() < Kind::Change.room());
    }
}
