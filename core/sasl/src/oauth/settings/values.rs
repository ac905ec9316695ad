//! What the keys of validators and of token sources have in common: classes, URLs, numbers, TLS.

use super::{OAuthError, Url};
use crate::Secret;
use barnabas_certificates::{TlsError, TlsSettings};
use std::time::Duration;

/// Where no timeout is set.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The URLs and files that settings may name: `org.apache.kafka.sasl.oauthbearer.allowed.urls`, `….allowed.files`.
///
/// They keep a user who may set a `sasl.oauthbearer.*` key from making the node read any file or ask any host
/// (CVE-2025-27817).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Allowed {
    /// For a tool: the author of its file may read what the tool may.
    All,
    Only {
        urls: Vec<String>,
        files: Vec<String>,
    },
}

impl Allowed {
    pub const URLS: &'static str = "org.apache.kafka.sasl.oauthbearer.allowed.urls";
    pub const FILES: &'static str = "org.apache.kafka.sasl.oauthbearer.allowed.files";

    /// From the values of both keys, lists with commas.
    pub fn only(urls: &str, files: &str) -> Self {
        let list = |text: &str| -> Vec<String> {
            text.split(',').map(str::trim).filter(|entry| !entry.is_empty()).map(str::to_owned).collect()
        };
        Self::Only { urls: list(urls), files: list(files) }
    }

    pub(crate) fn check_url(&self, key: &str, url: &str) -> Result<(), OAuthError> {
        match self {
            Self::Only { urls, .. } if !urls.iter().any(|allowed| allowed == url) => {
                let problem = format!("{key}={url} is not in this list");
                Err(OAuthError::new(Self::URLS, problem, url))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn check_file(&self, key: &str, path: &str) -> Result<(), OAuthError> {
        match self {
            Self::Only { files, .. } if !files.iter().any(|allowed| allowed == path) => {
                let problem = format!("{key}={path} is not in this list");
                Err(OAuthError::new(Self::FILES, problem, path))
            }
            _ => Ok(()),
        }
    }
}

/// The values of keys, without a listener's prefix, as they hold for one listener or client.
pub(crate) struct Values<'a> {
    get: &'a dyn Fn(&str) -> Option<String>,
}

impl<'a> Values<'a> {
    pub fn new(get: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self { get }
    }

    /// `None`: not set, or empty.
    pub fn text(&self, key: &str) -> Option<String> {
        (self.get)(key).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    }

    /// Whether the key is set, and to nothing but blanks.
    pub fn is_blank(&self, key: &str) -> bool {
        (self.get)(key).is_some_and(|value| value.trim().is_empty())
    }

    /// False where it is not set.
    pub fn flag(&self, key: &str) -> Result<bool, OAuthError> {
        match self.text(key).map(|value| value.to_ascii_lowercase()).as_deref() {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => Err(OAuthError::new(key, format!("'{other}' is neither true nor false"), "true")),
        }
    }

    pub fn number(&self, key: &str, default: u64) -> Result<u64, OAuthError> {
        let Some(text) = self.text(key) else { return Ok(default) };
        text.parse()
            .map_err(|_| OAuthError::new(key, format!("'{text}' is no whole number"), &default.to_string()))
    }

    /// As [`Self::number`], and no more than `most`.
    pub fn number_up_to(&self, key: &str, default: u64, most: u64) -> Result<u64, OAuthError> {
        match self.number(key, default)? {
            number if number > most => {
                Err(OAuthError::new(key, format!("{number} is more than {most}"), &default.to_string()))
            }
            number => Ok(number),
        }
    }

    pub fn fraction(&self, key: &str, default: f64) -> Result<f64, OAuthError> {
        let Some(text) = self.text(key) else { return Ok(default) };
        let number = text.parse().ok().filter(|number| (0.0..=1.0).contains(number));
        number.ok_or_else(|| {
            OAuthError::new(key, format!("'{text}' is no number from 0 to 1"), &default.to_string())
        })
    }

    pub fn list(&self, key: &str) -> Vec<String> {
        let text = self.text(key).unwrap_or_default();
        text.split(',').map(str::trim).filter(|entry| !entry.is_empty()).map(str::to_owned).collect()
    }

    /// `sasl.login.connect.timeout.ms` and `sasl.login.read.timeout.ms`.
    pub fn timeouts(&self) -> Result<(Duration, Duration), OAuthError> {
        let of = |key: &str| {
            Ok(match self.number(key, 0)? {
                0 => TIMEOUT,
                ms => Duration::from_millis(ms),
            })
        };
        Ok((of("sasl.login.connect.timeout.ms")?, of("sasl.login.read.timeout.ms")?))
    }

    /// A class of Kafka's that is built in, by its name without the package. `None`: not set.
    pub fn class(&self, key: &str, known: &[&str]) -> Result<Option<String>, OAuthError> {
        let Some(class) = self.text(key) else { return Ok(None) };
        match known.iter().find(|known| **known == class) {
            Some(known) => Ok(known.rsplit('.').next().map(str::to_owned)),
            None => {
                let problem = format!("{class} is a Java class and cannot run here");
                Err(OAuthError::new(key, problem, known.first().copied().unwrap_or_default()))
            }
        }
    }

    /// A URL that is allowed. `None`: not set.
    pub fn url(
        &self,
        key: &str,
        allowed: &Allowed,
        example: &str,
    ) -> Result<Option<(String, Url)>, OAuthError> {
        let Some(text) = self.text(key) else { return Ok(None) };
        let url = Url::parse(&text)
            .map_err(|problem| OAuthError::new(key, format!("'{text}' {problem}"), example))?;
        allowed.check_url(key, &text)?;
        Ok(Some((text, url)))
    }
}

/// The `ssl.*` options of a login module, for https. The stores that they name are not read here.
pub(crate) fn tls(url: &Url, options: &[(String, Secret)]) -> Result<Option<TlsSettings>, OAuthError> {
    if !matches!(url, Url::Http(url) if url.has_tls) {
        return Ok(None);
    }
    let get = |key: &str| {
        let found = options.iter().find(|(name, _)| name == key)?;
        found.1.text().map(str::to_owned)
    };
    TlsSettings::read(get).map(Some).map_err(of_login_module)
}

/// An error in the `ssl.*` options of a login module, under the key that holds them.
pub fn of_login_module(error: TlsError) -> OAuthError {
    OAuthError {
        key: "sasl.jaas.config".to_owned(),
        problem: format!("option {}: {}", error.key, error.problem),
        example: format!(
            "sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required {};",
            error.example.replacen('=', "=\"", 1) + "\""
        ),
    }
}
