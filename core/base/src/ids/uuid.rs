//! Kafka's 128-bit ids and their text form: 22 letters of unpadded URL-safe base64.

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// A 128-bit id, in the order of its bytes on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Uuid(pub [u8; 16]);

/// A topic's identity: a topic deleted and made again under the same name has another one.
pub type TopicId = Uuid;
/// A log directory's identity (KIP-858).
pub type DirectoryId = Uuid;

impl Uuid {
    /// "No id": all zero.
    pub const ZERO: Self = Self([0; 16]);
    /// The id of `__cluster_metadata`.
    pub const METADATA_TOPIC: Self = Self::reserved(1);
    /// A replica whose directory was not yet known when the cluster moved to directory ids.
    pub const DIRECTORY_MIGRATING: Self = Self::reserved(0);
    /// A replica that no directory was chosen for.
    pub const DIRECTORY_UNASSIGNED: Self = Self::reserved(1);
    /// A replica whose directory failed.
    pub const DIRECTORY_LOST: Self = Self::reserved(2);

    const fn reserved(low: u8) -> Self {
        let mut bytes = [0; 16];
        bytes[15] = low;
        Self(bytes)
    }

    pub fn is_zero(&self) -> bool {
        self.0 == [0; 16]
    }

    /// A version-4 UUID from 16 random bytes that the caller drew, never one that Kafka reserves.
    ///
    /// The first letter of the text form is never `-`, which a command line would take for an option (Kafka
    /// `Uuid.randomUuid` draws again for the same reason).
    pub fn from_random(mut bytes: [u8; 16]) -> Self {
        bytes[6] = (bytes[6] & 0x0f) | 0x40;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        if bytes[0] >> 2 == 62 {
            bytes[0] ^= 0x80;
        }
        Self(bytes)
    }

    /// Reads the text form. `None` for anything but 22 letters of base64, unpadded (or padded with `==`). The four bits
    /// that are left over may be anything, as in Kafka (Java's `Base64`). Cluster ids in use have them, such as
    /// MkU3OEVBNTcwNTJENDM2Qk.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_suffix("==").unwrap_or(text).as_bytes();
        if text.len() != 22 {
            return None;
        }
        let mut bits: u32 = 0;
        let mut held = 0;
        let mut bytes = [0u8; 16];
        let mut filled = 0;
        for letter in text {
            let value = LETTERS.iter().position(|known| known == letter)? as u32;
            bits = (bits << 6) | value;
            held += 6;
            if held >= 8 {
                held -= 8;
                bytes[filled] = (bits >> held) as u8;
                filled += 1;
                bits &= (1 << held) - 1;
            }
        }
        (filled == 16).then_some(Self(bytes))
    }
}

impl std::fmt::Display for Uuid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = String::with_capacity(22);
        for chunk in self.0.chunks(3) {
            let padded = [chunk[0], chunk.get(1).copied().unwrap_or(0), chunk.get(2).copied().unwrap_or(0)];
            let bits = u32::from_be_bytes([0, padded[0], padded[1], padded[2]]);
            for position in 0..=chunk.len() {
                text.push(LETTERS[(bits >> (18 - 6 * position) & 63) as usize] as char);
            }
        }
        f.write_str(&text)
    }
}

impl std::fmt::Debug for Uuid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metadata_topic_reads_as_kafka_prints_it() {
        assert_eq!(Uuid::METADATA_TOPIC.to_string(), "AAAAAAAAAAAAAAAAAAAAAQ");
        assert_eq!(Uuid::parse("AAAAAAAAAAAAAAAAAAAAAQ"), Some(Uuid::METADATA_TOPIC));
    }

    #[test]
    fn text_and_bytes_are_equal_both_ways() {
        for first in 0..=255u8 {
            let id = Uuid([first; 16]);
            assert_eq!(Uuid::parse(&id.to_string()), Some(id));
            let random = Uuid::from_random([first; 16]);
            assert!(!random.to_string().starts_with('-'), "{random}");
        }
    }

    #[test]
    fn what_is_no_id_is_refused() {
        for text in
            ["", "AAAA", "AAAAAAAAAAAAAAAAAAAAA!", "AAAAAAAAAAAAAAAAAAAAA=", "AAAAAAAAAAAAAAAAAAAAAAA"]
        {
            assert_eq!(Uuid::parse(text), None, "{text}");
        }
    }

    #[test]
    fn bits_left_over_are_of_no_consequence() {
        let id = Uuid::parse("MkU3OEVBNTcwNTJENDM2Qk").expect("an id");
        assert_eq!(id.to_string(), "MkU3OEVBNTcwNTJENDM2Qg");
        assert_eq!(id.0, *b"2E78EA57052D436B");
        assert_eq!(
            Uuid::parse("AAAAAAAAAAAAAAAAAAAAAB"),
            Some(Uuid::parse("AAAAAAAAAAAAAAAAAAAAAA").expect("zero"))
        );
    }
}
