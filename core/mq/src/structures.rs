//! The MQI's structures as they stand in calls and replies.
//!
//! | module | structure |
//! |---|---|
//! | `descriptor` | MQMD, a message's descriptor |
//! | `object` | MQOD, what is opened |
//! | `options` | MQGMO, MQPMO |

pub mod descriptor;
pub mod object;
pub mod options;
