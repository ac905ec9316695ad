//! INITIAL_DATA, which both ends of a channel send first: where its fields are, and the level that is spoken here.

/// The level of formats and protocols that is spoken: that of IBM MQ 7.5. From 13 on passwords may be protected, which
/// is not here.
pub const FAP_LEVEL: u8 = 12;

/// Places of fields.
pub mod at {
    pub const FAP: usize = 4;
    pub const ERRORS: usize = 7;
    pub const BATCH: usize = 10;
    pub const SEGMENT_BYTES: usize = 12;
    pub const MESSAGE_BYTES: usize = 16;
    pub const CAPABILITIES_2: usize = 44;
    pub const CCSID: usize = 46;
    pub const QUEUE_MANAGER: usize = 48;
    pub const HEARTBEAT: usize = 96;
    pub const ERRORS_2: usize = 102;
    pub const HEADER_COMPRESSION: usize = 104;
    pub const MESSAGE_COMPRESSION: usize = 106;
    pub const CONVERSATIONS: usize = 128;
    pub const CAPABILITIES_3: usize = 132;
    pub const PROCESS: usize = 136;
    pub const PRODUCT: usize = 148;
    pub const IDENTIFIER: usize = 160;
    pub const PROTECTION: usize = 208;
    pub const END: usize = 240;
}
