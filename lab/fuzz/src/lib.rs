//! What is fed with hostile bytes, and what must hold whatever they are.
//!
//! Each target is a function over bytes: no panic, no more memory than its [`limit::Bound`], and what was understood
//! says the same after a round trip. `lab/fuzz/runner` lets libFuzzer search for bytes that break this; `replay` runs
//! what it once found (and a few seeds) in the ordinary tests.

mod access;
mod amqp;
mod files;
pub mod limit;
mod logins;
mod messages;
mod mq;
mod pushes;
mod records;
mod settings;

use barnabas_wire::records::compression::inflated_limit;
use limit::Bound;

/// A target: its name, its work, and what an input may make it hold.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    pub name: &'static str,
    pub work: fn(&[u8]),
    pub bound: Bound,
}

impl Target {
    const fn new(name: &'static str, work: fn(&[u8]), bound: Bound) -> Self {
        Self { name, work, bound }
    }

    /// Feeds it with one input. Returns the bytes that it held at most.
    pub fn feed(self, data: &[u8]) -> usize {
        limit::within(self.bound, data.len(), || (self.work)(data))
    }
}

/// A message and what is written of it, twice: an element of an array takes up to 200 bytes in memory for one on the
/// wire.
const MESSAGE: Bound = Bound::new(64 << 10, 700);
/// What a batch inflates to, in a vector that doubles, and the same again where it is written into a new batch, at both
/// ends of a move.
const INFLATED: Bound = Bound::new(2 * inflated_limit(0) + (8 << 20), 200);
const REBUILT: Bound = Bound::new(5 * inflated_limit(0) + (8 << 20), 500);
/// The input, a copy of it, and what is understood of it.
const SMALL: Bound = Bound::new(64 << 10, 64);
/// A message, and the expression by which a listener's rules are read.
const TICKET: Bound = Bound::new(8 << 20, 700);
/// A session with its buffers, an honest one beside it, and at the first input the keys of both.
const HANDSHAKE: Bound = Bound::new(4 << 20, 64);
/// What a file says, decoded and decrypted, twice.
const STORE: Bound = Bound::new(1 << 20, 300);
/// A value takes 40 bytes in memory for one on the wire, in a vector that doubles; and it is there twice.
const VALUE: Bound = Bound::new(64 << 10, 300);
/// What the client holds of one frame, of what it sent without an answer, and of events.
const CONVERSATION: Bound = Bound::new(1 << 20, 300);
/// A push inflated to a megabyte in a vector that doubles, and its first hundred points, each with a name and eight
/// labels of its own.
const PUSH: Bound = Bound::new((4 << 20) + 100 * (8 << 10), 64);
/// A log in memory with its files, indexes and pools.
const LOG: Bound = Bound::new(16 << 20, 64);

/// All targets. The first byte or two often choose a key, a version or a codec.
pub const TARGETS: &[Target] = &[
    Target::new("frame", messages::frame, MESSAGE),
    Target::new("request", messages::request, MESSAGE),
    Target::new("response", messages::response, MESSAGE),
    Target::new("metadata_record", messages::metadata_record, MESSAGE),
    Target::new("coordinator_record", messages::coordinator_record, MESSAGE),
    Target::new("embedded_protocol", messages::embedded_protocol, MESSAGE),
    Target::new("batch", records::batch, INFLATED),
    Target::new("old_message_set", records::old_message_set, REBUILT),
    Target::new("produce", records::produce, REBUILT),
    Target::new("gzip", records::gzip, INFLATED),
    Target::new("snappy", records::snappy, INFLATED),
    Target::new("lz4", records::lz4, INFLATED),
    Target::new("zstd", records::zstd, INFLATED),
    Target::new("otlp", pushes::otlp, PUSH),
    Target::new("config_value", settings::config_value, SMALL),
    Target::new("sasl_exchange", logins::sasl_exchange, MESSAGE),
    Target::new("sasl_plain", logins::sasl_plain, SMALL),
    Target::new("sasl_scram", logins::sasl_scram, SMALL),
    Target::new("sasl_challenge", logins::sasl_challenge, SMALL),
    Target::new("sasl_bearer", logins::sasl_bearer, SMALL),
    Target::new("sasl_jwt", logins::sasl_jwt, MESSAGE),
    Target::new("kerberos_token", logins::kerberos_token, TICKET),
    Target::new("keytab", logins::keytab, MESSAGE),
    Target::new("ticket_cache", logins::ticket_cache, MESSAGE),
    Target::new("kerberos_rules", logins::kerberos_rules, INFLATED),
    Target::new("jaas", logins::jaas, MESSAGE),
    Target::new("tls_records", access::tls_records, HANDSHAKE),
    Target::new("key_store", access::key_store, STORE),
    Target::new("revocation_list", access::revocation_list, MESSAGE),
    Target::new("acl", access::acl, MESSAGE),
    Target::new("amqp_value", amqp::amqp_value, VALUE),
    Target::new("amqp_frame", amqp::amqp_frame, VALUE),
    Target::new("amqp_message", amqp::amqp_message, VALUE),
    Target::new("amqp_client", amqp::amqp_client, CONVERSATION),
    Target::new("amqp_server", amqp::amqp_server, CONVERSATION),
    Target::new("mq_server", mq::mq_server, CONVERSATION),
    Target::new("mq_rfh2", mq::mq_rfh2, VALUE),
    Target::new("log_file", files::log_file, LOG),
    Target::new("directory_file", files::directory_file, LOG),
];

/// The target of this name.
pub fn find(name: &str) -> Option<Target> {
    TARGETS.iter().copied().find(|target| target.name == name)
}
