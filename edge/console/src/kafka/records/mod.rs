//! Records: fetched, followed, produced, deleted.
//!
//! | file | answers |
//! |---|---|
//! | `decode` | which JSON are a key and a value, where a request asks for it |
//! | `fetch` | which records are stored from an offset on |
//! | `follow` | which records come, and how many were skipped |
//! | `json` | does a field of a JSON value pass a test |
//! | `needle` | which records contain a text, match an expression, or have such a field |
//! | `scan` | which records of a run of batches are looked for, and at how much was looked |
//! | `produce` | which offset has a record got |
//! | `delete` | which offset is the first after a deletion |

pub mod decode;
pub mod delete;
pub mod fetch;
pub mod follow;
pub mod json;
pub mod needle;
pub mod produce;
pub mod scan;
