//! What the settings of SASL are read with: the JAAS file, krb5.conf, the environment, and the stores and keytabs that
//! keys name. What they
//! come to is decided by core/config/src/sasl.rs.

use barnabas_config::sasl::{
    Given, KRB5_CONF, KerberosListener, SaslConfig, jaas_path, krb5_conf_path, parse_jaas_file, read as judge,
};
use barnabas_config::{ConfigError, Listeners};
use barnabas_metadata::config::BrokerConfig;
use barnabas_net::tickets;
use barnabas_sasl::jaas::Section;
use barnabas_sasl::kerberos::Acceptor;
use std::path::PathBuf;

fn jvm_options() -> Option<String> {
    std::env::var("KAFKA_OPTS").ok()
}

/// The JAAS file, where there is to be one.
pub fn jaas_file_path(config: &BrokerConfig) -> Option<PathBuf> {
    jaas_path(config, jvm_options().as_deref())
}

/// The sections of the JAAS file, where there is one.
///
/// # Errors
/// It cannot be read, or is none.
pub fn jaas_file(config: &BrokerConfig) -> Result<Vec<Section>, ConfigError> {
    let Some(path) = jaas_file_path(config) else { return Ok(Vec::new()) };
    let text = std::fs::read_to_string(&path)
        .map_err(|source| ConfigError::Unreadable { path: path.clone(), source })?;
    parse_jaas_file(&path, &text)
}

/// krb5.conf, where there is one.
fn krb5_conf(config: &BrokerConfig, jvm_options: Option<&str>) -> Result<Option<String>, ConfigError> {
    let named = krb5_conf_path(config, jvm_options);
    let is_named = named.is_some();
    tickets::read_krb5_conf(named).map_err(|(path, error)| match is_named {
        true => {
            let problem = format!("{} cannot be read: {error}", path.display());
            ConfigError::value(KRB5_CONF, problem, format!("{KRB5_CONF}=/etc/krb5.conf"))
        }
        false => ConfigError::Unreadable { path, source: error },
    })
}

/// # Errors
/// See [`judge`].
pub fn read(
    config: &BrokerConfig,
    listeners: &Listeners,
    file: &[Section],
) -> Result<SaslConfig, ConfigError> {
    let options = jvm_options();
    let krb5_conf = krb5_conf(config, options.as_deref())?;
    let given = Given {
        file,
        jvm_options: options.as_deref(),
        check_stores: &barnabas_oauth::check_stores,
        krb5_conf: krb5_conf.as_deref(),
        check_keytab: &|listener| read_keytab(listener).map(drop),
    };
    judge(config, listeners, &given)
}

/// The keys of a listener's keytab.
///
/// # Errors
/// Why there are none, as a sentence about the file.
pub fn read_keytab(listener: &KerberosListener) -> Result<Acceptor, String> {
    listener.acceptor(tickets::read_keytab(&listener.keytab)?.bytes())
}
