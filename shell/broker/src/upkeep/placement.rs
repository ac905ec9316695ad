//! In which log directory each replica of this broker lies, and how the controller learns of it.
//!
//! | file | answers |
//! |---|---|
//! | `placement/abandon.rs` | which partition's records has the operator given up |
//! | `placement/locate.rs` | where does this partition lie, or where may it begin |
//! | `placement/lost.rs` | what becomes of replicas whose directory was replaced |
//! | `placement/reports.rs` | how does the controller learn of directories |

pub mod abandon;
pub mod locate;
pub mod lost;
pub mod reports;
