//! Turns: one job per address, jobs of connections that are gone, and the share of a worker's time.

use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};

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
    let unpacking = Unpacking::new(1);
    let running = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    for _ in 0..20 {
        let (running, most) = (running.clone(), most.clone());
        let work = move || {
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(1));
            running.fetch_sub(1, Ordering::SeqCst);
        };
        let _ = tokio::time::timeout(Duration::from_micros(200), unpacking.run(ONE, work)).await;
    }
    assert_eq!(unpacking.run(ONE, || 7).await, Some(7));
    assert_eq!(most.load(Ordering::SeqCst), 1);
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
