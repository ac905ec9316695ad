//! The other end of an AMQP connection, played frame by frame, with TLS or without.

use barnabas_amqp::{
    Attach, Begin, Body, Close, Detach, Disposition, Flow, FrameDecoder, HEADER_AMQP, HEADER_SASL, Message,
    Open, Outcome, Performative, Properties, Sasl, Transfer, Value, encode_frame, encode_message,
};
use barnabas_net::Stream;
use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// A port of this machine.
pub async fn listen() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let port = listener.local_addr().expect("bound").port();
    (listener, port)
}

#[derive(Debug)]
pub struct Peer {
    stream: Stream,
    decoder: FrameDecoder,
}

impl Peer {
    pub fn new(stream: Stream) -> Self {
        Self { stream, decoder: FrameDecoder::new(1 << 20) }
    }

    pub async fn accept(listener: &TcpListener) -> Self {
        let (tcp, _) = listener.accept().await.expect("accepts");
        Self::new(Stream::plain(tcp))
    }

    async fn read(&mut self) {
        let mut buffer = [0; 4096];
        let count = self.stream.read(&mut buffer).await.expect("reads");
        assert_ne!(count, 0, "the bridge closed the connection");
        self.decoder.push(&buffer[..count]);
    }

    /// The next frame that is not empty.
    pub async fn hear(&mut self) -> (Performative, Bytes) {
        loop {
            match self.decoder.frame().expect("AMQP") {
                Some(frame) => match frame.body {
                    Some(body) => return (body, frame.payload),
                    None => continue,
                },
                None => self.read().await,
            }
        }
    }

    pub async fn say(&mut self, body: Performative, payload: &[u8]) {
        let mut bytes = BytesMut::new();
        encode_frame(&mut bytes, 0, Some(&body), payload);
        self.write(&bytes).await;
    }

    async fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.expect("writes");
        self.stream.flush().await.expect("flushes");
    }

    async fn header(&mut self, wanted: [u8; 8]) {
        loop {
            if let Some(header) = self.decoder.header() {
                assert_eq!(header, wanted);
                return self.write(&wanted).await;
            }
            self.read().await;
        }
    }

    /// Offers mechanisms.
    pub async fn offer(&mut self, offered: &[&str]) {
        self.header(HEADER_SASL).await;
        let offered = offered.iter().map(|name| (*name).to_owned()).collect();
        self.say(Performative::Sasl(Sasl::Mechanisms(offered)), &[]).await;
    }

    /// The login: the mechanism that the bridge took, and its first words.
    pub async fn log_in(&mut self, offered: &[&str]) -> (String, Bytes) {
        self.offer(offered).await;
        let (Performative::Sasl(Sasl::Init { mechanism, response, .. }), _) = self.hear().await else {
            panic!("no login");
        };
        self.say(Performative::Sasl(Sasl::Outcome(0)), &[]).await;
        (mechanism, response.unwrap_or_default())
    }

    /// Open and Begin, after the login.
    pub async fn open(&mut self) {
        self.header(HEADER_AMQP).await;
        assert!(matches!(self.hear().await.0, Performative::Open(_)));
        let open = Open { container_id: "peer".to_owned(), ..Open::default() };
        self.say(Performative::Open(open), &[]).await;
        assert!(matches!(self.hear().await.0, Performative::Begin(_)));
        let begin = Begin {
            remote_channel: Some(0),
            incoming_window: 1000,
            outgoing_window: 1000,
            ..Begin::default()
        };
        self.say(Performative::Begin(begin), &[]).await;
    }

    /// Answers the attach. A link that sends gets credit; of one that receives the credit is waited for.
    pub async fn attach(&mut self, max_message_size: Option<u64>) {
        let (Performative::Attach(attach), _) = self.hear().await else { panic!("no attach") };
        let is_receiver = !attach.is_receiver;
        let answer = Attach { is_receiver, initial_delivery_count: Some(0), max_message_size, ..*attach };
        self.say(Performative::Attach(Box::new(answer)), &[]).await;
        if is_receiver {
            let credit = Flow {
                next_incoming_id: Some(0),
                incoming_window: 1000,
                outgoing_window: 1000,
                handle: Some(0),
                delivery_count: Some(0),
                link_credit: Some(100),
                ..Flow::default()
            };
            return self.say(Performative::Flow(credit), &[]).await;
        }
        let is_credit =
            |body: &Performative| matches!(body, Performative::Flow(flow) if flow.link_credit > Some(0));
        while !is_credit(&self.hear().await.0) {}
    }

    /// Everything up to a link that works.
    pub async fn begin(listener: &TcpListener, max_message_size: Option<u64>) -> Self {
        let mut peer = Self::accept(listener).await;
        peer.log_in(&["ANONYMOUS"]).await;
        peer.open().await;
        peer.attach(max_message_size).await;
        peer
    }

    /// Sends a message of the queue.
    pub async fn put(&mut self, id: u32, body: &str) {
        let properties =
            Properties { message_id: Some(Value::string(&format!("id-{id}"))), ..Properties::default() };
        let body = Body::Data(Bytes::copy_from_slice(body.as_bytes()));
        let message = encode_message(&Message { properties, body, ..Message::default() });
        let delivery_tag = Some(Bytes::copy_from_slice(&id.to_be_bytes()));
        let transfer = Transfer { handle: 0, delivery_id: Some(id), delivery_tag, ..Transfer::default() };
        self.say(Performative::Transfer(transfer), &message).await;
    }

    /// Waits until the bridge has settled `count` deliveries: their outcomes, in order.
    pub async fn settled(&mut self, count: usize) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        while outcomes.len() < count {
            if let (Performative::Disposition(told), _) = self.hear().await {
                let last = told.last.unwrap_or(told.first);
                let outcome = told.state.expect("an outcome");
                outcomes.extend((told.first..=last).map(|_| outcome.clone()));
            }
        }
        outcomes
    }

    /// The next message that the bridge sends.
    pub async fn sent(&mut self) -> (Transfer, Bytes) {
        loop {
            if let (Performative::Transfer(transfer), payload) = self.hear().await {
                return (transfer, payload);
            }
        }
    }

    pub async fn settle(&mut self, transfer: &Transfer, outcome: Outcome) {
        let first = transfer.delivery_id.expect("an id");
        let told = Disposition { is_receiver: true, first, last: None, settled: true, state: Some(outcome) };
        self.say(Performative::Disposition(told), &[]).await;
    }

    /// Answers detach and close.
    pub async fn end(&mut self) {
        loop {
            match self.hear().await.0 {
                Performative::Detach(detach) => {
                    let answer = Detach { handle: detach.handle, closed: true, error: None };
                    self.say(Performative::Detach(answer), &[]).await;
                }
                Performative::Close(_) => return self.say(Performative::Close(Close::default()), &[]).await,
                _ => {}
            }
        }
    }
}
