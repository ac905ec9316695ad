use super::*;
use crate::Stream;
use crate::{Budget, ConnectionLimits, Entrance, Gate};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

const CLIENTS: Entrance = Entrance { listener: 0, is_reserved: false };

async fn pair() -> (TcpStream, Stream) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let client = TcpStream::connect(listener.local_addr().expect("bound")).await.expect("connects");
    (client, Stream::plain(listener.accept().await.expect("accepts").0))
}

fn place() -> FirstRequest {
    let gate = Gate::new(ConnectionLimits::default());
    gate.enter([127, 0, 0, 1].into(), CLIENTS).expect("room").first_request()
}

fn frame(body: &[u8]) -> Vec<u8> {
    let mut bytes = (body.len() as i32).to_be_bytes().to_vec();
    bytes.extend_from_slice(body);
    bytes
}

#[tokio::test]
async fn frames_come_out_as_they_went_in() {
    let (mut client, mut server) = pair().await;
    let budget = Budget::new(u64::MAX);
    let mut reader = FrameReader::new(budget.claim(None), 10_000_000);
    let bodies: Vec<Vec<u8>> =
        [0usize, 1, 3, 4096, 5_000_000, 17, 100_000].iter().map(|&size| vec![size as u8; size]).collect();
    let sent: Vec<u8> = bodies.iter().flat_map(|body| frame(body)).collect();
    let write = async move {
        for chunk in sent.chunks(70_001) {
            client.write_all(chunk).await.expect("writes");
        }
    };
    let read = async {
        let mut got = Vec::new();
        while let Some((body, _claim)) = reader.next(&mut server.split().0).await.expect("frames") {
            got.push(body.to_vec());
        }
        got
    };
    let ((), got) = tokio::join!(write, read);
    assert!(got == bodies);
    drop(reader);
    assert_eq!(budget.claimed_bytes(), 0);
}

#[tokio::test]
async fn a_length_is_not_believed() {
    let (mut client, mut server) = pair().await;
    let mut reader = FrameReader::new(Budget::new(u64::MAX).claim(None), 100 << 20);
    client.write_all(&(99i32 << 20).to_be_bytes()).await.expect("writes");
    client.write_all(&[7; 100]).await.expect("writes");
    let read =
        tokio::time::timeout(std::time::Duration::from_millis(50), reader.next(&mut server.split().0)).await;
    assert!(read.is_err(), "waits for the rest");
    assert!(reader.buffer.capacity() < 64 * 1024, "{}", reader.buffer.capacity());
    drop(client);
    assert!(matches!(reader.next(&mut server.split().0).await, Err(FrameError::Truncated { got: 104, .. })));
}

#[tokio::test]
async fn lengths_that_cannot_be_end_the_connection() {
    for (word, negative) in [(-1i32, true), (i32::MIN, true), (101, false), (i32::MAX, false)] {
        let (mut client, mut server) = pair().await;
        let mut reader = FrameReader::new(Budget::new(u64::MAX).claim(None), 100);
        client.write_all(&word.to_be_bytes()).await.expect("writes");
        match reader.next(&mut server.split().0).await {
            Err(FrameError::Negative { length }) => assert!(negative && length == word),
            Err(FrameError::TooLarge { length, max: 100 }) => assert!(!negative && length == word),
            other => panic!("{word}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_connection_that_waits_holds_nothing() {
    let (mut client, mut server) = pair().await;
    let budget = Budget::new(u64::MAX);
    let mut reader = FrameReader::new(budget.claim(None), 1000);
    client.write_all(&frame(b"hello")).await.expect("writes");
    let first = reader.next(&mut server.split().0).await.expect("a frame").expect("not closed");
    assert_eq!(&first.0[..], b"hello");
    drop(first);
    let wait =
        tokio::time::timeout(std::time::Duration::from_millis(20), reader.next(&mut server.split().0)).await;
    assert!(wait.is_err());
    assert_eq!((reader.buffer.capacity(), budget.claimed_bytes()), (0, 0));
}

/// tokio answers "not now" to every read of a task that has had its turn, data or not: such a read must give the turn
/// away, since the socket goes on being readable and trying again at once would never end.
#[tokio::test]
async fn a_turn_that_is_used_up_is_given_away() {
    let (mut client, mut server) = pair().await;
    let budget = Budget::new(u64::MAX);
    let mut reader = FrameReader::new(budget.claim(None), 1000);
    client.write_all(&frame(b"hello")).await.expect("writes");
    server.tcp().readable().await.expect("readable");
    poll_fn(|context| {
        while pin!(tokio::task::coop::consume_budget()).poll(context).is_ready() {}
        Poll::Ready(())
    })
    .await;
    let (body, _claim) = reader.next(&mut server.split().0).await.expect("a frame").expect("open");
    assert_eq!(&body[..], b"hello");
}

#[tokio::test]
async fn others_have_a_turn_while_a_socket_has_more() {
    let (mut client, mut server) = pair().await;
    let mut reader = FrameReader::new(Budget::new(u64::MAX).claim(None), 1 << 20);
    reader.turn_bytes_left = READ_BYTES_MIN;
    client.write_all(&frame(&[7; 60_000])).await.expect("writes");
    server.tcp().readable().await.expect("readable");
    let mut halves = server.split();
    {
        let mut next = pin!(reader.next(&mut halves.0));
        let first = poll_fn(|context| Poll::Ready(next.as_mut().poll(context).is_ready())).await;
        assert!(!first, "its turn is over");
        tokio::task::yield_now().await;
        let (body, _claim) = next.await.expect("a frame").expect("open");
        assert_eq!(body.len(), 60_000);
    }
    assert!(reader.turn_bytes_left < TURN_BYTES, "the next turn has begun");
}

/// How often others go on while thirty connections with a large frame each are read.
async fn turns_of_others(in_turns: bool) -> usize {
    let mut connections = Vec::new();
    for _ in 0..30 {
        let (mut client, server) = pair().await;
        client.write_all(&frame(&[7; 60_000])).await.expect("writes");
        server.tcp().readable().await.expect("readable");
        connections.push((client, server));
    }
    let read = |(client, mut server): (TcpStream, Stream)| async move {
        let mut reader = FrameReader::new(Budget::new(u64::MAX).claim(None), 1 << 20);
        reader.in_turns(in_turns);
        let (body, _claim) = reader.next(&mut server.split().0).await.expect("a frame").expect("open");
        assert_eq!(body.len(), 60_000);
        drop(client);
    };
    let local = tokio::task::LocalSet::new();
    let turns = local.run_until(async {
        let reads: Vec<_> =
            connections.into_iter().map(|both| tokio::task::spawn_local(read(both))).collect();
        let mut turns = 0;
        while reads.iter().any(|read| !read.is_finished()) {
            tokio::task::yield_now().await;
            turns += 1;
        }
        turns
    });
    turns.await
}

#[tokio::test]
async fn others_have_turns_while_many_send_before_they_authenticate() {
    let (at_once, in_turns) = (turns_of_others(false).await, turns_of_others(true).await);
    // Each frame takes three reads beyond its first bytes, or more.
    assert!(in_turns >= 30 * 3 / IN_TURN, "{in_turns} turns, {at_once} without turns of their own");
    assert!(at_once < in_turns / 2, "{in_turns} turns, {at_once} without turns of their own");
}

#[tokio::test]
async fn a_large_frame_survives_that_its_buffer_grows() {
    let (mut client, mut server) = pair().await;
    let mut reader = FrameReader::new(Budget::new(u64::MAX).claim(None), 100 << 20);
    let bytes: Vec<u8> = (0..40 << 20).map(|at: u32| (at % 251) as u8).collect();
    let sent = frame(&bytes);
    let writes = tokio::spawn(async move {
        client.write_all(&sent).await.expect("writes");
        client.write_all(&frame(b"next")).await.expect("writes");
        client
    });
    let mut halves = server.split();
    let (body, claim) = reader.next(&mut halves.0).await.expect("a frame").expect("open");
    assert!(body[..] == bytes[..], "damaged");
    drop((body, claim));
    let (body, _claim) = reader.next(&mut halves.0).await.expect("a frame").expect("open");
    assert_eq!(&body[..], b"next");
    drop(writes.await);
}

#[tokio::test]
async fn fetch_is_read_while_producers_hold_the_budget() {
    let budget = Budget::new(1 << 20);
    let mut producers = budget.claim(None);
    producers.stand(Standing::Small);
    assert!(producers.try_grow_to(1 << 20));
    let body = |key: i16| [&key.to_be_bytes()[..], &[0; 10_000]].concat();
    for (key, is_read) in [(1, true), (0, false), (1, true)] {
        let (mut client, mut server) = pair().await;
        let mut reader = FrameReader::new(budget.claim(None), 100 << 20);
        client.write_all(&frame(&body(key))).await.expect("writes");
        // A second one would hold the only pass.
        let mut halves = server.split();
        let pass = budget.claim_of_pass().await;
        let wait = std::time::Duration::from_millis(100);
        let read = tokio::time::timeout(wait, reader.next(&mut halves.0)).await;
        assert_eq!(read.is_ok(), is_read, "API key {key}");
        drop(pass);
    }
}

/// A node with little memory: half-read frames hold all of it, and a good producer of another connection is served.
#[tokio::test]
async fn half_sent_frames_make_room_for_others() {
    let budget = Budget::new(16 << 20);
    let account = budget.account([127, 0, 0, 1].into());
    let reader = || FrameReader::new(budget.claim(Some(account.clone())), 100 << 20).paced(place());
    let attack = async {
        let attacks = (0..2).map(|_| async {
            let (mut client, mut server) = pair().await;
            let mut reader = reader();
            let mut halves = server.split();
            let send = async {
                client.write_all(&(99i32 << 20).to_be_bytes()).await.expect("writes");
                // Its connection is closed while it writes.
                let _ = client.write_all(&vec![0; 12 << 20]).await;
                std::future::pending::<()>().await;
            };
            tokio::select! {
                () = send => unreachable!(),
                read = reader.next(&mut halves.0) => read.map(drop),
            }
        });
        let [one, two] = attacks.collect::<Vec<_>>().try_into().ok().expect("two");
        tokio::join!(one, two)
    };
    let good = async {
        let (mut client, mut server) = pair().await;
        let mut reader = reader();
        let mut halves = server.split();
        tokio::time::sleep(Duration::from_millis(200)).await;
        let begun = barnabas_clock::now();
        for _ in 0..50 {
            client.write_all(&frame(&[0; 100_000])).await.expect("writes");
            let read = reader.next(&mut halves.0).await.expect("a frame").expect("open");
            assert_eq!(read.0.len(), 100_000);
        }
        barnabas_clock::since(begun)
    };
    let (results, took) = tokio::join!(attack, good);
    eprintln!("a good producer's 50 frames took {took:?}");
    let results = [results.0, results.1];
    let stalled =
        |result: &Result<(), FrameError>| matches!(result, Err(FrameError::Stalled { is_pressed: true, .. }));
    assert!(results.iter().all(stalled), "{results:?}");
    assert!(budget.claimed_bytes() == 0, "{}", budget.claimed_bytes());
}

#[tokio::test]
async fn follower_is_read_while_clients_hold_the_budget() {
    let budget = Budget::new(1 << 20);
    let mut clients = budget.claim(None);
    clients.stand(Standing::Small);
    assert!(clients.try_grow_to(1 << 20));
    let (mut client, mut server) = pair().await;
    let mut reader = FrameReader::new(budget.claim(None), 100 << 20).paced(place());
    reader.replicates(Some(|api| api == FETCH));
    let mut halves = server.split();
    let _pass = budget.claim_of_pass().await;
    // A Fetch that names many partitions.
    client.write_all(&frame(&[&FETCH.to_be_bytes()[..], &[0; 100_000]].concat())).await.expect("writes");
    let wait = Duration::from_secs(5);
    assert!(tokio::time::timeout(wait, reader.next(&mut halves.0)).await.is_ok());
}

#[test]
fn small_frames_of_replication_alone_have_its_reserve() {
    const ENVELOPE: i16 = 58;
    let standing = |key: Option<i16>, bytes: usize| {
        let mut reader = FrameReader::new(Budget::new(1 << 20).claim(None), 100 << 20);
        reader.replicates(Some(|api| api == FETCH));
        reader.buffer.extend_from_slice(&(bytes as i32 - 4).to_be_bytes());
        reader.buffer.extend(key.into_iter().flat_map(i16::to_be_bytes));
        reader.standing(bytes)
    };
    assert_eq!(standing(Some(FETCH), 100_000), Standing::Replication);
    assert_eq!(standing(None, 100_000), Standing::Replication, "it is not known yet");
    assert_eq!(standing(Some(ENVELOPE), 100_000), Standing::Small);
    assert_eq!(standing(Some(FETCH), REPLICATION_BYTES_MAX + 1), Standing::Small);
    assert_eq!(standing(Some(FETCH), 50 << 20), Standing::Large);
}

#[tokio::test]
async fn silent_connection_whose_place_is_taken_ends() {
    let limits = ConnectionLimits { connections_per_ip_max: Some(1), ..Default::default() };
    let gate = Gate::new(limits);
    let ip = [127, 0, 0, 1].into();
    let slot = gate.enter(ip, CLIENTS).expect("room");
    let (mut client, mut server) = pair().await;
    client.write_all(&[0, 0]).await.expect("writes");
    let mut reader = FrameReader::new(Budget::new(1 << 20).claim(None), 1 << 20).paced(slot.first_request());
    let mut halves = server.split();
    let newcomer = async {
        loop {
            if let Ok(new) = gate.enter(ip, CLIENTS) {
                return new;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let (ended, _new) = tokio::join!(reader.next(&mut halves.0), newcomer);
    assert!(matches!(ended, Err(FrameError::GaveWay { .. })), "{ended:?}");
}
