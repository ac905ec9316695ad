//! What a node is, by its operator's keys: roles, names, directories, listeners, quorum. Every value is judged before
//! anything is touched.
//!
//! Keys, types, defaults and reasons are core/metadata's `config`; this crate reads the operator's file and command
//! line with them.
//!
//! | file | answers |
//! |---|---|
//! | `settings` | which keys are set, by the file or the command line |
//! | `values` | may these values be, each and together |
//! | `explain` | what becomes of a key here |
//! | `endpoint` | what does `NAME://host:port` say |
//! | `otlp` | where are metrics sent as OTLP |
//! | `sasl` | how does each listener authenticate, and what does this node log in with |
//! | `secret_files` | which files hold secrets |
//! | `insecure` | may its listeners be open, and which settings protect nothing |
//! | `machine` | what may each part open, and which values does the machine not hold |
//! | `security_init` | what does `barnabas security init` make |
//! | `node_config` | what is the node, made of its keys |
//! | `node_config/listeners` | which sockets does it open, and what are others told |
//! | `node_config/follow` | which keys follow an override of `listeners` |
//!
//! It does not know: files (the caller reads them), sockets, how a directory is formatted, values that change while the
//! node runs (core/metadata's `config`).

mod endpoint;
mod explain;
pub mod insecure;
pub mod machine;
mod node_config;
pub mod otlp;
pub mod sasl;
pub mod secret_files;
pub mod security_init;
mod settings;
mod values;

pub use endpoint::{
    Endpoint, EndpointError, ListenerName, ProtocolMap, SecurityProtocol, parse_endpoints, parse_protocol_map,
};
pub use explain::{keys_text, table_text};
pub use node_config::{Listener, Listeners, NodeConfig, StaticVoter};
pub use settings::{ConfigError, Settings};
pub use values::check as check_values;
