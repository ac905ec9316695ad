//! What a client makes of reason codes: their names, whether another try may cure them, and what an operator does.
//!
//! # Source
//! IBM MQ's documentation of API completion and reason codes.

use std::fmt;

/// A reason code that a call was answered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal(pub u32);

/// What is to be done about a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// Connect again after a pause: the queue manager or its unit of work is away for a time.
    Again,
    /// The sentence is for an operator. Another try alone does not cure it.
    Operator(&'static str),
    /// The message itself cannot be put: others can.
    Message,
}

const NAME: &str = "Change mq.channel.name or the channel's definition at the queue manager";
const SPACE: &str = "Make room at the queue, or raise its MAXDEPTH";

/// Code, MQ's name without `MQRC_`, advice.
const KNOWN: [(u32, &str, Advice); 36] = [
    (2003, "BACKED_OUT", Advice::Again),
    (2009, "CONNECTION_BROKEN", Advice::Again),
    (2016, "GET_INHIBITED", Advice::Operator("Allow gets of the queue at the queue manager")),
    (2017, "HANDLE_NOT_AVAILABLE", Advice::Operator("Raise MAXHANDS at the queue manager")),
    (
        2024,
        "SYNCPOINT_LIMIT_REACHED",
        Advice::Operator("Lower mq.batch.size, or raise MAXUMSGS at the queue manager"),
    ),
    (2025, "MAX_CONNS_LIMIT_REACHED", Advice::Operator("Raise MAXINST and the like of the channel")),
    (2029, "MSG_TYPE_ERROR", Advice::Message),
    (2030, "MSG_TOO_BIG_FOR_Q", Advice::Message),
    (2031, "MSG_TOO_BIG_FOR_Q_MGR", Advice::Message),
    (
        2035,
        "NOT_AUTHORIZED",
        Advice::Operator("Give the user of mq.user.name the right to it, or change the password"),
    ),
    (2042, "OBJECT_IN_USE", Advice::Again),
    (2043, "OBJECT_TYPE_ERROR", Advice::Operator("Change mq.queue: it names no queue")),
    (
        2048,
        "PERSISTENT_NOT_ALLOWED",
        Advice::Operator("Set mq.persistent=false, or name a queue that is not temporary"),
    ),
    (2051, "PUT_INHIBITED", Advice::Operator("Allow puts to the queue at the queue manager")),
    (2053, "Q_FULL", Advice::Operator(SPACE)),
    (2056, "Q_SPACE_NOT_AVAILABLE", Advice::Operator(SPACE)),
    (
        2058,
        "Q_MGR_NAME_ERROR",
        Advice::Operator("Change mq.queue.manager: another queue manager answers there"),
    ),
    (2059, "Q_MGR_NOT_AVAILABLE", Advice::Again),
    (2080, "TRUNCATED_MSG_FAILED", Advice::Operator("Raise mq.message.bytes.max above the message's length")),
    (
        2085,
        "UNKNOWN_OBJECT_NAME",
        Advice::Operator("Create the queue at the queue manager, or change mq.queue"),
    ),
    (2086, "UNKNOWN_OBJECT_Q_MGR", Advice::Operator("Change mq.queue to a queue of this queue manager")),
    (2087, "UNKNOWN_REMOTE_Q_MGR", Advice::Operator("Define the way to the remote queue manager")),
    (2102, "RESOURCE_PROBLEM", Advice::Again),
    (2123, "OUTCOME_MIXED", Advice::Again),
    (2142, "HEADER_ERROR", Advice::Message),
    (
        2152,
        "OBJECT_NAME_ERROR",
        Advice::Operator("Change mq.queue: the queue manager takes no queue of this name"),
    ),
    (2161, "Q_MGR_QUIESCING", Advice::Again),
    (2162, "Q_MGR_STOPPING", Advice::Again),
    (2195, "UNEXPECTED_ERROR", Advice::Again),
    (2218, "MSG_TOO_BIG_FOR_CHANNEL", Advice::Message),
    (2247, "MATCH_OPTIONS_ERROR", Advice::Operator("The queue manager does not do what the client asks for")),
    (
        2298,
        "FUNCTION_NOT_SUPPORTED",
        Advice::Operator("The queue manager does not do what the client asks for"),
    ),
    (2334, "RFH_ERROR", Advice::Message),
    (2471, "PROPERTY_NOT_AVAILABLE", Advice::Message),
    (2539, "CHANNEL_CONFIG_ERROR", Advice::Operator(NAME)),
    (2549, "CALL_INTERRUPTED", Advice::Again),
];

impl Refusal {
    fn known(self) -> Option<&'static (u32, &'static str, Advice)> {
        KNOWN.iter().find(|(code, ..)| *code == self.0)
    }

    /// `UNKNOWN_OBJECT_NAME` and the like, where the code is known here.
    pub fn name(self) -> Option<&'static str> {
        self.known().map(|(_, name, _)| *name)
    }

    /// Of a code that is not known: another try.
    pub fn advice(self) -> Advice {
        self.known().map_or(Advice::Again, |(.., advice)| *advice)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(formatter, "{} MQRC_{name}", self.0),
            None => write!(formatter, "reason {}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_in_order_and_have_their_names() {
        assert!(KNOWN.is_sorted_by(|a, b| a.0 < b.0));
        assert_eq!(Refusal(2085).to_string(), "2085 MQRC_UNKNOWN_OBJECT_NAME");
        assert_eq!(Refusal(9999).to_string(), "reason 9999");
        assert_eq!((Refusal(2030).advice(), Refusal(9999).advice()), (Advice::Message, Advice::Again));
        assert!(matches!(Refusal(2035).advice(), Advice::Operator(_)));
    }
}
