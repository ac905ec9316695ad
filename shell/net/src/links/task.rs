//! A link's task: connects, writes requests, reads answers, and reports the state of the connection.

use super::login::{self, Idle};
use super::{Address, LinkError, LinkSettings, LinkState, Outgoing, header};
use crate::stream::{ReadHalf, Stream, WriteHalf};
use crate::{Budget, Claim, FrameError, FrameReader, FrameWriter};
use barnabas_base::Map;
use barnabas_wire::messages::{ApiVersionsRequest, ApiVersionsResponse};
use barnabas_wire::{ApiKey, RequestBody, ResponseBody, Str, VersionRange, decode_response, frame_request};
use bytes::Bytes;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{sleep_until, timeout};

/// The version of ApiVersions that every peer of Kafka 2.4 or later reads.
const API_VERSIONS: i16 = 3;
const SOFTWARE: &str = "barnabas";
/// A connection that ends within so long counts as a failed one.
const YOUNG: Duration = Duration::from_millis(100);
/// To make a connection takes no longer (Kafka's `socket.connection.setup.timeout.ms`), however long answers may take.
const SETUP: Duration = Duration::from_secs(10);
/// How long a peer is unreachable before the first report, and the time between reports.
const TROUBLE: Duration = Duration::from_secs(3);
/// The part of a session after which the link logs in again.
const LOGIN_AGAIN: f64 = 0.85;
const TOLD_AGAIN: Duration = Duration::from_secs(60);

pub(super) struct Task {
    address: Address,
    settings: LinkSettings,
    requests: mpsc::Receiver<Outgoing>,
    state: watch::Sender<LinkState>,
    correlation_id: i32,
    trouble: Option<Trouble>,
}

/// A peer that cannot be reached.
struct Trouble {
    since: Instant,
    told: Option<Instant>,
}

/// A request that was written.
struct Waiting {
    api: ApiKey,
    version: i16,
    correlation_id: i32,
    asked: Instant,
    until: Instant,
    reply: oneshot::Sender<Result<(Bytes, i16), LinkError>>,
}

/// A connection whose peer has said what it speaks.
struct Connected {
    stream: Stream,
    reader: FrameReader,
    versions: Map<i16, VersionRange>,
    /// When to log in again; `None`: never.
    login_at: Option<Instant>,
}

/// How a connection ended.
enum End {
    /// With the last clone of the link.
    NobodyAsks,
    Lost(Arc<str>),
    TimedOut,
}

impl Task {
    pub fn new(
        address: Address,
        settings: LinkSettings,
        requests: mpsc::Receiver<Outgoing>,
        state: watch::Sender<LinkState>,
    ) -> Self {
        Self { address, settings, requests, state, correlation_id: 0, trouble: None }
    }

    pub async fn run(mut self) {
        let mut backoff = self.settings.backoff_min;
        let mut first = self.requests.recv().await;
        if first.is_none() {
            return;
        }
        loop {
            let begun = barnabas_clock::now();
            match self.connect().await {
                Ok(connected) => {
                    self.trouble = None;
                    self.say(LinkState::Up);
                    let since = barnabas_clock::now();
                    let why = match self.serve(connected, first.take()).await {
                        End::NobodyAsks => return,
                        End::Lost(why) => why,
                        End::TimedOut => "a request was not answered in time".into(),
                    };
                    self.say(LinkState::Lost);
                    // The next connection tells whether the peer is gone. A peer that closes each one soon is not asked
                    // again and again.
                    if barnabas_clock::since(since) >= YOUNG {
                        backoff = self.settings.backoff_min;
                    } else {
                        if !self.rest(backoff, &why).await {
                            return;
                        }
                        backoff = (backoff * 2).min(self.settings.backoff_max);
                    }
                }
                Err(error) => {
                    let is_refused = error.kind() == io::ErrorKind::ConnectionRefused;
                    self.say(if is_refused { LinkState::Refused } else { LinkState::Unreachable });
                    let why: Arc<str> = error.to_string().into();
                    self.complain(begun, &why);
                    if let Some(first) = first.take() {
                        self.unreachable(first, &why);
                    }
                    if !self.rest(backoff, &why).await {
                        return;
                    }
                    // The next request is the reason to connect again.
                    first = self.requests.recv().await;
                    if first.is_none() {
                        return;
                    }
                    backoff = (backoff * 2).min(self.settings.backoff_max);
                }
            }
        }
    }

    fn say(&self, state: LinkState) {
        self.state.send_if_modified(|known| std::mem::replace(known, state) != state);
    }

    /// Says that the peer cannot be reached, once that is no mere restart, and not all the time.
    fn complain(&mut self, begun: Instant, why: &str) {
        let trouble = self.trouble.get_or_insert(Trouble { since: begun, told: None });
        let is_due = match trouble.told {
            None => barnabas_clock::since(trouble.since) >= TROUBLE,
            Some(told) => barnabas_clock::since(told) >= TOLD_AGAIN,
        };
        if is_due {
            trouble.told = Some(barnabas_clock::now());
            let seconds = barnabas_clock::since(trouble.since).as_secs();
            let (who, address) = (&*self.settings.client_id, &self.address);
            // INFO only: the controller reports brokers that are down, and this line gives the
            // reason.
            tracing::info!("{who} could not connect to {address} for {seconds} s: {why}; retrying");
        }
    }

    fn unreachable(&self, outgoing: Outgoing, why: &Arc<str>) {
        // The caller may have stopped waiting.
        let error = LinkError::Unreachable { to: self.address.clone(), why: why.clone() };
        drop(outgoing.reply.send(Err(error)));
    }

    /// Waits before the next connection attempt; requests fail meanwhile. `false`: all callers are
    /// gone.
    async fn rest(&mut self, backoff: Duration, why: &Arc<str>) -> bool {
        let until = (barnabas_clock::now() + backoff).into();
        loop {
            tokio::select! {
                biased;
                next = self.requests.recv() => match next {
                    Some(next) => self.unreachable(next, why),
                    None => return false,
                },
                () = sleep_until(until) => return true,
            }
        }
    }

    async fn connect(&mut self) -> io::Result<Connected> {
        let patience = self.settings.timeout.min(SETUP);
        let late = || io::Error::new(io::ErrorKind::TimedOut, "no answer in time");
        timeout(patience, self.open()).await.map_err(|_| late())?
    }

    /// Connects, and asks which versions are spoken.
    async fn open(&mut self) -> io::Result<Connected> {
        let stream = TcpStream::connect((&*self.address.host, self.address.port)).await?;
        stream.set_nodelay(true)?;
        if self.settings.is_cut_off {
            stream.set_zero_linger()?;
        }
        let stream = Stream::greet(stream, &self.address.host, self.settings.tls.as_deref()).await?;
        let budget = Budget::new(2 * self.settings.answer_bytes_max as u64);
        let mut connected = Connected {
            stream,
            reader: FrameReader::new(budget.claim(None), self.settings.answer_bytes_max),
            versions: Map::default(),
            login_at: None,
        };
        let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
        let request = ApiVersionsRequest {
            client_software_name: Str::from_static(SOFTWARE),
            client_software_version: Str::from_static(env!("CARGO_PKG_VERSION")),
            ..ApiVersionsRequest::default()
        };
        let body = RequestBody::from(request);
        let client_id = Some(self.settings.client_id.clone());
        let header = header(ApiKey::ApiVersions, API_VERSIONS, 0, client_id);
        let frame = frame_request(&header, &body).map_err(|error| invalid(error.to_string()))?;
        let mut writer = FrameWriter::default();
        writer.queue(frame.segments);
        let (mut read, write) = connected.stream.split();
        writer.flush(&write).await?;
        let answer = match connected.reader.next(&mut read).await {
            Ok(Some((frame, _claim))) => frame,
            Ok(None) => return Err(io::ErrorKind::ConnectionReset.into()),
            Err(FrameError::Io(error)) => return Err(error),
            Err(error) => return Err(invalid(error.to_string())),
        };
        let decoded = decode_response(answer, ApiKey::ApiVersions, API_VERSIONS);
        let (_, body) = decoded.map_err(|error| invalid(error.to_string()))?;
        let ResponseBody::ApiVersions(response) = body else {
            return Err(invalid("another answer than was asked for".to_owned()));
        };
        connected.versions = versions(&response);
        let idle = Idle {
            reader: &mut connected.reader,
            read: &mut read,
            write: &write,
            client_id: &self.settings.client_id,
            correlation_id: &mut self.correlation_id,
        };
        if let Some(login) = &self.settings.login {
            let login = (&*self.address.host, login);
            connected.login_at = again_at(login::log_in(idle, &connected.versions, login).await?);
        }
        Ok(connected)
    }

    async fn serve(&mut self, connected: Connected, first: Option<Outgoing>) -> End {
        let Connected { mut stream, mut reader, versions, login_at } = connected;
        let (mut read, write) = stream.split();
        let mut writer = FrameWriter::default();
        let mut waiting: VecDeque<Waiting> = VecDeque::new();
        if let Some(first) = first {
            self.begin(first, &versions, &mut writer, &mut waiting);
        }
        let mut halves = (&mut read, &write);
        let end =
            self.exchange(&mut reader, &mut halves, (&versions, login_at), &mut writer, &mut waiting).await;
        let now = barnabas_clock::now();
        for waiting in waiting {
            let to = self.address.clone();
            let error = match &end {
                End::TimedOut if waiting.until <= now => {
                    let after_ms = barnabas_clock::since(waiting.asked).as_millis() as u64;
                    LinkError::TimedOut { to, api: waiting.api, after_ms }
                }
                End::TimedOut => LinkError::Lost { to, why: "a request before this was not answered".into() },
                End::Lost(why) => LinkError::Lost { to, why: why.clone() },
                End::NobodyAsks => LinkError::Ended { to },
            };
            drop(waiting.reply.send(Err(error)));
        }
        end
    }

    async fn exchange<'b>(
        &mut self,
        reader: &mut FrameReader,
        (read, write): &mut (&mut ReadHalf<'b>, &WriteHalf<'b>),
        (versions, mut login_at): (&Map<i16, VersionRange>, Option<Instant>),
        writer: &mut FrameWriter,
        waiting: &mut VecDeque<Waiting>,
    ) -> End {
        loop {
            // The login waits until what is under way is answered, and nothing new begins meanwhile.
            let must_login = login_at.is_some_and(|at| at <= barnabas_clock::now());
            if must_login && waiting.is_empty() && writer.is_empty() {
                match self.log_in_again(reader, (read, write), versions).await {
                    Ok(next) => login_at = next,
                    Err(error) => return End::Lost(error.to_string().into()),
                }
                continue;
            }
            let until = waiting.iter().map(|waiting| waiting.until).min();
            let has_room = waiting.len() < self.settings.in_flight_max && !must_login;
            tokio::select! {
                biased;
                frame = reader.next(read) => match answered(frame, waiting) {
                    Ok(()) => {}
                    Err(why) => return End::Lost(why),
                },
                flushed = writer.flush(write), if !writer.is_empty() || write.has_out() => {
                    if let Err(error) = flushed {
                        return End::Lost(error.to_string().into());
                    }
                }
                next = self.requests.recv(), if has_room => match next {
                    None => return End::NobodyAsks,
                    Some(outgoing) => self.begin(outgoing, versions, writer, waiting),
                },
                () = sleep_until(until.unwrap_or_else(barnabas_clock::now).into()), if until.is_some() => {
                    return End::TimedOut;
                }
                () = sleep_until(login_at.unwrap_or_else(barnabas_clock::now).into()),
                    if login_at.is_some() && !must_login => {}
            }
        }
    }

    /// The session on the other side ends soon (KIP-368).
    async fn log_in_again<'b>(
        &mut self,
        reader: &mut FrameReader,
        (read, write): (&mut ReadHalf<'b>, &WriteHalf<'b>),
        versions: &Map<i16, VersionRange>,
    ) -> io::Result<Option<Instant>> {
        let Some(login) = &self.settings.login else { return Ok(None) };
        let patience = self.settings.timeout.min(SETUP);
        let (client_id, correlation_id) = (&self.settings.client_id, &mut self.correlation_id);
        let idle = Idle { reader, read, write, client_id, correlation_id };
        let login = (&*self.address.host, login);
        let lifetime = timeout(patience, login::log_in(idle, versions, login)).await;
        lifetime.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?.map(again_at)
    }

    /// Writes a request in the newest version that both sides speak, or says why not.
    fn begin(
        &mut self,
        outgoing: Outgoing,
        versions: &Map<i16, VersionRange>,
        writer: &mut FrameWriter,
        waiting: &mut VecDeque<Waiting>,
    ) {
        let Outgoing { api, ours, encode, asked, patience, reply } = outgoing;
        if reply.is_closed() {
            return;
        }
        let to = self.address.clone();
        let newest = versions.get(&api.number()).and_then(|theirs| {
            let newest = ours.max.min(theirs.max);
            (newest >= ours.min.max(theirs.min)).then_some(newest)
        });
        self.correlation_id = self.correlation_id.wrapping_add(1);
        let correlation_id = self.correlation_id;
        let encoded = match newest {
            None => Err(LinkError::Unsupported { to, api }),
            Some(version) => match encode(version, correlation_id) {
                Ok(Some(frame)) => Ok((frame, version)),
                Ok(None) => Err(LinkError::Unsupported { to, api }),
                Err(error) => Err(error.into()),
            },
        };
        match encoded {
            // The caller may have stopped waiting.
            Err(error) => drop(reply.send(Err(error))),
            Ok((frame, version)) => {
                writer.queue(frame.segments);
                let until = asked + patience;
                waiting.push_back(Waiting { api, version, correlation_id, asked, until, reply });
            }
        }
    }
}

/// When to log in again, for a session that lasts so long: Kafka's clients do after 85 to 95 % of it.
fn again_at(lifetime: Option<Duration>) -> Option<Instant> {
    lifetime.map(|lifetime| barnabas_clock::now() + lifetime.mul_f64(LOGIN_AGAIN))
}

fn versions(response: &ApiVersionsResponse) -> Map<i16, VersionRange> {
    let ranges = response
        .api_keys
        .iter()
        .map(|row| (row.api_key, VersionRange::new(row.min_version, row.max_version)));
    ranges.collect()
}

/// Passes the next answer to the oldest request in flight: peers answer in the order of the
/// requests.
fn answered(
    frame: Result<Option<(Bytes, Claim)>, FrameError>,
    waiting: &mut VecDeque<Waiting>,
) -> Result<(), Arc<str>> {
    let frame = match frame {
        Ok(Some((frame, _claim))) => frame,
        Ok(None) => return Err("the peer closed it".into()),
        Err(error) => return Err(error.to_string().into()),
    };
    let correlation_id = frame.first_chunk::<4>().map(|word| i32::from_be_bytes(*word));
    match waiting.pop_front() {
        Some(next) if Some(next.correlation_id) == correlation_id => {
            // The caller may have stopped waiting.
            drop(next.reply.send(Ok((frame, next.version))));
            Ok(())
        }
        Some(next) => {
            let why: Arc<str> =
                format!("answer {} to question {}", correlation_id.unwrap_or_default(), next.correlation_id)
                    .into();
            waiting.push_front(next);
            Err(why)
        }
        None => Err("an answer without a request".into()),
    }
}
