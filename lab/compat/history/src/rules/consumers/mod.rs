//! What consumers and share groups are given, and what groups commit: A11, A12, A14, A15, A19.

pub mod a11_poll_skip;
pub mod a12_consumer_skip;
pub mod a14_committed_offset;
pub mod a15_watermark_regress;
pub mod a19_share_groups;
