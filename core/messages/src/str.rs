//! A string of a message: a slice of the frame that it came in.

use barnabas_base::Text;
use bytes::Bytes;

/// Kafka's longest string, in bytes of UTF-8, in either form.
pub(crate) const STRING_BYTES_MAX: usize = i16::MAX as usize;

/// UTF-8 text that shares its frame's memory. Cheap to clone, but keeps the whole frame alive: copy
/// it with [`Str::text`] to keep a name longer than its request.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Str {
    // Always UTF-8: each constructor sees to it.
    bytes: Bytes,
}

impl Str {
    pub const fn from_static(text: &'static str) -> Self {
        Self { bytes: Bytes::from_static(text.as_bytes()) }
    }

    /// Takes `bytes` without a copy if they are UTF-8. Otherwise it copies them with U+FFFD for each invalid
    /// sequence, as Java's decoder does in Kafka.
    pub fn from_utf8_lossy(bytes: Bytes) -> Self {
        match String::from_utf8_lossy(&bytes) {
            std::borrow::Cow::Borrowed(_) => Self { bytes },
            std::borrow::Cow::Owned(text) => Self::from(text),
        }
    }

    /// The text. Checks again what construction has checked: a few nanoseconds for a name, and no `unsafe` in core.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes).expect("invariant: each constructor took UTF-8")
    }

    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
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

/// As `str` hashes, so that a map with these as keys can be asked with a `&str`.
impl std::hash::Hash for Str {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
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
        self.bytes == other.as_bytes()
    }
}

impl PartialEq<&str> for Str {
    fn eq(&self, other: &&str) -> bool {
        self.bytes == other.as_bytes()
    }
}

impl PartialEq<Str> for str {
    fn eq(&self, other: &Str) -> bool {
        other == self
    }
}

impl PartialEq<Text> for Str {
    fn eq(&self, other: &Text) -> bool {
        self.bytes == other.as_bytes()
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

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_base::Map;

    #[test]
    fn a_map_finds_it_by_its_text() {
        let mut map: Map<Str, i32> = Map::default();
        map.insert("topic".into(), 1);
        assert_eq!(map.get("topic"), Some(&1));
    }

    #[test]
    fn it_is_a_slice_where_it_can_be_and_a_copy_where_it_must() {
        let frame = Bytes::from_static("été".as_bytes());
        let text = Str::from_utf8_lossy(frame.clone());
        assert_eq!((text.as_bytes().as_ptr(), text.len()), (frame.as_ptr(), 5));
        assert_eq!(Str::from_utf8_lossy(frame.slice(..1)), "\u{fffd}");
        assert_eq!(text.text(), Text::from("été"));
    }
}
