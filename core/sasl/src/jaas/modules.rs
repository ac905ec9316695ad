//! Kafka's four login modules with their options. Java classes of others cannot run here and are refused.

use super::Entry;
use crate::Secret;

const PLAIN: &str = "org.apache.kafka.common.security.plain.PlainLoginModule";
const SCRAM: &str = "org.apache.kafka.common.security.scram.ScramLoginModule";
const OAUTHBEARER: &str = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule";
const KRB5: &str = "com.sun.security.auth.module.Krb5LoginModule";

/// A login module whose options have been read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginModule {
    Plain(PlainLogin),
    Scram(ScramLogin),
    OAuthBearer(OAuthBearerLogin),
    Krb5(Krb5Login),
}

/// `username` and `password` are what this node logs in with as a client; each `user_NAME` is a user that may
/// log in to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlainLogin {
    pub username: Option<String>,
    pub password: Option<Secret>,
    pub users: Vec<(String, Secret)>,
}

/// This node as a client. `token_auth`: the user is a delegation token's id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScramLogin {
    pub username: Option<String>,
    pub password: Option<Secret>,
    pub token_auth: bool,
}

/// This node as a client of an identity provider. `options` holds all of them: `ssl.*`, `unsecuredLoginStringClaim_*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OAuthBearerLogin {
    pub client_id: Option<String>,
    pub client_secret: Option<Secret>,
    pub scope: Option<String>,
    /// `extension_NAME`, without the prefix.
    pub extensions: Vec<(String, String)>,
    pub options: Vec<(String, Secret)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Krb5Login {
    pub principal: Option<String>,
    pub key_tab: Option<String>,
    pub use_key_tab: bool,
    pub store_key: bool,
    pub use_ticket_cache: bool,
    pub ticket_cache: Option<String>,
    pub renews: bool,
    pub service_name: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModuleError {
    #[error(
        "the login module {0:?} is a Java class and cannot run here. Expected {PLAIN}, {SCRAM}, {OAUTHBEARER} or {KRB5}, for \
         example: {SCRAM} required username=\"alice\" password=\"secret\";"
    )]
    ForeignClass(String),
    #[error("option {option:?} of {class} is not true or false, for example: {option}=true")]
    NotBoolean { class: &'static str, option: &'static str },
    #[error("{class} has {given} and not {missing}: set both, for example: {given}=\"…\" {missing}=\"…\"")]
    Missing { class: &'static str, given: &'static str, missing: &'static str },
    #[error("{class} has useKeyTab=true and no keyTab: set it, for example: keyTab=\"/etc/kafka.keytab\"")]
    NoKeyTab { class: &'static str },
}

impl TryFrom<&Entry> for LoginModule {
    type Error = ModuleError;

    fn try_from(entry: &Entry) -> Result<Self, ModuleError> {
        match entry.class.as_str() {
            PLAIN => plain(entry).map(Self::Plain),
            SCRAM => scram(entry).map(Self::Scram),
            OAUTHBEARER => Ok(Self::OAuthBearer(oauth_bearer(entry))),
            KRB5 => krb5(entry).map(Self::Krb5),
            other => Err(ModuleError::ForeignClass(other.to_owned())),
        }
    }
}

fn plain(entry: &Entry) -> Result<PlainLogin, ModuleError> {
    let (username, password) = pair(entry, PLAIN, "username", "password")?;
    let users =
        prefixed(entry, "user_").map(|(name, password)| (name.to_owned(), password.clone())).collect();
    Ok(PlainLogin { username, password, users })
}

fn scram(entry: &Entry) -> Result<ScramLogin, ModuleError> {
    let (username, password) = pair(entry, SCRAM, "username", "password")?;
    Ok(ScramLogin { username, password, token_auth: boolean(entry, SCRAM, "tokenauth")? })
}

fn oauth_bearer(entry: &Entry) -> OAuthBearerLogin {
    let extensions = prefixed(entry, "extension_")
        .filter_map(|(name, value)| Some((name.to_owned(), value.text()?.to_owned())))
        .collect();
    let options = entry.options().map(|(name, value)| (name.to_owned(), value.clone())).collect();
    // One alone may be meant: the other one may stand in a key of its own.
    OAuthBearerLogin {
        client_id: text(entry, "clientId"),
        client_secret: entry.option("clientSecret").cloned(),
        scope: text(entry, "scope"),
        extensions,
        options,
    }
}

fn krb5(entry: &Entry) -> Result<Krb5Login, ModuleError> {
    let login = Krb5Login {
        principal: text(entry, "principal"),
        key_tab: text(entry, "keyTab"),
        use_key_tab: boolean(entry, KRB5, "useKeyTab")?,
        store_key: boolean(entry, KRB5, "storeKey")?,
        use_ticket_cache: boolean(entry, KRB5, "useTicketCache")?,
        ticket_cache: text(entry, "ticketCache"),
        renews: boolean(entry, KRB5, "renewTGT")?,
        service_name: text(entry, "serviceName"),
    };
    if login.use_key_tab && login.key_tab.is_none() {
        return Err(ModuleError::NoKeyTab { class: KRB5 });
    }
    Ok(login)
}

/// A name and its secret, both or neither.
fn pair(
    entry: &Entry,
    class: &'static str,
    name: &'static str,
    secret: &'static str,
) -> Result<(Option<String>, Option<Secret>), ModuleError> {
    match (text(entry, name), entry.option(secret).cloned()) {
        (Some(_), None) => Err(ModuleError::Missing { class, given: name, missing: secret }),
        (None, Some(_)) => Err(ModuleError::Missing { class, given: secret, missing: name }),
        both => Ok(both),
    }
}

fn text(entry: &Entry, option: &str) -> Option<String> {
    entry.option(option).and_then(Secret::text).map(str::to_owned)
}

fn prefixed<'a>(entry: &'a Entry, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a Secret)> {
    entry.options().filter_map(move |(name, value)| Some((name.strip_prefix(prefix)?, value)))
}

fn boolean(entry: &Entry, class: &'static str, option: &'static str) -> Result<bool, ModuleError> {
    match entry.option(option).and_then(Secret::text) {
        None => Ok(false),
        Some(value) if value.eq_ignore_ascii_case("true") => Ok(true),
        Some(value) if value.eq_ignore_ascii_case("false") => Ok(false),
        Some(_) => Err(ModuleError::NotBoolean { class, option }),
    }
}
