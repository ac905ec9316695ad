//! C14, C15, N6.

use super::Case;
use crate::facts::{Controller, Facts, Unseen};

fn refused() -> Unseen {
    Unseen("connection refused".to_owned())
}

/// Two of three voters are gone, and one of them was a broker too.
fn lose_quorum(facts: &mut Facts) {
    facts.quorum = Err(Unseen("the metadata quorum: REQUEST_TIMED_OUT".to_owned()));
    facts.no_leader = Some("REQUEST_TIMED_OUT".to_owned());
    let controller = |(address, is_up): (&str, bool)| Controller {
        address: address.to_owned(),
        answers: if is_up { Ok(()) } else { Err(refused()) },
    };
    facts.controllers = Ok([("a:9093", true), ("b:9093", false), ("c:9093", false)].map(controller).into());
    facts.nodes[2].reached = Err(refused());
}

pub const CASES: &[Case] = &[
    Case {
        id: "C14",
        plant: lose_quorum,
        sentences: &[
            "cluster: no broker reaches a leader of the metadata quorum (REQUEST_TIMED_OUT); 2 of 3 controllers do not answer (b:9093, \
             c:9093), and 2 must run",
        ],
        commands: &[
            "systemctl start barnabas  # on the host of b:9093",
            "systemctl start barnabas  # on the host of c:9093",
        ],
    },
    Case {
        id: "C15",
        plant: lose_quorum,
        sentences: &["node 3: it does not answer at 10.0.0.1:9092: connection refused"],
        commands: &["systemctl start barnabas  # on 10.0.0.1"],
    },
    Case {
        id: "N6",
        plant: |facts| {
            facts.nodes[0].reached = Err(refused());
            facts.nodes[1].host = "localhost".to_owned();
        },
        sentences: &[
            "node 1: it runs, and advertises 10.0.0.1:9092, which cannot be reached from here: connection refused",
            "node 2: it advertises the loopback address localhost:9092",
        ],
        commands: &[],
    },
];
