//! Turns: one job per address, jobs of connections that are gone, and the share of a worker's time.

use super::*;
use std::sync::atomic::{AtomicBool, Ordering};

const ONE: Option<IpAddr> = Some(IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1)));
const OTHER: Option<IpAddr> = Some(IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2)));

#[tokio::test]
async fn an_address_with_many_jobs_delays_another_by_one() {
    let unpacking = Unpacking::new(1);
    let done = Arc::new(Mutex::new(Vec::new()));
    let job = |name: &'static str| {
        let done = done.clone();
        move || {
            std::thread::sleep(Duration::from_millis(2));
            done.lock().unwrap().push(name);
        }
    };
    let many = async {
        tokio::join!(unpacking.run(ONE, job("a")), unpacking.run(ONE, job("b")), unpacking.run(ONE, job("c")))
    };
    let _ = tokio::join!(biased; many, unpacking.run(OTHER, job("other")));
    let place = done.lock().unwrap().iter().position(|name| *name == "other");
    assert_eq!(place, Some(1), "{done:?}");
    assert!(unpacking.addresses.lock().unwrap().is_empty());
}

#[tokio::test]
async fn abandoned_job_keeps_its_turn_until_it_ends() {
    // Two threads: but for its turn, the second job would run beside the first.
    let unpacking = Unpacking::new(4);
    let has_ended = Arc::new(AtomicBool::new(false));
    let (starts, has_started) = oneshot::channel();
    let (end, may_end) = sync_channel(1);
    let ended = has_ended.clone();
    let work = move || {
        starts.send(()).expect("it is waited for");
        may_end.recv().expect("it is released");
        ended.store(true, Ordering::SeqCst);
    };
    tokio::select! {
        biased;
        _ = unpacking.run(ONE, work) => panic!("it has not ended"),
        started = has_started => started.expect("it is kept"),
    }
    let ended = has_ended.clone();
    let mut next = std::pin::pin!(unpacking.run(ONE, move || ended.load(Ordering::SeqCst)));
    assert!(tokio::time::timeout(Duration::from_millis(20), &mut next).await.is_err());
    end.send(()).expect("it waits");
    assert_eq!(next.await, Some(true));
}

#[test]
fn a_worker_gives_a_share_of_its_time() {
    let start = barnabas_clock::now();
    assert_eq!(Spare::at_once(start), AT_ONCE);
    Spare::spent(Duration::from_millis(10));
    assert_eq!(Spare::at_once(start), NOTHING);
    assert_eq!(Spare::at_once(start + Duration::from_millis(1)), AT_ONCE);
    Spare::spent(Duration::from_micros(250));
    assert_eq!(Spare::at_once(start + Duration::from_millis(1)), NOTHING);
}
