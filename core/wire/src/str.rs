//! A string of a message: a slice of the frame that it came in.

use barnabas_base::Text;
use bytes::Bytes;

/// UTF-8 text that shares its frame's memory. Cheap to clone; keeps the whole frame alive, so whoever keeps a name
/// longer than its request takes a copy with [`Str::text`].
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Str {
    // Always UTF-8: each constructor sees to it.
    bytes: Bytes,
}

impl Str {
    pub const fn from_static(text: &'static str) -> Self {
        Self { bytes: Bytes::from_static(text.as_bytes()) }
    }

    /// Takes `bytes` as they are if they are UTF-8; what is not becomes U+FFFD in a copy, as in Java's decoder, which
    /// Kafka uses.
    pub fn from_utf8_lossy(bytes: Bytes) -> Self {
        match String::from_utf8_lossy(&bytes) {
            std::borrow::Cow::Borrowed(_) => Self { bytes },
            std::borrow::Cow::Owned(text) => Self::from(text),
        }
    }

    // Checking again at each look would cost every map look-up and comparison a pass over the text.
    #[allow(unsafe_code)]
    pub fn as_str(&self) -> &str {
        // SAFETY: `bytes` is UTF-8 from construction on and never changes.
        unsafe { std::str::from_utf8_unchecked(&self.bytes) }
    }

    /// A copy that does not keep the frame alive.
    pub fn text(&self) -> Text {
        Text::from(self.as_str())
    }

    pub fn as_bytes(&self) -> &Bytes {
        &self.bytes
    }

    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }
}

impl std::ops::Deref for Str {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for Str {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl std::borrow::Borrow<str> for Str {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl From<&str> for Str {
    fn from(text: &str) -> Self {
        Self { bytes: Bytes::copy_from_slice(text.as_bytes()) }
    }
}

impl From<String> for Str {
    fn from(text: String) -> Self {
        Self { bytes: Bytes::from(text) }
    }
}

impl From<&String> for Str {
    fn from(text: &String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<&Text> for Str {
    fn from(text: &Text) -> Self {
        Self::from(text.as_str())
    }
}

impl From<Text> for Str {
    fn from(text: Text) -> Self {
        Self::from(text.as_str())
    }
}

impl From<&Str> for Text {
    fn from(text: &Str) -> Self {
        text.text()
    }
}

impl From<Str> for Text {
    fn from(text: Str) -> Self {
        text.text()
    }
}

impl PartialEq<str> for Str {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Str {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl PartialEq<Text> for Str {
    fn eq(&self, other: &Text) -> bool {
        self.as_str() == other.as_str()
    }
}

impl std::fmt::Debug for Str {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(self.as_str(), f)
    }
}

impl std::fmt::Display for Str {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
