//! The properties of each API that decoding needs: versions, header versions, listeners.
//!
//! The table itself is generated ([`ApiKey`]); these are the questions to it.

use crate::generated::{APIS, Api, ApiKey};
use crate::message::VersionRange;

impl ApiKey {
    fn api(self) -> &'static Api {
        &APIS[self.place()]
    }

    /// The API with this number; `None` for one that Kafka 4.4 does not have.
    pub fn from_number(number: i16) -> Option<Self> {
        Self::ALL.binary_search_by_key(&number, |key| key.number()).ok().map(|place| Self::ALL[place])
    }

    pub const fn number(self) -> i16 {
        self as i16
    }

    /// Kafka's name, for example `Produce`.
    pub fn name(self) -> &'static str {
        self.api().name
    }

    /// All versions that can be read and written: Kafka 3.9's oldest to Kafka 4.4's newest.
    pub fn versions(self) -> VersionRange {
        self.api().versions
    }

    /// The versions that Kafka advertises: all but a newest one that may still change.
    pub fn stable_versions(self) -> VersionRange {
        let VersionRange { min, max } = self.versions();
        VersionRange::new(min, if self.top_unstable() { max - 1 } else { max })
    }

    pub fn flexible_since(self) -> Option<i16> {
        self.api().flexible_since
    }

    pub fn is_flexible(self, version: i16) -> bool {
        self.flexible_since().is_some_and(|since| version >= since)
    }

    /// Whether the newest version may still change (Kafka's `latestVersionUnstable`).
    pub fn top_unstable(self) -> bool {
        self.api().top_unstable
    }

    /// Whether brokers answer it.
    pub fn on_broker(self) -> bool {
        self.api().on_broker
    }

    /// Whether controllers answer it.
    pub fn on_controller(self) -> bool {
        self.api().on_controller
    }

    /// The version of the header in front of a request.
    pub fn request_header_version(self, version: i16) -> i16 {
        if self.is_flexible(version) { 2 } else { 1 }
    }

    /// The version of the header in front of a response.
    ///
    /// Always 0 for ApiVersions: a client that asked in a version that the broker does not know must be able to read
    /// that from the answer (KIP-511).
    pub fn response_header_version(self, version: i16) -> i16 {
        if self == Self::ApiVersions || !self.is_flexible(version) { 0 } else { 1 }
    }
}

impl std::fmt::Display for ApiKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
