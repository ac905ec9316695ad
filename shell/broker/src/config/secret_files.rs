//! Files with secrets that every user of the machine can read: one WARN each, at the start. Which files those are is
//! decided by core/config/src/secret_files.rs.
//!
//! A file's group may read it: packages give the node's group the settings.

use super::sasl::jaas_file_path;
use barnabas_config::NodeConfig;
use barnabas_config::sasl::SaslConfig;
use barnabas_config::secret_files::secret_files;
use barnabas_metadata::config::BrokerConfig;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// To read, to write: of users that are neither the owner nor in the group.
const OTHERS: u32 = 0o006;
const OTHERS_ENTER: u32 = 0o001;

/// Warns of each file that others can read or change. One that is not there is judged by what reads it.
pub fn warn_of_open(config: &NodeConfig, values: &BrokerConfig, sasl: &SaslConfig) {
    for (path, what) in secret_files(&config.settings, jaas_file_path(values).as_deref(), sasl) {
        if let Some(mode) = open_mode(&path) {
            let path = path.display();
            tracing::warn!(
                "{path} holds {what}, and every user of this machine can open it: mode={mode:04o}. To correct it: chmod \
                 o-rwx {path}"
            );
        }
    }
}

/// The mode of a file that others can open; `None` where they cannot, or it cannot be seen. A directory on the way that
/// others may not enter protects it.
fn open_mode(path: &Path) -> Option<u32> {
    let path = std::fs::canonicalize(path).ok()?;
    let mode = |path: &Path| Some(std::fs::metadata(path).ok()?.permissions().mode() & 0o7777);
    let is_reached =
        path.ancestors().skip(1).all(|folder| mode(folder).is_some_and(|mode| mode & OTHERS_ENTER != 0));
    mode(&path).filter(|mode| is_reached && mode & OTHERS != 0)
}
