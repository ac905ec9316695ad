//! Record formats 0 and 1, for clients older than Kafka 0.11.
//!
//! | file | answers |
//! |---|---|
//! | `old_formats/down_convert.rs` | how are stored batches made messages |
//! | `old_formats/message_set.rs` | how are messages walked, checked and made a batch |

pub(crate) mod down_convert;
pub(crate) mod message_set;
