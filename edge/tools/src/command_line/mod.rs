//! What the tools' command lines have in common.
//!
//! | file | answers |
//! |---|---|
//! | `args` | how a flag is declared, read and refused beside others |
//! | `completions` | completions for shells, and man pages |
//! | `connection` | which brokers or controllers are meant, and how they are reached |
//! | `properties` | what a properties file or `key=value` flags say |

pub mod args;
pub mod completions;
pub mod connection;
pub mod install_links;
pub mod properties;
