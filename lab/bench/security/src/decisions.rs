//! What does a decision of core/security cost with a set of ACLs?
//!
//! Unit: ns of one `Authorizer::decide`, the caller resolved (as it is once for each connection and image). Held fixed:
//! the set and the names of acls.rs, one caller that owns ACLs of its own. Left out on purpose: building the index, and
//! resolving the caller. Apache's side of it: Decisions.java.

use crate::{Wrong, acls};
use barnabas_base::Uuid;
use barnabas_metadata::Image;
use barnabas_security::{Authorizer, Host, Operation, ResourceType, SuperUsers};
use serde_json::{Value, json};
use std::hint::black_box;
use std::time::{Duration, Instant};

const HOST: &str = "127.0.0.1";

pub fn run(set: &str, topics: &str, lasts: Duration) -> Result<Value, Wrong> {
    let acls = acls::read_set(set)?;
    let count = acls.len();
    let names = std::fs::read_to_string(topics)?;
    let names: Vec<&str> = names.lines().collect();
    let numbered = acls.into_iter().enumerate().map(|(at, acl)| {
        let mut id = [0; 16];
        id[8..].copy_from_slice(&(at as u64 + 1).to_be_bytes());
        (Uuid(id), acl)
    });
    let image = Image { acls: numbered.collect(), ..Image::default() };
    let authorizer = Authorizer::new(&image, SuperUsers::default(), false);
    let caller = authorizer.caller(acls::CALLER, &Host::parse(HOST));
    let round = || {
        let decide = |name: &&&str| {
            authorizer.decide(&caller, Operation::Write, ResourceType::Topic, black_box(**name)).is_allowed()
        };
        names.iter().filter(decide).count()
    };
    let warm_up = Instant::now();
    let mut allowed = 0;
    while warm_up.elapsed() < lasts / 4 {
        allowed = black_box(round());
    }
    let (begun, mut rounds) = (Instant::now(), 0u64);
    while begun.elapsed() < lasts {
        black_box(round());
        rounds += 1;
    }
    let ns = begun.elapsed().as_secs_f64() * 1e9 / (rounds * names.len() as u64) as f64;
    Ok(json!({ "acls": count, "acl_ns": ns, "allowed": allowed, "decisions": rounds * names.len() as u64 }))
}
