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
    assert!(follower.try_grow_to(200) && !follower.try_grow_to(201));
    drop((client, small));
    // There is room for it among the clients now.
    assert!(follower.try_grow_to(1600));
    drop(follower);
    assert_eq!(budget.claimed_bytes(), 0);
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
