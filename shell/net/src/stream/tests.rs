//! Frames over TLS, on real sockets.

use super::*;
use crate::{Budget, ConnectionLimits, Entrance, FrameError, FrameReader, FrameWriter, Gate};
use barnabas_tls::{ServerTls, TlsSettings};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

/// A server's TLS, and a client's that trusts it.
fn both() -> (ServerTls, ClientTls) {
    let mut params = CertificateParams::new(Vec::new()).expect("sound");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("signed");
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec!["localhost".to_owned()]).expect("sound");
    let chain = params.signed_by(&key, &ca).expect("signed").pem();
    let settings = |key_pem: Option<String>| {
        let (chain, ca) = (chain.clone(), ca.pem());
        TlsSettings::read(move |name| match name {
            "ssl.keystore.key" => key_pem.clone(),
            "ssl.keystore.certificate.chain" => key_pem.as_ref().map(|_| chain.clone()),
            "ssl.truststore.certificates" => Some(ca.clone()),
            _ => None,
        })
        .expect("sound")
    };
    let server = ServerTls::load(settings(Some(key.serialize_pem())), false).expect("loads");
    (server, ClientTls::load(settings(None)).expect("loads"))
}

struct Pair {
    client: Stream,
    server: Stream,
}

async fn sockets() -> (TcpStream, std::net::TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let client = TcpStream::connect(listener.local_addr().expect("bound")).await.expect("connects");
    let (server, _) = listener.accept().await.expect("accepts");
    (client, server.into_std().expect("a socket"))
}

fn place() -> crate::FirstRequest {
    let entrance = Entrance { listener: 0, is_reserved: false };
    let slot =
        Gate::new(ConnectionLimits::default()).enter([127, 0, 0, 1].into(), entrance).expect("a place");
    slot.first_request()
}

async fn pair(server: &ServerTls, client: &ClientTls) -> Pair {
    let (near, far) = sockets().await;
    let place = place();
    let (client, accepted) =
        tokio::join!(Stream::greet(near, "localhost", Some(client)), accept(far, server, &place, 0));
    let server = accepted.expect("accepts").stream.attach().expect("a socket");
    Pair { client: client.expect("greets"), server }
}

fn frame(bytes: usize) -> [Bytes; 2] {
    let body: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
    [Bytes::from((bytes as u32).to_be_bytes().to_vec()), Bytes::from(body)]
}

#[tokio::test]
async fn frames_of_every_size_arrive_whole_in_both_directions() {
    let (server_tls, client_tls) = both();
    let Pair { mut client, mut server } = pair(&server_tls, &client_tls).await;
    let sizes = [0, 1, 100, 4_095, 16_384, 16_385, 70_000, 1_000_000, 3_000_000, 10];
    for (from, to) in [(0, 1), (1, 0)] {
        let streams = [&mut client, &mut server];
        let [a, b] = streams;
        let (sender, receiver) = if (from, to) == (0, 1) { (a, b) } else { (b, a) };
        let send = async {
            let (_, write) = sender.split();
            let mut writer = FrameWriter::default();
            sizes.iter().for_each(|size| writer.queue(frame(*size)));
            let queued = writer.queued_bytes();
            assert_eq!(writer.flush(&write).await.expect("sent"), queued);
            assert!(!write.has_out());
        };
        let receive = async {
            let budget = Budget::new(64 << 20);
            let mut reader = FrameReader::new(budget.claim(None), 16 << 20);
            let (mut read, _) = receiver.split();
            for size in sizes {
                let (got, _claim) = reader.next(&mut read).await.expect("sound").expect("a frame");
                assert_eq!(got, frame(size)[1], "{size}");
            }
            assert_eq!(read.held_bytes(), 0, "an idle connection holds nothing");
        };
        tokio::join!(send, receive);
    }
    drop(client);
    let mut reader = FrameReader::new(Budget::new(1 << 20).claim(None), 1 << 20);
    let (mut read, _) = server.split();
    assert!(reader.next(&mut read).await.expect("ended").is_none());
}

/// Nothing but the socket wakes this reader: it has no pace, and so looks at nothing in between.
#[tokio::test]
async fn large_frame_that_comes_in_pieces_wakes_its_reader_and_so_does_its_end() {
    let (server_tls, client_tls) = both();
    let Pair { mut client, mut server } = pair(&server_tls, &client_tls).await;
    let mut reader = FrameReader::new(Budget::new(64 << 20).claim(None), 16 << 20);
    let (mut read, _) = server.split();
    for (size, sent) in
        [(150_000, 150_000), (40_000, 40_000), (600_000, 600_000), (10, 10), (500_000, 300_000)]
    {
        let [length, body] = frame(size);
        let send = async {
            client.write_all(&length).await.expect("writes");
            for piece in body[..sent].chunks(5_000) {
                client.write_all(piece).await.expect("writes");
                client.flush().await.expect("flushes");
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            if sent < size {
                client.shutdown().await.expect("ends");
            }
        };
        let receive = tokio::time::timeout(Duration::from_secs(20), reader.next(&mut read));
        let ((), got) = tokio::join!(send, receive);
        match got.expect("in time") {
            Ok(got) => assert_eq!(got.expect("a frame").0, body, "{size}"),
            Err(FrameError::Truncated { got, .. }) => assert_eq!((got, sent), (sent + 4, 300_000)),
            Err(error) => panic!("{size}: {error}"),
        }
    }
}

#[tokio::test]
async fn stream_moves_to_another_runtime_with_its_session() {
    let (server_tls, client_tls) = both();
    let Pair { mut client, server } = pair(&server_tls, &client_tls).await;
    let detached = server.detach().expect("a socket");
    let elsewhere = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let mut server = detached.attach().expect("attaches");
            let mut got = [0; 5];
            tokio::io::AsyncReadExt::read_exact(&mut server, &mut got).await.expect("reads");
            server.write_all(&got).await.expect("writes");
            server.flush().await.expect("flushes");
            server.say_end();
            got
        })
    });
    client.write_all(b"hello").await.expect("writes");
    client.flush().await.expect("flushes");
    let mut got = Vec::new();
    tokio::io::AsyncReadExt::read_to_end(&mut client, &mut got).await.expect("reads");
    assert_eq!((&got[..], &elsewhere.join().expect("done")), (&b"hello"[..], b"hello"));
}

#[tokio::test]
async fn half_a_record_counts_as_memory_and_stalls() {
    let (server_tls, client_tls) = both();
    let Pair { client, mut server } = pair(&server_tls, &client_tls).await;
    // The header of a record of 16 KiB and most of it: nothing of it can be decrypted.
    let mut record = vec![23, 3, 3, 0x40, 0x11];
    record.resize(12_000, 7);
    let sent = client.tcp().try_write(&record).expect("sends");
    assert_eq!(sent, record.len());
    let budget = Budget::new(1 << 20);
    let mut reader = FrameReader::new(budget.claim(None), 1 << 20).paced(place());
    let (mut read, _) = server.split();
    let stalled = tokio::time::timeout(Duration::from_millis(1_500), reader.next(&mut read)).await;
    assert!(stalled.is_err(), "it waits for the rest: {stalled:?}");
    assert_eq!(read.held_bytes(), record.len());
    assert!(budget.claimed_bytes() >= record.len() as u64, "{}", budget.claimed_bytes());
}

#[tokio::test]
async fn damaged_record_ends_the_connection() {
    let (server_tls, client_tls) = both();
    let Pair { client, mut server } = pair(&server_tls, &client_tls).await;
    client
        .tcp()
        .try_write(&[23, 3, 3, 0, 30].into_iter().chain([9; 30]).collect::<Vec<u8>>())
        .expect("sends");
    let mut reader = FrameReader::new(Budget::new(1 << 20).claim(None), 1 << 20);
    let (mut read, _) = server.split();
    let error = reader.next(&mut read).await.expect_err("no record of this session");
    assert!(matches!(error, FrameError::Io(_)), "{error}");
}

#[tokio::test]
async fn peers_without_tls_are_named_and_silent_ones_end() {
    let (server_tls, client_tls) = both();
    let (mut near, far) = sockets().await;
    near.write_all(&[0, 0, 0, 40, 0, 18]).await.expect("sends");
    let error = accept(far, &server_tls, &place(), 0).await.expect_err("no TLS");
    assert!(error.to_string().contains("security.protocol=SSL"), "{error}");
    let (near, far) = sockets().await;
    drop(near);
    let error = accept(far, &server_tls, &place(), 0).await.expect_err("no client");
    assert!(matches!(error, HandshakeError::Gone), "{error}");
    // The other way round: the server is plain, and says nothing that TLS can be.
    let (near, far) = sockets().await;
    let far = TcpStream::from_std(far).expect("a socket");
    far.writable().await.expect("open");
    far.try_write(&[0, 0, 0, 4, 0, 0, 0, 0]).expect("sends");
    Stream::greet(near, "localhost", Some(&client_tls)).await.expect_err("no TLS");
}

#[tokio::test]
async fn peer_that_does_not_read_is_given_up_and_keeps_little() {
    let (server_tls, client_tls) = both();
    let Pair { client: _client, mut server } = pair(&server_tls, &client_tls).await;
    let mut writer = FrameWriter::default();
    writer.queue([Bytes::from(vec![0; 64 << 20])]);
    let (read, write) = server.split();
    let mut bytes = 0;
    let started = barnabas_clock::now();
    let flushed = writer.flush_while(&write, |_, written| {
        bytes += written;
        barnabas_clock::since(started) < Duration::from_secs(1)
    });
    let error = flushed.await.expect_err("nothing is read");
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(bytes > 0 && read.held_bytes() <= OUT_PLAIN_MAX + (4 << 10), "{}", read.held_bytes());
}

#[tokio::test]
async fn two_tasks_of_one_machine_use_one_client() {
    let (server_tls, client_tls) = both();
    let client_tls = Arc::new(client_tls);
    let mut resumed = Vec::new();
    for _ in 0..2 {
        let (near, far) = sockets().await;
        let place = place();
        let greeting = async {
            let mut stream = Stream::greet(near, "localhost", Some(&client_tls)).await.expect("greets");
            // The ticket comes with the first answer.
            stream.write_all(b"x").await.expect("writes");
            stream.flush().await.expect("flushes");
            let mut got = [0];
            tokio::io::AsyncReadExt::read_exact(&mut stream, &mut got).await.expect("reads");
        };
        let serving = async {
            let accepted = accept(far, &server_tls, &place, 0).await.expect("accepts");
            let mut stream = accepted.stream.attach().expect("a socket");
            let mut got = [0];
            tokio::io::AsyncReadExt::read_exact(&mut stream, &mut got).await.expect("reads");
            stream.write_all(&got).await.expect("writes");
            stream.flush().await.expect("flushes");
            accepted.is_resumed
        };
        let ((), is_resumed) = tokio::join!(greeting, serving);
        resumed.push(is_resumed);
    }
    assert_eq!(resumed, [false, true]);
}
