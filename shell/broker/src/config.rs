//! What the process itself is: command line, log, descriptors. It knows nothing of the node. What the operator's keys
//! mean is core/config's.
//!
//! | file | answers |
//! |---|---|
//! | `config/args.rs` | which command runs, with which options |
//! | `config/descriptors.rs` | how many files and connections may be open |
//! | `config/explain.rs` | what becomes of a key |
//! | `config/logging.rs`, `config/logging/` | which log lines are written, what they look like, where they go |
//! | `config/machine.rs` | what is the machine called |
//! | `config/sasl.rs` | how listeners authenticate clients, what this node logs in with |
//! | `config/tls.rs` | what listeners and connections to other nodes have of TLS |
//! | `config/version.rs` | which build is this |

pub mod args;
pub mod descriptors;
pub mod explain;
pub mod logging;
pub mod machine;
pub mod sasl;
pub mod secret_files;
pub mod security_init;
pub mod tls;
pub mod version;
