//! What an AMQP peer sends: frames, messages, and whole conversations with the client and with the server.

use barnabas_amqp::{
    Client, ClientConfig, Condition, Event, FrameDecoder, Login, LoginStep, NotSent, Outcome, PeerLink,
    Reader, ReceiverConfig, SenderConfig, Server, ServerConfig, ServerEvent, decode_message, encode_frame,
    encode_message, write_value,
};
use barnabas_base::MonotonicMs;
use bytes::{BufMut, Bytes, BytesMut};

/// Any value, and what is written of it.
pub fn amqp_value(data: &[u8]) {
    let Ok(value) = Reader::new(Bytes::copy_from_slice(data)).value() else { return };
    let mut out = BytesMut::new();
    write_value(&mut out, &value);
    // A reader takes as many elements as it has bytes, and shorter forms have fewer.
    out.put_bytes(0, data.len());
    assert_eq!(Reader::new(out.freeze()).value(), Ok(value));
}

/// Frames one after the other.
pub fn amqp_frame(data: &[u8]) {
    let mut decoder = FrameDecoder::new(64 * 1024);
    decoder.push(data);
    while let Ok(Some(frame)) = decoder.frame() {
        let mut out = BytesMut::new();
        encode_frame(&mut out, frame.channel, frame.body.as_ref(), &frame.payload);
        let mut again = FrameDecoder::new(usize::MAX);
        again.push(&out);
        assert_eq!(again.frame(), Ok(Some(frame)));
    }
}

/// A message's sections.
pub fn amqp_message(data: &[u8]) {
    let Ok(message) = decode_message(Bytes::copy_from_slice(data)) else { return };
    let mut written = message.clone();
    if written.body == barnabas_amqp::Body::None {
        // The standard wants a body; an empty one is written.
        written.body = barnabas_amqp::Body::Value(barnabas_amqp::Value::Null);
    }
    assert_eq!(decode_message(encode_message(&message)), Ok(written));
}

/// Everything that a peer says after an ordinary beginning. The client sends and receives as it is allowed to, and
/// settles.
pub fn amqp_client(data: &[u8]) {
    let config = ClientConfig { login: Login::None, message_bytes_max: 4096, ..ClientConfig::default() };
    let mut client = Client::new(config, MonotonicMs(0));
    let begun = include_bytes!("../corpus/amqp_client/begun");
    if client.receive(begun, MonotonicMs(0)).is_err() {
        return;
    }
    let (mut receiver, mut sender) = (None, None);
    for (turn, piece) in data.chunks(512).enumerate() {
        let now = MonotonicMs(turn as u64);
        while let Some(event) = client.next_event() {
            answer(&mut client, event, &mut receiver, &mut sender);
        }
        if let Some(link) = sender
            && client.can_send(link)
        {
            match client.send(link, Bytes::from_static(&[0; 1500])) {
                Ok(_) => {}
                Err(NotSent::TooLarge { bytes_max }) => assert!(bytes_max < 1500),
                Err(NotSent::NotNow) => panic!("it can send"),
            }
        }
        client.take_output(now);
        if client.receive(piece, now).is_err() || client.tick(now).is_err() {
            return;
        }
    }
}

fn answer(
    client: &mut Client,
    event: Event,
    receiver: &mut Option<barnabas_amqp::LinkId>,
    sender: &mut Option<barnabas_amqp::LinkId>,
) {
    let text = |text: &str| text.to_owned();
    match event {
        Event::Ready(_) => {
            let config = ReceiverConfig {
                name: text("r"),
                address: text("q"),
                capabilities: vec![text("queue")],
                filter: None,
            };
            *receiver = client.attach_receiver(&config);
            let config = SenderConfig { name: text("s"), address: text("q"), capabilities: Vec::new() };
            *sender = client.attach_sender(&config);
        }
        Event::Attached(link) if Some(link) == *receiver => client.grant(link, 16),
        Event::Message(delivery) => client.settle(delivery.id, delivery.id, Outcome::Accepted),
        _ => {}
    }
}

/// Everything that a peer says from its first byte on. The server lets it in, accepts what is not refused by address,
/// grants, settles, sends and drains. It never holds more than its bound and what one read brings.
pub fn amqp_server(data: &[u8]) {
    const HELD_MAX: usize = 8192;
    const READ: usize = 512;
    let Some((first, said)) = data.split_first() else { return };
    let config = ServerConfig {
        mechanisms: vec!["PLAIN".to_owned()],
        needs_login: first & 1 == 1,
        frame_bytes_max: 4096,
        message_bytes_max: HELD_MAX / 2,
        held_bytes_max: HELD_MAX,
        sessions_max: 4,
        links_max: 8,
        ..ServerConfig::default()
    };
    let mut server = Server::new(config, MonotonicMs(0));
    let mut held = 0;
    for (turn, piece) in said.chunks(READ).enumerate() {
        let now = MonotonicMs(turn as u64);
        if !server.wants_input() {
            server.release(std::mem::take(&mut held));
        }
        if !server.wants_input() || server.receive(piece, now).is_err() {
            return;
        }
        while let Some(event) = server.next_event() {
            if serve(&mut server, event, &mut held, now).is_none() {
                return;
            }
        }
        assert!(held < HELD_MAX + READ + 4096, "{held} bytes are held");
        server.take_output(now);
        if server.tick(now).is_err() {
            return;
        }
    }
}

fn serve(server: &mut Server, event: ServerEvent, held: &mut usize, now: MonotonicMs) -> Option<()> {
    match event {
        ServerEvent::Login(LoginStep::Init { mechanism, .. }) if mechanism == "SCRAM" => {
            server.challenge(Bytes::from_static(b"c"));
        }
        ServerEvent::Login(_) => server.end_login(0, now).ok()?,
        ServerEvent::Attach(link, attach) if attach.name.len() % 4 == 3 => {
            server.refuse(link, Condition::new("amqp:not-found", attach.name));
        }
        ServerEvent::Attach(link, _) => {
            server.accept(link, None);
            server.grant(link, 4);
            send(server, link);
        }
        ServerEvent::Message(arrived) => {
            *held += arrived.payload.len();
            server.settle(arrived.id, Outcome::Accepted);
            server.grant(arrived.link, 4);
        }
        ServerEvent::Credit(link) => send(server, link),
        ServerEvent::Outcome { id, outcome, is_settled, .. } => {
            if !is_settled {
                server.conclude(id, outcome);
            }
        }
        ServerEvent::Detached(link) => assert!(!server.can_send(link), "the link is gone"),
        ServerEvent::Opened { .. } => {}
        ServerEvent::Closed => return None,
    }
    Some(())
}

fn send(server: &mut Server, link: PeerLink) {
    for _ in 0..3 {
        let could = server.can_send(link);
        let sent = server.send(link, Bytes::from_static(&[0; 900]), false);
        assert_eq!(sent.is_some(), could);
    }
    server.drained(link);
}
