//! What a node or a tool asks for tickets with: a login module, the service's name, and a realm's KDCs.
//!
//! Neighbour: shell/net/src/tickets.rs, which asks.
//!
//! # Source
//! Kafka `KerberosLogin`, `SaslClientAuthenticator`; the JDK's `Krb5LoginModule`.

use super::{Krb5Conf, Principal};
use crate::jaas::Krb5Login;
use barnabas_base::TimestampMs;
use std::path::PathBuf;

/// The part of a ticket's life after which another one is asked for (Kafka `sasl.kerberos.ticket.renew.window.factor`).
const RENEWED_AFTER_PERCENT: i64 = 80;

/// See the file's header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TicketSettings {
    /// Who logs in.
    pub client: Principal,
    pub keytab: PathBuf,
    /// `sasl.kerberos.service.name`.
    pub service_name: String,
    pub conf: Krb5Conf,
}

impl TicketSettings {
    /// `service_name`: the key's value, empty where it is not set.
    ///
    /// # Errors
    /// What is missing or cannot be.
    pub fn read(login: &Krb5Login, service_name: &str, conf: Krb5Conf) -> Result<Self, String> {
        let service_name = service_name_of(login, service_name)?;
        let keytab = keytab_of(login)?;
        let client = principal_of(login, conf.default_realm.as_deref())?;
        conf.kdcs(&client.realm)?;
        Ok(Self { client, keytab, service_name, conf })
    }

    /// The principal of the service on a host.
    pub fn service(&self, host: &str) -> Principal {
        let realm = self.conf.realm_of(host).unwrap_or(&self.client.realm).to_owned();
        Principal { components: vec![self.service_name.clone(), host.to_lowercase()], realm }
    }
}

/// The keytab of a login module, or why there is none that can be used.
///
/// # Errors
/// The module wants another login than by a keytab.
pub fn keytab_of(login: &Krb5Login) -> Result<PathBuf, String> {
    if !login.use_key_tab {
        let why = match login.use_ticket_cache {
            true => "useTicketCache=true: ticket caches are not read here. Set useKeyTab=true and keyTab",
            false => "useKeyTab is not true: no password is asked for here. Set useKeyTab=true and keyTab",
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
    let name = login.principal.as_deref().filter(|name| !name.is_empty() && *name != "*");
    let name = name.ok_or("it names no principal, and a keytab may hold several")?;
    let whole = Principal::parse(name);
    let found = whole.or_else(|| Principal::parse(&format!("{name}@{}", default_realm?)));
    found.ok_or_else(|| format!("principal=\"{name}\" is no name of the form service/host@REALM"))
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
        assert_eq!((settings.client.to_string().as_str(), settings.keytab.to_str()), ("alice@R", Some("/k")));
        assert_eq!(settings.service("Broker1.example.com").to_string(), "kafka/broker1.example.com@R");
        assert_eq!(settings.service("a.other.com").to_string(), "kafka/a.other.com@O");
    }

    #[test]
    fn what_cannot_work_is_refused_by_a_sentence() {
        let read = |options: &str, service, conf| {
            TicketSettings::read(&login(options), service, conf).expect_err("refused")
        };
        let keytab = "useKeyTab=true keyTab=\"/k\" principal=\"alice@R\"";
        assert!(read("useTicketCache=true", "kafka", conf()).contains("ticket caches are not read"));
        assert!(read(keytab, "", conf()).starts_with("No serviceName"));
        assert!(read("useKeyTab=true keyTab=\"/k\"", "kafka", conf()).starts_with("it names no principal"));
        let said = read(keytab, "kafka", Krb5Conf::default());
        assert!(said.contains("names no kdc of the realm R"), "{said}");
    }

    #[test]
    fn ticket_is_due_after_four_fifths_of_its_life() {
        let at = |now| is_due(TimestampMs(1000), TimestampMs(11_000), TimestampMs(now));
        assert!(!at(8_999) && at(9_000) && at(20_000));
    }
}
