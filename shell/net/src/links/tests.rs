//! Links against a peer that answers, closes, hangs, or is not there.

use super::{Address, Link, LinkError, LinkSettings, LinkState};
use barnabas_base::Text;
use barnabas_wire::messages::api_versions_response::{ApiVersion, ApiVersionsResponse};
use barnabas_wire::messages::{HeartbeatRequest, HeartbeatResponse};
use barnabas_wire::{ApiKey, RequestBody, ResponseBody, frame_response};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;

fn settings() -> LinkSettings {
    LinkSettings { timeout: Duration::from_secs(5), ..LinkSettings::new("test") }
}

async fn listen() -> (TcpListener, Address) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let port = listener.local_addr().expect("bound").port();
    (listener, Address { host: Text::from("127.0.0.1"), port })
}

async fn read(stream: &mut TcpStream) -> (i32, i16, RequestBody) {
    let length = stream.read_u32().await.expect("a length");
    let mut frame = vec![0; length as usize];
    stream.read_exact(&mut frame).await.expect("a frame");
    let (header, body) = RequestBody::decode_frame(frame.into(), 1 << 20).expect("a request");
    (header.correlation_id, header.request_api_version, body)
}

async fn write(stream: &mut TcpStream, correlation_id: i32, body: impl Into<ResponseBody>, version: i16) {
    let frame = frame_response(correlation_id, &body.into(), version).expect("a response").into_bytes();
    stream.write_all(&frame).await.expect("writes");
}

/// Accepts and says that Heartbeat 0 to 3 is spoken.
async fn accept(listener: &TcpListener) -> TcpStream {
    let (mut stream, _) = listener.accept().await.expect("accepts");
    let (id, version, body) = read(&mut stream).await;
    assert_eq!(body.key(), ApiKey::ApiVersions);
    let row = ApiVersion {
        api_key: ApiKey::Heartbeat.number(),
        min_version: 0,
        max_version: 3,
        ..ApiVersion::default()
    };
    write(&mut stream, id, ApiVersionsResponse { api_keys: vec![row], ..Default::default() }, version).await;
    stream
}

fn heartbeat(generation_id: i32) -> HeartbeatRequest {
    HeartbeatRequest { generation_id, ..HeartbeatRequest::default() }
}

async fn becomes(link: &Link, state: LinkState) {
    let mut watch = link.watch();
    let wait = watch.wait_for(|known| *known == state);
    tokio::time::timeout(Duration::from_secs(5), wait).await.expect("in time").expect("the link lives");
}

#[tokio::test]
async fn several_requests_are_under_way_and_answered_in_order() {
    let (listener, address) = listen().await;
    let link = Link::start(&Handle::current(), address, settings());
    let peer = async {
        let mut stream = accept(&listener).await;
        let mut seen = Vec::new();
        for _ in 0..3 {
            let (id, version, _) = read(&mut stream).await;
            assert_eq!(version, 3, "the newest that both speak");
            seen.push(id);
        }
        for (at, id) in seen.into_iter().enumerate() {
            let answer = HeartbeatResponse { throttle_time_ms: at as i32, ..HeartbeatResponse::default() };
            write(&mut stream, id, answer, 3).await;
        }
        stream
    };
    let asked =
        async { tokio::join!(link.send(heartbeat(1)), link.send(heartbeat(2)), link.send(heartbeat(3))) };
    let (_stream, (a, b, c)) = tokio::join!(peer, asked);
    let answers = [a, b, c].map(|answer| answer.expect("answered").throttle_time_ms);
    assert_eq!(answers, [0, 1, 2]);
    becomes(&link, LinkState::Up).await;
}

#[tokio::test]
async fn a_peer_that_goes_is_noticed_at_once_while_nothing_is_asked() {
    let (listener, address) = listen().await;
    let link = Link::start(&Handle::current(), address, settings());
    let peer = async {
        let mut stream = accept(&listener).await;
        let (id, version, _) = read(&mut stream).await;
        write(&mut stream, id, HeartbeatResponse::default(), version).await;
        stream
    };
    let (stream, answer) = tokio::join!(peer, link.send(heartbeat(1)));
    answer.expect("answered");
    // Longer than a connection that fails at once lives.
    tokio::time::sleep(Duration::from_millis(150)).await;
    let gone = barnabas_clock::now();
    drop((stream, listener));
    becomes(&link, LinkState::Refused).await;
    assert!(barnabas_clock::since(gone) < Duration::from_millis(500), "{:?}", barnabas_clock::since(gone));
    let refused = link.send(heartbeat(2)).await.expect_err("nothing listens there");
    assert!(matches!(refused, LinkError::Unreachable { .. }), "{refused}");
}

#[tokio::test]
async fn a_reset_is_no_death_and_what_was_under_way_fails() {
    let (listener, address) = listen().await;
    let link = Link::start(&Handle::current(), address, settings());
    let peer = async {
        let mut stream = accept(&listener).await;
        read(&mut stream).await;
        drop(stream);
        let mut stream = accept(&listener).await;
        let (id, version, _) = read(&mut stream).await;
        write(&mut stream, id, HeartbeatResponse::default(), version).await;
        stream
    };
    let asked = async {
        let lost = link.send(heartbeat(1)).await.expect_err("the connection was closed");
        assert!(matches!(lost, LinkError::Lost { .. }), "{lost}");
        becomes(&link, LinkState::Up).await;
        link.send(heartbeat(2)).await.expect("answered");
    };
    tokio::join!(peer, asked);
}

#[tokio::test]
async fn a_peer_that_hangs_is_given_up_and_an_api_that_it_lacks_is_not_sent() {
    let (listener, address) = listen().await;
    let link = Link::start(&Handle::current(), address, settings());
    let peer = async {
        let mut stream = accept(&listener).await;
        read(&mut stream).await;
        stream
    };
    let asked = link.send_with(Duration::from_millis(50), |_| Some(heartbeat(1)));
    let (_stream, answer) = tokio::join!(peer, asked);
    assert!(matches!(answer, Err(LinkError::TimedOut { api: ApiKey::Heartbeat, .. })), "{answer:?}");
    let other = async {
        becomes(&link, LinkState::Up).await;
        let unsupported = link.send(barnabas_wire::messages::VoteRequest::default()).await;
        assert!(matches!(unsupported, Err(LinkError::Unsupported { .. })), "{unsupported:?}");
    };
    let (_stream, ()) = tokio::join!(accept(&listener), other);
}
