//! Bytes that must not reach a log: zeroed when dropped, compared in constant time, never printed.

use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

/// A password, key or token.
///
/// Equality takes the same time wherever the bytes differ; only the lengths show.
#[derive(Clone)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// The bytes, for a computation. A copy of them is the caller's to zero.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The text, or `None` where the bytes are not UTF-8.
    pub fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }
}

impl From<Vec<u8>> for Secret {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Zeroizing::new(bytes))
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self::from(text.into_bytes())
    }
}

impl From<&[u8]> for Secret {
    fn from(bytes: &[u8]) -> Self {
        Self::from(bytes.to_vec())
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self::from(text.as_bytes())
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        bool::from(self.0.ct_eq(&other.0))
    }
}

impl Eq for Secret {}

impl std::fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("[hidden]")
    }
}

#[cfg(test)]
mod tests {
    use super::Secret;

    #[test]
    fn secret_in_debug_output_is_hidden() {
        let shown = format!("{:?}", Some(Secret::from("hunter2")));
        assert_eq!(shown, "Some([hidden])");
    }

    #[test]
    fn secrets_are_equal_by_their_bytes() {
        assert_eq!(Secret::from("a"), Secret::from("a"));
        assert_ne!(Secret::from("a"), Secret::from("b"));
        assert_ne!(Secret::from("a"), Secret::from("aa"));
    }
}
