//! What the settings of SASL are read with: the JAAS file, krb5.conf, the environment, and the stores and keytabs that
//! keys name. What they
//! come to is decided by core/config/src/sasl.rs.

use barnabas_config::sasl::{
    Given, KRB5_CONF, KerberosListener, SaslConfig, jaas_path, krb5_conf_path, parse_jaas_file, read as judge,
};
use barnabas_config::{ConfigError, Listeners};
use barnabas_metadata::config::BrokerConfig;
use barnabas_sasl::Secret;
use barnabas_sasl::jaas::Section;
use barnabas_sasl::kerberos::{Acceptor, KEYTAB_BYTES_MAX};
use std::fs::File;
use std::io::Read as _;

fn jvm_options() -> Option<String> {
    std::env::var("KAFKA_OPTS").ok()
}

/// The sections of the JAAS file, where there is one.
///
/// # Errors
/// It cannot be read, or is none.
pub fn jaas_file(config: &BrokerConfig) -> Result<Vec<Section>, ConfigError> {
    let Some(path) = jaas_path(config, jvm_options().as_deref()) else { return Ok(Vec::new()) };
    let text = std::fs::read_to_string(&path)
        .map_err(|source| ConfigError::Unreadable { path: path.clone(), source })?;
    parse_jaas_file(&path, &text)
}

/// krb5.conf: the settings', else that of `KRB5_CONFIG`, else the system's, which need not be there.
fn krb5_conf(config: &BrokerConfig, jvm_options: Option<&str>) -> Result<Option<String>, ConfigError> {
    let (path, is_named) = match krb5_conf_path(config, jvm_options) {
        Some(path) => (path, true),
        None => match std::env::var_os("KRB5_CONFIG").filter(|paths| !paths.is_empty()) {
            // MIT takes several, parted by colons; the first one decides.
            Some(paths) => (std::env::split_paths(&paths).next().unwrap_or_default(), false),
            None => ("/etc/krb5.conf".into(), false),
        },
    };
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if !is_named && error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) if is_named => Err(ConfigError::value(
            KRB5_CONF,
            format!("{} cannot be read: {error}", path.display()),
            format!("{KRB5_CONF}=/etc/krb5.conf"),
        )),
        Err(source) => Err(ConfigError::Unreadable { path, source }),
    }
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
    let path = &listener.keytab;
    let mut bytes = Vec::new();
    // One byte more, by which a file that is too long is known.
    let whole =
        File::open(path).and_then(|file| file.take(KEYTAB_BYTES_MAX as u64 + 1).read_to_end(&mut bytes));
    let bytes = Secret::from(bytes);
    whole.map_err(|error| format!("the keytab {} cannot be read: {error}", path.display()))?;
    listener.acceptor(bytes.bytes())
}
