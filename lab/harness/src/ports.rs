//! Which port on loopback is free.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};

/// Below the range from which the system numbers outgoing connections.
const FIRST: u32 = 10_000;
const COUNT: u32 = 22_000;

/// A port that no process listens on and that no connection takes. One process gets each port once: between this call
/// and the node's own bind no other node of the rig is given it.
///
/// # Panics
/// No port is free.
pub fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    for _ in 0..COUNT {
        let number = std::process::id().wrapping_mul(97).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = u16::try_from(FIRST + number % COUNT).unwrap_or(u16::MAX);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no port of {FIRST} to {} is free", FIRST + COUNT);
}

#[cfg(test)]
mod tests {
    #[test]
    fn free_ports_of_one_process_differ() {
        let ports: std::collections::BTreeSet<u16> = (0..50).map(|_| super::free_port()).collect();
        assert_eq!(ports.len(), 50);
    }
}
