use super::*;
use barnabas_net::Budget;
use barnabas_wire::messages::metadata_request::MetadataRequestTopic;
use barnabas_wire::messages::{MetadataRequest, RequestHeader};
use barnabas_wire::{MEMORY_BYTES_MAX, encode_request};
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

const ADDRESS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

/// Metadata of so many topics of four letters: 6 bytes each, and 80 or more in decoded form.
fn frame(topics: usize) -> Bytes {
    let name = |at: usize| MetadataRequestTopic {
        name: Some(format!("{at:04x}").into()),
        ..MetadataRequestTopic::default()
    };
    let request = MetadataRequest { topics: Some((0..topics).map(name).collect()), ..Default::default() };
    let header = RequestHeader { request_api_key: 3, request_api_version: 1, ..RequestHeader::default() };
    encode_request(&header, &request.into()).expect("a frame").into_bytes()
}

fn claim_of(budget: &Budget, bytes: u64) -> Claim {
    let mut claim = budget.claim(None);
    claim.stand(Standing::Small);
    assert!(claim.try_grow_to(bytes));
    claim
}

fn poll<T>(future: std::pin::Pin<&mut impl Future<Output = T>>) -> Poll<T> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test]
async fn small_request_is_decoded_without_more_room() {
    let budget = Budget::new(1000);
    let mut claim = claim_of(&budget, 600);
    let unclaimed = Unclaimed::default();
    let threads = Unpacking::new(1);
    let beside = Beside { threads: &threads, address: ADDRESS };
    let (decoded, free) =
        decode(frame(100), MEMORY_BYTES_MAX, &mut claim, &unclaimed, beside).await.expect("decoded");
    assert!(decoded.memory_bytes > 1000, "{}", decoded.memory_bytes);
    assert_eq!((budget.claimed_bytes(), unclaimed.0.get()), (600, decoded.memory_bytes));
    drop(free);
    assert_eq!(unclaimed.0.get(), 0);
}

#[tokio::test]
async fn small_requests_of_a_connection_are_free_up_to_a_bound() {
    let budget = Budget::new(100 << 20);
    let unclaimed = Unclaimed::default();
    let threads = Unpacking::new(1);
    let beside = Beside { threads: &threads, address: ADDRESS };
    let mut in_work = Vec::new();
    for _ in 0..100 {
        let mut claim = claim_of(&budget, 0);
        let (decoded, free) =
            decode(frame(100), MEMORY_BYTES_MAX, &mut claim, &unclaimed, beside).await.expect("decoded");
        in_work.push((claim, decoded.memory_bytes, free));
    }
    let held: usize = in_work.iter().map(|(_, bytes, _)| bytes).sum();
    let is_free = |free: &Option<Free>| free.is_some();
    let free: usize = in_work.iter().filter(|(.., free)| is_free(free)).map(|(_, bytes, _)| bytes).sum();
    assert!(free <= FREE_BYTES && held > 2 * FREE_BYTES, "{free} of {held}");
    assert!(budget.claimed_bytes() >= (held - free) as u64);
}

#[tokio::test]
async fn large_requests_claim_what_they_take_before_they_take_it() {
    let budget = Budget::new(8 << 20);
    let unclaimed = Unclaimed::default();
    let threads = Unpacking::new(1);
    let beside = Beside { threads: &threads, address: ADDRESS };
    let mut claims: Vec<Claim> = (0..10).map(|_| claim_of(&budget, 60_000)).collect();
    // The pass is taken: a request without room waits.
    let mut pass = claim_of(&budget, 1);
    let mut whole = pin!(pass.grow_to(100 << 20));
    assert!(poll(whole.as_mut()).is_ready());
    let (mut done, mut most) = (0, 0);
    for claim in &mut claims {
        let mut decoding = pin!(decode(frame(10_000), MEMORY_BYTES_MAX, claim, &unclaimed, beside));
        let Poll::Ready(decoded) = poll(decoding.as_mut()) else { break };
        most = most.max(decoded.expect("decoded").0.memory_bytes);
        done += 1;
    }
    let held: u64 = claims.iter().map(Claim::bytes).sum();
    assert!(done >= 1 && held >= (done * most * WORK_BYTES_PER_DECODED) as u64, "{done}, {held}");
    assert!(held <= 8 << 20, "{held}: {done} of them are decoded, the others wait with their frames");
    assert!(done < 10);
}

#[tokio::test]
async fn refused_request_claims_no_more_than_its_bound() {
    let budget = Budget::new(100 << 20);
    let mut claim = claim_of(&budget, 0);
    let unclaimed = Unclaimed::default();
    let threads = Unpacking::new(1);
    let beside = Beside { threads: &threads, address: ADDRESS };
    let frame = frame(200_000);
    let (bytes, error) = {
        let decoded = decode(frame.clone(), 1 << 20, &mut claim, &unclaimed, beside).await;
        (claim.bytes(), decoded.expect_err("too large"))
    };
    assert_eq!(error.kind, DecodeErrorKind::Memory(1 << 20));
    assert!(bytes <= (PEAK_BYTES_PER_DECODED << 20) as u64, "{bytes}");
}

#[tokio::test]
async fn large_request_is_decoded_while_the_worker_goes_on() {
    let budget = Budget::new(1 << 30);
    let mut claim = claim_of(&budget, 0);
    let unclaimed = Unclaimed::default();
    let threads = Unpacking::new(1);
    let beside = Beside { threads: &threads, address: ADDRESS };
    // The only thread is busy until the worker's other task has had its turn.
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let busy = threads.run(None, move || ended.recv());
    let had_turn = Cell::new(false);
    let decoding = async {
        let decoded = decode(frame(100_000), MEMORY_BYTES_MAX, &mut claim, &unclaimed, beside).await;
        assert!(had_turn.get(), "the worker decoded it");
        decoded.expect("decoded").0.memory_bytes
    };
    let other = async {
        tokio::task::yield_now().await;
        had_turn.set(true);
        end.send(()).expect("the thread waits");
    };
    let (_, bytes, ()) = tokio::join!(busy, decoding, other);
    assert!(bytes > AT_ONCE_BYTES, "{bytes}");
}
