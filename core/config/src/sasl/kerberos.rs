//! GSSAPI on a listener: the login module's service and keytab, and the rules that make user names.
//!
//! What cannot work stops the start: clients' tickets need a keytab, which must hold a key of the module's principal.
//! To log in to others, a ticket cache does as well.
//!
//! Neighbours: core/config/src/sasl.rs; shell/broker/src/node/logins/keytabs.rs, which reads the keytab.
//!
//! Source: Kafka `SaslChannelBuilder`, `KerberosLogin.getServiceName`; the JDK's `Krb5LoginModule`.

use super::Of;
use crate::ConfigError;
use barnabas_sasl::exchange::SaslMechanism;
use barnabas_sasl::jaas::{Krb5Login, LoginModule};
use barnabas_sasl::kerberos::{
    Acceptor, Keytab, Krb5Conf, Principal, Rules, TicketSettings, keytab_of, principal_of, service_name_of,
};
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
        let conf = self.krb5_conf();
        self.service_name(&login)?;
        let keytab = keytab_of(&login).map_err(&refused)?;
        if !login.store_key {
            return Err(refused("storeKey is not true: with Java too, no client could log in".to_owned()));
        }
        let service = principal_of(&login, conf.default_realm.as_deref()).map_err(&refused)?;
        let realm = conf.default_realm.unwrap_or_else(|| service.realm.clone());
        let (rules_key, rules) = self.named(Some(mechanism), RULES);
        let rules = Rules::parse(&rules, &realm).map_err(|problem| {
            ConfigError::value(&rules_key, problem, format!("{RULES}=RULE:[2:$1],DEFAULT"))
        })?;
        let listener = KerberosListener { service, keytab, rules, clock_skew_ms: conf.clock_skew_ms };
        (self.given.check_keytab)(&listener).map_err(refused)?;
        Ok(listener)
    }

    /// What this node asks for tickets with, to log in to others.
    pub(super) fn tickets(&self) -> Result<TicketSettings, ConfigError> {
        let mechanism = SaslMechanism::Gssapi;
        let key = self.jaas_key(mechanism);
        let refused = |problem: String| ConfigError::value(&key, problem, self.jaas_example(mechanism));
        let Some(LoginModule::Krb5(login)) = self.module(mechanism)? else {
            return Err(refused("has no login module, which this node logs in with".to_owned()));
        };
        let service_name = self.service_name(&login)?;
        TicketSettings::read(&login, &service_name, self.krb5_conf()).map_err(refused)
    }

    fn krb5_conf(&self) -> Krb5Conf {
        let mut conf = self.given.krb5_conf.map(Krb5Conf::parse).unwrap_or_default();
        let realm = super::set_for_jvm(self.config, REALM, self.given.jvm_options);
        conf.default_realm = realm.or(conf.default_realm);
        conf
    }

    fn service_name(&self, login: &Krb5Login) -> Result<String, ConfigError> {
        let (key, name) = self.named(Some(SaslMechanism::Gssapi), SERVICE);
        service_name_of(login, &name)
            .map_err(|problem| ConfigError::value(&key, problem, format!("{SERVICE}=kafka")))
    }
}
