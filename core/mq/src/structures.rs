//! The MQI's structures as they stand in calls and replies.
//!
//! | module | structure |
//! |---|---|
//! | `dates` | MQMD's dates and times |
//! | `descriptor` | MQMD, a message's descriptor |
//! | `object` | MQOD, what is opened |
//! | `options` | MQGMO, MQPMO |

pub mod dates;
pub mod descriptor;
pub mod object;
pub mod options;
