//! SO_RCVLOWAT, which neither tokio nor socket2 has.

use nix::libc;
use nix::sys::socket::SetSockOpt;
use nix::sys::socket::sockopt::SetUsize;
use tokio::net::TcpStream;

#[derive(Debug, Clone, Copy)]
struct RcvLowat;

nix::setsockopt_impl!(RcvLowat, libc::SOL_SOCKET, libc::SO_RCVLOWAT, usize, SetUsize);

/// The bytes that must have arrived before the socket counts as readable. The system bounds it by half of the receive
/// buffer, and wakes the reader anyway if the peer ends or the buffer is full. Returns whether the system takes it.
pub fn set(tcp: &TcpStream, bytes: usize) -> bool {
    RcvLowat.set(tcp, &bytes).is_ok()
}
