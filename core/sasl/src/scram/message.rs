//! SCRAM's messages ↔ text. They are ASCII, attributes parted by commas.
//!
//! A message is kept as it came: what both sides sign are the bytes on the wire, not what was understood of them. Kafka
//! signs its own rendering, which equals the bytes for every client that sends at most one extension.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};

use crate::Refusal;

/// A client's message. What a server keeps of it until the next one comes is bounded by it. The longest name and
/// authorization id that a record can hold have a place in it. Kafka bounds neither this nor the nonce, except by
/// `sasl.server.max.receive.size`.
const CLIENT_BYTES_MAX: usize = 16 * 1024;
/// The client's own nonce, which the challenge repeats. Java's has 25 or so bytes.
const NONCE_BYTES_MAX: usize = 256;

/// Java's `Base64.getDecoder`: padding required, unused bits ignored.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

pub(super) fn to_base64(bytes: &[u8]) -> String {
    BASE64.encode(bytes)
}

/// `n,[a=authzid],n=user,r=nonce[,extensions]`
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ClientFirst {
    /// `n,[a=authzid],`: what the final message's `c=` must repeat.
    pub gs2_header: String,
    pub bare: String,
    pub authzid: Option<String>,
    pub user: String,
    pub nonce: String,
    pub token_auth: bool,
}

/// `r=nonce,s=salt,i=iterations[,extensions]`
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ServerFirst {
    pub nonce: String,
    pub salt: Vec<u8>,
    pub iterations: u32,
}

/// `c=channel,r=nonce[,extensions],p=proof`
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ClientFinal {
    pub channel: Vec<u8>,
    pub nonce: String,
    /// All before `,p=`.
    pub without_proof: String,
    pub proof: Vec<u8>,
}

/// `v=signature` or `e=error`
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ServerFinal {
    Signature(Vec<u8>),
    Error(String),
}

impl ClientFirst {
    pub fn parse(message: &[u8]) -> Result<Self, Refusal> {
        Self::understand(message).ok_or_else(|| Refusal::hidden("Invalid SCRAM client first message format"))
    }

    fn understand(message: &[u8]) -> Option<Self> {
        let text = ascii(bounded(message)?)?;
        let (authzid, bare) = match text.strip_prefix("n,,") {
            Some(bare) => (None, bare),
            None => {
                let (authzid, bare) = text.strip_prefix("n,a=")?.split_once(',')?;
                (Some(unescape(authzid)?), bare)
            }
        };
        let mut attributes = bare.split(',');
        // RFC 5802 §5.1: an unknown mandatory extension, `m=`, fails the login.
        let user = unescape(attributes.next()?.strip_prefix("n=")?)?;
        let nonce = nonce(attributes.next()?).filter(|nonce| nonce.len() <= NONCE_BYTES_MAX)?;
        let mut token_auth = false;
        for attribute in attributes {
            let (name, value) = extension(attribute)?;
            if name == "tokenauth" {
                token_auth = value.eq_ignore_ascii_case("true");
            }
        }
        let gs2_header = text[..text.len() - bare.len()].to_owned();
        Some(Self { gs2_header, bare: bare.to_owned(), authzid, user, nonce: nonce.to_owned(), token_auth })
    }
}

impl ServerFirst {
    pub fn parse(message: &[u8]) -> Option<Self> {
        let mut attributes = ascii(message)?.split(',');
        let nonce = nonce(attributes.next()?)?.to_owned();
        let salt = BASE64.decode(attributes.next()?.strip_prefix("s=")?).ok()?;
        let digits = attributes.next()?.strip_prefix("i=")?;
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let iterations = digits.parse().ok().filter(|&count| count > 0)?;
        attributes.try_for_each(|attribute| extension(attribute).map(drop))?;
        Some(Self { nonce, salt, iterations })
    }
}

impl ClientFinal {
    pub fn parse(message: &[u8]) -> Result<Self, Refusal> {
        Self::understand(message).ok_or_else(|| Refusal::hidden("Invalid SCRAM client final message format"))
    }

    fn understand(message: &[u8]) -> Option<Self> {
        let (without_proof, proof) = ascii(bounded(message)?)?.rsplit_once(",p=")?;
        let mut attributes = without_proof.split(',');
        let channel = BASE64.decode(attributes.next()?.strip_prefix("c=")?).ok()?;
        let nonce = nonce(attributes.next()?)?.to_owned();
        attributes.try_for_each(|attribute| extension(attribute).map(drop))?;
        let proof = BASE64.decode(proof).ok()?;
        Some(Self { channel, nonce, without_proof: without_proof.to_owned(), proof })
    }
}

impl ServerFinal {
    pub fn parse(message: &[u8]) -> Option<Self> {
        let mut attributes = ascii(message)?.split(',');
        let first = attributes.next()?;
        attributes.try_for_each(|attribute| extension(attribute).map(drop))?;
        match first.strip_prefix("v=") {
            Some(signature) => Some(Self::Signature(BASE64.decode(signature).ok()?)),
            None => {
                let error = first.strip_prefix("e=")?;
                (!error.is_empty() && !error.contains('=')).then(|| Self::Error(error.to_owned()))
            }
        }
    }
}

/// `,` and `=` in a name, as RFC 5802 writes them.
pub(super) fn escape(name: &str) -> String {
    name.replace('=', "=3D").replace(',', "=2C")
}

/// A `saslname`: not empty, and every `=` begins `=2C` or `=3D`.
fn unescape(name: &str) -> Option<String> {
    let mut parts = name.split('=');
    let mut plain = parts.next()?.to_owned();
    for part in parts {
        let (mark, rest) = part.split_at_checked(2)?;
        plain.push(match mark {
            "2C" => ',',
            "3D" => '=',
            _ => return None,
        });
        plain.push_str(rest);
    }
    (!plain.is_empty()).then_some(plain)
}

/// `r=` and printable characters.
fn nonce(attribute: &str) -> Option<&str> {
    let nonce = attribute.strip_prefix("r=")?;
    (!nonce.is_empty() && nonce.bytes().all(|byte| byte.is_ascii_graphic())).then_some(nonce)
}

/// Letters, `=`, at least one character.
fn extension(attribute: &str) -> Option<(&str, &str)> {
    let (name, value) = attribute.split_once('=')?;
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphabetic());
    (is_name && !value.is_empty()).then_some((name, value))
}

fn bounded(message: &[u8]) -> Option<&[u8]> {
    (message.len() <= CLIENT_BYTES_MAX).then_some(message)
}

fn ascii(message: &[u8]) -> Option<&str> {
    let is_safe = message.iter().all(|byte| (1..=0x7f).contains(byte));
    is_safe.then(|| std::str::from_utf8(message).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::{
        CLIENT_BYTES_MAX, ClientFinal, ClientFirst, NONCE_BYTES_MAX, ServerFinal, ServerFirst, escape,
    };

    #[test]
    fn client_first_messages_are_read_as_kafka_reads_them() {
        let good = |message: &str, user: &str, authzid: Option<&str>, token_auth: bool| {
            let first = ClientFirst::parse(message.as_bytes()).expect(message);
            assert_eq!(
                (first.user.as_str(), first.authzid.as_deref(), first.token_auth),
                (user, authzid, token_auth)
            );
            assert_eq!(format!("{}{}", first.gs2_header, first.bare), message);
        };
        good("n,,n=user,r=abc", "user", None, false);
        good("n,,n=test1=2Ctest2=3D,r=abc", "test1,test2=", None, false);
        good("n,a=user,n=user,r=abc", "user", Some("user"), false);
        good("n,a=a=2Cb,n=user,r=abc", "user", Some("a,b"), false);
        good("n,,n=id,r=abc,tokenauth=true", "id", None, true);
        good("n,,n=id,r=abc,tokenauth=TRUE,other=x=y", "id", None, true);
        good("n,,n=id,r=abc,tokenauth=no", "id", None, false);
    }

    #[test]
    fn malformed_client_first_messages_are_refused() {
        for message in [
            "",
            "n",
            "n,",
            "n,,",
            "n,,n=user",
            "n,,n=user,r=",
            "n,,n=,r=abc",
            "n,,n=a=2D,r=abc",
            "n,,n=a=,r=abc",
            "n,,n=a=2c,r=abc",
            "y,,n=user,r=abc",
            "p=tls-unique,,n=user,r=abc",
            "n,x,n=user,r=abc",
            "n,a=,n=user,r=abc",
            "n,,m=x,n=user,r=abc",
            "n,,n=user,r=a c",
            "n,,n=user,r=abc,",
            "n,,n=user,r=abc,1=2",
            "n,,n=user,r=abc,x=",
            "n,,n=us\0er,r=abc",
            "n,,n=jürgen,r=abc",
            "n,,r=abc,n=user",
            "n,,n==2,r=abc",
        ] {
            assert!(ClientFirst::parse(message.as_bytes()).is_err(), "{message:?}");
        }
    }

    #[test]
    fn long_client_messages_are_refused() {
        let first = |name: usize, nonce: usize, more: usize| {
            let (name, nonce, more) = ("n".repeat(name), "r".repeat(nonce), "x".repeat(more));
            ClientFirst::parse(format!("n,a={name},n={name},r={nonce},x={more}").as_bytes()).is_ok()
        };
        assert!(first(1, NONCE_BYTES_MAX, 1) && first(4096, 30, 1));
        assert!(!first(1, NONCE_BYTES_MAX + 1, 1) && !first(1, 10_000, 1));
        assert!(!first(CLIENT_BYTES_MAX, 1, 1) && !first(1, 1, CLIENT_BYTES_MAX));
        let last = |more: usize| {
            ClientFinal::parse(format!("c=biws,r=abc,x={},p=AAECAw==", "x".repeat(more)).as_bytes()).is_ok()
        };
        assert!(last(1000) && !last(CLIENT_BYTES_MAX));
    }

    #[test]
    fn server_first_messages_are_read() {
        let first = ServerFirst::parse(b"r=abcdef,s=QSXCR+Q6sek8bf92,i=4096,x=y").unwrap();
        assert_eq!((first.nonce.as_str(), first.salt.len(), first.iterations), ("abcdef", 12, 4096));
        for message in [
            "r=a,s=QSXC,i=0",
            "r=a,s=QSXC,i=-1",
            "r=a,s=QSXC,i=+1",
            "r=a,s=QSXC,i=",
            "r=a,s=QSXC,i=99999999999",
            "r=a,s=QSX,i=4096",
            "r=a,s=QSXC",
            "s=QSXC,r=a,i=4096",
            "m=x,r=a,s=QSXC,i=4096",
        ] {
            assert_eq!(ServerFirst::parse(message.as_bytes()), None, "{message:?}");
        }
    }

    #[test]
    fn final_messages_are_read() {
        let last = ClientFinal::parse(b"c=biws,r=abc,x=p,p=AAECAw==").unwrap();
        assert_eq!(
            (last.channel.as_slice(), last.proof.as_slice()),
            (b"n,,".as_slice(), [0, 1, 2, 3].as_slice())
        );
        assert_eq!(last.without_proof, "c=biws,r=abc,x=p");
        for message in
            ["c=biws,r=abc", "c=biw,r=abc,p=AAECAw==", "c=biws,p=AAECAw==", "r=abc,c=biws,p=AAECAw=="]
        {
            assert!(ClientFinal::parse(message.as_bytes()).is_err(), "{message:?}");
        }
        assert_eq!(ServerFinal::parse(b"v=AAECAw=="), Some(ServerFinal::Signature(vec![0, 1, 2, 3])));
        assert_eq!(ServerFinal::parse(b"e=other-error"), Some(ServerFinal::Error("other-error".into())));
        assert_eq!(ServerFinal::parse(b"x=1"), None);
        assert_eq!(ServerFinal::parse(b"e=a=b"), None);
    }

    #[test]
    fn names_are_escaped_in_the_order_of_the_rfc() {
        assert_eq!(escape("a,b=c"), "a=2Cb=3Dc");
        assert_eq!(escape("=2C"), "=3D2C");
    }
}
