//! The client of MQ's channels on a socket: one call after the other, with the connection kept alive between them.
//!
//! A session that is dropped ends its unit of work: the queue manager backs it out.
//!
//! Before and after: core/mq/src/client.rs decides.

use super::Alive;
use super::wire::Wire;
use crate::config::{MqConfig, PeerConfig};
use crate::error::BridgeError;
use barnabas_base::MonotonicMs;
use barnabas_mq::{
    Answered, Client, ClientConfig, ClientEvent, Descriptor, Got, Refusal, gmo, oo, pmo, reason,
};
use std::time::Duration;

/// Between two signs of life. The queue manager's channel may say less.
const HEARTBEAT_S: u32 = 30;

#[derive(Debug)]
pub struct MqSession {
    wire: Wire,
    client: Client,
    queue: String,
    handle: u32,
    calls: u64,
    /// As it calls itself.
    pub queue_manager: String,
}

/// What a queue is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Get,
    Put,
}

impl MqSession {
    /// Connects to the first address that answers, logs in, and opens the queue.
    ///
    /// # Errors
    /// What the last address ended with.
    pub async fn connect(
        peer: &PeerConfig,
        mq: &MqConfig,
        name: &str,
        purpose: Purpose,
    ) -> Result<Self, BridgeError> {
        let mut last = BridgeError::Config("no address is given".to_owned());
        for address in &peer.addresses {
            match Self::connect_to(address, peer, mq, name, purpose).await {
                Ok(session) => return Ok(session),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    async fn connect_to(
        address: &str,
        peer: &PeerConfig,
        mq: &MqConfig,
        name: &str,
        purpose: Purpose,
    ) -> Result<Self, BridgeError> {
        let wire = Wire::connect(address, peer).await?;
        let config = ClientConfig {
            channel: mq.channel.clone(),
            queue_manager: mq.queue_manager.clone(),
            application: name.to_owned(),
            user: mq.user.clone(),
            message_bytes_max: peer.message_bytes_max,
            heartbeat_s: HEARTBEAT_S,
        };
        let client = Client::new(config, MonotonicMs(0));
        let (queue, queue_manager) = (peer.queue.clone(), mq.queue_manager.clone());
        let mut session = Self { wire, client, queue, handle: 0, calls: 0, queue_manager };
        match session.next().await? {
            ClientEvent::Connected(Ok(name)) => session.queue_manager = name,
            ClientEvent::Connected(Err(why)) => {
                let object = format!("queue manager {} at {address}", mq.queue_manager);
                return Err(BridgeError::Call { call: "MQCONN", object, why });
            }
            _ => return Err(session.wire.lost("the queue manager ended it before it connected")),
        }
        let options = match purpose {
            Purpose::Get => oo::INPUT_AS_QUEUE,
            Purpose::Put => oo::OUTPUT,
        } | oo::FAIL_IF_QUIESCING;
        let answered = session.call("MQOPEN", |client| client.open(&peer.queue, options)).await?;
        session.handle = session.checked("MQOPEN", answered)?.handle;
        Ok(session)
    }

    /// MQGET under syncpoint, with a wait. `None`: the queue is empty.
    ///
    /// # Errors
    /// A refusal, a message that is too large, or the end of the connection.
    pub async fn get(&mut self, wait: Duration) -> Result<Option<Got>, BridgeError> {
        let options =
            gmo::WAIT | gmo::SYNCPOINT | gmo::CONVERT | gmo::PROPERTIES_FORCE_MQRFH2 | gmo::FAIL_IF_QUIESCING;
        let wait_ms = i32::try_from(wait.as_millis()).unwrap_or(i32::MAX);
        let handle = self.handle;
        let answered = self.call("MQGET", |client| client.get(handle, options, wait_ms)).await?;
        match answered.codes.1 {
            reason::NO_MSG_AVAILABLE => return Ok(None),
            reason::TRUNCATED_MSG_FAILED => return Err(self.too_large(answered.message)),
            _ => {}
        }
        // Of a warning the message is there, as it was put: that it could not be converted, for instance.
        Ok(self.checked("MQGET", answered)?.message)
    }

    fn too_large(&self, message: Option<Got>) -> BridgeError {
        let length = message.as_ref().map_or(0, |got| got.length);
        let most = self.client.message_bytes_max();
        BridgeError::Held {
            queue: self.queue.clone(),
            id: message.map(|got| barnabas_mq::jms::id_text(&got.md.msg_id)).unwrap_or_default(),
            why: format!("has {length} bytes, and {most} is the most that is taken"),
            advice: "Raise mq.message.bytes.max, and MAXMSGL of the channel",
        }
    }

    /// MQPUT under syncpoint. The inner refusal is of the message alone or of the queue: its advice says which.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn put(&mut self, md: &Descriptor, data: &[u8]) -> Result<Result<(), Refusal>, BridgeError> {
        let (handle, options) = (self.handle, pmo::SYNCPOINT | pmo::FAIL_IF_QUIESCING);
        let answered = self.call("MQPUT", |client| client.put(handle, md, options, data)).await?;
        Ok(refusal(&answered).map_or(Ok(()), Err))
    }

    /// MQPUT1 under syncpoint, to another queue.
    ///
    /// # Errors
    /// A refusal, or the end of the connection.
    pub async fn put_to(&mut self, queue: &str, got: &Got) -> Result<(), BridgeError> {
        let options = pmo::SYNCPOINT | pmo::FAIL_IF_QUIESCING;
        let answered = self.call("MQPUT1", |client| client.put1(queue, &got.md, options, &got.data)).await?;
        match refusal(&answered) {
            None => Ok(()),
            Some(why) => Err(BridgeError::Call { call: "MQPUT1", object: queue.to_owned(), why }),
        }
    }

    /// MQCMIT.
    ///
    /// # Errors
    /// The unit of work is backed out, or it is not known what became of it: its messages may come again.
    pub async fn commit(&mut self) -> Result<(), BridgeError> {
        let answered = self.call("MQCMIT", Client::commit).await?;
        match answered.codes {
            (reason::CC_OK, _) => Ok(()),
            (_, why) => Err(self.refused("MQCMIT", Refusal(why))),
        }
    }

    /// Ends in order; what is not committed is backed out.
    ///
    /// # Errors
    /// The connection ends before.
    pub async fn end(mut self) -> Result<(), BridgeError> {
        let handle = self.handle;
        self.call("MQBACK", Client::back_out).await?;
        self.call("MQCLOSE", |client| client.close(handle)).await?;
        self.call("MQDISC", Client::disconnect).await.map(drop)
    }

    /// Calls that were made so far.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// The largest message that the queue manager takes.
    pub fn message_bytes_max(&self) -> usize {
        self.client.message_bytes_max()
    }

    fn refused(&self, call: &'static str, why: Refusal) -> BridgeError {
        BridgeError::Call { call, object: format!("{} at {}", self.queue, self.queue_manager), why }
    }

    fn checked(&self, call: &'static str, answered: Answered) -> Result<Answered, BridgeError> {
        match refusal(&answered) {
            Some(why) => Err(self.refused(call, why)),
            None => Ok(answered),
        }
    }

    async fn call(
        &mut self,
        name: &'static str,
        say: impl FnOnce(&mut Client) + Send,
    ) -> Result<Answered, BridgeError> {
        say(&mut self.client);
        self.calls += 1;
        match self.next().await? {
            ClientEvent::Answered(answered) => Ok(*answered),
            _ => Err(self.wire.lost(format!("the queue manager ended it during {name}"))),
        }
    }

    async fn next(&mut self) -> Result<ClientEvent, BridgeError> {
        loop {
            if let Some(event) = self.client.next_event() {
                return Ok(event);
            }
            self.step().await?;
        }
    }

    fn queue_output(&mut self) {
        let out = self.client.take_output();
        self.wire.queue(&out);
    }
}

impl Alive for MqSession {
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
        Err(BridgeError::Mq { address: self.wire.address.clone(), source })
    }

    async fn flush(&mut self) -> Result<(), BridgeError> {
        self.queue_output();
        while self.wire.queued() > 0 {
            self.step().await?;
        }
        Ok(())
    }
}

/// A failure's reason. Warnings are none.
fn refusal(answered: &Answered) -> Option<Refusal> {
    (answered.codes.0 == reason::CC_FAILED).then_some(Refusal(answered.codes.1))
}
