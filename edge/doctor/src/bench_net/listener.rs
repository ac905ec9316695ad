//! `bench-net --listen`: echoes, takes and sends for one run at a time. Keeps nothing.
//!
//! At most one connection more than a flow may have, each with a thread and a buffer of 1 MiB. The first hello of a run
//! takes the listener until the last connection of that run has ended; other runs get "busy".

use super::CONNECTIONS_MAX;
use super::kernel::Segments;
use super::wire::{GRACE, HELLO_BYTES, Hello, Job, NetError, Report, Status, Wire};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// For a hello.
const HELLO: Duration = Duration::from_secs(2);
const CHUNK: usize = 256 << 10;

/// The listening side.
#[derive(Debug)]
pub struct NetListener {
    listener: TcpListener,
    runs: Arc<Mutex<Runs>>,
}

#[derive(Debug, Default)]
struct Runs {
    /// Connections with a thread.
    open: usize,
    /// Of these, the ones whose hello was accepted.
    welcome: usize,
    /// Whose they are.
    run: u64,
}

impl NetListener {
    /// # Errors
    /// The address is none of this machine, or is taken.
    pub fn bind(address: &str) -> std::io::Result<Self> {
        let addresses: Vec<SocketAddr> = address.to_socket_addrs()?.collect();
        Ok(Self { listener: TcpListener::bind(&addresses[..])?, runs: Arc::default() })
    }

    /// # Errors
    /// The system does not tell.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until the process ends. `say` gets a line for each run that begins and each connection that ends early.
    pub fn serve(&self, say: impl Fn(&str) + Clone + Send + 'static) -> ! {
        loop {
            let (stream, peer) = match self.listener.accept() {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Too many open files, for instance: the next try may find room.
                    say(&format!("accept failed: {error}"));
                    std::thread::sleep(Duration::from_millis(100));
                    continue;
                }
            };
            let Some(place) = Place::take(&self.runs) else { continue };
            let told = say.clone();
            let begun = std::thread::Builder::new().spawn(move || {
                let mut place = place;
                if let Err(error) = serve(stream, peer, &mut place, &told) {
                    told(&format!("connection from {peer} ended: {error}"));
                }
            });
            if let Err(error) = begun {
                say(&format!("no thread for {peer}: {error}"));
            }
        }
    }
}

/// A connection's place among the few that there are; given back when it is dropped.
struct Place {
    runs: Arc<Mutex<Runs>>,
    is_welcome: bool,
}

impl Place {
    fn take(runs: &Arc<Mutex<Runs>>) -> Option<Self> {
        let mut known = runs.lock().unwrap_or_else(PoisonError::into_inner);
        // One more for a hello that is answered "busy".
        if known.open > CONNECTIONS_MAX + 1 {
            return None;
        }
        known.open += 1;
        Some(Self { runs: runs.clone(), is_welcome: false })
    }

    /// Whether `run` may go on here; and whether it begins now.
    fn welcome(&mut self, run: u64) -> Option<bool> {
        let mut known = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = known.welcome == 0;
        if !is_first && known.run != run || known.welcome > CONNECTIONS_MAX {
            return None;
        }
        known.welcome += 1;
        known.run = run;
        self.is_welcome = true;
        Some(is_first)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut known = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        known.open -= 1;
        known.welcome -= usize::from(self.is_welcome);
    }
}

fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    place: &mut Place,
    say: &impl Fn(&str),
) -> Result<(), NetError> {
    let mut wire = Wire::new(stream, HELLO)?;
    let mut bytes = [0; HELLO_BYTES];
    wire.read(&mut bytes)?;
    let hello = match Hello::decode(&bytes) {
        Ok(hello) => hello,
        Err(error) => {
            match error {
                NetError::Version(_) => wire.answer(Status::Version)?,
                NetError::Hello { .. } => wire.answer(Status::Hello)?,
                // What speaks another protocol gets no answer.
                _ => {}
            }
            return Err(error);
        }
    };
    let Some(is_first) = place.welcome(hello.run) else {
        return wire.answer(Status::Busy);
    };
    if is_first {
        say(&format!("run from {}", peer.ip()));
    }
    let seconds = Duration::from_secs(u64::from(hello.seconds));
    wire.ends_in(seconds + GRACE);
    wire.answer(Status::Welcome)?;
    match hello.job {
        Job::Echo => echo(&mut wire),
        Job::Take => take(&mut wire),
        Job::Send => send(&mut wire, seconds),
    }
}

fn echo(wire: &mut Wire) -> Result<(), NetError> {
    let mut buffer = Vec::new();
    loop {
        let bytes = wire.read_frame(&mut buffer)?;
        if bytes == 0 {
            return Ok(());
        }
        let length = (bytes as u32).to_be_bytes();
        let frame = [&length[..], &buffer[..bytes]].concat();
        wire.write(&frame)?;
    }
}

fn report(bytes: u64, before: Option<Segments>) -> Report {
    let segments = Segments::now().zip(before).map(|(now, before)| now.since(before)).unwrap_or_default();
    Report { bytes, segments: segments.sent, again: segments.again }
}

fn take(wire: &mut Wire) -> Result<(), NetError> {
    let (before, mut taken, mut buffer) = (Segments::now(), 0, Vec::new());
    loop {
        match wire.read_frame(&mut buffer)? {
            0 => return wire.report(&report(taken, before)),
            bytes => taken += bytes as u64,
        }
    }
}

fn send(wire: &mut Wire, seconds: Duration) -> Result<(), NetError> {
    match wire.read_frame(&mut Vec::new())? {
        0 => {}
        other => return Err(NetError::Unexpected(other)),
    }
    let (before, begun, mut sent) = (Segments::now(), Instant::now(), 0);
    let mut frame = chunk();
    loop {
        wire.write_frame(&mut frame)?;
        sent += CHUNK as u64;
        if begun.elapsed() >= seconds {
            break;
        }
    }
    wire.write_frame(&mut [0; 4])?;
    wire.report(&report(sent, before))
}

/// A frame that does not compress, for links that would.
pub fn chunk() -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut words = (0..CHUNK / 8).flat_map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    let mut frame = vec![0; 4];
    frame.extend(&mut words);
    frame
}
