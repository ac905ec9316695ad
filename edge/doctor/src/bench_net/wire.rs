//! The bytes between the two sides of `bench-net`, and the limits that end a connection.
//!
//! ```text
//! Hello   caller → listener   8 magic | 2 version | 1 job | 1 zero | 2 seconds | 2 zero | 8 run       24 bytes
//! Answer  listener → caller   8 magic | 2 version | 1 status | 1 zero                                12 bytes
//! Frame   both                4 length, at most 1 MiB | bytes                                        big endian
//! Report  listener → caller   a frame: 8 bytes taken or sent | 8 segments sent | 8 segments sent again
//! ```
//!
//! | job | frames |
//! |---|---|
//! | 1 echo | each frame comes back as it is; an empty one ends the connection |
//! | 2 take | the caller sends, an empty frame ends it; then the report |
//! | 3 send | an empty frame begins it; the listener sends for `seconds`, then an empty frame and the report |
//!
//! A connection ends after its seconds and 10 more, after 5 s in which no byte moved, after 1 TiB, and at a length
//! above 1 MiB. Nothing is kept of what is sent.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

pub const MAGIC: [u8; 8] = *b"BNBNET\r\n";
pub const VERSION: u16 = 1;
pub const FRAME_BYTES_MAX: usize = 1 << 20;
pub const HELLO_BYTES: usize = 24;
const ANSWER_BYTES: usize = 12;
const REPORT_BYTES: usize = 24;
/// Of one connection: an echo lasts as long as the whole run.
pub const CONNECTION_SECONDS_MAX: u16 = 400;
const BYTES_MAX: u64 = 1 << 40;
const SILENCE: Duration = Duration::from_secs(5);
pub const GRACE: Duration = Duration::from_secs(10);
/// How often a wait looks at the limits.
const TICK: Duration = Duration::from_millis(250);

/// Why a connection of `bench-net` ended.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("the other side is no bench-net: start `barnabas doctor bench-net --listen HOST:PORT` there")]
    Magic,
    #[error(
        "the other side speaks version {0} of bench-net, this one version {VERSION}: use the same release on both"
    )]
    Version(u16),
    #[error(
        "a hello that asks for job {job} and {seconds} s; jobs are 1 to 3, seconds 0 to {CONNECTION_SECONDS_MAX}"
    )]
    Hello { job: u8, seconds: u16 },
    #[error("the listener is busy with another run, or has {0} connections: try again when it has ended")]
    Busy(usize),
    #[error("the listener refused, status {0}")]
    Refused(u8),
    #[error("a frame of {0} bytes, more than {FRAME_BYTES_MAX}")]
    Length(u32),
    #[error("a frame of {0} bytes where another length was due")]
    Unexpected(usize),
    #[error("more than {BYTES_MAX} bytes on one connection")]
    Bytes,
    #[error("no byte moved for {} s", SILENCE.as_secs())]
    Silence,
    #[error("the connection's time is up")]
    Time,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Job {
    Echo = 1,
    Take = 2,
    Send = 3,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello {
    pub job: Job,
    pub seconds: u16,
    /// A number of the caller's for all connections of its run.
    pub run: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Welcome = 0,
    Busy = 1,
    Version = 2,
    Hello = 3,
}

/// What a flow came to, as the listener counted it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Report {
    pub bytes: u64,
    pub segments: u64,
    pub again: u64,
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

impl Hello {
    pub fn encode(&self) -> [u8; HELLO_BYTES] {
        let mut bytes = [0; HELLO_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&VERSION.to_be_bytes());
        bytes[10] = self.job as u8;
        bytes[12..14].copy_from_slice(&self.seconds.to_be_bytes());
        bytes[16..].copy_from_slice(&self.run.to_be_bytes());
        bytes
    }

    pub fn decode(bytes: &[u8; HELLO_BYTES]) -> Result<Self, NetError> {
        check_version(bytes)?;
        let (job, seconds) = (bytes[10], u16::from_be_bytes([bytes[12], bytes[13]]));
        let known = [Job::Echo, Job::Take, Job::Send].into_iter().find(|known| *known as u8 == job);
        match known {
            Some(job) if seconds <= CONNECTION_SECONDS_MAX => {
                Ok(Self { job, seconds, run: u64_at(bytes, 16) })
            }
            _ => Err(NetError::Hello { job, seconds }),
        }
    }
}

fn check_version(bytes: &[u8]) -> Result<(), NetError> {
    if bytes[..8] != MAGIC {
        return Err(NetError::Magic);
    }
    match u16::from_be_bytes([bytes[8], bytes[9]]) {
        VERSION => Ok(()),
        other => Err(NetError::Version(other)),
    }
}

/// A connection within its limits.
pub struct Wire {
    stream: TcpStream,
    ends: Instant,
    left: u64,
}

impl Wire {
    /// `lasts`: until it is ended, however busy.
    pub fn new(stream: TcpStream, lasts: Duration) -> Result<Self, NetError> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TICK))?;
        stream.set_write_timeout(Some(TICK))?;
        Ok(Self { stream, ends: Instant::now() + lasts, left: BYTES_MAX })
    }

    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    pub fn ends_in(&mut self, lasts: Duration) {
        self.ends = Instant::now() + lasts;
    }

    fn spend(&mut self, bytes: usize) -> Result<(), NetError> {
        self.left = self.left.checked_sub(bytes as u64).ok_or(NetError::Bytes)?;
        Ok(())
    }

    /// Moves `total` bytes by `step`, which gets how many have moved.
    fn go_on(
        &mut self,
        total: usize,
        mut step: impl FnMut(&mut TcpStream, usize) -> std::io::Result<usize>,
    ) -> Result<(), NetError> {
        self.spend(total)?;
        let (mut moved, mut last) = (0, None);
        while moved < total {
            match step(&mut self.stream, moved) {
                Ok(0) => return Err(std::io::Error::from(ErrorKind::UnexpectedEof).into()),
                Ok(more) => (moved, last) = (moved + more, None),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    let since: &mut Instant = last.get_or_insert_with(Instant::now);
                    if since.elapsed() + TICK >= SILENCE {
                        return Err(NetError::Silence);
                    }
                }
                Err(error) => return Err(error.into()),
            }
            if moved < total && Instant::now() >= self.ends {
                return Err(NetError::Time);
            }
        }
        if Instant::now() >= self.ends { Err(NetError::Time) } else { Ok(()) }
    }

    pub fn read(&mut self, bytes: &mut [u8]) -> Result<(), NetError> {
        self.go_on(bytes.len(), |stream, moved| stream.read(&mut bytes[moved..]))
    }

    pub fn write(&mut self, bytes: &[u8]) -> Result<(), NetError> {
        self.go_on(bytes.len(), |stream, moved| stream.write(&bytes[moved..]))
    }

    /// Reads a frame into `buffer`, which grows to [`FRAME_BYTES_MAX`] at most; how many bytes it has.
    pub fn read_frame(&mut self, buffer: &mut Vec<u8>) -> Result<usize, NetError> {
        let mut length = [0; 4];
        self.read(&mut length)?;
        let length = u32::from_be_bytes(length);
        let bytes = length as usize;
        if bytes > FRAME_BYTES_MAX {
            return Err(NetError::Length(length));
        }
        if buffer.len() < bytes {
            buffer.resize(bytes, 0);
        }
        self.read(&mut buffer[..bytes])?;
        Ok(bytes)
    }

    /// `frame`: four bytes of room for the length, and the payload.
    pub fn write_frame(&mut self, frame: &mut [u8]) -> Result<(), NetError> {
        let length = frame.len() as u32 - 4;
        frame[..4].copy_from_slice(&length.to_be_bytes());
        self.write(frame)
    }

    pub fn answer(&mut self, status: Status) -> Result<(), NetError> {
        let mut bytes = [0; ANSWER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&VERSION.to_be_bytes());
        bytes[10] = status as u8;
        self.write(&bytes)
    }

    pub fn read_answer(&mut self) -> Result<(), NetError> {
        let mut bytes = [0; ANSWER_BYTES];
        self.read(&mut bytes)?;
        check_version(&bytes)?;
        match bytes[10] {
            0 => Ok(()),
            1 => Err(NetError::Busy(super::CONNECTIONS_MAX + 1)),
            other => Err(NetError::Refused(other)),
        }
    }

    pub fn report(&mut self, report: &Report) -> Result<(), NetError> {
        let mut frame = [0; 4 + REPORT_BYTES];
        for (at, number) in [report.bytes, report.segments, report.again].into_iter().enumerate() {
            frame[4 + 8 * at..12 + 8 * at].copy_from_slice(&number.to_be_bytes());
        }
        self.write_frame(&mut frame)
    }

    pub fn read_report(&mut self, buffer: &mut Vec<u8>) -> Result<Report, NetError> {
        match self.read_frame(buffer)? {
            REPORT_BYTES => Ok(Report {
                bytes: u64_at(buffer, 0),
                segments: u64_at(buffer, 8),
                again: u64_at(buffer, 16),
            }),
            other => Err(NetError::Unexpected(other)),
        }
    }
}
