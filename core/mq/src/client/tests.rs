//! A client met by our own server, by a queue manager that is played, and by bytes that are none of MQ.

use super::*;
use crate::segment::{FIRST, Header, LAST, Segments, write_segment};
use crate::{Call, FORMAT_STRING, Reply, Server, ServerConfig, ServerEvent, Ticket, gmo, oo, pmo};
use bytes::BytesMut;

const NOW: MonotonicMs = MonotonicMs(0);
const MESSAGE_MAX: usize = 128 * 1024;

fn config(password: &str) -> ClientConfig {
    ClientConfig {
        channel: "APP".to_owned(),
        queue_manager: "QM1".to_owned(),
        application: "bridge".to_owned(),
        user: Some(("anna".to_owned(), Password(password.to_owned()))),
        message_bytes_max: MESSAGE_MAX,
        heartbeat_s: 300,
    }
}

fn server(conversations_max: u32) -> Server {
    let queue_manager = "QM1".to_owned();
    Server::new(ServerConfig { queue_manager, conversations_max, ..ServerConfig::default() }, NOW)
}

/// Hands what each says to the other until neither says more.
fn pass(client: &mut Client, server: &mut Server) {
    loop {
        let (said, answered) = (client.take_output(), server.take_output());
        if said.is_empty() && answered.is_empty() {
            break;
        }
        server.receive(&said, NOW).expect("taken");
        client.receive(&answered, NOW).expect("taken");
    }
}

fn asked(client: &mut Client, server: &mut Server) -> Ticket {
    pass(client, server);
    match server.next_event() {
        Some(ServerEvent::Connect(_, ticket, connect)) => {
            assert_eq!((&connect.queue_manager[..], &connect.application[..]), ("QM1", "bridge"));
            ticket
        }
        other => panic!("{other:?}"),
    }
}

fn connected(conversations_max: u32) -> (Client, Server) {
    let (mut client, mut server) = (Client::new(config("secret"), NOW), server(conversations_max));
    let ticket = asked(&mut client, &mut server);
    server.connected(ticket);
    pass(&mut client, &mut server);
    assert_eq!(client.next_event(), Some(ClientEvent::Connected(Ok("QM1".to_owned()))));
    assert!(client.is_ready());
    (client, server)
}

fn next_call(server: &mut Server) -> (Ticket, Call) {
    match server.next_event() {
        Some(ServerEvent::Call(_, ticket, call)) => (ticket, *call),
        other => panic!("{other:?}"),
    }
}

fn answered(client: &mut Client) -> Answered {
    match client.next_event() {
        Some(ClientEvent::Answered(answered)) => *answered,
        other => panic!("{other:?}"),
    }
}

#[test]
fn client_agrees_with_the_server_and_logs_in() {
    for (password, told) in [("secret", Some("secret")), ("", None)] {
        let (mut client, mut server) = (Client::new(config(password), NOW), server(10));
        let ticket = asked(&mut client, &mut server);
        let user = server.user().cloned().map(|(user, password)| (user, password.map(|password| password.0)));
        assert_eq!(user, Some(("anna".to_owned(), told.map(str::to_owned))));
        assert_eq!((client.hello.heartbeat_s, client.message_bytes_max()), (60, MESSAGE_MAX));
        server.refuse(ticket, reason::NOT_AUTHORIZED);
        pass(&mut client, &mut server);
        assert_eq!(client.next_event(), Some(ClientEvent::Connected(Err(Refusal(2035)))));
        assert!(!client.is_ready());
    }
}

#[test]
fn calls_go_one_at_a_time_with_and_without_shared_conversations() {
    for conversations_max in [10, 0] {
        let (mut client, mut server) = connected(conversations_max);
        client.open("Q1", oo::INPUT_AS_QUEUE | oo::OUTPUT);
        assert!(!client.is_ready());
        pass(&mut client, &mut server);
        let (ticket, call) = next_call(&mut server);
        let Call::Open(open) = call else { panic!("{call:?}") };
        server.reply(ticket, reason::NONE, 7, &Reply::Open { open, name: None });
        pass(&mut client, &mut server);
        assert_eq!(answered(&mut client), Answered { codes: (0, 0), handle: 7, message: None });

        let md = Descriptor { format: FORMAT_STRING, ..Descriptor::default() };
        let large = vec![b'x'; 100_000];
        client.put(7, &md, pmo::SYNCPOINT, &large);
        pass(&mut client, &mut server);
        let (ticket, call) = next_call(&mut server);
        let Call::Put(put) = call else { panic!("{call:?}") };
        assert_eq!((put.handle, &put.md, &put.data[..]), (7, &md, &large[..]));
        let reply = Reply::Put { object: None, md: put.md, options: put.options };
        server.reply(ticket, reason::MSG_TOO_BIG_FOR_Q, 7, &reply);
        pass(&mut client, &mut server);
        assert_eq!(answered(&mut client).codes, (2, 2030));

        client.get(7, gmo::WAIT | gmo::SYNCPOINT, 300);
        pass(&mut client, &mut server);
        let (ticket, call) = next_call(&mut server);
        let Call::Get(get) = call else { panic!("{call:?}") };
        assert_eq!((get.handle, get.options.wait_ms, get.buffer_bytes as usize), (7, 300, MESSAGE_MAX));
        let (options, data) = (get.options, Bytes::from(large));
        let reply = Reply::Get { md: md.clone(), options, data: data.clone(), length: 100_000 };
        server.reply(ticket, reason::NONE, 7, &reply);
        pass(&mut client, &mut server);
        assert_eq!(answered(&mut client).message, Some(Got { md, data, length: 100_000 }));

        client.commit();
        pass(&mut client, &mut server);
        let (ticket, call) = next_call(&mut server);
        assert_eq!(call, Call::Commit);
        server.reply_with(ticket, (reason::CC_WARNING, reason::BACKED_OUT), 0, &Reply::Bare);
        pass(&mut client, &mut server);
        assert_eq!(answered(&mut client).codes, (1, 2003));
    }
}

type Say = fn(&mut Client);

#[test]
fn every_call_is_the_one_that_the_server_reads() {
    let (mut client, mut server) = connected(10);
    let calls: [(Say, Call); 4] = [
        (Client::back_out, Call::Back),
        (|client| client.close(3), Call::Close { handle: 3, options: 0 }),
        (Client::commit, Call::Commit),
        (Client::disconnect, Call::Disconnect),
    ];
    for (say, wanted) in calls {
        say(&mut client);
        pass(&mut client, &mut server);
        let (ticket, call) = next_call(&mut server);
        assert_eq!(call, wanted);
        server.reply(ticket, reason::NONE, 0, &Reply::Bare);
        pass(&mut client, &mut server);
        assert_eq!(answered(&mut client).codes, (0, 0));
    }
}

#[test]
#[should_panic(expected = "whose last call was answered")]
fn second_call_before_an_answer_is_a_bug() {
    let (mut client, _) = connected(10);
    client.commit();
    client.commit();
}

#[test]
fn heartbeats_are_answered_and_a_silent_queue_manager_is_dropped() {
    let (mut client, mut server) = connected(10);
    client.get(1, gmo::WAIT, -1);
    pass(&mut client, &mut server);
    server.tick(MonotonicMs(60_000)).expect("asked");
    client.receive(&server.take_output(), MonotonicMs(60_000)).expect("taken");
    let said = client.take_output();
    assert_eq!((said[..4].to_vec(), said[9]), (b"TSHC".to_vec(), kind::HEARTBEAT));
    server.receive(&said, MonotonicMs(60_001)).expect("taken");

    assert_eq!(client.deadline(), MonotonicMs(120_000));
    client.tick(MonotonicMs(120_000)).expect("asked");
    server.receive(&client.take_output(), MonotonicMs(120_000)).expect("taken");
    client.receive(&server.take_output(), MonotonicMs(120_001)).expect("answered");
    client.tick(MonotonicMs(180_001)).expect("asked again");
    assert_eq!(client.tick(MonotonicMs(240_001)), Err(MqError::Silent(120)));
}

#[test]
fn queue_manager_that_does_not_connect_in_time_is_dropped() {
    let mut client = Client::new(config("secret"), NOW);
    client.tick(MonotonicMs(14_999)).expect("it may still");
    assert_eq!(client.tick(MonotonicMs(15_000)), Err(MqError::Silent(15)));
}

fn segment(segment: u8, flags: u8, body: &[u8]) -> BytesMut {
    let order = Order::Big;
    let header =
        Header { kind: Kind::Single, conversation: 0, request: 0, order, segment, flags, ccsid: 819 };
    let mut out = BytesMut::new();
    write_segment(&mut out, &header, body);
    out
}

#[test]
fn channel_that_is_refused_is_an_error_that_names_its_key() {
    let mut client = Client::new(config("secret"), NOW);
    let status = [&8_u32.to_be_bytes()[..], &2_u32.to_be_bytes()].concat();
    let error = client.receive(&segment(kind::STATUS_DATA, FIRST | LAST, &status), NOW).expect_err("refused");
    assert!(error.to_string().contains("mq.channel.name"), "{error}");

    let mut client = Client::new(config("secret"), NOW);
    let mut segments = Segments::default();
    for _ in 0..ROUNDS_MAX {
        segments.push(&client.take_output());
        let (_, body) = segments.next(4096).expect("a segment").expect("whole");
        let order = Order::Little;
        let header = Header {
            kind: Kind::Single,
            conversation: 0,
            request: 0,
            order,
            segment: 1,
            flags: ERROR,
            ccsid: 819,
        };
        let mut out = BytesMut::new();
        write_segment(&mut out, &Header { flags: ERROR | FIRST | LAST, ..header }, &body);
        match client.receive(&out, NOW) {
            Ok(()) => {}
            Err(MqError::Refused(_)) => return,
            other => panic!("{other:?}"),
        }
    }
    panic!("it never gave up");
}

#[test]
fn answer_that_is_too_large_ends_the_connection() {
    let (mut client, mut server) = connected(10);
    client.get(1, 0, 0);
    pass(&mut client, &mut server);
    let (ticket, call) = next_call(&mut server);
    let Call::Get(get) = call else { panic!("{call:?}") };
    let data = Bytes::from(vec![0; MESSAGE_MAX + 10_000]);
    let reply = Reply::Get { md: get.md, options: get.options, length: data.len() as u32, data };
    server.reply(ticket, reason::NONE, 1, &reply);
    let error = client.receive(&server.take_output(), NOW);
    assert!(matches!(error, Err(MqError::SegmentTooLarge { .. })), "{error:?}");
}

#[test]
fn segments_out_of_turn_end_the_connection() {
    let mut client = Client::new(config("secret"), NOW);
    let early = client.receive(&segment(kind::MQCMIT | kind::REPLY, FIRST | LAST, &[0; 16]), NOW);
    assert!(matches!(early, Err(MqError::Protocol(_))), "{early:?}");
    let (mut client, _) = connected(10);
    let unasked = client.receive(&segment(kind::MQGET | kind::REPLY, FIRST | LAST, &[0; 16]), NOW);
    assert!(matches!(unasked, Err(MqError::Protocol(_))), "{unasked:?}");
}

/// What a server says from its first byte to a message.
fn said() -> Vec<u8> {
    let (mut client, mut server) = (Client::new(config("secret"), NOW), server(10));
    let mut all = Vec::new();
    let mut pass = |client: &mut Client, server: &mut Server| {
        for _ in 0..4 {
            server.receive(&client.take_output(), NOW).expect("taken");
            let said = server.take_output();
            all.extend_from_slice(&said);
            client.receive(&said, NOW).expect("taken");
        }
    };
    pass(&mut client, &mut server);
    let Some(ServerEvent::Connect(_, ticket, _)) = server.next_event() else { panic!("no connect") };
    server.connected(ticket);
    pass(&mut client, &mut server);
    client.get(1, 0, 0);
    pass(&mut client, &mut server);
    let (ticket, call) = next_call(&mut server);
    let Call::Get(get) = call else { panic!("{call:?}") };
    let data = Bytes::from(vec![1; 40_000]);
    server.reply(ticket, 0, 1, &Reply::Get { md: get.md, options: get.options, length: 40_000, data });
    pass(&mut client, &mut server);
    all
}

#[test]
fn mutated_bytes_never_panic() {
    let (said, mut number) = (said(), 0x9e37_79b9_7f4a_7c15_u64);
    let mut next = || {
        number ^= number << 13;
        number ^= number >> 7;
        number ^= number << 17;
        number as usize
    };
    for round in 0..2000 {
        let mut bytes = said.clone();
        // Most of what can be wrong is at the beginning.
        let reach = if round % 2 == 0 { 1200 } else { bytes.len() };
        for _ in 0..=next() % 8 {
            let at = next() % reach;
            bytes[at] = next() as u8;
        }
        let mut client = Client::new(config("secret"), NOW);
        for piece in bytes.chunks(1 + next() % 5000) {
            if client.receive(piece, NOW).is_err() {
                break;
            }
            while client.next_event().is_some() {}
            if client.is_ready() {
                client.get(1, 0, 0);
            }
            client.take_output();
        }
    }
}
