//! `ssl.enabled.protocols` and `ssl.cipher.suites`: Java's names, and what this node speaks of them.
//!
//! TLS 1.3 and 1.2 with forward secrecy and authenticated encryption. What is older is left out with a line in the
//! log: a list that was written for Java goes on to work as long as something safe remains of it.

use crate::provider;
use barnabas_certificates::{TlsError, TlsSettings};
use rustls::crypto::CryptoProvider;
use rustls::{SupportedCipherSuite, SupportedProtocolVersion};

const PROTOCOLS: &str = "ssl.enabled.protocols";
const SUITES: &str = "ssl.cipher.suites";
/// Java's names of what it can speak and this node does not.
const OLD: [&str; 6] = ["SSLv2Hello", "SSLv3", "TLSv1", "TLSv1.1", "TLS", "SSL"];

/// The provider with the suites that the settings allow, the preferred one first.
pub fn provider(settings: &TlsSettings) -> Result<CryptoProvider, TlsError> {
    let mut provider = provider::provider();
    if settings.cipher_suites.is_empty() {
        // AES-128 first: SHA-256 has instructions of its own in processors, SHA-384 has not, and a handshake takes
        // dozens of hashes. TLS 1.3 asks every peer for this suite.
        provider.cipher_suites.sort_by_key(|suite| !java_name(suite).contains("_AES_128_GCM_"));
        return Ok(provider);
    }
    let rank = |suite: &SupportedCipherSuite| {
        let name = java_name(suite);
        settings.cipher_suites.iter().position(|wanted| *wanted == name)
    };
    provider.cipher_suites.retain(|suite| rank(suite).is_some());
    provider.cipher_suites.sort_by_key(rank);
    if provider.cipher_suites.is_empty() {
        return Err(TlsError::new(
            SUITES,
            "holds no suite that this node speaks: TLS 1.3's, and TLS 1.2's with ECDHE and GCM or ChaCha20",
            format!("{SUITES}=TLS_AES_256_GCM_SHA384,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"),
        ));
    }
    Ok(provider)
}

/// # Errors
/// A name that is no protocol's, or none that this node speaks.
pub fn versions(settings: &TlsSettings) -> Result<Vec<&'static SupportedProtocolVersion>, TlsError> {
    let mut versions = Vec::new();
    let example = format!("{PROTOCOLS}=TLSv1.2,TLSv1.3");
    for name in &settings.protocols {
        match name.as_str() {
            "TLSv1.3" => versions.push(&rustls::version::TLS13),
            "TLSv1.2" => versions.push(&rustls::version::TLS12),
            old if OLD.contains(&old) => {}
            other => {
                return Err(TlsError::new(PROTOCOLS, format!("'{other}' is no protocol of TLS"), example));
            }
        }
    }
    if versions.is_empty() {
        return Err(TlsError::new(PROTOCOLS, "holds neither TLSv1.2 nor TLSv1.3", example));
    }
    Ok(versions)
}

/// What of the lists has no effect.
pub fn warnings(settings: &TlsSettings) -> Vec<String> {
    let known: Vec<String> = provider::provider().cipher_suites.iter().map(java_name).collect();
    let suites: Vec<_> = settings
        .cipher_suites
        .iter()
        .map(String::as_str)
        .filter(|name| !known.iter().any(|k| k == name))
        .collect();
    let protocols: Vec<_> =
        settings.protocols.iter().map(String::as_str).filter(|name| OLD.contains(name)).collect();
    let mut warnings = Vec::new();
    if !suites.is_empty() {
        warnings.push(format!("{SUITES}: not spoken and left out: {}", suites.join(", ")));
    }
    if !protocols.is_empty() {
        warnings.push(format!("{PROTOCOLS}: not spoken and left out: {}", protocols.join(", ")));
    }
    warnings
}

/// A configuration that rustls refuses: protocols and suites that do not go together.
pub fn unusable(error: &rustls::Error) -> TlsError {
    TlsError::new(
        SUITES,
        format!("does not go together with {PROTOCOLS}: {error}"),
        format!("{SUITES}=TLS_AES_256_GCM_SHA384"),
    )
}

fn java_name(suite: &SupportedCipherSuite) -> String {
    format!("{:?}", suite.suite()).replacen("TLS13_", "TLS_", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(key: &str, value: &str) -> TlsSettings {
        TlsSettings::read(|asked| (asked == key).then(|| value.to_owned())).expect("sound")
    }

    #[test]
    fn suites_have_javas_names_and_the_order_of_the_setting() {
        let text =
            "TLS_CHACHA20_POLY1305_SHA256,TLS_RSA_WITH_AES_128_CBC_SHA,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384";
        let settings = with(SUITES, text);
        let names: Vec<String> =
            provider(&settings).expect("some").cipher_suites.iter().map(java_name).collect();
        assert_eq!(names, ["TLS_CHACHA20_POLY1305_SHA256", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"]);
        assert_eq!(
            warnings(&settings),
            [format!("{SUITES}: not spoken and left out: TLS_RSA_WITH_AES_128_CBC_SHA")]
        );
        assert!(provider(&with(SUITES, "TLS_RSA_WITH_AES_128_CBC_SHA")).is_err());
    }

    #[test]
    fn aes_128_comes_first_unless_a_list_says_otherwise() {
        let first = |settings: &TlsSettings| java_name(&provider(settings).expect("some").cipher_suites[0]);
        assert_eq!(first(&with(PROTOCOLS, "TLSv1.3")), "TLS_AES_128_GCM_SHA256");
        let list = with(SUITES, "TLS_AES_256_GCM_SHA384,TLS_AES_128_GCM_SHA256");
        assert_eq!(first(&list), "TLS_AES_256_GCM_SHA384");
    }

    #[test]
    fn protocols_before_tls_1_2_are_left_out() {
        assert_eq!(versions(&with(PROTOCOLS, "TLSv1.1,TLSv1.2")).expect("one").len(), 1);
        assert!(versions(&with(PROTOCOLS, "TLSv1.1")).is_err());
        assert!(versions(&with(PROTOCOLS, "TLSv1.4")).is_err());
    }
}
