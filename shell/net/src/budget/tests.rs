use super::*;
use std::net::Ipv4Addr;
use tokio::time::timeout;

fn account(budget: &Budget, last: u8) -> Option<Arc<Account>> {
    Some(budget.account(IpAddr::from(Ipv4Addr::new(10, 0, 0, last))))
}

fn claim(budget: &Budget, standing: Standing) -> Claim {
    let mut claim = budget.claim(None);
    claim.stand(standing);
    claim
}

#[test]
fn dropped_claim_gives_back_its_bytes() {
    let budget = Budget::new(100);
    let mut one = claim(&budget, Standing::Small);
    assert!(one.try_grow_to(60));
    assert!(one.try_grow_to(50));
    let mut two = claim(&budget, Standing::Small);
    assert!(!two.try_grow_to(50));
    assert_eq!(budget.claimed_bytes(), 60);
    let part = one.split(20);
    drop(one);
    assert!(two.try_grow_to(50));
    drop(part);
    drop(two);
    assert_eq!(budget.claimed_bytes(), 0);
}

#[tokio::test]
async fn replication_pool_is_closed_to_clients_with_the_pass() {
    let budget = Budget::new(1600);
    let mut client = claim(&budget, Standing::Large);
    assert!(client.try_grow_to(1200) && !client.try_grow_to(1201));
    // The pass: one client's frame beyond every limit.
    timeout(Duration::from_secs(5), client.grow_to(50_000)).await.expect("has the pass");
    let (mut small, mut follower) = (claim(&budget, Standing::Small), claim(&budget, Standing::Replication));
    assert!(
        small.try_grow_to(1600) && !small.try_grow_to(1601),
        "the frame beyond keeps nothing from others"
    );
    assert!(follower.try_grow_to(150) && !follower.try_grow_to(151));
    drop((client, small));
    // There is room for it among the clients now.
    assert!(follower.try_grow_to(1600));
    drop(follower);
    assert_eq!(budget.claimed_bytes(), 0);
}

/// A budget whose clients' pool is taken, with the addresses of two other nodes; 64 MiB, so that a slot has 3 MiB.
fn full_with_two_peers() -> (Budget, Claim) {
    let budget = Budget::new(64 << 20);
    budget.set_peers(&[1, 2].map(|last| IpAddr::from(Ipv4Addr::new(10, 0, 0, last))));
    let mut clients = claim(&budget, Standing::Small);
    assert!(clients.try_grow_to(64 << 20));
    (budget, clients)
}

fn replication_of(budget: &Budget, last: u8) -> Claim {
    let mut claim = budget.claim(account(budget, last));
    claim.stand(Standing::Replication);
    claim
}

#[test]
fn strangers_and_other_peers_leave_a_peers_slot_alone() {
    let (budget, _clients) = full_with_two_peers();
    let mut strangers: Vec<Claim> = Vec::new();
    for last in (3..250).chain([1]) {
        for _ in 0..100 {
            let mut claim = replication_of(&budget, last);
            if !claim.try_grow_to(60 << 10) {
                break;
            }
            strangers.push(claim);
        }
    }
    let held: u64 = strangers.iter().map(Claim::bytes).sum();
    assert!(held <= 5 << 20, "the strangers' quarter and the first peer's slot, not {held}");
    let mut second = replication_of(&budget, 2);
    assert!(second.try_grow_to(3 << 20 >> 2 << 1), "a peer's slot is its own");
    assert!(!replication_of(&budget, 1).try_grow_to(60 << 10), "the first has used its own up");
    drop((strangers, second));
    assert!(replication_of(&budget, 1).try_grow_to(60 << 10));
}

#[test]
fn large_answers_leave_a_peer_room_for_heartbeats() {
    let (budget, _clients) = full_with_two_peers();
    let (mut answer, mut heartbeat) = (replication_of(&budget, 1), replication_of(&budget, 1));
    assert!(answer.try_grow_to(9 << 18) && !answer.try_grow_to((9 << 18) + 1));
    assert!(heartbeat.try_grow_to(64 << 10));
}

#[tokio::test]
async fn peers_do_not_stand_in_the_clients_queue() {
    let (budget, _clients) = full_with_two_peers();
    let _pass = budget.claim_of_pass().await;
    let mut waits = budget.claim(account(&budget, 9));
    waits.stand(Standing::Small);
    assert!(
        timeout(Duration::from_millis(20), waits.grow_to(4 << 10)).await.is_err(),
        "a client has the pass"
    );
    let mut peer = replication_of(&budget, 1);
    timeout(Duration::from_secs(5), peer.grow_to(8 << 20)).await.expect("the peers' own pass");
}

#[tokio::test]
async fn claim_that_is_no_longer_replications_leaves_the_reserve() {
    let (budget, clients) = full_with_two_peers();
    let mut frame = replication_of(&budget, 1);
    assert!(frame.try_grow_to(4 << 10));
    frame.stand(Standing::Small);
    assert!(!frame.try_grow_to(8 << 10), "its API is a client's");
    drop(clients);
    assert!(frame.try_grow_to(8 << 10));
    assert_eq!(budget.account(IpAddr::from(Ipv4Addr::new(10, 0, 0, 1))).held(PEERS), 0);
}

#[test]
fn peer_that_left_has_no_slot() {
    let (budget, _clients) = full_with_two_peers();
    let mut before = replication_of(&budget, 1);
    assert!(before.try_grow_to(60 << 10));
    budget.set_peers(&[]);
    assert!(!before.try_grow_to(70 << 10), "nothing more in the slot");
    drop(before);
    assert!(replication_of(&budget, 1).try_grow_to(60 << 10), "the strangers' part");
    assert_eq!(budget.claimed_bytes(), 64 << 20);
}

#[test]
fn first_bytes_have_a_sixteenth_above_the_limit() {
    let budget = Budget::new(1600);
    let (mut small, mut unknown) = (claim(&budget, Standing::Small), claim(&budget, Standing::Unknown));
    assert!(small.try_grow_to(1600) && !small.try_grow_to(1601));
    assert!(unknown.try_grow_to(100) && !unknown.try_grow_to(101));
}

#[test]
fn one_address_leaves_a_quarter_to_the_others() {
    let budget = Budget::new(1600);
    let of = |last, standing| {
        let mut claim = budget.claim(account(&budget, last));
        claim.stand(standing);
        claim
    };
    let (mut one, mut other) = (of(1, Standing::Small), of(1, Standing::Small));
    assert!(one.try_grow_to(800) && other.try_grow_to(400) && !other.try_grow_to(401));
    let mut second = of(2, Standing::Small);
    assert!(second.try_grow_to(300) && !second.try_grow_to(301));
    // Whatever two hold, a third is served.
    assert!(of(3, Standing::Small).try_grow_to(70));
    drop((one, other, second));
    let (mut large, mut small) = (of(1, Standing::Large), of(1, Standing::Small));
    assert!(large.try_grow_to(900) && !large.try_grow_to(901));
    assert!(small.try_grow_to(300), "small frames of the same address are served");
    drop((large, small));
    assert_eq!((budget.claimed_bytes(), budget.account([10, 0, 0, 1].into()).held(CLIENTS)), (0, 0));
}

#[tokio::test]
async fn half_read_frames_take_turns_beyond_the_limit() {
    let budget = Budget::new(100);
    let (mut one, mut two) = (claim(&budget, Standing::Small), claim(&budget, Standing::Small));
    assert!(one.try_grow_to(50) && two.try_grow_to(50));
    one.grow_to(90).await;
    assert!(!two.try_grow_to(101));
    assert!(two.is_pressed());
    assert!(timeout(Duration::from_millis(20), two.grow_to(101)).await.is_err());
    // A frame that is complete takes the pass along.
    let frame = one.split(80);
    assert!(!one.has_pass() && frame.has_pass());
    assert!(two.try_grow_to(90) && !two.try_grow_to(91));
    drop(frame);
    two.grow_to(101).await;
}

#[tokio::test]
async fn claim_that_keeps_to_the_limits_waits_for_room() {
    let budget = Budget::new(100);
    let (mut one, mut two) = (claim(&budget, Standing::Small), claim(&budget, Standing::Small));
    assert!(one.try_grow_to(60) && two.try_grow_to(10));
    let (waits, gives_back) = (two.grow_within_limits(90), async {
        // The pass is free all the while: it was not taken.
        tokio::task::yield_now().await;
        assert_eq!(budget.claimed_bytes(), 70);
        drop(one);
    });
    tokio::join!(waits, gives_back);
    assert!(!two.has_pass() && two.bytes() == 90);
}

#[tokio::test]
async fn passes_are_given_in_order_of_arrival() {
    let budget = Budget::new(100);
    let mut holds = claim(&budget, Standing::Small);
    assert!(holds.try_grow_to(70));
    holds.grow_to(100).await;
    let pass = budget.claim_of_pass().await;
    let mut waits: Vec<Claim> = (0..3)
        .map(|_| {
            let mut claim = claim(&budget, Standing::Unknown);
            assert!(claim.try_grow_to(2));
            claim
        })
        .collect();
    let order = std::cell::RefCell::new(Vec::new());
    let grow = |at: usize, mut claim: Claim| {
        let order = &order;
        async move {
            claim.grow_to(500).await;
            order.borrow_mut().push(at);
        }
    };
    let (third, second, first) =
        (waits.pop().expect("three"), waits.pop().expect("three"), waits.pop().expect("three"));
    let disturb = async {
        for _ in 0..5 {
            tokio::task::yield_now().await;
            budget.shared.freed.notify_waiters();
        }
        drop(pass);
    };
    tokio::join!(grow(0, first), grow(1, second), grow(2, third), disturb);
    assert_eq!(*order.borrow(), [0, 1, 2]);
}

#[test]
fn pressure_of_one_address_is_felt_there_alone() {
    let budget = Budget::new(1 << 20);
    let (mut one, other) = (budget.claim(account(&budget, 1)), budget.claim(account(&budget, 2)));
    one.stand(Standing::Small);
    assert!(one.try_grow_to(700 << 10) && !one.is_pressed());
    assert!(!one.try_grow_to(800 << 10));
    assert!(one.is_pressed() && !other.is_pressed());
}

#[test]
fn claimants_bytes_are_its_addresss_and_come_back_without_it() {
    let budget = Budget::new(1_000_000);
    let ip = IpAddr::from(Ipv4Addr::new(10, 0, 0, 1));
    let (one, other) = (budget.claimant(ip), budget.claimant(ip));
    let (mut of_one, mut of_other) = (one.claim(), other.claim());
    drop((one, other));
    of_one.stand(Standing::Small);
    of_other.stand(Standing::Small);
    assert!(of_one.try_grow_to(500_000));
    assert!(!of_other.try_grow_to(300_000), "its address leaves a quarter free");
    assert!(of_other.try_grow_to(200_000));
    let part = of_one.split(100_000);
    drop(of_one);
    assert_eq!((budget.claimed_bytes(), budget.account(ip).held(CLIENTS)), (300_000, 300_000));
    drop((part, of_other));
    assert_eq!((budget.claimed_bytes(), budget.account(ip).held(CLIENTS)), (0, 0));
}
