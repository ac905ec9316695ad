//! Records: fetched, followed, produced, deleted.
//!
//! | file | answers |
//! |---|---|
//! | `fetch` | which records are stored from an offset on |
//! | `follow` | which records come, and how many were skipped |
//! | `needle` | which records contain a text |
//! | `produce` | which offset has a record got |
//! | `delete` | which offset is the first after a deletion |

pub mod delete;
pub mod fetch;
pub mod follow;
pub mod needle;
pub mod produce;
