//! What the kernel knows of a path: its MTU, and TCP segments that were sent again.
//!
//! Segments are those of the whole machine (`/proc/net/snmp`), as doctor's N2 has them: what a single connection sent
//! again stands in `TCP_INFO`, which takes unsafe code to read.

use std::net::TcpStream;

/// TCP segments that this machine has sent, and has sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Segments {
    pub sent: u64,
    pub again: u64,
}

impl Segments {
    /// Since the start of the machine; `None` where the kernel does not tell.
    pub fn now() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/net/snmp").ok()?)
    }

    /// `Tcp:` names in one line, their values in the next.
    fn parse(text: &str) -> Option<Self> {
        let mut rows = text.lines().filter_map(|line| line.strip_prefix("Tcp:"));
        let (names, values) = (rows.next()?, rows.next()?);
        let value = |wanted: &str| {
            let at = names.split_whitespace().position(|name| name == wanted)?;
            values.split_whitespace().nth(at)?.parse().ok()
        };
        Some(Self { sent: value("OutSegs")?, again: value("RetransSegs")? })
    }

    pub fn since(self, before: Self) -> Self {
        Self { sent: self.sent.saturating_sub(before.sent), again: self.again.saturating_sub(before.again) }
    }
}

/// The largest packet that goes to the other side in one piece, as far as the kernel knows by now.
pub fn path_mtu(stream: &TcpStream) -> Option<u32> {
    let is_v4 = stream.peer_addr().ok()?.is_ipv4();
    let read = if is_v4 { rustix::net::sockopt::ip_mtu } else { rustix::net::sockopt::ipv6_mtu };
    read(stream).ok()
}

/// What is left of a packet for a segment: without the headers of IP and TCP, and TCP's time stamps.
pub fn segment_bytes(mtu: u32, is_v4: bool) -> u32 {
    mtu.saturating_sub(if is_v4 { 20 } else { 40 } + 20 + 12)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_read_by_name() {
        let text = "Ip: A\nIp: 1\nTcp: InSegs OutSegs RetransSegs\nTcp: 5 70 3\nUdp: A\nUdp: 1\n";
        assert_eq!(Segments::parse(text), Some(Segments { sent: 70, again: 3 }));
        assert_eq!(Segments::parse("Tcp: OutSegs\nTcp: 1\n"), None);
        assert_eq!(Segments::parse(""), None);
        let (before, after) = (Segments { sent: 60, again: 3 }, Segments { sent: 70, again: 2 });
        assert_eq!(after.since(before), Segments { sent: 10, again: 0 });
    }

    #[test]
    fn segment_is_the_packet_without_its_headers() {
        assert_eq!(
            (segment_bytes(1500, true), segment_bytes(9000, false), segment_bytes(9, true)),
            (1448, 8928, 0)
        );
    }
}
