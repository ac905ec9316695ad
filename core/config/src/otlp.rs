//! Where the node sends its metrics and spans as OTLP: `otlp.endpoint`, `otlp.headers`, `otlp.interval.ms`,
//! `otlp.traces.*`.
//!
//! # Source
//! OTLP specification 1.x, OTLP/HTTP: `/v1/metrics` and `/v1/traces` behind a base URL; headers as
//! `OTEL_EXPORTER_OTLP_HEADERS` has them.

use crate::ConfigError;
use barnabas_certificates::TlsSettings;
use barnabas_sasl::oauth::settings::{HttpUrl, Url};
use std::time::Duration;

pub const ENDPOINT: &str = "otlp.endpoint";
pub const HEADERS: &str = "otlp.headers";
pub const INTERVAL: &str = "otlp.interval.ms";
pub const TRACES_RATIO: &str = "otlp.traces.sample.ratio";
pub const TRACES_PER_SECOND: &str = "otlp.traces.per.second.max";

const EXAMPLE: &str = "otlp.endpoint=http://127.0.0.1:4318";
const HEADERS_EXAMPLE: &str = "otlp.headers=api-key=VALUE,tenant=a";
/// What OTLP/HTTP appends to a base URL.
const PATH: &str = "/v1/metrics";
const TRACES_PATH: &str = "/v1/traces";
const TRACES_EXAMPLE: &str = "otlp.traces.sample.ratio=0.001";
/// Headers that belong to the request itself.
const OWN: &[&str] =
    &["host", "connection", "content-type", "content-length", "content-encoding", "transfer-encoding"];

/// See the file's header.
#[derive(Clone, PartialEq, Eq)]
pub struct OtlpSettings {
    pub url: HttpUrl,
    /// Names and values. Values may be secrets.
    pub headers: Vec<(String, String)>,
    pub interval: Duration,
    /// `None`: no request is pushed as a span.
    pub traces: Option<TraceSettings>,
    /// For an endpoint of https: the trust store of `ssl.truststore.*`, and the key store for a client certificate.
    pub tls: Option<TlsSettings>,
}

/// Which requests are pushed as spans, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceSettings {
    pub url: HttpUrl,
    pub per_second_max: u64,
}

impl std::fmt::Debug for OtlpSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("OtlpSettings")
            .field("url", &self.url)
            .field("headers", &names)
            .finish_non_exhaustive()
    }
}

impl OtlpSettings {
    /// `get`: a key's value, defaults included. `None`: no endpoint is set.
    ///
    /// # Errors
    /// The first value that cannot be. Names no header's value.
    pub fn read(get: &dyn Fn(&str) -> Option<String>) -> Result<Option<Self>, ConfigError> {
        let given =
            |key: &str| get(key).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let headers = headers(&given(HEADERS).unwrap_or_default())?;
        let ratio = given(TRACES_RATIO).and_then(|value| value.parse::<f64>().ok()).unwrap_or(0.0);
        let Some(endpoint) = given(ENDPOINT) else {
            let alone =
                |key| Err(ConfigError::value(key, format!("has no effect without {ENDPOINT}"), EXAMPLE));
            return match (headers.is_empty(), ratio > 0.0) {
                (true, false) => Ok(None),
                (false, _) => alone(HEADERS),
                (true, true) => alone(TRACES_RATIO),
            };
        };
        let refused = |why: &str| ConfigError::value(ENDPOINT, format!("it {why}"), EXAMPLE);
        let mut url = match Url::parse(&endpoint) {
            Ok(Url::Http(url)) => url,
            Ok(Url::File(_)) => return Err(refused("is no URL of http or https")),
            Err(why) => return Err(refused(why)),
        };
        if matches!(url.path.as_str(), "" | "/") {
            url.path = PATH.to_owned();
        }
        let tls = url.has_tls.then(|| TlsSettings::read(get)).transpose();
        let tls = tls.map_err(|error| refused(&format!("needs TLS: {error}")))?;
        let interval = given(INTERVAL).and_then(|value| value.parse().ok()).unwrap_or(60_000);
        let per_second = given(TRACES_PER_SECOND).and_then(|value| value.parse().ok()).unwrap_or(100);
        let traces = (ratio > 0.0).then(|| traces(&url, per_second)).transpose()?;
        Ok(Some(Self { url, headers, interval: Duration::from_millis(interval), traces, tls }))
    }
}

/// Beside the URL of metrics, whose path must tell where that is.
fn traces(metrics: &HttpUrl, per_second_max: u64) -> Result<TraceSettings, ConfigError> {
    let Some(base) = metrics.path.strip_suffix(PATH) else {
        let problem = format!("needs {ENDPOINT} without a path, or with one that ends in {PATH}");
        return Err(ConfigError::value(TRACES_RATIO, problem, TRACES_EXAMPLE));
    };
    let url = HttpUrl { path: format!("{base}{TRACES_PATH}"), ..metrics.clone() };
    Ok(TraceSettings { url, per_second_max })
}

/// `name=value` pairs with commas between; a comma or a blank in a value is written with %.
fn headers(text: &str) -> Result<Vec<(String, String)>, ConfigError> {
    let refused = |problem: String| ConfigError::value(HEADERS, problem, HEADERS_EXAMPLE);
    let mut headers = Vec::new();
    for (at, pair) in text.split(',').map(str::trim).enumerate().filter(|(_, pair)| !pair.is_empty()) {
        let number = at + 1;
        let (name, value) =
            pair.split_once('=').ok_or_else(|| refused(format!("entry {number} is no name=value")))?;
        let (name, value) = (name.trim(), value.trim());
        let is_token = |letter: u8| letter.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&letter);
        if name.is_empty() || !name.bytes().all(is_token) {
            return Err(refused(format!("entry {number} has a name that no header can have")));
        }
        if OWN.contains(&name.to_ascii_lowercase().as_str()) {
            return Err(refused(format!("{name} is set by the node itself")));
        }
        let value =
            decoded(value).ok_or_else(|| refused(format!("the value of {name} is no header's text")))?;
        headers.push((name.to_owned(), value));
    }
    Ok(headers)
}

/// A header's value, with `%2C` as a comma. `None`: it has control characters, or a % without two digits.
fn decoded(value: &str) -> Option<String> {
    let mut letters = value.bytes();
    let mut text = Vec::with_capacity(value.len());
    while let Some(letter) = letters.next() {
        if letter == b'%' {
            let mut digit = || char::from(letters.next()?).to_digit(16);
            text.push(u8::try_from(digit()? * 16 + digit()?).ok()?);
        } else {
            text.push(letter);
        }
    }
    let text = String::from_utf8(text).ok()?;
    (!text.is_empty() && text.bytes().all(|byte| (0x20..0x7f).contains(&byte))).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(values: &[(&str, &str)]) -> Result<Option<OtlpSettings>, String> {
        let get =
            |key: &str| values.iter().find(|(known, _)| *known == key).map(|(_, value)| (*value).to_owned());
        OtlpSettings::read(&get).map_err(|error| error.to_string())
    }

    #[test]
    fn endpoint_without_a_path_is_that_of_metrics() {
        for (endpoint, path) in [
            ("http://127.0.0.1:4318", "/v1/metrics"),
            ("http://[::1]:4318/", "/v1/metrics"),
            ("http://collector/otlp/v1/metrics", "/otlp/v1/metrics"),
        ] {
            let settings = read(&[(ENDPOINT, endpoint)]).expect(endpoint).expect("an endpoint");
            assert_eq!((settings.url.path.as_str(), settings.interval.as_secs()), (path, 60), "{endpoint}");
            assert!(settings.tls.is_none() && settings.headers.is_empty());
        }
        assert_eq!(read(&[]), Ok(None));
        let settings =
            read(&[(ENDPOINT, "https://collector"), (INTERVAL, "5000")]).expect("https").expect("one");
        assert!(settings.tls.is_some());
        assert_eq!((settings.url.port, settings.interval.as_secs()), (443, 5));
    }

    #[test]
    fn spans_go_beside_the_metrics() {
        for (endpoint, path) in [("http://a:1", "/v1/traces"), ("http://a:1/in/v1/metrics", "/in/v1/traces")]
        {
            let settings = read(&[(ENDPOINT, endpoint), (TRACES_RATIO, "0.5"), (TRACES_PER_SECOND, "7")]);
            let traces = settings.expect(endpoint).expect("an endpoint").traces.expect("they are on");
            assert_eq!((traces.url.path.as_str(), traces.per_second_max), (path, 7));
        }
        let off =
            read(&[(ENDPOINT, "http://a:1/other"), (TRACES_RATIO, "0")]).expect("off").expect("an endpoint");
        assert_eq!(off.traces, None);
        for (values, why) in [
            (
                vec![(ENDPOINT, "http://a/other"), (TRACES_RATIO, "1")],
                "otlp.traces.sample.ratio: needs otlp.endpoint without",
            ),
            (vec![(TRACES_RATIO, "1")], "otlp.traces.sample.ratio: has no effect without otlp.endpoint"),
        ] {
            let refused = read(&values).expect_err(why);
            assert!(refused.starts_with(why), "{refused}");
        }
    }

    #[test]
    fn headers_are_pairs_and_their_values_are_never_shown() {
        let settings = read(&[(ENDPOINT, "http://a:1"), (HEADERS, "api-key=s%2Cecret%20x, tenant=a=b")]);
        let settings = settings.expect("headers").expect("an endpoint");
        let pairs = [("api-key", "s,ecret x"), ("tenant", "a=b")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        assert_eq!(settings.headers, pairs);
        assert!(!format!("{settings:?}").contains("ecret"));
    }

    #[test]
    fn wrong_values_are_refused_without_secrets() {
        for (endpoint, headers, why) in [
            ("ftp://a", "", "otlp.endpoint: it is no URL of https, http or file"),
            ("file:///a", "", "otlp.endpoint: it is no URL of http or https"),
            ("http://a:secret@b", "", "otlp.endpoint: it holds a user or a password"),
            ("http://a", "secret", "otlp.headers: entry 1 is no name=value"),
            ("http://a", "k=v,a b=secret", "otlp.headers: entry 2 has a name that no header can have"),
            ("http://a", "Host=secret", "otlp.headers: Host is set by the node itself"),
            ("http://a", "k=sec%0d%0aret", "otlp.headers: the value of k is no header's text"),
            ("", "k=secret", "otlp.headers: has no effect without otlp.endpoint"),
        ] {
            let refused = read(&[(ENDPOINT, endpoint), (HEADERS, headers)]).expect_err(why);
            assert!(refused.starts_with(why), "{refused}");
            assert!(!refused.contains("secret"), "{refused}");
        }
    }
}
