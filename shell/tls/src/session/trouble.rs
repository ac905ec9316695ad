//! Why a session failed, in words that say what to change.
//!
//! A client and a server share them: each sentence holds for either side of the connection.

use rustls::{AlertDescription, CertificateError, Error, InvalidMessage};

/// `subject`: of the certificate that was refused, where one was.
pub fn words(error: &Error, subject: Option<&str>) -> String {
    let whose =
        subject.map_or_else(|| "the peer's certificate".to_owned(), |of| format!("the certificate of {of}"));
    match error {
        Error::InvalidCertificate(certificate) => of_certificate(certificate, &whose),
        Error::AlertReceived(alert) => of_alert(*alert),
        Error::InvalidMessage(InvalidMessage::InvalidContentType) => "the peer does not speak TLS".to_owned(),
        Error::NoCertificatesPresented => {
            "the peer showed no certificate, and ssl.client.auth=required asks for one".to_owned()
        }
        other => match subject {
            Some(_) => format!("{other} ({whose})"),
            None => other.to_string(),
        },
    }
}

fn of_certificate(error: &CertificateError, whose: &str) -> String {
    match error {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => format!(
            "{whose} is of an authority that is not trusted. Expected one of ssl.truststore.location or \
             ssl.truststore.certificates"
        ),
        CertificateError::Revoked => format!("{whose} is revoked, by a list of ssl.crl.location"),
        CertificateError::UnknownRevocationStatus => format!(
            "no list of ssl.crl.location is of the authority of {whose}. Add its list, or accept such certificates by \
             ssl.crl.missing=accept"
        ),
        CertificateError::ExpiredRevocationList | CertificateError::ExpiredRevocationListContext { .. } => {
            format!(
                "the revocation list of the authority of {whose} is past its next update. Replace its file in \
             ssl.crl.location, or accept expired lists by ssl.crl.expired=accept"
            )
        }
        CertificateError::Expired => format!("{whose} has expired"),
        CertificateError::ExpiredContext { time, not_after } => {
            let days = time.as_secs().saturating_sub(not_after.as_secs()) / 86_400;
            format!("{whose} has expired {days} days ago. Replace it, or set the clock of this machine")
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            format!("{whose} is not valid yet. Is the clock of this machine right?")
        }
        CertificateError::NotValidForNameContext { expected, presented } => {
            let names = if presented.is_empty() { "no host".to_owned() } else { names(presented) };
            format!(
                "{whose} is for {names}, and not for the host {}. Connect to one of its names, or issue it for this \
                 one as well. An empty ssl.endpoint.identification.algorithm leaves host names unchecked",
                expected.to_str()
            )
        }
        // webpki's error, which rustls passes on as it is.
        CertificateError::Other(other) if format!("{other:?}").contains("UnsupportedCertVersion") => format!(
            "{whose} is of X.509 version 1, without names of hosts, and not accepted. Issue it with version 3: with \
             subjectAltName (openssl x509 -req: -extfile)"
        ),
        other => format!("{whose} cannot be accepted: {other}"),
    }
}

/// rustls gives each name with its kind: `DnsName("broker1")`, `IpAddress(127.0.0.1)`.
fn names(presented: &[String]) -> String {
    let bare = |name: &String| {
        let inner = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
        inner.unwrap_or(name).trim_matches('"').to_owned()
    };
    presented.iter().map(bare).collect::<Vec<_>>().join(", ")
}

fn of_alert(alert: AlertDescription) -> String {
    let what = match alert {
        AlertDescription::CertificateRequired => {
            "the peer asks for a client certificate. Set ssl.keystore.location, or ssl.keystore.key and \
             ssl.keystore.certificate.chain"
        }
        AlertDescription::UnknownCA => "the peer does not trust the authority of our certificate",
        // The chain leads to an authority of a trusted one's name, with another key.
        AlertDescription::DecryptError => {
            "the peer does not trust the authority of our certificate, or a signature does not fit"
        }
        AlertDescription::CertificateExpired => "our certificate has expired, says the peer",
        AlertDescription::BadCertificate
        | AlertDescription::CertificateUnknown
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateRevoked => "the peer does not accept our certificate",
        AlertDescription::HandshakeFailure | AlertDescription::ProtocolVersion => {
            "no TLS version or cipher suite is common to both sides, or the peer asks for a client certificate. See \
             ssl.enabled.protocols, ssl.cipher.suites and ssl.keystore.location"
        }
        AlertDescription::UnrecognisedName => "the peer has no certificate for this host name",
        other => return format!("the peer ended it with the TLS alert {other:?}"),
    };
    what.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::pki_types::{ServerName, UnixTime};
    use std::time::Duration;

    #[test]
    fn refused_certificates_name_what_to_change() {
        let said = |error| words(&Error::InvalidCertificate(error), Some("CN=a"));
        assert!(said(CertificateError::UnknownIssuer).contains("ssl.truststore.location"));
        let at = |days: u64| UnixTime::since_unix_epoch(Duration::from_secs(days * 86_400));
        let expired = CertificateError::ExpiredContext { time: at(12), not_after: at(9) };
        assert!(said(expired).starts_with("the certificate of CN=a has expired 3 days ago"));
        let presented =
            ["DnsName(\"broker1\")", "IpAddress(10.0.0.2)", "broker3"].map(str::to_owned).to_vec();
        let expected = ServerName::try_from("localhost").expect("a name");
        let other = said(CertificateError::NotValidForNameContext { expected, presented });
        assert!(other.starts_with(
            "the certificate of CN=a is for broker1, 10.0.0.2, broker3, and not for the host localhost."
        ));
    }

    #[test]
    fn alerts_name_what_to_change() {
        let said = |alert| words(&Error::AlertReceived(alert), None);
        assert!(said(AlertDescription::CertificateRequired).contains("ssl.keystore.location"));
        assert_eq!(
            said(AlertDescription::InternalError),
            "the peer ended it with the TLS alert InternalError"
        );
    }
}
