//! What is fed with hostile bytes, and what must hold whatever they are.
//!
//! Each target is a function over bytes: no panic, no allocation beyond [`limit`], and what was understood says the same
//! after a round trip. `lab/fuzz/runner` lets libFuzzer search for bytes that break this; `replay` runs what it once
//! found (and a few seeds) in the ordinary tests.

mod files;
pub mod limit;
mod messages;
mod records;
mod settings;

/// A target's name and its work.
pub type Target = (&'static str, fn(&[u8]));

/// All targets. The first byte or two often choose a key, a version or a codec.
pub const TARGETS: &[Target] = &[
    ("frame", messages::frame),
    ("request", messages::request),
    ("response", messages::response),
    ("metadata_record", messages::metadata_record),
    ("coordinator_record", messages::coordinator_record),
    ("embedded_protocol", messages::embedded_protocol),
    ("batch", records::batch),
    ("old_message_set", records::old_message_set),
    ("produce", records::produce),
    ("gzip", records::gzip),
    ("snappy", records::snappy),
    ("lz4", records::lz4),
    ("zstd", records::zstd),
    ("config_value", settings::config_value),
    ("log_file", files::log_file),
    ("directory_file", files::directory_file),
];

/// The target of this name.
pub fn find(name: &str) -> Option<Target> {
    TARGETS.iter().copied().find(|target| target.0 == name)
}
