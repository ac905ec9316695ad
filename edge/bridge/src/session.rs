//! The clients on a socket, with TLS or without: AMQP's here, MQ's in `mq`. Both are [`Alive`] while other work goes
//! on.
//!
//! [`Session::next`] reads and writes at the same time, so that a peer that writes before it reads cannot block
//! both. It can be dropped at any point and called again: nothing is lost.
//!
//! Before and after: core/amqp/src/client.rs decides.

pub mod mq;
mod wire;

use crate::config::PeerConfig;
use crate::error::BridgeError;
use barnabas_amqp::{
    Client, ClientConfig, DeliveryId, Event, LinkId, NotSent, Outcome, Peer, ReceiverConfig, SenderConfig,
};
use barnabas_base::MonotonicMs;
use bytes::Bytes;
use std::pin::pin;
use std::time::Duration;
use tokio::time::timeout;
use wire::{NAP, READS_MAX, STEP_TIMEOUT, Wire, host_of};

/// While so much waits to be written, nothing more is.
const WRITE_BYTES_MAX: usize = 1 << 20;

/// One connection with its session.
#[derive(Debug)]
pub struct Session {
    wire: Wire,
    client: Client,
}

/// A connection that goes on while other work is done.
pub trait Alive: Send {
    /// One read, one write that ended, or one timer. It can be dropped at any point.
    ///
    /// # Errors
    /// The connection is over.
    fn step(&mut self) -> impl Future<Output = Result<(), BridgeError>> + Send;

    /// Sends everything, and reads meanwhile: events wait in the client.
    ///
    /// # Errors
    /// The connection is over.
    fn flush(&mut self) -> impl Future<Output = Result<(), BridgeError>> + Send;

    /// Waits for `wait`, then reads what came meanwhile: one wake-up for all of it. Events wait in the client.
    ///
    /// # Errors
    /// The connection is over.
    fn nap(&mut self, wait: Duration) -> impl Future<Output = Result<(), BridgeError>> + Send {
        async move {
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
    }

    /// Does `work` while the connection goes on.
    ///
    /// # Errors
    /// The connection is over. The work was dropped then, at whatever point it had reached.
    fn during<T: Send>(
        &mut self,
        work: impl Future<Output = T> + Send,
    ) -> impl Future<Output = Result<T, BridgeError>> + Send {
        async move {
            let mut work = pin!(work);
            loop {
                tokio::select! {
                    biased;
                    done = &mut work => return Ok(done),
                    napped = self.nap(NAP) => napped?,
                }
            }
        }
    }
}

impl Alive for Session {
    async fn step(&mut self) -> Result<(), BridgeError> {
        self.queue_output();
        let read = self.wire.step(self.client.deadline()).await?;
        let now = self.wire.now();
        let taken = match read {
            Some(count) => self.client.receive(self.wire.read(count), now),
            None => self.client.tick(now),
        };
        let Err(source) = taken else { return Ok(()) };
        self.queue_output();
        self.wire.last_words().await;
        Err(BridgeError::Amqp { address: self.wire.address.clone(), source })
    }

    async fn flush(&mut self) -> Result<(), BridgeError> {
        self.queue_output();
        while self.wire.queued() > 0 {
            self.step().await?;
        }
        Ok(())
    }
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
        let wire = Wire::connect(address, peer).await?;
        let config = ClientConfig {
            container_id: container_id.to_owned(),
            hostname: Some(peer.hostname.clone().unwrap_or_else(|| host_of(address).to_owned())),
            login: peer.login.clone(),
            message_bytes_max: peer.message_bytes_max,
            idle_timeout_ms: peer.idle_timeout_ms,
            ..ClientConfig::default()
        };
        let mut session = Self { wire, client: Client::new(config, MonotonicMs(0)) };
        match session.next_within(STEP_TIMEOUT).await? {
            Some(Event::Ready(peer)) => Ok((session, peer)),
            _ => Err(session.wire.lost(format!("no login within {} s", STEP_TIMEOUT.as_secs()))),
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
        self.client.can_send(link) && self.wire.queued() < WRITE_BYTES_MAX
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

    fn queue_output(&mut self) {
        let out = self.client.take_output(self.wire.now());
        self.wire.queue(&out);
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
                None => return Err(self.wire.lost("the peer did not answer the detach")),
            }
        }
        self.client.close();
        while let Some(event) = self.next_within(STEP_TIMEOUT).await? {
            if event == Event::Closed {
                return Ok(());
            }
        }
        Err(self.wire.lost("the peer did not answer the close"))
    }
}
