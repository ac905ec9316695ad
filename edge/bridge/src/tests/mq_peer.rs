//! A queue manager in memory, as far as a bridge asks: core/mq's server on a socket, queues, units of work.

use super::peer::listen;
use barnabas_base::MonotonicMs;
use barnabas_mq::{Call, Descriptor, Get, Reply, Server, ServerConfig, ServerEvent, Ticket, reason};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const NOW: MonotonicMs = MonotonicMs(0);
/// An MQGET that finds nothing waits no longer: tests do not.
const PATIENCE: Duration = Duration::from_millis(10);

pub type Held = (Descriptor, Bytes);

#[derive(Debug, Default)]
pub struct World {
    pub queues: BTreeMap<String, VecDeque<Held>>,
    /// So many of the next MQCMIT end their connection, and their units are backed out.
    pub lost_commits: usize,
    /// The same, but the units are committed.
    pub lost_answers: usize,
    pub refused_put: u32,
    pub disconnects: usize,
}

#[derive(Debug, Clone)]
pub struct QueueManager {
    pub port: u16,
    world: Arc<Mutex<World>>,
}

/// A connection's handles and its unit of work.
#[derive(Default)]
struct Connection {
    handles: Vec<String>,
    got: Vec<(String, Held)>,
    puts: Vec<(String, Held)>,
}

impl QueueManager {
    pub async fn start(queues: &[&str]) -> Self {
        let (listener, port) = listen().await;
        let mut world = World::default();
        world.queues.extend(queues.iter().map(|name| ((*name).to_owned(), VecDeque::new())));
        let made = Self { port, world: Arc::new(Mutex::new(world)) };
        let serving = made.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let serving = serving.clone();
                tokio::spawn(async move { serving.serve(stream).await });
            }
        });
        made
    }

    pub fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().expect("no panic")
    }

    pub fn put(&self, queue: &str, id: u8, body: &str) {
        let md = Descriptor {
            msg_id: [id; 24],
            put_date: *b"20000229",
            put_time: *b"12345678",
            ..Descriptor::default()
        };
        let message = (md, Bytes::copy_from_slice(body.as_bytes()));
        self.world().queues.get_mut(queue).expect("a queue").push_back(message);
    }

    pub fn bodies(&self, queue: &str) -> Vec<String> {
        let text = |(_, data): &Held| String::from_utf8_lossy(data).into_owned();
        self.world().queues[queue].iter().map(text).collect()
    }

    async fn serve(&self, mut stream: TcpStream) {
        let mut server =
            Server::new(ServerConfig { queue_manager: "QM1".to_owned(), ..ServerConfig::default() }, NOW);
        let (mut connection, mut buffer) = (Connection::default(), vec![0; 65_536]);
        'serving: while let Ok(count @ 1..) = stream.read(&mut buffer).await {
            server.receive(&buffer[..count], NOW).expect("MQ");
            while let Some(event) = server.next_event() {
                if !self.take(&mut server, &mut connection, event).await {
                    break 'serving;
                }
            }
            if stream.write_all(&server.take_output()).await.is_err() {
                break;
            }
        }
        self.back_out(&mut connection);
    }

    fn back_out(&self, connection: &mut Connection) {
        connection.puts.clear();
        for (queue, (mut md, data)) in connection.got.drain(..).rev() {
            md.backout_count += 1;
            self.world().queues.get_mut(&queue).expect("a queue").push_front((md, data));
        }
    }

    /// `false`: the connection ends.
    async fn take(&self, server: &mut Server, connection: &mut Connection, event: ServerEvent) -> bool {
        let (ticket, call) = match event {
            ServerEvent::Connect(_, ticket, _) => {
                server.connected(ticket);
                return true;
            }
            ServerEvent::Call(_, ticket, call) => (ticket, *call),
            _ => return false,
        };
        match call {
            Call::Open(open) => {
                let name = open.object.name.clone();
                let is_there = self.world().queues.contains_key(&name);
                connection.handles.push(name);
                let why = if is_there { reason::NONE } else { reason::UNKNOWN_OBJECT_NAME };
                server.reply(ticket, why, connection.handles.len() as u32, &Reply::Open { open, name: None });
            }
            Call::Get(get) => self.get(server, connection, ticket, get).await,
            Call::Put(put) => {
                let at = put.handle.saturating_sub(1) as usize;
                let queue =
                    put.object.as_ref().map_or_else(|| connection.handles[at].clone(), |of| of.name.clone());
                let why = self.world().refused_put;
                if why == reason::NONE {
                    connection.puts.push((queue, (put.md.clone(), put.data.clone())));
                }
                server.reply(
                    ticket,
                    why,
                    put.handle,
                    &Reply::Put { object: put.object, md: put.md, options: put.options },
                );
            }
            Call::Commit => return self.commit(server, connection, ticket),
            Call::Back => {
                self.back_out(connection);
                server.reply(ticket, reason::NONE, 0, &Reply::Bare);
            }
            other => {
                self.world().disconnects += usize::from(other == Call::Disconnect);
                server.reply(ticket, reason::NONE, 0, &Reply::Bare);
            }
        }
        true
    }

    async fn get(&self, server: &mut Server, connection: &mut Connection, ticket: Ticket, get: Get) {
        let queue = connection.handles[get.handle as usize - 1].clone();
        let next = |this: &Self| this.world().queues.get_mut(&queue).expect("a queue").pop_front();
        let mut found = next(self);
        if found.is_none() {
            tokio::time::sleep(PATIENCE).await;
            found = next(self);
        }
        let Some((md, data)) = found else {
            let reply = Reply::Get { md: get.md, options: get.options, data: Bytes::new(), length: 0 };
            return server.reply(ticket, reason::NO_MSG_AVAILABLE, get.handle, &reply);
        };
        let (length, most) = (data.len(), get.buffer_bytes as usize);
        let codes = if length > most { (reason::CC_WARNING, reason::TRUNCATED_MSG_FAILED) } else { (0, 0) };
        let cut = data.slice(..length.min(most));
        connection.got.push((queue, (md.clone(), data)));
        let reply = Reply::Get { md, options: get.options, data: cut, length: length as u32 };
        server.reply_with(ticket, codes, get.handle, &reply);
    }

    fn commit(&self, server: &mut Server, connection: &mut Connection, ticket: Ticket) -> bool {
        let mut world = self.world();
        if world.lost_commits > 0 {
            world.lost_commits -= 1;
            return false;
        }
        for (queue, message) in connection.puts.drain(..) {
            world.queues.get_mut(&queue).expect("a queue").push_back(message);
        }
        connection.got.clear();
        if world.lost_answers > 0 {
            world.lost_answers -= 1;
            return false;
        }
        server.reply(ticket, reason::NONE, 0, &Reply::Bare);
        true
    }
}
