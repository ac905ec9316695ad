//! What sessions take of the node's memory: a budget of their own, apart from the one of requests and answers, because
//! sessions stay.
//!
//! Claims do not wait: what finds no room gets no session. An address holds at most three times what it leaves free;
//! followers that the cluster knows have replication's reserve on top (shell/net/src/budget.rs).

use barnabas_api::{Lender, SessionShare};
use barnabas_net::{Budget, Claim, Standing};
use std::cell::RefCell;
use std::net::IpAddr;

struct Share(RefCell<Claim>);

impl Lender for Share {
    fn lend(&self, total: u64) -> bool {
        let mut claim = self.0.borrow_mut();
        claim.shrink_to(total);
        claim.try_grow_to(total)
    }
}

/// An empty share for one session.
pub fn share(memory: &Budget, ip: IpAddr, is_follower: bool) -> SessionShare {
    let mut claim = memory.claim(Some(memory.account(ip)));
    claim.stand(if is_follower { Standing::Replication } else { Standing::Small });
    Box::new(Share(RefCell::new(claim)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn share_takes_what_its_session_takes_and_goes_with_it() {
        let memory = Budget::new(1_000_000);
        let [one, other] = [1, 2].map(|last| IpAddr::from(Ipv4Addr::new(127, 0, 0, last)));
        let first = share(&memory, one, false);
        assert!(first.lend(700_000));
        assert!(!share(&memory, one, false).lend(100_000), "an address leaves a quarter to others");
        assert!(share(&memory, other, false).lend(100_000));
        assert!(first.lend(300_000), "a session that shrinks gives back");
        assert_eq!(memory.claimed_bytes(), 300_000);
        assert!(share(&memory, one, false).lend(400_000));
        memory.set_peers(&[one]);
        let follower = share(&memory, one, true);
        assert!(follower.lend(90_000), "replication has more");
        drop(first);
        assert_eq!(memory.claimed_bytes(), 90_000);
    }
}
