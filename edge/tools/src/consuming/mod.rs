//! What the tools that read records have in common.
//!
//! | file | answers |
//! |---|---|
//! | `settings` | what Kafka's names for a consumer's configs mean here |
//! | `source` | where records of one topic or several come from, and what keeps them from coming |
//! | `member` | how a share of the partitions is kept: join, beat, commit, leave |

pub mod member;
pub mod settings;
pub mod source;
