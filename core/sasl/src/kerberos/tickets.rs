//! What a node or a tool asks for tickets with: a login module, the service's name, and a realm's KDCs.
//!
//! Neighbour: shell/net/src/tickets.rs, which asks.
//!
//! # Source
//! Kafka `KerberosLogin`, `SaslClientAuthenticator`; the JDK's `Krb5LoginModule`.

pub(super) mod ccache;

use super::{Krb5Conf, Principal};
use crate::jaas::Krb5Login;
use barnabas_base::TimestampMs;
use ccache::cache_file;
use std::path::PathBuf;

/// The part of a ticket's life after which another one is asked for (Kafka `sasl.kerberos.ticket.renew.window.factor`).
const RENEWED_AFTER_PERCENT: i64 = 80;

/// See the file's header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TicketSettings {
    /// Who logs in. `None`: the principal of the ticket cache.
    pub client: Option<Principal>,
    /// Asked first.
    pub cache: Option<CacheSettings>,
    /// Asked where there is no cache, or none with a ticket that serves.
    pub keytab: Option<PathBuf>,
    /// `sasl.kerberos.service.name`.
    pub service_name: String,
    pub conf: Krb5Conf,
}

/// The tickets that another program, `kinit` mostly, keeps in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheSettings {
    /// `None`: the file that KRB5CCNAME names, else that of this process's user.
    pub file: Option<PathBuf>,
    /// `renewTGT`: the ticket is renewed here when its end is near. The file stays as it is.
    pub renews: bool,
}

impl TicketSettings {
    /// `service_name`: the key's value, empty where it is not set.
    ///
    /// # Errors
    /// What is missing or cannot be.
    pub fn read(login: &Krb5Login, service_name: &str, conf: Krb5Conf) -> Result<Self, String> {
        let service_name = service_name_of(login, service_name)?;
        let cache = cache_of(login)?;
        let keytab = (cache.is_none() || login.use_key_tab).then(|| keytab_of(login)).transpose()?;
        let client = match (&keytab, names_principal(login)) {
            (None, false) => None,
            _ => Some(principal_of(login, conf.default_realm.as_deref())?),
        };
        if let Some(client) = &client {
            conf.kdcs(&client.realm)?;
        }
        Ok(Self { client, cache, keytab, service_name, conf })
    }

    /// The principal of the service on a host, for a client of this realm.
    pub fn service(&self, host: &str, client_realm: &str) -> Principal {
        let realm = self.conf.realm_of(host).unwrap_or(client_realm).to_owned();
        Principal { components: vec![self.service_name.clone(), host.to_lowercase()], realm }
    }

    /// Who logs in, for messages.
    pub fn who(&self) -> String {
        self.client.as_ref().map_or_else(|| "the ticket cache's principal".to_owned(), Principal::to_string)
    }
}

fn cache_of(login: &Krb5Login) -> Result<Option<CacheSettings>, String> {
    match login.use_ticket_cache {
        true => {
            let file = login.ticket_cache.as_deref().map(cache_file).transpose()?;
            Ok(Some(CacheSettings { file, renews: login.renews }))
        }
        // As the JDK, which starts with neither.
        false if login.renews => Err("renewTGT=true takes effect with useTicketCache=true only".to_owned()),
        false if login.ticket_cache.is_some() => {
            Err("ticketCache is set, and useTicketCache is not true".to_owned())
        }
        false => Ok(None),
    }
}

/// The keytab of a login module, or why there is none that can be used.
///
/// # Errors
/// The module wants another login than by a keytab.
pub fn keytab_of(login: &Krb5Login) -> Result<PathBuf, String> {
    if !login.use_key_tab {
        let why = match login.use_ticket_cache {
            true => {
                "useTicketCache=true: clients' tickets are decrypted with the service's key, which a ticket cache does \
                 not have. Set useKeyTab=true and keyTab"
            }
            false => {
                "useKeyTab is not true: no password is asked for here. Set useKeyTab=true and keyTab, or, to log in as \
                 whom kinit has asked tickets for, useTicketCache=true"
            }
        };
        return Err(why.to_owned());
    }
    let path = login.key_tab.as_deref().unwrap_or_default();
    Ok(PathBuf::from(path.strip_prefix("FILE:").unwrap_or(path)))
}

/// The principal of a login module.
///
/// # Errors
/// It names none, or no principal.
pub fn principal_of(login: &Krb5Login, default_realm: Option<&str>) -> Result<Principal, String> {
    let name = login.principal.as_deref().filter(|_| names_principal(login));
    let name = name.ok_or("it names no principal, and a keytab may hold several")?;
    let whole = Principal::parse(name);
    let found = whole.or_else(|| Principal::parse(&format!("{name}@{}", default_realm?)));
    found.ok_or_else(|| format!("principal=\"{name}\" is no name of the form service/host@REALM"))
}

fn names_principal(login: &Krb5Login) -> bool {
    login.principal.as_deref().is_some_and(|name| !name.is_empty() && name != "*")
}

/// The service's name. Kafka refuses a start without one, and one with two.
///
/// # Errors
/// Kafka's text.
pub fn service_name_of(login: &Krb5Login, key: &str) -> Result<String, String> {
    match &login.service_name {
        None if key.is_empty() => Err("No serviceName defined in either JAAS or Kafka config".to_owned()),
        Some(of_module) if !key.is_empty() && *of_module != key => Err(format!(
            "Conflicting serviceName values found in JAAS and Kafka configs value in JAAS file {of_module}, value in \
             Kafka config {key}"
        )),
        Some(of_module) => Ok(of_module.clone()),
        None => Ok(key.to_owned()),
    }
}

/// Whether a ticket of this life has to be replaced.
pub fn is_due(starts: TimestampMs, ends: TimestampMs, now: TimestampMs) -> bool {
    let life = ends.0.saturating_sub(starts.0).max(0);
    now.0 >= starts.0.saturating_add(life / 100 * RENEWED_AFTER_PERCENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login(options: &str) -> Krb5Login {
        let entry = format!("com.sun.security.auth.module.Krb5LoginModule required {options};");
        let entry = crate::jaas::parse_one(&entry).expect("a module");
        match crate::jaas::LoginModule::try_from(&entry) {
            Ok(crate::jaas::LoginModule::Krb5(login)) => login,
            other => panic!("{other:?}"),
        }
    }

    fn conf() -> Krb5Conf {
        Krb5Conf::parse(
            "[libdefaults]\n default_realm = R\n[realms]\n R = {\n  kdc = k1.example.com\n  kdc = k2:8888\n }\n[domain_realm]\n .other.com = O\n",
        )
    }

    #[test]
    fn settings_name_the_client_and_the_service_of_each_host() {
        let login = login("useKeyTab=true keyTab=\"FILE:/k\" principal=\"alice\"");
        let settings = TicketSettings::read(&login, "kafka", conf()).expect("sound");
        assert_eq!((settings.who().as_str(), settings.keytab.as_deref()), ("alice@R", Some("/k".as_ref())));
        assert_eq!(settings.service("Broker1.example.com", "R").to_string(), "kafka/broker1.example.com@R");
        assert_eq!(settings.service("a.other.com", "R").to_string(), "kafka/a.other.com@O");
    }

    #[test]
    fn what_cannot_work_is_refused_by_a_sentence() {
        let read = |options: &str, service, conf| {
            TicketSettings::read(&login(options), service, conf).expect_err("refused")
        };
        let keytab = "useKeyTab=true keyTab=\"/k\" principal=\"alice@R\"";
        assert!(read("useKeyTab=false", "kafka", conf()).contains("or, to log in as whom kinit"));
        assert!(read("useTicketCache=true ticketCache=\"KCM:\"", "kafka", conf()).contains("kind KCM"));
        assert!(read("ticketCache=\"/c\"", "kafka", conf()).contains("useTicketCache is not true"));
        assert!(read("useKeyTab=true keyTab=\"/k\" renewTGT=true", "kafka", conf()).starts_with("renewTGT"));
        let both = "useTicketCache=true useKeyTab=true keyTab=\"/k\"";
        assert!(read(both, "kafka", conf()).starts_with("it names no principal"));
        assert!(read(keytab, "", conf()).starts_with("No serviceName"));
        assert!(read("useKeyTab=true keyTab=\"/k\"", "kafka", conf()).starts_with("it names no principal"));
        let said = read(keytab, "kafka", Krb5Conf::default());
        assert!(said.contains("names no kdc of the realm R"), "{said}");
    }

    #[test]
    fn cache_serves_with_a_keytab_beside_it_or_alone() {
        let read = |options: &str| TicketSettings::read(&login(options), "kafka", conf()).expect("sound");
        let alone = read("useTicketCache=true ticketCache=\"FILE:/c\" renewTGT=true useKeyTab=false");
        let file = Some(PathBuf::from("/c"));
        assert_eq!((alone.client, alone.keytab), (None, None));
        assert_eq!(alone.cache, Some(CacheSettings { file, renews: true }));
        let both =
            read("useTicketCache=true useKeyTab=true keyTab=\"/k\" principal=\"bob@R\" doNotPrompt=true");
        assert_eq!((both.who().as_str(), both.keytab), ("bob@R", Some(PathBuf::from("/k"))));
        assert_eq!(both.cache, Some(CacheSettings { file: None, renews: false }));
    }

    #[test]
    fn ticket_is_due_after_four_fifths_of_its_life() {
        let at = |now| is_due(TimestampMs(1000), TimestampMs(11_000), TimestampMs(now));
        assert!(!at(8_999) && at(9_000) && at(20_000));
    }
}
