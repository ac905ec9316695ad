//! What the node reports to the process that started it: that it serves, and that it stops. systemd's `Type=notify`.
//!
//! One datagram for each report, `KEY=VALUE` lines, to the socket that `NOTIFY_SOCKET` names: a path, or `@name` in the
//! abstract namespace. Without the variable nothing is sent. A report that cannot be sent is a WARN: the supervisor
//! would wait for it until its timeout.
//!
//! # Source
//! sd_notify(3) of systemd 252: READY, STOPPING, STATUS.

use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The variable in which a supervisor names its socket.
const VARIABLE: &str = "NOTIFY_SOCKET";

/// The node serves its listeners; `status` is shown by `systemctl status`, one line.
pub fn ready(status: &str) {
    report(&format!("READY=1\nSTATUS={status}"));
}

/// The node has begun to stop: the supervisor's stop timeout counts, its start is over.
pub fn stopping() {
    report("STOPPING=1\nSTATUS=stopping");
}

fn report(state: &str) {
    let Some(name) = std::env::var_os(VARIABLE).filter(|name| !name.is_empty()) else { return };
    if let Err(error) = send(&name, state) {
        let (name, state) = (name.to_string_lossy(), state.replace('\n', " "));
        tracing::warn!(%error, "the supervisor was not notified; socket={name} state={state}. A unit of \
            Type=notify fails when its timeout ends; Type=exec needs no notification");
    }
}

fn send(name: &OsStr, state: &str) -> std::io::Result<()> {
    let address = match name.as_bytes() {
        [b'@', abstract_name @ ..] => SocketAddr::from_abstract_name(abstract_name)?,
        _ => SocketAddr::from_pathname(name)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(socket: &UnixDatagram) -> String {
        let mut bytes = [0; 256];
        let length = socket.recv(&mut bytes).expect("a datagram");
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }

    #[test]
    fn state_goes_to_the_socket_of_a_path() {
        let path = std::env::temp_dir().join(format!("barnabas-notify-{}", std::process::id()));
        let socket = UnixDatagram::bind(&path).expect("bound");
        send(path.as_os_str(), "READY=1\nSTATUS=serves").expect("sent");
        assert_eq!(received(&socket), "READY=1\nSTATUS=serves");
        std::fs::remove_file(path).expect("removed");
    }

    #[test]
    fn state_goes_to_an_abstract_socket() {
        let name = format!("barnabas-notify-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).expect("an address");
        let socket = UnixDatagram::bind_addr(&address).expect("bound");
        send(OsStr::new(&format!("@{name}")), "STOPPING=1").expect("sent");
        assert_eq!(received(&socket), "STOPPING=1");
    }

    #[test]
    fn socket_that_is_not_there_is_an_error() {
        assert!(send(OsStr::new("/nowhere/barnabas-notify"), "READY=1").is_err());
    }
}
