//! HTTP as this listener speaks it: what is refused before a route runs, and in which form answers go out.
//!
//! | file | answers |
//! |---|---|
//! | `gate` | may this request come in: its host, its origin, its content type, its login |
//! | `idempotency` | was this change made before, and how was it answered |
//! | `callers` | the connection to the cluster as the caller |
//! | `routes` | which route is meant |
//! | `call` | what does a route's handler get |
//! | `body` | how are bodies read within limits and written |
//! | `percent` | which text is meant by `%2F` |
//! | `problem` | how is an error told, and by which status |
//! | `shape` | which schema have the documents of a route |
//! | `slow` | when does a connection that takes nothing end |

pub mod body;
pub mod call;
pub mod callers;
pub mod gate;
pub mod idempotency;
pub mod percent;
pub mod problem;
pub mod routes;
pub mod shape;
pub mod slow;
