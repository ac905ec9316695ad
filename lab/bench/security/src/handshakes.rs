//! How many TLS handshakes does a broker take, and what does a connection hold?
//!
//! Unit: handshakes, from connect to the answer of one request, so that the broker has finished its half. Held fixed:
//! TLS 1.3, X25519 (what Java and rustls both have), the cipher that the broker prefers, no client certificate. The
//! client spreads over 50 loopback addresses: a limit on the connections of one address is not measured. Left out on
//! purpose: TLS 1.2, logins.

use crate::Wrong;
use rustls::client::Resumption;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, HandshakeKind, RootCertStore, StreamOwned};
use serde_json::{Value, json};
use socket2::{Domain, Socket, Type};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// An answer takes longer only where a handshake is lost.
const PATIENCE: Duration = Duration::from_secs(60);
const ADDRESSES: usize = 50;
/// ApiVersions version 0, correlation id 0, no client id.
const REQUEST: [u8; 14] = [0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

type Tls = StreamOwned<ClientConnection, TcpStream>;

fn configuration(authority: &str, is_resumed: bool) -> Result<Arc<ClientConfig>, Wrong> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(authority)? {
        roots.add(certificate?)?;
    }
    let mut provider = aws_lc_rs::default_provider();
    provider.kx_groups = vec![aws_lc_rs::kx_group::X25519];
    let mut configuration = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    if !is_resumed {
        configuration.resumption = Resumption::disabled();
    }
    Ok(Arc::new(configuration))
}

/// A connection from one of [`ADDRESSES`] loopback addresses.
fn connect(address: SocketAddr, place: usize) -> Result<TcpStream, Wrong> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    let last = u8::try_from(2 + place % ADDRESSES)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::new(127, 0, 0, last), 0)).into())?;
    socket.connect(&address.into())?;
    socket.set_tcp_nodelay(true)?;
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// One handshake and one answered request.
fn handshake(
    address: SocketAddr,
    configuration: &Arc<ClientConfig>,
    place: usize,
) -> Result<(Tls, HandshakeKind), Wrong> {
    let name = ServerName::IpAddress(address.ip().into());
    let client = ClientConnection::new(Arc::clone(configuration), name)?;
    let mut stream = StreamOwned::new(client, connect(address, place)?);
    stream.write_all(&REQUEST)?;
    stream.flush()?;
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut answer = vec![0; usize::try_from(i32::from_be_bytes(length))?];
    stream.read_exact(&mut answer)?;
    // Correlation id, error code.
    if answer.get(..6) != Some(&[0; 6]) {
        return Err(format!("ApiVersions is answered with {:?}", answer.get(..6)).into());
    }
    let kind = stream.conn.handshake_kind().ok_or("an answer without a handshake")?;
    Ok((stream, kind))
}

/// Handshakes of so many threads until the time is over.
pub fn repeated(
    address: &str,
    authority: &str,
    is_resumed: bool,
    threads: usize,
    lasts: Duration,
) -> Result<Value, Wrong> {
    let address: SocketAddr = address.parse()?;
    let begun = Instant::now();
    let running: Vec<_> = (0..threads)
        .map(|thread| {
            // A session of its own for each thread.
            let configuration = configuration(authority, is_resumed)?;
            Ok(std::thread::spawn(move || -> Result<(u64, u64, Vec<u32>), Wrong> {
                let (mut made, mut resumed, mut took_us) = (0u64, 0u64, Vec::new());
                while begun.elapsed() < lasts {
                    let at = Instant::now();
                    // A closed connection keeps its port for a minute: one address has too few of them.
                    let place = thread + usize::try_from(made)? * threads;
                    let (mut stream, kind) = handshake(address, &configuration, place)?;
                    took_us.push(u32::try_from(at.elapsed().as_micros())?);
                    stream.conn.send_close_notify();
                    stream.flush()?;
                    made += 1;
                    resumed += u64::from(kind == HandshakeKind::Resumed);
                }
                Ok((made, resumed, took_us))
            }))
        })
        .collect::<Result<_, Wrong>>()?;
    let (mut made, mut resumed, mut took_us) = (0, 0, Vec::new());
    for thread in running {
        let (more, of_them, times) = thread.join().map_err(|_| "a thread of the client ended")??;
        made += more;
        resumed += of_them;
        took_us.extend(times);
    }
    let seconds = begun.elapsed().as_secs_f64();
    took_us.sort_unstable();
    Ok(json!({
        "handshakes": made, "resumed": resumed, "handshakes_per_s": made as f64 / seconds,
        "p50_ms": percentile_ms(&took_us, 0.5), "p99_ms": percentile_ms(&took_us, 0.99),
    }))
}

/// So many connections at once, on so many threads, all held until the last one is made.
pub fn storm(address: &str, authority: &str, threads: usize, count: usize) -> Result<Value, Wrong> {
    let address: SocketAddr = address.parse()?;
    let configuration = configuration(authority, false)?;
    let begun = Instant::now();
    let running: Vec<_> = (0..threads)
        .map(|thread| {
            let configuration = Arc::clone(&configuration);
            std::thread::spawn(move || {
                let mut held = Vec::new();
                let mut failed = 0usize;
                for place in (thread..count).step_by(threads) {
                    match handshake(address, &configuration, place) {
                        Ok((stream, _)) => held.push(stream),
                        Err(_) => failed += 1,
                    }
                }
                (held, failed)
            })
        })
        .collect();
    let mut all = Vec::new();
    for thread in running {
        all.push(thread.join().map_err(|_| "a thread of the client ended")?);
    }
    let made: usize = all.iter().map(|(held, _)| held.len()).sum();
    let failed: usize = all.iter().map(|(_, failed)| failed).sum();
    let seconds = begun.elapsed().as_secs_f64();
    Ok(json!({ "handshakes": made, "storm_failed": failed, "storm_s": seconds }))
}

/// Connections that stay until standard input ends.
pub fn hold(address: &str, authority: &str, count: usize) -> Result<(), Wrong> {
    let address: SocketAddr = address.parse()?;
    let configuration = configuration(authority, false)?;
    let mut held = Vec::with_capacity(count);
    for place in 0..count {
        match handshake(address, &configuration, place) {
            Ok((stream, _)) => held.push(stream),
            Err(error) => return Err(format!("connection {} of {count}: {error}", place + 1).into()),
        }
    }
    println!("{}", json!({ "connections": held.len() }));
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn percentile_ms(sorted_us: &[u32], share: f64) -> f64 {
    let place = (sorted_us.len() as f64 * share) as usize;
    sorted_us.get(place.min(sorted_us.len().saturating_sub(1))).map_or(0.0, |us| f64::from(*us) / 1000.0)
}
