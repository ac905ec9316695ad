//! Conversations with a peer that the test plays, frame by frame.

use super::*;
use crate::TRANSACTION_CAPABILITIES;
use crate::performative::{Begin, Detach, Disposition, Flow, Terminus, Transfer};

fn at(ms: u64) -> MonotonicMs {
    MonotonicMs(ms)
}

fn config() -> ServerConfig {
    ServerConfig {
        frame_bytes_max: 1024,
        message_bytes_max: 2000,
        held_bytes_max: 4000,
        idle_timeout_ms: 500,
        sessions_max: 2,
        links_max: 3,
        ..ServerConfig::default()
    }
}

/// A server and what its peer has read of it.
struct Talk {
    server: Server,
    heard: FrameDecoder,
}

impl Talk {
    fn with(config: ServerConfig) -> Self {
        Self { server: Server::new(config, at(0)), heard: FrameDecoder::new(1 << 20) }
    }

    fn flush(&mut self) {
        let out = self.server.take_output(at(0));
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

    fn say_on(&mut self, channel: u16, body: Performative, payload: &[u8]) -> Result<(), AmqpError> {
        let mut bytes = BytesMut::new();
        encode_frame(&mut bytes, channel, Some(&body), payload);
        // In two pieces, as a socket may bring it.
        let (front, back) = bytes.split_at(bytes.len() / 2);
        self.server.receive(front, at(1))?;
        self.server.receive(back, at(1))
    }

    fn said(&mut self, body: Performative) {
        self.say_on(0, body, &[]).expect("taken");
    }

    fn event(&mut self) -> ServerEvent {
        self.server.next_event().expect("an event")
    }

    fn open(&mut self) {
        assert_eq!(self.header(), HEADER_AMQP);
        let container_id = "peer".to_owned();
        self.said(Performative::Open(Open { container_id, max_frame_size: Some(600), ..Open::default() }));
        assert!(matches!(self.body(), Performative::Open(open) if open.channel_max == Some(1)));
        assert_eq!(self.event(), ServerEvent::Opened { container_id: "peer".to_owned() });
    }

    /// A session is there. The peer has a window of `window` frames of 600 bytes.
    fn ready(window: u32) -> Self {
        let mut talk = Self::with(config());
        talk.server.receive(&HEADER_AMQP, at(0)).expect("AMQP");
        talk.open();
        talk.said(begin(window));
        assert!(matches!(talk.body(), Performative::Begin(begin) if begin.remote_channel == Some(0)));
        talk
    }

    fn asked(&mut self, attach: Attach) -> PeerLink {
        self.said(Performative::Attach(Box::new(attach)));
        let ServerEvent::Attach(link, _) = self.event() else { panic!("no attach") };
        link
    }

    /// A link that the peer sends on, with credit.
    fn sender(&mut self, credit: u32) -> PeerLink {
        let link = self.asked(attach("s", 0, false));
        self.server.accept(link, None);
        let Performative::Attach(answer) = self.body() else { panic!("no attach") };
        assert_eq!((answer.is_receiver, answer.max_message_size), (true, Some(2000)));
        self.server.grant(link, credit);
        let Performative::Flow(flow) = self.body() else { panic!("no credit") };
        assert_eq!((flow.handle, flow.link_credit), (Some(0), Some(credit)));
        link
    }

    /// A link that the peer receives on, with credit.
    fn receiver(&mut self, credit: u32) -> PeerLink {
        let link = self.asked(attach("r", 1, true));
        self.server.accept(link, None);
        let Performative::Attach(answer) = self.body() else { panic!("no attach") };
        assert_eq!((answer.is_receiver, answer.initial_delivery_count), (false, Some(0)));
        self.said(credit_of(1, credit, false));
        assert_eq!(self.event(), ServerEvent::Credit(link));
        link
    }
}

fn begin(window: u32) -> Performative {
    let begin =
        Begin { next_outgoing_id: 7, incoming_window: window, outgoing_window: 9, ..Begin::default() };
    Performative::Begin(begin)
}

fn attach(name: &str, handle: u32, is_receiver: bool) -> Attach {
    let terminus = || Some(Terminus { address: Some("q".to_owned()), ..Terminus::default() });
    let initial_delivery_count = (!is_receiver).then_some(0);
    let (source, target) = (terminus(), terminus());
    Attach {
        name: name.to_owned(),
        handle,
        is_receiver,
        source,
        target,
        initial_delivery_count,
        ..Attach::default()
    }
}

fn credit_of(handle: u32, credit: u32, drain: bool) -> Performative {
    Performative::Flow(Flow {
        next_incoming_id: Some(0),
        incoming_window: 100,
        outgoing_window: 1,
        handle: Some(handle),
        delivery_count: Some(0),
        link_credit: Some(credit),
        drain,
        ..Flow::default()
    })
}

fn transfer(id: Option<u32>, more: bool) -> Performative {
    Performative::Transfer(Transfer { delivery_id: id, more, ..Transfer::default() })
}

fn told(first: u32, last: Option<u32>, settled: bool, outcome: Outcome) -> Performative {
    Performative::Disposition(Disposition { is_receiver: true, first, last, settled, state: Some(outcome) })
}

#[test]
fn login_is_judged_by_the_caller_step_by_step() {
    let mechanisms = vec!["X".to_owned()];
    let mut talk = Talk::with(ServerConfig { mechanisms: mechanisms.clone(), needs_login: true, ..config() });
    talk.server.receive(&HEADER_SASL, at(0)).expect("SASL");
    assert_eq!(talk.header(), HEADER_SASL);
    assert_eq!(talk.body(), Performative::Sasl(Sasl::Mechanisms(mechanisms)));
    let response = Some(Bytes::from_static(b"one"));
    let init = Sasl::Init { mechanism: "X".to_owned(), response: response.clone(), hostname: None };
    talk.said(Performative::Sasl(init));
    let step = LoginStep::Init { mechanism: "X".to_owned(), response };
    assert_eq!(talk.event(), ServerEvent::Login(step));
    assert!(!talk.server.wants_input(), "the caller judges");
    talk.server.challenge(Bytes::from_static(b"two"));
    assert_eq!(talk.body(), Performative::Sasl(Sasl::Challenge(Bytes::from_static(b"two"))));
    // The peer sends its next layer ahead of the outcome.
    talk.said(Performative::Sasl(Sasl::Response(Bytes::from_static(b"three"))));
    assert_eq!(talk.event(), ServerEvent::Login(LoginStep::Response(Bytes::from_static(b"three"))));
    talk.server.receive(&HEADER_AMQP, at(0)).expect("waits");
    assert!(talk.is_quiet());
    talk.server.end_login(0, at(1)).expect("let in");
    assert_eq!(talk.body(), Performative::Sasl(Sasl::Outcome(0)));
    talk.open();
}

#[test]
fn login_that_fails_ends_the_connection() {
    let mut talk = Talk::with(ServerConfig { needs_login: true, ..config() });
    talk.server.receive(&HEADER_SASL, at(0)).expect("SASL");
    talk.header();
    talk.body();
    let init = Sasl::Init { mechanism: "X".to_owned(), response: None, hostname: None };
    talk.said(Performative::Sasl(init));
    assert_eq!(talk.server.end_login(1, at(1)), Err(AmqpError::Login(1)));
    assert_eq!(talk.body(), Performative::Sasl(Sasl::Outcome(1)));
    assert!(!talk.server.wants_input());
}

#[test]
fn peer_without_a_login_gets_the_header_that_it_should_have_sent() {
    for header in [HEADER_AMQP, *b"GET / HT", *b"AMQP\x02\x01\x00\x00"] {
        let mut talk = Talk::with(ServerConfig { needs_login: true, ..config() });
        assert_eq!(talk.server.receive(&header, at(0)), Err(AmqpError::Header(header)));
        assert_eq!(talk.header(), HEADER_SASL);
        assert!(talk.is_quiet());
    }
}

#[test]
fn frames_before_the_login_are_small() {
    let mut talk = Talk::with(ServerConfig { needs_login: true, ..config() });
    talk.server.receive(&HEADER_SASL, at(0)).expect("SASL");
    let refused = talk.server.receive(&[0, 0, 0x10, 1], at(0));
    assert_eq!(refused, Err(AmqpError::FrameTooLarge { length: 4097, max: 4096 }));
}

#[test]
fn message_in_parts_is_one_and_is_settled_by_the_caller() {
    let mut talk = Talk::ready(10);
    let link = talk.sender(2);
    talk.say_on(0, transfer(Some(5), true), b"one ").expect("taken");
    talk.say_on(0, transfer(None, true), b"two ").expect("taken");
    talk.say_on(0, transfer(None, false), b"three").expect("taken");
    let ServerEvent::Message(arrived) = talk.event() else { panic!("no message") };
    assert_eq!((&arrived.payload[..], arrived.is_settled), (&b"one two three"[..], false));
    talk.server.settle(arrived.id, Outcome::Accepted);
    let Performative::Disposition(said) = talk.body() else { panic!("no disposition") };
    assert_eq!((said.is_receiver, said.first, said.settled), (true, 5, true));
    assert_eq!(talk.server.credit(link), 1);
}

#[test]
fn delivery_without_credit_is_an_error() {
    let mut talk = Talk::ready(10);
    talk.sender(1);
    talk.say_on(0, transfer(Some(0), false), b"a").expect("taken");
    let refused = talk.say_on(0, transfer(Some(1), false), b"b");
    assert!(matches!(refused, Err(AmqpError::Protocol(_))), "{refused:?}");
    assert!(matches!(talk.body(), Performative::Close(close) if close.error.is_some()));
}

#[test]
fn socket_is_not_read_while_payloads_are_held() {
    let mut talk = Talk::ready(10);
    talk.sender(10);
    for id in 0..4 {
        assert!(talk.server.wants_input());
        talk.say_on(0, transfer(Some(id), true), &[0; 900]).expect("taken");
        talk.say_on(0, transfer(None, false), &[0; 100]).expect("taken");
    }
    assert!(!talk.server.wants_input(), "4,000 bytes are held");
    assert_eq!(talk.server.tick(at(5000)), Ok(()), "a peer that is not read is not silent");
    talk.server.release(1000);
    assert!(talk.server.wants_input());
}

#[test]
fn parts_alone_do_not_hold_a_connection_up() {
    let mut talk = Talk::ready(10);
    for handle in 0..3 {
        let link = talk.asked(attach(&format!("s{handle}"), handle, false));
        talk.server.accept(link, None);
        talk.server.grant(link, 1);
    }
    let part = |handle, delivery_id| {
        Performative::Transfer(Transfer { handle, delivery_id, more: true, ..Transfer::default() })
    };
    let mut said = Ok(());
    for round in 0..2 {
        for handle in 0..3 {
            let id = (round == 0).then_some(handle);
            said = said.and(talk.say_on(0, part(handle, id), &[0; 900]));
        }
    }
    assert!(matches!(said, Err(AmqpError::Protocol(_))), "{said:?}");
}

#[test]
fn message_that_is_too_large_ends_its_link_alone() {
    let mut talk = Talk::ready(10);
    let link = talk.sender(2);
    for _ in 0..3 {
        talk.say_on(0, transfer(Some(0), true), &[0; 900]).expect("taken");
    }
    let Performative::Detach(detach) = talk.body() else { panic!("no detach") };
    assert_eq!(detach.error.expect("why").condition, "amqp:link:message-size-exceeded");
    // What was on its way is dropped until the peer has heard of it.
    talk.say_on(0, transfer(None, false), &[0; 900]).expect("dropped");
    talk.said(Performative::Detach(Detach { handle: 0, closed: true, error: None }));
    assert_eq!(talk.event(), ServerEvent::Detached(link));
    assert!(talk.is_quiet() && talk.server.is_open() && talk.server.wants_input());
}

#[test]
fn refused_link_has_no_terminus_and_a_reason() {
    let mut talk = Talk::ready(10);
    let link = talk.asked(attach("r", 1, true));
    talk.server.refuse(link, Condition::new("amqp:not-found", "no q"));
    assert!(matches!(talk.body(), Performative::Attach(answer) if answer.source.is_none()));
    assert!(matches!(talk.body(), Performative::Detach(detach) if detach.closed && detach.error.is_some()));
    talk.said(Performative::Detach(Detach { handle: 1, closed: true, error: None }));
    assert_eq!(talk.event(), ServerEvent::Detached(link));
    assert!(talk.is_quiet());
    // The handle is free again, and the old link is another.
    let other = talk.asked(attach("r", 1, true));
    assert_ne!(other, link);
}

#[test]
fn deliveries_keep_to_credit_frames_and_window() {
    let mut talk = Talk::ready(0);
    let link = talk.asked(attach("r", 1, true));
    // Credit may come before the answer.
    talk.said(credit_of(1, 2, false));
    assert!(!talk.server.can_send(link));
    talk.server.accept(link, None);
    talk.body();
    let id = talk.server.send(link, vec![7; 1000].into(), false).expect("credit");
    let parts: Vec<_> = (0..3).map(|_| talk.frame()).map(|frame| frame.payload.len()).collect();
    assert_eq!(parts, [472, 472, 56]);
    talk.server.send(link, Bytes::new(), true).expect("credit");
    talk.frame();
    assert_eq!(talk.server.send(link, Bytes::new(), false), None, "no credit");
    talk.said(told(0, Some(1), true, Outcome::Accepted));
    while let Some(event) = talk.server.next_event() {
        if let ServerEvent::Outcome { id: of, is_settled, .. } = event {
            assert_eq!((of, is_settled), (id, true));
            return;
        }
    }
    panic!("no outcome");
}

#[test]
fn outcome_that_is_not_settled_waits_for_the_caller() {
    let mut talk = Talk::ready(10);
    let link = talk.receiver(5);
    let id = talk.server.send(link, Bytes::from_static(b"m"), false).expect("credit");
    talk.frame();
    talk.said(told(0, None, false, Outcome::Received));
    assert_eq!(talk.server.next_event(), None, "not an outcome yet");
    talk.said(told(0, None, false, Outcome::Released));
    let outcome = Outcome::Released;
    assert_eq!(talk.event(), ServerEvent::Outcome { link, id, outcome: outcome.clone(), is_settled: false });
    talk.server.conclude(id, outcome);
    assert!(matches!(talk.body(), Performative::Disposition(said) if said.settled && !said.is_receiver));
}

fn in_txn(outcome: Option<Outcome>) -> Outcome {
    Outcome::Transactional { txn_id: Bytes::from_static(b"t"), outcome: outcome.map(Box::new) }
}

#[test]
fn coordinator_is_a_link_that_says_what_it_can() {
    let mut talk = Talk::ready(10);
    let capabilities = vec!["amqp:local-transactions".to_owned()];
    let target = Some(Terminus { is_coordinator: true, capabilities, ..Terminus::default() });
    let link = talk.asked(Attach { target, ..attach("c", 0, false) });
    talk.server.accept(link, None);
    let Performative::Attach(answer) = talk.body() else { panic!("no attach") };
    let target = answer.target.expect("a target");
    assert!(target.is_coordinator);
    assert_eq!(target.capabilities, TRANSACTION_CAPABILITIES);
    talk.server.grant(link, 1);
    talk.body();
    let declare = crate::Control::Declare { is_global: false };
    talk.say_on(0, transfer(Some(0), false), &declare.encode()).expect("taken");
    let ServerEvent::Message(arrived) = talk.event() else { panic!("no message") };
    assert_eq!(crate::Control::decode(arrived.payload), Ok(declare));
    let declared = Outcome::Declared { txn_id: Bytes::from_static(b"t") };
    talk.server.settle(arrived.id, declared.clone());
    assert!(matches!(talk.body(), Performative::Disposition(said) if said.state == Some(declared)));
}

#[test]
fn transfer_says_which_transaction_it_belongs_to() {
    let mut talk = Talk::ready(10);
    talk.sender(2);
    let first =
        Transfer { delivery_id: Some(0), more: true, state: Some(in_txn(None)), ..Transfer::default() };
    talk.say_on(0, Performative::Transfer(first), b"a").expect("taken");
    talk.say_on(0, transfer(None, false), b"b").expect("taken");
    let ServerEvent::Message(arrived) = talk.event() else { panic!("no message") };
    assert_eq!(arrived.txn_id.as_deref(), Some(&b"t"[..]));
    talk.say_on(0, transfer(Some(1), false), b"c").expect("taken");
    let ServerEvent::Message(arrived) = talk.event() else { panic!("no message") };
    assert_eq!(arrived.txn_id, None);
}

#[test]
fn outcome_in_a_transaction_is_heard_once_until_it_is_reopened() {
    let mut talk = Talk::ready(10);
    let link = talk.receiver(5);
    let id = talk.server.send(link, Bytes::from_static(b"m"), false).expect("credit");
    talk.frame();
    let said = in_txn(Some(Outcome::Accepted));
    let wanted = ServerEvent::Outcome { link, id, outcome: said.clone(), is_settled: false };
    talk.said(told(0, None, false, said.clone()));
    assert_eq!(talk.event(), wanted);
    talk.said(told(0, None, false, said.clone()));
    assert_eq!(talk.server.next_event(), None, "it is known");
    talk.server.reopen(id);
    talk.said(told(0, None, false, said));
    assert_eq!(talk.event(), wanted);
    // A last word outside of the transaction is possible.
    talk.said(told(0, None, true, Outcome::Released));
    assert_eq!(talk.event(), ServerEvent::Outcome { link, id, outcome: Outcome::Released, is_settled: true });
    talk.said(told(0, None, true, Outcome::Accepted));
    assert_eq!(talk.server.next_event(), None, "it is settled");
}

#[test]
fn delivery_retired_in_a_transaction_is_concluded_by_the_caller() {
    let mut talk = Talk::ready(10);
    let link = talk.receiver(5);
    let id = talk.server.send(link, Bytes::from_static(b"m"), false).expect("credit");
    talk.frame();
    talk.said(told(0, None, false, in_txn(Some(Outcome::Accepted))));
    talk.event();
    talk.server.conclude(id, Outcome::Accepted);
    assert!(matches!(talk.body(), Performative::Disposition(said) if said.settled && !said.is_receiver));
    talk.said(told(0, None, true, Outcome::Released));
    assert_eq!(talk.server.next_event(), None, "it is settled");
}

#[test]
fn flow_that_wants_deliveries_in_a_transaction_ends_its_link() {
    let mut talk = Talk::ready(10);
    let link = talk.receiver(5);
    let Performative::Flow(flow) = credit_of(1, 9, false) else { panic!("a flow") };
    talk.said(Performative::Flow(Flow { txn_id: Some(Bytes::from_static(b"t")), ..flow }));
    let Performative::Detach(detach) = talk.body() else { panic!("no detach") };
    assert_eq!(detach.error.expect("why").condition, "amqp:not-implemented");
    assert!(!talk.server.can_send(link));
}

#[test]
fn drain_uses_credit_up_when_the_caller_has_nothing() {
    let mut talk = Talk::ready(10);
    let link = talk.receiver(5);
    talk.said(credit_of(1, 5, true));
    assert_eq!(talk.event(), ServerEvent::Credit(link));
    assert!(talk.server.wants_drain(link));
    talk.server.drained(link);
    let Performative::Flow(flow) = talk.body() else { panic!("no flow") };
    assert_eq!((flow.link_credit, flow.delivery_count, flow.drain), (Some(0), Some(5), true));
    assert!(!talk.server.wants_drain(link));
}

#[test]
fn end_of_a_session_detaches_its_links() {
    let mut talk = Talk::ready(10);
    let link = talk.receiver(5);
    talk.say_on(1, begin(10), &[]).expect("a second session");
    talk.body();
    talk.said(Performative::End(crate::performative::End::default()));
    assert!(matches!(talk.body(), Performative::End(_)));
    assert_eq!(talk.event(), ServerEvent::Detached(link));
    assert_eq!(talk.server.send(link, Bytes::new(), false), None);
    assert!(talk.say_on(2, begin(10), &[]).is_err(), "two sessions are the maximum");
}

#[test]
fn links_are_bounded() {
    let mut talk = Talk::ready(10);
    for handle in 0..3 {
        talk.asked(attach(&format!("l{handle}"), handle, false));
    }
    talk.said(Performative::Attach(Box::new(attach("l3", 3, false))));
    assert_eq!(talk.server.next_event(), None);
    talk.body();
    let Performative::Detach(detach) = talk.body() else { panic!("no detach") };
    assert_eq!(detach.error.expect("why").condition, "amqp:resource-limit-exceeded");
}

#[test]
fn connection_is_kept_alive_and_a_silent_peer_is_found() {
    let mut talk = Talk::with(config());
    talk.server.receive(&HEADER_AMQP, at(0)).expect("AMQP");
    let idle_time_out_ms = Some(200);
    let open = Open { container_id: "p".to_owned(), idle_time_out_ms, ..Open::default() };
    talk.said(Performative::Open(open));
    talk.server.take_output(at(10));
    assert_eq!(talk.server.deadline(), at(110));
    assert_eq!(talk.server.tick(at(110)), Ok(()));
    assert_eq!(&talk.server.take_output(at(110))[..], [0, 0, 0, 8, 2, 0, 0, 0]);
    assert_eq!(talk.server.tick(at(1001)), Err(AmqpError::Silent(1000)));
}

#[test]
fn close_is_answered_once() {
    let mut talk = Talk::ready(10);
    talk.said(Performative::Close(Close::default()));
    assert!(matches!(talk.body(), Performative::Close(Close { error: None })));
    assert_eq!(talk.event(), ServerEvent::Closed);
    assert!(talk.is_quiet() && !talk.server.wants_input());
}
