//! `n,[a=authzid],^Aauth=Bearer token^A[key=value^A…]^A`, as Kafka's regular expressions read it; both sides.

use zeroize::Zeroizing;

use crate::{Refusal, Secret};

const SEPARATOR: char = '\u{1}';

/// The client's first message.
#[derive(Debug, PartialEq, Eq)]
pub struct FirstMessage<'a> {
    /// As sent: `=2C` and `=3D` are not decoded, as in Kafka.
    pub authzid: Option<&'a str>,
    pub token: &'a str,
}

impl<'a> FirstMessage<'a> {
    /// # Errors
    /// [`Refusal::Hidden`]: it is none, or has no token.
    pub fn parse(message: &'a [u8]) -> Result<Self, Refusal> {
        let invalid = || Refusal::hidden("Invalid OAUTHBEARER client first message");
        let text = std::str::from_utf8(message).map_err(|_| invalid())?;
        let (header, pairs) = text.split_once(SEPARATOR).ok_or_else(invalid)?;
        let header = header.strip_prefix("n,").and_then(|rest| rest.strip_suffix(',')).ok_or_else(invalid)?;
        let authzid = match header {
            "" => None,
            named => Some(named.strip_prefix("a=").filter(|name| is_name(name)).ok_or_else(invalid)?),
        };
        let pairs = pairs.strip_suffix(SEPARATOR).ok_or_else(invalid)?;
        let mut auth = None;
        for pair in pairs.split_terminator(SEPARATOR) {
            let (key, value) = pair.split_once('=').filter(|pair| is_pair(*pair)).ok_or_else(invalid)?;
            if key == "auth" {
                auth = Some(value);
            }
        }
        if !pairs.is_empty() && !pairs.ends_with(SEPARATOR) {
            return Err(invalid());
        }
        let auth = auth.ok_or_else(|| {
            Refusal::hidden("Invalid OAUTHBEARER client first message: 'auth' not specified")
        })?;
        let (scheme, token) = auth.split_once(' ').ok_or_else(invalid)?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(Refusal::hidden("Invalid scheme in OAUTHBEARER client first message"));
        }
        let token = token.trim_start_matches(' ');
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if token.is_empty() || !token.bytes().all(is_token) {
            return Err(invalid());
        }
        Ok(Self { authzid, token })
    }
}

/// The client's first message.
pub fn client_message(token: &Secret, extensions: &[(String, String)]) -> Zeroizing<Vec<u8>> {
    let mut message = Zeroizing::new(b"n,,\x01auth=Bearer ".to_vec());
    message.extend_from_slice(token.bytes());
    message.push(1);
    for (key, value) in extensions {
        message.extend_from_slice(format!("{key}={value}\x01").as_bytes());
    }
    message.push(1);
    message
}

fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| (1..=0x7f).contains(&byte) && byte != b',';
    let mut parts = name.split('=');
    !name.is_empty()
        && name.bytes().all(is_plain)
        && parts.next().is_some()
        && parts.all(|part| part.starts_with("2C") || part.starts_with("3D"))
}

fn is_pair((key, value): (&str, &str)) -> bool {
    let is_printed = |byte: u8| (0x20..=0x7e).contains(&byte) || matches!(byte, b'\t' | b'\r' | b'\n');
    !key.is_empty()
        && key.bytes().all(|byte| byte.is_ascii_alphabetic())
        && !value.is_empty()
        && value.bytes().all(is_printed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_message_of_kafkas_clients_is_read() {
        let read = |text: &'static str| FirstMessage::parse(text.as_bytes()).ok();
        let token = "a.b-_C.9";
        let plain = FirstMessage { authzid: None, token };
        assert_eq!(read("n,,\u{1}auth=Bearer a.b-_C.9\u{1}\u{1}"), Some(plain));
        assert_eq!(
            read("n,a=me,\u{1}auth=bearer   a.b-_C.9\u{1}traceId=1 2\u{1}\u{1}"),
            Some(FirstMessage { authzid: Some("me"), token })
        );
        let made = client_message(&Secret::from("t.t."), &[("x".to_owned(), "y".to_owned())]);
        assert_eq!(FirstMessage::parse(&made).map(|first| first.token), Ok("t.t."));
    }

    #[test]
    fn malformed_first_message_is_refused() {
        for text in [
            "",
            "n,,",
            "n,,\u{1}",
            "n,,\u{1}\u{1}",
            "n,,\u{1}auth=Bearer a\u{1}",
            "n,,\u{1}auth=Bearer a",
            "n,,\u{1}auth=Bearer \u{1}\u{1}",
            "n,,\u{1}auth=Bearer a b\u{1}\u{1}",
            "n,,\u{1}auth=Basic a\u{1}\u{1}",
            "n,,\u{1}other=1\u{1}\u{1}",
            "n,,\u{1}auth=Bearer a\u{1}k1=v\u{1}\u{1}",
            "n,,\u{1}auth=Bearer a\u{1}k=\u{1}\u{1}",
            "y,,\u{1}auth=Bearer a\u{1}\u{1}",
            "n,a=,\u{1}auth=Bearer a\u{1}\u{1}",
            "n,a=a=b,\u{1}auth=Bearer a\u{1}\u{1}",
            "n,\u{1}auth=Bearer a\u{1}\u{1}",
        ] {
            assert!(FirstMessage::parse(text.as_bytes()).is_err(), "{text:?}");
        }
    }
}
