//! The chores as functions, so that the ordinary tests run them too.

pub mod generate;
pub mod tidy;
