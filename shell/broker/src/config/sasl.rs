//! What the settings of SASL are read with: the JAAS file, the environment, and the stores that keys name. What they
//! come to is decided by core/config/src/sasl.rs.

use barnabas_config::sasl::{Given, SaslConfig, jaas_path, parse_jaas_file, read as judge};
use barnabas_config::{ConfigError, Listeners};
use barnabas_metadata::config::BrokerConfig;
use barnabas_sasl::jaas::Section;

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

/// # Errors
/// See [`judge`].
pub fn read(
    config: &BrokerConfig,
    listeners: &Listeners,
    file: &[Section],
) -> Result<SaslConfig, ConfigError> {
    let options = jvm_options();
    let check_stores = &barnabas_oauth::check_stores;
    judge(config, listeners, &Given { file, jvm_options: options.as_deref(), check_stores })
}
