//! A server met by our own application's end, and by bytes that are none of MQ.

use super::*;
use crate::{Application, Call, Descriptor, FORMAT_STRING, Order, gmo, oo, pmo};

const NOW: MonotonicMs = MonotonicMs(0);

fn config() -> ServerConfig {
    ServerConfig { queue_manager: "QM1".to_owned(), message_bytes_max: 256 * 1024, ..ServerConfig::default() }
}

/// Hands what the application says to the server, and back.
fn pass(application: &mut Application, server: &mut Server) {
    let said = application.take_output();
    server.receive(&said, NOW).expect("taken");
    application.receive(&server.take_output());
}

/// An application whose connect was reported, with its ticket.
fn begun(order: Order) -> (Application, Server, ConversationId, Ticket, Connect) {
    let (mut application, mut server) = (Application::new(order), Server::new(config(), NOW));
    application.begin(true, 1, 100 * 1024 * 1024);
    pass(&mut application, &mut server);
    let first = application.next_answer().expect("whole").expect("an answer");
    assert_eq!(first.segment, kind::INITIAL_DATA);
    assert_eq!((first.body[4], first.body[7]), (12, 0x90), "the level, and what is to be agreed again");
    application.begin(false, 60, 256 * 1024);
    application.log_in("anna", "secret");
    application.connect("QM1");
    pass(&mut application, &mut server);
    let second = application.next_answer().expect("whole").expect("an answer");
    assert_eq!((second.segment, second.body[7]), (kind::INITIAL_DATA, 0));
    let status = application.next_answer().expect("whole").expect("an answer");
    assert_eq!((status.segment, status.body.len()), (kind::STATUS_DATA, 0));
    let Some(ServerEvent::Connect(id, ticket, connect)) = server.next_event() else { panic!("no connect") };
    (application, server, id, ticket, *connect)
}

fn connected(order: Order) -> (Application, Server, ConversationId) {
    let (mut application, mut server, id, ticket, _) = begun(order);
    server.connected(ticket);
    pass(&mut application, &mut server);
    let answer = application.next_answer().expect("whole").expect("an answer");
    assert_eq!((answer.segment, answer.codes), (kind::MQCONN | kind::REPLY, (0, 0)));
    (application, server, id)
}

fn next_call(server: &mut Server) -> (Ticket, Call) {
    match server.next_event() {
        Some(ServerEvent::Call(_, ticket, call)) => (ticket, *call),
        other => panic!("{other:?}"),
    }
}

#[test]
fn connect_has_user_and_names() {
    for order in [Order::Big, Order::Little] {
        let (mut application, mut server, _, ticket, connect) = begun(order);
        assert_eq!((&connect.queue_manager[..], &connect.application[..]), ("QM1", "test"));
        let user = server.user().cloned();
        assert_eq!(user, Some(("anna".to_owned(), Some(Password("secret".to_owned())))));
        assert!(!format!("{user:?}").contains("secret"));
        server.refuse(ticket, reason::NOT_AUTHORIZED);
        assert!(!server.is_open());
        pass(&mut application, &mut server);
        let answer = application.next_answer().expect("whole").expect("an answer");
        assert_eq!(answer.codes, (reason::CC_FAILED, reason::NOT_AUTHORIZED));
    }
}

#[test]
fn calls_are_read_and_answered_in_their_order() {
    for order in [Order::Big, Order::Little] {
        let (mut application, mut server, _) = connected(order);
        application.open("Q1", oo::OUTPUT | 1);
        pass(&mut application, &mut server);
        let (ticket, call) = next_call(&mut server);
        let Call::Open(open) = call else { panic!("{call:?}") };
        assert_eq!((&open.object.name[..], open.options), ("Q1", oo::OUTPUT | 1));
        server.reply(ticket, reason::NONE, 7, &Reply::Open { open, name: Some("Q2".to_owned()) });
        pass(&mut application, &mut server);
        let answer = application.next_answer().expect("whole").expect("an answer");
        assert_eq!((answer.codes, answer.handle), ((0, 0), 7));
        assert_eq!(&answer.body[12..60], &crate::fixed::<48>("Q2"));

        let md = Descriptor { format: FORMAT_STRING, ..Descriptor::default() };
        let large = vec![b'x'; 100_000];
        application.put(None, 7, &md, pmo::SYNCPOINT, &large);
        application.get(7, gmo::WAIT, 300, 1000);
        pass(&mut application, &mut server);
        let (ticket, call) = next_call(&mut server);
        let Call::Put(put) = call else { panic!("{call:?}") };
        assert_eq!((put.handle, &put.md, &put.data[..]), (7, &md, &large[..]));
        server.dismiss(ticket);
        let (ticket, call) = next_call(&mut server);
        let Call::Get(get) = call else { panic!("{call:?}") };
        assert_eq!((get.handle, get.options.wait_ms, get.buffer_bytes), (7, 300, 1000));
        let length = large.len() as u32;
        let reply = Reply::Get { md: md.clone(), options: get.options, data: large.clone().into(), length };
        server.reply(ticket, reason::NONE, 7, &reply);
        pass(&mut application, &mut server);
        let answer = application.next_answer().expect("whole").expect("an answer");
        let (got, data) = application.message(&answer).expect("a message");
        assert_eq!((got, &data[..]), (md, &large[..]));
    }
}

#[test]
fn unknown_call_is_answered_and_the_next_one_too() {
    let (mut application, mut server, _) = connected(Order::Little);
    for segment in [0x88, 0x8e, 0xa1] {
        application.call(segment, 0, &[0; 40]);
        pass(&mut application, &mut server);
        let answer = application.next_answer().expect("whole").expect("an answer");
        assert_eq!(answer.codes, (reason::CC_FAILED, reason::FUNCTION_NOT_SUPPORTED));
    }
    application.query();
    pass(&mut application, &mut server);
    let answer = application.next_answer().expect("whole").expect("an answer");
    assert_eq!((answer.segment, answer.codes), (0x9c, (0, 0)));
}

#[test]
fn streamed_message_is_cut_into_segments() {
    let (mut application, mut server, id) = connected(Order::Little);
    let data = Bytes::from(vec![b'y'; 70_000]);
    let message = Streamed {
        handle: 1,
        number: 1,
        index: 0,
        selection: 1,
        reason: 0,
        queue: "Q1".to_owned(),
        md: Descriptor::default(),
        length: 70_000,
        data,
    };
    server.send(id, &message);
    let mut segments = Segments::default();
    segments.push(&server.take_output());
    let mut parts = Vec::new();
    while let Some((header, body)) = segments.next(SEGMENT_BYTES_MAX).expect("whole") {
        assert_eq!((header.segment, header.request), (kind::ASYNC_MESSAGE, 1));
        parts.push((header.flags, u16::from_le_bytes([body[20], body[21]])));
    }
    assert_eq!(parts, [(FIRST, 0), (0, 1), (LAST, 2)]);
    application.commit();
    pass(&mut application, &mut server);
    assert!(matches!(next_call(&mut server).1, Call::Commit));
}

#[test]
fn held_calls_stop_the_reading() {
    let (mut application, mut server, _) = connected(Order::Little);
    let mut tickets = Vec::new();
    for _ in 0..CALLS_MAX {
        application.commit();
        pass(&mut application, &mut server);
        tickets.push(next_call(&mut server).0);
    }
    assert!(!server.wants_input());
    server.dismiss(tickets.pop().expect("one"));
    assert!(server.wants_input());
}

#[test]
fn silent_client_is_asked_and_then_dropped() {
    let (_, mut server, _) = connected(Order::Little);
    let minute = MonotonicMs(60_000);
    server.tick(minute).expect("asked");
    assert!(server.output_len() > 0, "a heartbeat");
    assert_eq!(server.tick(MonotonicMs(120_000)), Err(MqError::Silent(120)));
}

#[test]
fn what_is_not_mq_ends_the_connection() {
    let receive = |bytes: &[u8]| Server::new(config(), NOW).receive(bytes, NOW);
    assert_eq!(receive(b"GET / HTTP/1.1"), Err(MqError::NotMq(*b"GET ")));
    assert_eq!(receive(&[0xe3, 0xe2, 0xc8, 0x40]), Err(MqError::Ebcdic));
    let large = [&b"TSH "[..], &5000_u32.to_be_bytes()].concat();
    assert!(matches!(receive(&large), Err(MqError::SegmentTooLarge { bytes: 5000, bytes_max: 4096 })));
    let small = [&b"TSH "[..], &27_u32.to_be_bytes(), &[0; 40]].concat();
    assert!(matches!(receive(&small), Err(MqError::Protocol(_))));
}

/// A sequence of numbers that looks random and is the same each time: xorshift.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// What an application says from its first byte to a put.
fn said(order: Order) -> Vec<u8> {
    let mut application = Application::new(order);
    application.begin(true, 1, 100_000_000);
    application.begin(false, 60, 256 * 1024);
    application.log_in("anna", "secret");
    application.connect("");
    application.open("Q1", 0x31);
    let md = Descriptor::default();
    application.put(Some("Q1"), 0, &md, pmo::ASYNC_RESPONSE, b"hello");
    application.put(None, 1, &md, 0, &[7; 40_000]);
    application.get(1, gmo::WAIT, 10, 4096);
    application.query();
    application.close(1);
    application.disconnect();
    application.take_output().to_vec()
}

/// Lets everything in, and answers or dismisses each call.
fn serve(server: &mut Server, numbers: &mut Numbers) {
    while let Some(event) = server.next_event() {
        match event {
            ServerEvent::Connect(_, ticket, _) => server.connected(ticket),
            ServerEvent::Call(_, ticket, call) => match (*call, numbers.next() % 4) {
                (_, 0) => server.dismiss(ticket),
                (Call::Open(open), _) => server.reply(ticket, 0, 1, &Reply::Open { open, name: None }),
                (Call::Put(put), _) => {
                    let reply = Reply::Put { object: put.object, md: put.md, options: put.options };
                    server.reply(ticket, 0, 1, &reply);
                }
                (Call::Get(get), _) => {
                    let (md, options, data) = (get.md, get.options, Bytes::from(vec![1; 50_000]));
                    server.reply(ticket, 0, 1, &Reply::Get { md, options, data, length: 50_000 });
                }
                _ => server.reply(ticket, reason::UNEXPECTED_ERROR, 0, &Reply::Bare),
            },
            ServerEvent::Ended(_) | ServerEvent::Closed => {}
        }
        server.take_output();
    }
}

#[test]
fn mutated_and_random_bytes_never_panic() {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    for round in 0..4000_u32 {
        let mut bytes = said(if round % 2 == 0 { Order::Big } else { Order::Little });
        match round % 4 {
            0 => {
                for _ in 0..=numbers.next() % 8 {
                    let at = numbers.next() as usize % bytes.len();
                    bytes[at] = numbers.next() as u8;
                }
            }
            1 => {
                let at = numbers.next() as usize % bytes.len();
                bytes.truncate(at);
                bytes.extend((0..200).map(|_| numbers.next() as u8));
            }
            2 => {
                let at = numbers.next() as usize % bytes.len();
                bytes.drain(at..bytes.len().min(at + 1 + numbers.next() as usize % 64));
            }
            _ => {
                // A body of noise behind a header that is right.
                let at = bytes.len() - 1 - numbers.next() as usize % 900;
                bytes[at..].iter_mut().for_each(|byte| *byte = numbers.next() as u8);
            }
        }
        let mut server = Server::new(config(), NOW);
        for piece in bytes.chunks(1 + numbers.next() as usize % 5000) {
            if !server.wants_input() || server.receive(piece, NOW).is_err() {
                break;
            }
            serve(&mut server, &mut numbers);
        }
    }
}
