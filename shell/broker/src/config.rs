//! What the operator set, and what the process itself is: command line, properties, log, descriptors. It knows
//! nothing of the node.
//!
//! | file | answers |
//! |---|---|
//! | `config/args.rs` | which command runs, with which options |
//! | `config/descriptors.rs` | how many files and connections may be open |
//! | `config/explain.rs` | what becomes of a key |
//! | `config/log_lines.rs` | where log lines go |
//! | `config/logging.rs` | which log lines are written |
//! | `config/node_config.rs` | what the node is, made of its keys |
//! | `config/properties.rs` | what a properties file says |
//! | `config/settings.rs` | which keys are set |
//! | `config/values.rs` | may these values be, each and together |
//! | `config/version.rs` | which build is this |

pub mod args;
pub mod descriptors;
pub mod explain;
mod log_lines;
pub mod logging;
pub mod node_config;
pub mod properties;
pub mod settings;
pub mod values;
pub mod version;
