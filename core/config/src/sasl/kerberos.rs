//! GSSAPI on a listener: the login module's service and keytab, and the rules that make user names.
//!
//! What cannot work stops the start: a broker has no ticket cache, and a keytab must hold a key of the module's
//! principal.
//!
//! Neighbours: core/config/src/sasl.rs; shell/broker/src/node/logins/keytabs.rs, which reads the keytab.
//!
//! Source: Kafka `SaslChannelBuilder`, `KerberosLogin.getServiceName`; the JDK's `Krb5LoginModule`.

use super::Of;
use crate::ConfigError;
use barnabas_sasl::exchange::SaslMechanism;
use barnabas_sasl::jaas::{Krb5Login, LoginModule};
use barnabas_sasl::kerberos::{Acceptor, KEYTAB_BYTES_MAX, Keytab, Krb5Conf, Principal, Rules};
use std::path::PathBuf;

/// Where the JVM's own property stands for krb5.conf.
pub const KRB5_CONF: &str = "java.security.krb5.conf";
const REALM: &str = "java.security.krb5.realm";
const RULES: &str = "sasl.kerberos.principal.to.local.rules";
const SERVICE: &str = "sasl.kerberos.service.name";

/// How a listener judges tickets. The keys are read from the keytab, again when it changes.
#[derive(Debug, Clone, PartialEq)]
pub struct KerberosListener {
    /// This broker's own principal.
    pub service: Principal,
    pub keytab: PathBuf,
    rules: Rules,
    clock_skew_ms: i64,
}

impl KerberosListener {
    /// With the keys of the keytab's bytes.
    ///
    /// # Errors
    /// Why they cannot be used, as a sentence about the file.
    pub fn acceptor(&self, keytab: &[u8]) -> Result<Acceptor, String> {
        let path = self.keytab.display();
        if keytab.len() > KEYTAB_BYTES_MAX {
            return Err(format!("{path} has more than {KEYTAB_BYTES_MAX} bytes"));
        }
        let keytab = Keytab::parse(keytab).map_err(|fault| format!("{path} {fault}"))?;
        let keys = keytab.keys_of(&self.service);
        if keys.is_empty() {
            let mut known: Vec<String> =
                keytab.entries.iter().map(|entry| entry.principal.to_string()).collect();
            known.sort();
            known.dedup();
            known.truncate(8);
            let known = if known.is_empty() { "no principal".to_owned() } else { known.join(", ") };
            let left_out = match &keytab.left_out[..] {
                [] => String::new(),
                types => format!("; keys of the encryption types {types:?} are not used here"),
            };
            return Err(format!(
                "{path} has no key of {} for aes128 or aes256 (it has keys of {known}{left_out}). List it with: klist -ket {path}",
                self.service
            ));
        }
        let (service, rules) = (self.service.clone(), self.rules.clone());
        Ok(Acceptor { service, keys, rules, clock_skew_ms: self.clock_skew_ms })
    }
}

impl Of<'_> {
    pub(super) fn kerberos(&self) -> Result<KerberosListener, ConfigError> {
        let mechanism = SaslMechanism::Gssapi;
        let key = self.jaas_key(mechanism);
        let refused = |problem: String| ConfigError::value(&key, problem, self.jaas_example(mechanism));
        let Some(LoginModule::Krb5(login)) = self.module(mechanism)? else {
            let problem =
                "is not set, and there is no JAAS file with a section KafkaServer: GSSAPI has no keytab";
            return Err(refused(problem.to_owned()));
        };
        self.check_service_name(&login)?;
        let (keytab, name) = usable(&login).map_err(&refused)?;
        let conf = self.given.krb5_conf.map(Krb5Conf::parse).unwrap_or_default();
        let realm = super::set_for_jvm(self.config, REALM, self.given.jvm_options).or(conf.default_realm);
        let service = match (Principal::parse(&name), &realm) {
            (Some(service), _) => Some(service),
            (None, Some(realm)) => Principal::parse(&format!("{name}@{realm}")),
            (None, None) => None,
        };
        let service = service.ok_or_else(|| {
            refused(format!("principal=\"{name}\" is no name of the form service/host@REALM"))
        })?;
        let realm = realm.unwrap_or_else(|| service.realm.clone());
        let (rules_key, rules) = self.named(Some(mechanism), RULES);
        let rules = Rules::parse(&rules, &realm).map_err(|problem| {
            ConfigError::value(&rules_key, problem, format!("{RULES}=RULE:[2:$1],DEFAULT"))
        })?;
        let listener = KerberosListener { service, keytab, rules, clock_skew_ms: conf.clock_skew_ms };
        (self.given.check_keytab)(&listener).map_err(refused)?;
        Ok(listener)
    }

    /// Kafka refuses a start without a service name, and one with two.
    fn check_service_name(&self, login: &Krb5Login) -> Result<(), ConfigError> {
        let (key, name) = self.named(Some(SaslMechanism::Gssapi), SERVICE);
        let example = format!("{SERVICE}=kafka");
        match &login.service_name {
            None if name.is_empty() => {
                let problem = "No serviceName defined in either JAAS or Kafka config";
                Err(ConfigError::value(&key, problem, example))
            }
            Some(of_module) if !name.is_empty() && *of_module != name => {
                let problem = format!(
                    "Conflicting serviceName values found in JAAS and Kafka configs value in JAAS file {of_module}, value in Kafka config {name}"
                );
                Err(ConfigError::value(&key, problem, example))
            }
            _ => Ok(()),
        }
    }
}

/// The keytab and the principal of a module that a broker can accept tickets with, or why it cannot.
fn usable(login: &Krb5Login) -> Result<(PathBuf, String), String> {
    if !login.use_key_tab {
        let why = match login.use_ticket_cache {
            true => {
                "useTicketCache=true: a broker accepts tickets with a keytab, and a ticket cache holds none of its keys"
            }
            false => "useKeyTab is not true: a broker cannot ask for a password",
        };
        return Err(why.to_owned());
    }
    if !login.store_key {
        return Err("storeKey is not true: with Java too, no client could log in".to_owned());
    }
    let Some(name) = login.principal.as_ref().filter(|name| !name.is_empty() && *name != "*") else {
        return Err("it names no principal, and a keytab may hold several".to_owned());
    };
    let keytab = login.key_tab.as_deref().unwrap_or_default();
    let keytab = keytab.strip_prefix("FILE:").unwrap_or(keytab);
    Ok((PathBuf::from(keytab), name.clone()))
}
