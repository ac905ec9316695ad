//! Names: of clients and services, and the users that they are.
//!
//! | file | answers |
//! |---|---|
//! | `principal` | which name does a text make |
//! | `rules` | which user is a principal |

mod principal;
mod rules;

pub use principal::Principal;
pub use rules::Rules;
