//! How a connection is closed: in turns, so that thousands that end together do not hold up the others of their worker.
//!
//! To close one costs tens of µs: TLS says the end, the socket leaves the event queue, buffers and session are freed.
//!
//! Always true: a worker closes at most [`CLOSED_IN_TURN`] connections before its others have a turn.

use barnabas_net::{FrameReader, Stream};
use std::rc::Rc;
use tokio::sync::Semaphore;

const CLOSED_IN_TURN: usize = 4;

thread_local! {
    static CLOSING: Rc<Semaphore> = Rc::new(Semaphore::new(CLOSED_IN_TURN));
}

/// Says the end to the peer, closes and frees what was half read, once it is this connection's turn.
pub async fn close(stream: Stream, reader: FrameReader) {
    let closing = CLOSING.with(Rc::clone);
    let _turn = closing.acquire().await;
    stream.say_end();
    drop((stream, reader));
    tokio::task::yield_now().await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_net::Budget;
    use tokio::net::{TcpListener, TcpStream};
    use tokio::task::{LocalSet, spawn_local, yield_now};

    #[tokio::test]
    async fn others_have_turns_while_many_connections_close() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
        let address = listener.local_addr().expect("bound");
        let mut streams = Vec::new();
        for _ in 0..40 {
            let client = TcpStream::connect(address).await.expect("connects");
            streams.push((client, listener.accept().await.expect("accepts").0));
        }
        let local = LocalSet::new();
        let turns = local.run_until(async {
            let (clients, servers): (Vec<_>, Vec<_>) = streams.into_iter().unzip();
            let budget = Budget::new(u64::MAX);
            let reader = || FrameReader::new(budget.claim(None), 100);
            let closes: Vec<_> = servers
                .into_iter()
                .map(|server| spawn_local(close(Stream::plain(server), reader())))
                .collect();
            let mut turns = 0;
            while closes.iter().any(|close| !close.is_finished()) {
                yield_now().await;
                turns += 1;
            }
            drop(clients);
            turns
        });
        assert!(turns.await >= 40 / CLOSED_IN_TURN / 2);
    }
}
