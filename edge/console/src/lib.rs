//! HTTP in front of a cluster: probes, Confluent's REST API v2 and v3, an API of our own and the console's page. It
//! reaches brokers through the Kafka protocol alone, so it runs inside a node (`console.listener`) and beside any
//! cluster (`barnabas console`).
//!
//! | module | answers |
//! |---|---|
//! | `listener` | which requests come in, how many at a time, and who answers them |
//! | `http` | what is refused before a route runs; how answers and errors are written |
//! | `probes` | does the process live, may it get traffic |
//! | `api` | `/api/v1`: what the page shows |
//! | `v3` | Confluent's REST API v3 |
//! | `proxy` | Confluent's REST API v2, and what Strimzi's bridge has beyond it |
//! | `page` | the console's page |
//! | `kafka` | the requests that the routes send |
//! | `logs` | the logs of the node that the console is in, as that node lends them |
//! | `schemas` | what the id of a schema stands for |
//! | `command` | `barnabas console` |
//!
//! Invariants:
//! 1. A request for data or a change goes to the broker as its caller: the broker's authorizer decides, and what it
//!    refuses is refused here with Kafka's error name.
//! 2. Everything is bounded: connections, heads, bodies, times, connections to brokers.
//! 3. It runs on a thread of its own, never on a worker; a search has one more, of low priority.
//! 4. What it reads of a log beside the protocol, it reads for a caller whom the broker lets fetch from that partition.

mod api;
mod command;
mod http;
mod kafka;
mod listener;
mod logs;
mod page;
mod probes;
mod proxy;
mod schemas;
mod v3;

pub use command::{cluster, command, run};
pub use listener::{BindError, CONNECTIONS_MAX, Console, Settings, bind, check_advertised, start};
pub use logs::{OwnLog, OwnLogs};
pub use probes::{Check, Standing};
pub use schemas::{Places, Registry};

/// The keys of the node's settings.
pub const KEY: &str = "console.listener";
pub const HOSTS: &str = "console.hosts";
pub const READ_ONLY: &str = "console.read.only";
pub const ADVERTISED: &str = "console.advertised.url";
pub const ADVERTISED_EXAMPLE: &str = "console.advertised.url=https://node1.example:8080";
/// `PLAINTEXT` or `SSL`.
pub const PROTOCOL: &str = "console.security.protocol";
/// A directory of schemas.
pub const SCHEMAS: &str = "console.schemas.dir";
pub const REGISTRY: &str = "console.schema.registry.url";
pub const REGISTRY_EXAMPLE: &str = "console.schema.registry.url=https://registry.example:8081";
/// User and password, with a colon between.
pub const REGISTRY_LOGIN: &str = "console.schema.registry.basic.auth.user.info";
pub const EXAMPLE: &str = "console.listener=127.0.0.1:8080";

/// The address that a value of [`KEY`] names; `None`: the node has no console.
pub fn address(value: Option<&str>) -> Option<&str> {
    value.filter(|address| !address.is_empty())
}
