//! What an MQ client sends: whole conversations with the server, and property headers.

use barnabas_base::MonotonicMs;
use barnabas_mq::{Call, Reply, Server, ServerConfig, ServerEvent, read_rfh2, write_rfh2};
use bytes::Bytes;

/// Everything that a peer says after an ordinary beginning. The server lets each conversation in and answers each call.
pub fn mq_server(data: &[u8]) {
    const MESSAGE_MAX: usize = 8192;
    const READ: usize = 512;
    let config = ServerConfig {
        message_bytes_max: MESSAGE_MAX,
        held_bytes_max: 2 * MESSAGE_MAX,
        conversations_max: 4,
        ..ServerConfig::default()
    };
    let mut server = Server::new(config, MonotonicMs(0));
    let begun = include_bytes!("../corpus/mq_server/begun");
    for (turn, piece) in begun.chunks(READ).chain(data.chunks(READ)).enumerate() {
        let now = MonotonicMs(turn as u64);
        if !server.wants_input() || server.receive(piece, now).is_err() {
            return;
        }
        while let Some(event) = server.next_event() {
            if serve(&mut server, event).is_none() {
                return;
            }
        }
        server.take_output();
        if server.tick(now).is_err() {
            return;
        }
    }
}

fn serve(server: &mut Server, event: ServerEvent) -> Option<()> {
    match event {
        ServerEvent::Connect(_, ticket, _) => server.connected(ticket),
        ServerEvent::Call(_, ticket, call) => match *call {
            Call::Open(open) => server.reply(ticket, 0, 1, &Reply::Open { open, name: None }),
            Call::Put(put) => {
                let reply = Reply::Put { object: put.object, md: put.md, options: put.options };
                server.reply(ticket, 0, put.handle, &reply);
            }
            Call::Get(get) => {
                let data = Bytes::from(vec![0; (get.buffer_bytes as usize).min(100_000)]);
                let reply = Reply::Get { md: get.md, options: get.options, length: data.len() as u32, data };
                server.reply(ticket, 0, get.handle, &reply);
            }
            Call::Request(_) | Call::Notify { .. } => server.dismiss(ticket),
            _ => server.reply(ticket, 2195, 0, &Reply::Bare),
        },
        ServerEvent::Ended(_) => {}
        ServerEvent::Closed => return None,
    }
    Some(())
}

/// A header of properties, and what is written of it.
pub fn mq_rfh2(data: &[u8]) {
    let whole = Bytes::copy_from_slice(data);
    let Some(read) = read_rfh2(&whole, 273) else { return };
    assert!(read.raw.len() <= whole.len());
    write_rfh2(&read.properties, read.format, read.ccsid, read.encoding);
}
