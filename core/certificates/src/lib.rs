//! What the `ssl.*` keys, a key store and a certificate say, and which certificate may replace another. Pure: bytes in.
//!
//! | file | answers |
//! |---|---|
//! | `settings` | the `ssl.*` keys of one listener or client, judged one by one and together |
//! | `stores` | the keys and certificates of a JKS, PKCS#12 or PEM file; revocation lists of a PEM or DER file |
//! | `certificate` | whose a certificate is, for which hosts, until when; which user name that makes |
//! | `java_regex` | Java's regular expressions, for rules that make user names |
//! | `error` | which key is wrong, why, and an example |
//!
//! It does not know files, connections, rustls or trust: shell/tls reads the files, verifies chains and encrypts. It
//! links no cryptography but the digests and ciphers of key stores, and draws no random number.
//!
//! Always true:
//! 1. passwords and keys are not shown by `Debug`, and passwords are overwritten when dropped
//! 2. no input panics, and no length in it is trusted

mod certificate;
mod error;
mod java_regex;
mod settings;
mod stores;

pub use certificate::{Expiring, Expiry, Facts, MappingRules, check_replacement, public_key, rfc2253};
pub use error::TlsError;
pub use java_regex::{JavaRegex, Repeat, UnknownGroup};
pub use settings::{ClientAuth, KEY_STORE, Revocation, Source, StoreKeys, TRUST_STORE, TlsSettings};
pub use stores::{KeyEntry, RevocationList, Store, private_key};
