//! The tools that show and change who may do what.

pub mod acls;
pub mod delegation_tokens;
