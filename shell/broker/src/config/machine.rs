//! What the machine is called.

/// Its name, as others may know it; empty where the system says none.
pub fn machine_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
