//! A client's TLS: its `ssl.*` keys, and the host whose certificate is expected.

use crate::ClientError;
use barnabas_tls::{ClientTls, TlsSettings};
use std::sync::Arc;

/// Reads the stores that the keys name.
///
/// # Errors
/// A key that is wrong, or a store that cannot be read.
pub fn load<'a>(get: impl Fn(&str) -> Option<&'a str>) -> Result<Arc<ClientTls>, ClientError> {
    let tls = TlsSettings::read(|key| get(key).map(str::to_owned)).and_then(ClientTls::load);
    tls.map(Arc::new).map_err(|error| ClientError::Invalid(error.to_string()))
}

/// `host:port`, `[::1]:port`: the host.
pub fn host(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_of_an_address_has_no_port_and_no_brackets() {
        assert_eq!(
            [host("a.example:9092"), host("[::1]:9092"), host("10.0.0.1:1")],
            ["a.example", "::1", "10.0.0.1"]
        );
    }

    #[test]
    fn wrong_keys_are_named() {
        let error =
            load(|key| (key == "ssl.truststore.location").then_some("/nowhere/ca.pem")).expect_err("no file");
        assert!(error.to_string().starts_with("ssl.truststore.location: "), "{error}");
    }
}
