//! The AMQP client on a socket, with TLS or without.
//!
//! [`Session::next`] reads and writes at the same time, so that a peer that writes before it reads cannot block
//! both. It can be dropped at any point and called again: nothing is lost.
//!
//! Before and after: core/amqp/src/client.rs decides.

use crate::config::PeerConfig;
use crate::error::BridgeError;
use barnabas_amqp::{
    Client, ClientConfig, DeliveryId, Event, LinkId, NotSent, Outcome, Peer, ReceiverConfig, SenderConfig,
};
use barnabas_base::MonotonicMs;
use barnabas_net::Stream;
use bytes::{Buf, Bytes, BytesMut};
use std::future::poll_fn;
use std::io::{ErrorKind, Result as IoResult};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// For connecting, for the login, and for each link.
const STEP_TIMEOUT: Duration = Duration::from_secs(15);
/// What is read at once.
const READ_BYTES: usize = 64 * 1024;
/// Reads after a nap. What is left is read after the next one: the link's credit bounds it anyway.
const READS_MAX: usize = 16;
/// While work goes on beside, the socket is looked at so often: not for each message that arrives.
const NAP: Duration = Duration::from_millis(2);
/// While so much waits to be written, nothing more is.
const WRITE_BYTES_MAX: usize = 1 << 20;

/// One connection with its session.
#[derive(Debug)]
pub struct Session {
    address: String,
    started: Instant,
    stream: Stream,
    client: Client,
    /// On its way to the socket.
    out: BytesMut,
    buffer: Vec<u8>,
}

impl Session {
    /// How a peer calls itself: product and version, where it says them.
    pub fn name_of(peer: &Peer) -> String {
        match (peer.product.as_str(), peer.version.as_str()) {
            ("", _) => "a peer without a name".to_owned(),
            (product, "") => product.to_owned(),
            (product, version) => format!("{product} {version}"),
        }
    }

    /// Connects to the first address that answers, and logs in.
    ///
    /// # Errors
    /// What the last address ended with.
    pub async fn connect(peer: &PeerConfig, container_id: &str) -> Result<(Self, Peer), BridgeError> {
        let mut last = BridgeError::Config("no address is given".to_owned());
        for address in &peer.addresses {
            match Self::connect_to(address, peer, container_id).await {
                Ok(session) => return Ok(session),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    async fn connect_to(
        address: &str,
        peer: &PeerConfig,
        container_id: &str,
    ) -> Result<(Self, Peer), BridgeError> {
        let unreachable = |why: String| BridgeError::Unreachable { address: address.to_owned(), why };
        let late = || format!("no answer within {} s", STEP_TIMEOUT.as_secs());
        let tcp = match timeout(STEP_TIMEOUT, TcpStream::connect(address)).await {
            Ok(connected) => connected.map_err(|error| unreachable(error.to_string()))?,
            Err(_) => return Err(unreachable(late())),
        };
        tcp.set_nodelay(true).map_err(|error| unreachable(error.to_string()))?;
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let stream = match timeout(STEP_TIMEOUT, Stream::greet(tcp, host, peer.tls.as_deref())).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => {
                return Err(BridgeError::Tls { address: address.to_owned(), why: error.to_string() });
            }
            Err(_) => return Err(BridgeError::Tls { address: address.to_owned(), why: late() }),
        };
        let config = ClientConfig {
            container_id: container_id.to_owned(),
            hostname: Some(peer.hostname.clone().unwrap_or_else(|| host.to_owned())),
            login: peer.login.clone(),
            message_bytes_max: peer.message_bytes_max,
            idle_timeout_ms: peer.idle_timeout_ms,
            ..ClientConfig::default()
        };
        let mut session = Self {
            address: address.to_owned(),
            started: Instant::now(),
            stream,
            client: Client::new(config, MonotonicMs(0)),
            out: BytesMut::new(),
            buffer: vec![0; READ_BYTES],
        };
        match session.next_within(STEP_TIMEOUT).await? {
            Some(Event::Ready(peer)) => Ok((session, peer)),
            _ => Err(session.lost(format!("no login within {} s", STEP_TIMEOUT.as_secs()))),
        }
    }

    /// Attaches a link that receives, and waits for the peer's word.
    ///
    /// # Errors
    /// The peer's refusal.
    pub async fn receiver(&mut self, config: &ReceiverConfig) -> Result<LinkId, BridgeError> {
        let link = self.client.attach_receiver(config);
        self.attached(link, &config.address).await
    }

    /// The same for a link that sends.
    ///
    /// # Errors
    /// The peer's refusal.
    pub async fn sender(&mut self, config: &SenderConfig) -> Result<LinkId, BridgeError> {
        let link = self.client.attach_sender(config);
        self.attached(link, &config.address).await
    }

    async fn attached(&mut self, link: Option<LinkId>, queue: &str) -> Result<LinkId, BridgeError> {
        let refused = |why: String| BridgeError::Link { queue: queue.to_owned(), why };
        let link = link.ok_or_else(|| refused("the session has no room for it".to_owned()))?;
        loop {
            match self.next_within(STEP_TIMEOUT).await? {
                Some(Event::Attached(attached)) if attached == link => return Ok(link),
                Some(Event::Detached(detached, why)) if detached == link => {
                    return Err(refused(why.unwrap_or_default().to_string()));
                }
                // Credit of a sender that was attached before stays in the client.
                Some(_) => {}
                None => return Err(refused(format!("no answer within {} s", STEP_TIMEOUT.as_secs()))),
            }
        }
    }

    pub fn grant(&mut self, link: LinkId, credit: u32) {
        self.client.grant(link, credit);
    }

    pub fn credit(&self, link: LinkId) -> u32 {
        self.client.credit(link)
    }

    pub fn settle(&mut self, first: DeliveryId, last: DeliveryId, outcome: Outcome) {
        self.client.settle(first, last, outcome);
    }

    pub fn can_send(&self, link: LinkId) -> bool {
        self.client.can_send(link) && self.out.len() < WRITE_BYTES_MAX
    }

    /// As [`Client::send`].
    ///
    /// # Errors
    /// [`NotSent`].
    pub fn send(&mut self, link: LinkId, message: Bytes) -> Result<DeliveryId, NotSent> {
        let sent = self.client.send(link, message);
        self.queue_output();
        sent
    }

    /// Deliveries that were sent and have no outcome.
    pub fn unsettled(&self) -> usize {
        self.client.unsettled()
    }

    /// Payloads of so many bytes were dropped: the peer may send as much again.
    pub fn release(&mut self, bytes: usize) {
        self.client.release(bytes);
    }

    /// Frames that were written so far.
    pub fn frames_written(&self) -> u64 {
        self.client.frames_written()
    }

    /// An event that is there already.
    pub fn ready(&mut self) -> Option<Event> {
        self.client.next_event()
    }

    /// Does `work` while the connection goes on: it is kept alive, and events wait in the client.
    ///
    /// # Errors
    /// The connection is over. The work was dropped then, at whatever point it had reached.
    pub async fn during<T>(&mut self, work: impl Future<Output = T>) -> Result<T, BridgeError> {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                napped = self.nap(NAP) => napped?,
            }
        }
    }

    /// The next event, or `None` when `wait` has passed without one.
    ///
    /// # Errors
    /// As [`Self::next`].
    pub async fn next_within(&mut self, wait: Duration) -> Result<Option<Event>, BridgeError> {
        if let Some(event) = self.client.next_event() {
            return Ok(Some(event));
        }
        match timeout(wait, self.next()).await {
            Ok(event) => event.map(Some),
            Err(_) => Ok(None),
        }
    }

    /// Waits for `wait`, then reads what came meanwhile: one wake-up for all of it. Events wait in the client.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn nap(&mut self, wait: Duration) -> Result<(), BridgeError> {
        self.flush().await?;
        tokio::time::sleep(wait).await;
        for _ in 0..READS_MAX {
            // A step that would wait is dropped, and loses nothing.
            match timeout(Duration::ZERO, self.step()).await {
                Ok(stepped) => stepped?,
                Err(_) => break,
            }
        }
        Ok(())
    }

    /// The next event. Sends what is to be sent, and keeps the connection alive.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn next(&mut self) -> Result<Event, BridgeError> {
        loop {
            if let Some(event) = self.client.next_event() {
                return Ok(event);
            }
            self.step().await?;
        }
    }

    /// Sends everything, and reads meanwhile: events wait in the client.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn flush(&mut self) -> Result<(), BridgeError> {
        self.queue_output();
        while !self.out.is_empty() {
            self.step().await?;
        }
        Ok(())
    }

    /// One read, one write that ended, or one timer.
    async fn step(&mut self) -> Result<(), BridgeError> {
        self.queue_output();
        let deadline = self.started + Duration::from_millis(self.client.deadline().0);
        let (stream, out, buffer) = (&mut self.stream, &mut self.out, &mut self.buffer[..]);
        let read = tokio::select! {
            done = poll_fn(|context| poll_both(stream, out, buffer, context)) => done.transpose(),
            () = tokio::time::sleep_until(deadline.into()) => None,
        };
        let now = self.now();
        match read {
            Some(Ok(0)) => return Err(self.lost("the peer closed it")),
            Some(Ok(count)) => {
                let taken = self.client.receive(&self.buffer[..count], now);
                return self.checked(taken).await;
            }
            Some(Err(error)) if error.kind() == ErrorKind::InvalidData => {
                return Err(BridgeError::Tls { address: self.address.clone(), why: error.to_string() });
            }
            Some(Err(error)) => return Err(self.lost(error)),
            None => {}
        }
        let ticked = self.client.tick(now);
        self.checked(ticked).await
    }

    /// On an error the peer still gets our last words, if it takes them.
    async fn checked(&mut self, taken: Result<(), barnabas_amqp::AmqpError>) -> Result<(), BridgeError> {
        let Err(source) = taken else { return Ok(()) };
        self.queue_output();
        // The connection is over either way.
        let _ = timeout(Duration::from_millis(100), self.stream.write_all(&self.out)).await;
        Err(BridgeError::Amqp { address: self.address.clone(), source })
    }

    fn queue_output(&mut self) {
        let now = self.now();
        let out = self.client.take_output(now);
        if !out.is_empty() {
            self.out.extend_from_slice(&out);
        }
    }

    /// Ends the link and the connection. What was not settled is delivered again, to other consumers too.
    ///
    /// # Errors
    /// The peer does not answer.
    pub async fn close(mut self, link: LinkId) -> Result<(), BridgeError> {
        self.client.detach(link);
        loop {
            match self.next_within(STEP_TIMEOUT).await? {
                Some(Event::Detached(detached, _)) if detached == link => break,
                Some(_) => {}
                None => return Err(self.lost("the peer did not answer the detach")),
            }
        }
        self.client.close();
        while let Some(event) = self.next_within(STEP_TIMEOUT).await? {
            if event == Event::Closed {
                return Ok(());
            }
        }
        Err(self.lost("the peer did not answer the close"))
    }

    fn now(&self) -> MonotonicMs {
        MonotonicMs(self.started.elapsed().as_millis() as u64)
    }

    fn lost(&self, why: impl std::fmt::Display) -> BridgeError {
        BridgeError::Lost { address: self.address.clone(), why: why.to_string() }
    }
}

/// Writes and reads as far as the socket goes. Ready with the bytes that were read (0: the peer closed), or with
/// `None` once everything is written.
fn poll_both(
    stream: &mut Stream,
    out: &mut BytesMut,
    buffer: &mut [u8],
    context: &mut Context<'_>,
) -> Poll<IoResult<Option<usize>>> {
    let had_output = !out.is_empty();
    while !out.is_empty() {
        match Pin::new(&mut *stream).poll_write(context, out) {
            Poll::Ready(Ok(0)) => return Poll::Ready(Err(ErrorKind::WriteZero.into())),
            Poll::Ready(Ok(count)) => out.advance(count),
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            Poll::Pending => break,
        }
    }
    let flushed = Pin::new(&mut *stream).poll_flush(context);
    if let Poll::Ready(Err(error)) = flushed {
        return Poll::Ready(Err(error));
    }
    let mut into = ReadBuf::new(buffer);
    if let Poll::Ready(done) = Pin::new(stream).poll_read(context, &mut into) {
        return Poll::Ready(done.map(|()| Some(into.filled().len())));
    }
    if had_output && out.is_empty() && flushed.is_ready() { Poll::Ready(Ok(None)) } else { Poll::Pending }
}
