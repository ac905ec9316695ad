//! Changes: topics made, changed, emptied and deleted, offsets of groups reset. With `dryRun=true` each says what it
//! would do and changes nothing. Each names the command line that does the same.
//!
//! | file | changes |
//! |---|---|
//! | `topics` | make, delete |
//! | `configs` | set and reset configs of a topic |
//! | `records` | delete the records before an offset, or all |
//! | `offsets` | reset what a group has committed |
//! | `command` | the command line |
//!
//! The broker authorizes the caller, and its audit log names the caller. A dry run asks the broker too where the
//! protocol can validate a request. For deletions it asks for the caller's rights.

mod command;
pub mod configs;
pub mod offsets;
pub mod records;
pub mod topics;

use crate::http::call::Call;
use crate::http::problem::Problem;
use crate::http::shape::{Content, Doc, Param, Shape};

const DRY_RUN: Param =
    Param { name: "dryRun", shape: Shape::Bool, about: "Only says what the change would do" };

/// What a change is described as.
const fn doc(summary: &'static str, body: Option<Shape>, answer: Shape) -> Doc {
    Doc { summary, query: &[DRY_RUN], body, status: 200, content: Content::Json(answer) }
}

/// # Errors
/// A value that is neither true nor false: what is meant as a dry run must not be done.
fn is_dry_run(call: &Call) -> Result<bool, Problem> {
    match call.at.query.iter().find(|pair| pair.0.eq_ignore_ascii_case("dryrun")) {
        None => Ok(false),
        Some((name, value)) => match (name.as_str(), value.as_str()) {
            ("dryRun", "true") => Ok(true),
            ("dryRun", "false") => Ok(false),
            _ => Err(Problem::bad("dryRun takes true or false")),
        },
    }
}
