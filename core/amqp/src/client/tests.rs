//! Conversations with a peer that the test plays, frame by frame.

use super::*;
mod bounds;

use crate::performative::{Attach, Disposition, Terminus, Transfer};

/// Frames of the session's window where nothing is held.
const WINDOW: u32 = 2048;

fn at(ms: u64) -> MonotonicMs {
    MonotonicMs(ms)
}

fn config(login: Login) -> ClientConfig {
    ClientConfig {
        login,
        message_bytes_max: 1000,
        frame_bytes_max: 1024,
        idle_timeout_ms: 500,
        ..Default::default()
    }
}

/// A client and what its peer has read of it.
struct Talk {
    client: Client,
    heard: FrameDecoder,
}

impl Talk {
    fn new(login: Login) -> Self {
        Self::with(config(login))
    }

    fn with(config: ClientConfig) -> Self {
        Self { client: Client::new(config, at(0)), heard: FrameDecoder::new(1 << 20) }
    }

    fn flush(&mut self) {
        let out = self.client.take_output(at(0));
        self.heard.push(&out);
    }

    fn header(&mut self) -> [u8; 8] {
        self.flush();
        self.heard.header().expect("a header")
    }

    fn frame(&mut self) -> Frame {
        self.flush();
        self.heard.frame().expect("whole").expect("a frame")
    }

    fn body(&mut self) -> Performative {
        self.frame().body.expect("a body")
    }

    fn is_quiet(&mut self) -> bool {
        self.flush();
        self.heard.frame() == Ok(None)
    }

    fn say(&mut self, body: Performative, payload: &[u8]) -> Result<(), AmqpError> {
        let mut bytes = BytesMut::new();
        encode_frame(&mut bytes, 0, Some(&body), payload);
        // In two pieces, as a socket may bring it.
        let (front, back) = bytes.split_at(bytes.len() / 2);
        self.client.receive(front, at(1))?;
        self.client.receive(back, at(1))
    }

    fn said(&mut self, body: Performative) {
        self.say(body, &[]).expect("taken");
    }

    fn event(&mut self) -> Event {
        self.client.next_event().expect("an event")
    }

    /// A session is there. The peer takes frames of 600 bytes and has a window of `window` of them.
    fn ready(window: u32) -> Self {
        Self::ready_with(window, config(Login::None))
    }

    fn ready_with(window: u32, config: ClientConfig) -> Self {
        let mut talk = Self::with(config);
        assert_eq!(talk.header(), HEADER_AMQP);
        talk.client.receive(&HEADER_AMQP, at(0)).expect("AMQP");
        assert!(matches!(talk.body(), Performative::Open(_)));
        let properties = vec![(Value::symbol("product"), Value::string("peer"))];
        talk.said(Performative::Open(Open {
            container_id: "p".to_owned(),
            max_frame_size: Some(600),
            idle_time_out_ms: Some(200),
            properties,
            ..Open::default()
        }));
        assert!(matches!(talk.body(), Performative::Begin(_)));
        talk.said(Performative::Begin(Begin {
            remote_channel: Some(0),
            next_outgoing_id: 7,
            incoming_window: window,
            outgoing_window: 100,
            handle_max: None,
        }));
        let Event::Ready(peer) = talk.event() else { panic!("not ready") };
        assert_eq!((&*peer.container_id, &*peer.product), ("p", "peer"));
        talk
    }

    fn answer_attach(&mut self, max_message_size: Option<u64>) -> LinkId {
        let Performative::Attach(attach) = self.body() else { panic!("no attach") };
        self.said(Performative::Attach(Box::new(Attach {
            handle: 3,
            is_receiver: !attach.is_receiver,
            initial_delivery_count: Some(u32::MAX),
            max_message_size,
            ..*attach
        })));
        let Event::Attached(link) = self.event() else { panic!("not attached") };
        link
    }

    fn receiver(&mut self) -> LinkId {
        let config = ReceiverConfig {
            name: "r".to_owned(),
            address: "q".to_owned(),
            capabilities: vec!["queue".to_owned()],
            filter: Some(Filter::Selector("a = 1".to_owned())),
        };
        let link = self.client.attach_receiver(&config).expect("ready");
        assert_eq!(self.answer_attach(None), link);
        link
    }

    fn sender(&mut self, credit: u32) -> LinkId {
        self.sender_of(credit, None)
    }

    fn sender_of(&mut self, credit: u32, message_bytes_max: Option<u64>) -> LinkId {
        let config = SenderConfig { name: "s".to_owned(), address: "q".to_owned(), capabilities: Vec::new() };
        let link = self.client.attach_sender(&config).expect("ready");
        assert_eq!(self.answer_attach(message_bytes_max), link);
        self.said(flow(Some(3), 0, credit));
        assert_eq!(self.event(), Event::Credit(link));
        link
    }
}

fn flow(handle: Option<u32>, next_incoming_id: u32, credit: u32) -> Performative {
    Performative::Flow(Flow {
        next_incoming_id: Some(next_incoming_id),
        incoming_window: 2,
        outgoing_window: 10,
        handle,
        delivery_count: handle.map(|_| 0),
        link_credit: handle.map(|_| credit),
        ..Flow::default()
    })
}

fn transfer(id: Option<u32>, more: bool) -> Performative {
    let delivery_tag = id.map(|_| Bytes::from_static(b"t"));
    Performative::Transfer(Transfer { handle: 3, delivery_id: id, delivery_tag, more, ..Default::default() })
}

fn told(first: u32, last: Option<u32>, settled: bool, state: Outcome) -> Performative {
    Performative::Disposition(Disposition { is_receiver: true, first, last, settled, state: Some(state) })
}

#[test]
fn plain_login_comes_before_open() {
    let login = Login::Plain { user: "u".to_owned(), password: "p".to_owned() };
    assert_eq!(format!("{login:?}"), "Plain(u)");
    let mut talk = Talk::new(login);
    assert_eq!(talk.header(), HEADER_SASL);
    talk.client.receive(&HEADER_SASL, at(0)).expect("SASL");
    let offered = ["SCRAM-SHA-256", "PLAIN"].map(str::to_owned).to_vec();
    talk.said(Performative::Sasl(Sasl::Mechanisms(offered)));
    let Performative::Sasl(Sasl::Init { mechanism, response, .. }) = talk.body() else { panic!("no init") };
    assert_eq!((&*mechanism, response.as_deref()), ("PLAIN", Some(&b"\0u\0p"[..])));
    talk.said(Performative::Sasl(Sasl::Outcome(0)));
    assert_eq!(talk.header(), HEADER_AMQP);
    talk.client.receive(&HEADER_AMQP, at(0)).expect("AMQP");
    assert!(matches!(talk.body(), Performative::Open(_)));
}

#[test]
fn login_that_is_refused_or_not_offered_ends_the_connection() {
    let mut talk = Talk::new(Login::External);
    talk.client.receive(&HEADER_SASL, at(0)).expect("SASL");
    let none = talk.say(Performative::Sasl(Sasl::Mechanisms(vec!["PLAIN".to_owned()])), &[]);
    assert_eq!(none, Err(AmqpError::Mechanism { offered: "PLAIN".to_owned(), wanted: "EXTERNAL" }));
    let mut talk = Talk::new(Login::Anonymous);
    talk.client.receive(&HEADER_SASL, at(0)).expect("SASL");
    talk.said(Performative::Sasl(Sasl::Mechanisms(vec!["ANONYMOUS".to_owned()])));
    assert_eq!(talk.say(Performative::Sasl(Sasl::Outcome(1)), &[]), Err(AmqpError::Login(1)));
    let mut talk = Talk::new(Login::Anonymous);
    assert_eq!(talk.client.receive(b"HTTP/1.1", at(0)), Err(AmqpError::Header(*b"HTTP/1.1")));
}

#[test]
fn message_of_several_frames_is_joined_and_a_large_one_is_cut() {
    let mut talk = Talk::ready(100);
    let link = talk.receiver();
    talk.client.grant(link, 2);
    let Performative::Flow(granted) = talk.body() else { panic!("no flow") };
    assert_eq!((granted.delivery_count, granted.link_credit), (Some(u32::MAX), Some(2)));
    assert_eq!(granted.next_incoming_id, Some(7));
    talk.say(transfer(Some(0), true), b"ab").expect("taken");
    talk.say(transfer(None, false), b"cd").expect("taken");
    let Event::Message(delivery) = talk.event() else { panic!("no message") };
    assert_eq!((&delivery.payload[..], delivery.size_bytes, delivery.id), (&b"abcd"[..], 4, DeliveryId(0)));
    talk.say(transfer(Some(1), true), &[1; 900]).expect("taken");
    talk.say(transfer(None, false), &[1; 900]).expect("taken");
    let Event::Message(delivery) = talk.event() else { panic!("no message") };
    assert_eq!((delivery.payload.len(), delivery.size_bytes), (1000, 1800));
    assert_eq!(talk.client.credit(link), 0);
    talk.client.settle(DeliveryId(0), DeliveryId(1), Outcome::Accepted);
    let Performative::Disposition(settled) = talk.body() else { panic!("no disposition") };
    assert_eq!((settled.first, settled.last, settled.settled), (0, Some(1), true));
}

#[test]
fn delivery_without_credit_is_an_error_and_an_aborted_one_is_none() {
    let mut talk = Talk::ready(100);
    let link = talk.receiver();
    talk.client.grant(link, 1);
    talk.say(transfer(Some(0), true), b"ab").expect("taken");
    let aborted = Transfer { handle: 3, aborted: true, ..Default::default() };
    talk.said(Performative::Transfer(aborted));
    assert_eq!(talk.client.next_event(), None);
    let error = talk.say(transfer(Some(1), false), b"x").expect_err("no credit");
    assert!(error.to_string().contains("credit"), "{error}");
    talk.frame();
    assert!(matches!(talk.body(), Performative::Close(Close { error: Some(_) })));
}

#[test]
fn window_of_frames_is_opened_again_before_it_is_used_up() {
    let mut talk = Talk::ready(100);
    let link = talk.receiver();
    talk.client.grant(link, 5000);
    talk.frame();
    for id in 0..2 * WINDOW {
        talk.say(transfer(Some(id), false), b"").expect("within the window");
    }
    let Performative::Flow(flow) = talk.body() else { panic!("no flow") };
    assert_eq!((flow.incoming_window, flow.handle), (WINDOW, None));
}

#[test]
fn sender_keeps_to_credit_frames_and_window() {
    let mut talk = Talk::ready(0);
    let link = talk.sender(2);
    // The flow of the link gave a window of two frames; the message takes three.
    let id = talk.client.send(link, vec![7; 1000].into()).expect("credit");
    assert!(!talk.client.can_send(link), "frames wait");
    let mut parts = Vec::new();
    for _ in 0..2 {
        let frame = talk.frame();
        let Some(Performative::Transfer(part)) = frame.body else { panic!("no transfer") };
        parts.push((part.delivery_id, part.more, frame.payload.len()));
    }
    assert_eq!(parts, [(Some(0), true, 472), (None, true, 472)]);
    assert!(talk.is_quiet());
    talk.said(flow(None, 2, 0));
    assert_eq!(talk.frame().payload.len(), 56);
    assert!(talk.client.send(link, Bytes::new()).is_ok(), "an empty message is one frame");
    talk.frame();
    assert_eq!(talk.client.send(link, Bytes::new()), Err(NotSent::NotNow), "no credit");
    talk.said(told(0, Some(1), true, Outcome::Accepted));
    assert_eq!(talk.event(), Event::Outcome(link, id, Outcome::Accepted));
    assert_eq!(talk.event(), Event::Outcome(link, DeliveryId(1), Outcome::Accepted));
}

#[test]
fn outcomes_come_once_in_any_order_and_for_any_range() {
    let mut talk = Talk::ready(100);
    let link = talk.sender(3);
    for _ in 0..3 {
        // A window of two frames: the third waits for the next flow.
        talk.client.send(link, Bytes::from_static(b"m")).expect("credit");
    }
    talk.flush();
    while talk.heard.frame().expect("whole").is_some() {}
    talk.said(told(1, None, false, Outcome::Rejected(Condition::new("c", "d"))));
    assert_eq!(
        talk.event(),
        Event::Outcome(link, DeliveryId(1), Outcome::Rejected(Condition::new("c", "d")))
    );
    let Performative::Disposition(answer) = talk.body() else { panic!("the peer waits for it") };
    assert!(answer.settled && !answer.is_receiver);
    talk.said(told(0, None, false, Outcome::Received));
    assert_eq!(talk.client.next_event(), None, "not an outcome yet");
    talk.said(told(0, Some(u32::MAX / 2), true, Outcome::Accepted));
    assert_eq!(talk.event(), Event::Outcome(link, DeliveryId(0), Outcome::Accepted));
    assert_eq!(talk.event(), Event::Outcome(link, DeliveryId(2), Outcome::Accepted));
    assert_eq!(talk.client.next_event(), None);
}

#[test]
fn refused_link_is_detached_with_the_peers_reason() {
    let mut talk = Talk::ready(100);
    let config = SenderConfig { name: "s".to_owned(), address: "q".to_owned(), capabilities: Vec::new() };
    let link = talk.client.attach_sender(&config).expect("ready");
    let Performative::Attach(attach) = talk.body() else { panic!("no attach") };
    let target: Option<Terminus> = None;
    talk.said(Performative::Attach(Box::new(Attach { is_receiver: true, target, ..*attach })));
    assert_eq!(talk.client.next_event(), None);
    let error = Some(Condition::new("amqp:not-found", "no q"));
    talk.said(Performative::Detach(crate::Detach { handle: 0, closed: true, error: error.clone() }));
    assert_eq!(talk.event(), Event::Detached(link, error));
    assert!(matches!(talk.body(), Performative::Detach(_)));
}

#[test]
fn connection_is_kept_alive_and_a_silent_peer_is_found() {
    let mut talk = Talk::ready(100);
    talk.client.take_output(at(10));
    assert_eq!(talk.client.deadline(), at(100));
    assert_eq!(talk.client.tick(at(100)), Ok(()));
    assert_eq!(&talk.client.take_output(at(100))[..], [0, 0, 0, 8, 2, 0, 0, 0]);
    assert_eq!(talk.client.deadline(), at(200));
    assert_eq!(talk.client.tick(at(1001)), Err(AmqpError::Silent(1000)));
}

#[test]
fn drain_uses_credit_up_and_echo_is_answered() {
    let mut talk = Talk::ready(100);
    let link = talk.sender(5);
    let drain =
        Flow { incoming_window: 2, outgoing_window: 1, handle: Some(3), drain: true, ..Flow::default() };
    talk.said(Performative::Flow(Flow {
        link_credit: Some(5),
        delivery_count: Some(0),
        echo: true,
        ..drain
    }));
    let Performative::Flow(drained) = talk.body() else { panic!("no flow") };
    assert_eq!((drained.delivery_count, drained.link_credit, drained.drain), (Some(5), Some(0), true));
    assert!(matches!(talk.body(), Performative::Flow(_)), "the echo");
    assert!(!talk.client.can_send(link));
}

#[test]
fn close_ends_in_order_from_either_side() {
    let mut talk = Talk::ready(100);
    talk.client.close();
    assert!(matches!(talk.body(), Performative::Close(_)));
    talk.said(Performative::Close(Close::default()));
    assert_eq!(talk.event(), Event::Closed);
    let mut talk = Talk::ready(100);
    let error = Condition::new("amqp:connection:forced", "going down");
    let closed = talk.say(Performative::Close(Close { error: Some(error.clone()) }), &[]);
    assert_eq!(closed, Err(AmqpError::Closed(error)));
    assert!(matches!(talk.body(), Performative::Close(Close { error: None })));
    assert!(talk.is_quiet());
}

#[test]
fn frame_above_the_maximum_is_refused_by_its_length() {
    let mut talk = Talk::ready(100);
    let error = talk.client.receive(&[0, 0, 4, 1], at(1));
    assert_eq!(error, Err(AmqpError::FrameTooLarge { length: 1025, max: 1024 }));
}
