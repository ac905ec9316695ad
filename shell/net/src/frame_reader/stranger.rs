//! What speaks another protocol than Kafka's, told by its first four bytes.
//!
//! All of these are lengths above 300 MiB: looked at where a length is above what socket.request.max.bytes allows.

use std::fmt;

/// A protocol that a first frame looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stranger {
    Tls,
    Http,
    Ssh,
}

impl Stranger {
    pub(super) fn of(word: &[u8; 4]) -> Option<Self> {
        match word {
            // A record of the handshake, of SSL 3.0 or TLS 1.x (RFC 8446, 5.1).
            [0x16, 3, 0..=4, _] => Some(Self::Tls),
            b"GET " | b"POST" | b"PUT " | b"HEAD" | b"DELE" | b"OPTI" | b"CONN" | b"PATC" | b"TRAC"
            | b"HTTP" | b"PRI " => Some(Self::Http),
            b"SSH-" => Some(Self::Ssh),
            _ => None,
        }
    }
}

impl fmt::Display for Stranger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tls => {
                "the peer speaks TLS (a ClientHello arrived), and this listener speaks Kafka's protocol without TLS"
            }
            Self::Http => {
                "the peer speaks HTTP, and this listener speaks Kafka's protocol. Metrics have an address of their own: metrics.listener"
            }
            Self::Ssh => "the peer speaks SSH, and this listener speaks Kafka's protocol",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_name_the_protocol() {
        let of = |bytes: &[u8]| Stranger::of(bytes.first_chunk().expect("four bytes"));
        assert_eq!(of(&[0x16, 3, 1, 2, 0]), Some(Stranger::Tls));
        assert_eq!(of(b"GET / HTTP/1.1"), Some(Stranger::Http));
        assert_eq!(of(b"POST /topics HTTP/1.1"), Some(Stranger::Http));
        assert_eq!(of(b"SSH-2.0-x"), Some(Stranger::Ssh));
        // Lengths of requests up to 300 MiB.
        assert_eq!(of(&[0, 0, 0, 20]), None);
        assert_eq!(of(&[0x12, 0xc0, 0, 0]), None);
    }
}
