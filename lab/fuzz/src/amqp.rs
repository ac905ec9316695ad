//! What an AMQP peer sends: frames, messages, and whole conversations with the client.

use barnabas_amqp::{
    Client, ClientConfig, Event, FrameDecoder, Login, NotSent, Outcome, Reader, ReceiverConfig, SenderConfig,
    decode_message, encode_frame, encode_message, write_value,
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
