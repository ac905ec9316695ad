//! The keys of IBM's two connectors that mean nothing here, or that cannot be had. One table, also for docs/QUEUES.md.
//!
//! # Source
//! kafka-connect-mq-source and kafka-connect-mq-sink 3.0.0, their READMEs.

/// What becomes of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// A sentence in the log.
    Ignored(&'static str),
    /// The file is refused where the key has this value, or any where `None`.
    Refused(Option<&'static str>, &'static str),
}

use Fate::{Ignored, Refused};

/// What becomes of a key; `None`: it is read, or is unknown.
pub fn fate(key: &str, is_mq: bool) -> Option<Fate> {
    let of_mq = MQ.iter().find(|(known, _)| is_mq && *known == key).map(|(_, fate)| *fate);
    match of_mq {
        Some(fate) => fate,
        None => KEYS.iter().find(|(known, _)| *known == key).map(|(_, fate)| *fate),
    }
}

/// Of a connector that speaks MQ's own protocol: what is otherwise than in [`KEYS`]. `None`: the key is read.
const MQ: &[(&str, Option<Fate>)] = &[
    ("mq.queue.manager", None),
    ("mq.channel.name", None),
    ("mq.ccdt.url", Some(Refused(None, "name the channel in mq.connection.name.list and mq.channel.name"))),
    (
        "mq.user.authentication.mqcsp",
        Some(Refused(Some("false"), "passwords go as MQCSP; without a password no key is needed")),
    ),
    (
        "mq.message.mqmd.read",
        Some(Ignored("JMS headers are made of the MQMD; its other fields are left out")),
    ),
    (
        "mq.message.mqmd.write",
        Some(Refused(
            Some("true"),
            "headers go into JMS's fields of the MQMD; others are the queue manager's",
        )),
    ),
    ("mq.message.mqmd.context", Some(Ignored("the queue manager sets the context"))),
    ("mq.message.receive.timeout", Some(Ignored("the bridge waits until a message comes"))),
    (
        "mq.receive.subsequent.timeout.ms",
        Some(Ignored("a unit of work ends when the queue is empty, or after mq.commit.interval.ms")),
    ),
    ("mq.receive.max.poll.time.ms", Some(Ignored("mq.commit.interval.ms is the longest unit of work"))),
];

/// Key, then fate. A key that is neither here nor read by `config` is reported as unknown.
const KEYS: &[(&str, Fate)] = &[
    ("mq.queue.manager", Ignored("AMQP addresses a queue, not a queue manager")),
    ("mq.channel.name", Ignored("AMQP has no channels of MQ; the port chooses the listener")),
    (
        "mq.connection.mode",
        Refused(
            Some("bindings"),
            "bindings mode needs the queue manager's own process: run IBM's connector there, against this cluster",
        ),
    ),
    (
        "mq.ccdt.url",
        Refused(
            None,
            "a CCDT describes MQ channels: name the AMQP listener in amqp.url or mq.connection.name.list",
        ),
    ),
    ("mq.user.authentication.mqcsp", Ignored("SASL PLAIN logs in")),
    (
        "mq.ssl.peer.name",
        Refused(
            None,
            "the certificate's host name is checked (ssl.endpoint.identification.algorithm); other patterns are not",
        ),
    ),
    ("mq.ssl.cipher.suite", Ignored("it turns TLS on; TLS 1.2 and 1.3 choose the suite")),
    ("mq.ssl.use.ibm.cipher.mappings", Ignored("it is for IBM's JVM")),
    (
        "mq.exactly.once.state.queue",
        Ignored("exactly once needs no state queue here: message ids go into the transaction"),
    ),
    ("mq.message.mqmd.read", Ignored("AMQP brings no MQMD; its properties come as headers")),
    ("mq.message.mqmd.write", Ignored("AMQP brings no MQMD; headers go into its properties")),
    ("mq.message.mqmd.context", Ignored("AMQP brings no MQMD")),
    ("mq.max.poll.blocked.time.ms", Ignored("no unit of work waits for a poll")),
    ("mq.client.reconnect.options", Ignored("the bridge reconnects by itself, for ever")),
    ("mq.message.receive.timeout", Ignored("messages come as they are put: there is no poll")),
    ("mq.receive.subsequent.timeout.ms", Ignored("messages come as they are put: there is no poll")),
    ("mq.receive.max.poll.time.ms", Ignored("messages come as they are put: there is no poll")),
    ("mq.record.builder.json.schemas.enable", Refused(Some("true"), "there are no schemas here")),
    ("mq.record.builder.json.schema.content", Refused(None, "there are no schemas here")),
    ("tasks.max", Ignored("one task for each connector; start another connector of another name for more")),
    ("key.converter", Ignored("keys are written as their text")),
    ("header.converter", Ignored("headers are written as their text")),
    ("errors.tolerance", Ignored("a message that cannot be converted never stops the queue")),
    ("errors.log.enable", Ignored("each is logged, at most one a second")),
    ("errors.log.include.messages", Ignored("bodies are not logged")),
    ("errors.deadletterqueue.topic.replication.factor", Ignored("the cluster's default holds")),
    ("exactly.once.support", Ignored("it is always on")),
    ("transaction.boundary", Ignored("a transaction is a unit of work")),
    ("topics.regex", Refused(None, "name the topics in topics=")),
    ("transforms", Refused(None, "there are no transforms here: run IBM's connector in Connect for those")),
    ("predicates", Refused(None, "there are no predicates here: run IBM's connector in Connect for those")),
];
