//! W, S.

use super::Case;
use crate::facts::{Acl, Client, Config, Facts, Histogram, Quota, Scram, Source, Transaction};
use crate::rules::tests::build::{NOW_MS, configs_of, figures_of};

fn requests(facts: &mut Facts, id: &str, kind: &str, number: f64) {
    let requests = vec![(kind.to_owned(), number)];
    figures_of(facts, 0).clients.push(Client { id: id.to_owned(), requests, ..Client::default() });
}

fn throttle(facts: &mut Facts) {
    let figures = figures_of(facts, 0);
    (figures.throttled_requests, figures.throttle_seconds) = (250.0, 8.0);
    let entity = vec![("client-id".to_owned(), Some("loud".to_owned()))];
    facts.quotas = Ok(vec![Quota { entity, key: "producer_byte_rate".to_owned(), value: 1000.0 }]);
}

fn open_up(facts: &mut Facts) {
    let acl = Acl {
        resource_type: "topic".to_owned(),
        resource: "*".to_owned(),
        is_prefixed: false,
        principal: "User:*".to_owned(),
        host: "*".to_owned(),
        operation: "READ".to_owned(),
        is_allow: true,
    };
    facts.acls = Ok(vec![Acl { is_allow: false, ..acl.clone() }, acl]);
    let value = |value: &str| Config { value: Some(value.to_owned()), source: Source::Static };
    let configs = configs_of(facts, 0);
    configs.insert("authorizer.class.name".to_owned(), value("Standard"));
    configs.insert("allow.everyone.if.no.acl.found".to_owned(), value("true"));
    configs.insert("listeners".to_owned(), value("OUT://:9092,IN://[::1]:9093,SASL_SSL://:9094"));
    configs.insert("listener.security.protocol.map".to_owned(), value("OUT:PLAINTEXT,IN:PLAINTEXT"));
}

pub const CASES: &[Case] = &[
    Case {
        id: "W1",
        plant: |facts| figures_of(facts, 1).batch_records = Histogram(vec![(1.0, 1500.0), (64.0, 2000.0)]),
        sentences: &["node 2: half of the batches have at most 1 records, at 200 Produce requests a second"],
        commands: &[],
    },
    Case {
        id: "W8",
        plant: |facts| {
            figures_of(facts, 0).apis = vec![("OffsetCommit".to_owned(), 220.0)];
            requests(facts, "eager", "other", 210.0);
            requests(facts, "calm", "other", 20.0);
            requests(facts, "eager", "Fetch", 900.0);
        },
        sentences: &[
            "client eager: 21.0 requests a second to node 1, neither Produce nor Fetch, and the node gets 22.0 OffsetCommit requests a second",
        ],
        commands: &[],
    },
    Case {
        id: "W9",
        plant: |facts| {
            figures_of(facts, 0).apis = vec![("Metadata".to_owned(), 300.0)];
            requests(facts, "restless", "other", 300.0);
            requests(facts, "heartbeats", "other", 900.0);
            requests(facts, "barnabas-doctor", "other", 300.0);
        },
        sentences: &[
            "client restless: 30.0 requests a second to node 1, neither Produce nor Fetch, and the node gets 30.0 Metadata requests a second",
        ],
        commands: &[],
    },
    Case {
        id: "W11",
        plant: |facts| {
            facts.transactions = Ok(vec![Transaction {
                id: "pay 1".to_owned(),
                producer_id: 7,
                started_ms: NOW_MS - 1_200_000,
                timeout_ms: 3_600_000,
                partitions: vec![("orders".to_owned(), 0)],
            }]);
        },
        sentences: &["transaction pay 1: open for 20 min, in 1 partition (orders-0); its timeout is 60 min"],
        commands: &[
            "barnabas transactions --bootstrap-server h:1 forceTerminateTransaction --transactionalId 'pay 1'",
        ],
    },
    Case {
        id: "W12",
        plant: throttle,
        sentences: &[
            "node 1: 250 requests were over a quota, and their connections muted for 8.0 s together in 10.0 s",
        ],
        commands: &[
            "barnabas configs --bootstrap-server h:1 --alter --entity-type clients --entity-name loud --delete-config producer_byte_rate",
        ],
    },
    Case {
        id: "W14",
        plant: |facts| requests(facts, "(none)", "Fetch", 40.0),
        sentences: &["node 1: 4.0 requests a second come without a client id"],
        commands: &[],
    },
    Case {
        id: "S1",
        plant: open_up,
        sentences: &[
            "node 1: allow.everyone.if.no.acl.found=true: what has no ACL is open to all",
            "node 1: listener OUT://:9092 takes anyone off this machine, in clear text",
            "acl topic *: User:* may READ topic *: everyone who can connect",
        ],
        commands: &[
            "barnabas acls --bootstrap-server h:1 --remove --force --allow-principal 'User:*' --allow-host '*' --operation READ --topic '*'",
        ],
    },
    Case {
        id: "S3",
        plant: |facts| {
            let at = |days: i64| (NOW_MS / 1000 + days * 86_400) as f64;
            figures_of(facts, 0).certificates =
                vec![("near (CN=a)".to_owned(), at(3)), ("far (CN=b)".to_owned(), at(300))];
        },
        sentences: &["node 1: the certificate of near (CN=a) ends in 3 d"],
        commands: &[],
    },
    Case {
        id: "S4",
        plant: |facts| {
            facts.scram = Ok(vec![Scram {
                user: "anna".to_owned(),
                mechanism: "SCRAM-SHA-256".to_owned(),
                iterations: 4096,
            }]);
        },
        sentences: &["user anna: SCRAM-SHA-256 with 4096 iterations"],
        commands: &[
            "barnabas configs --bootstrap-server h:1 --alter --entity-type users --entity-name anna --add-config 'SCRAM-SHA-256=[iterations=8192,password=PASSWORD]'",
        ],
    },
    Case {
        id: "S5",
        plant: |facts| figures_of(facts, 2).failed_logins = 5.0,
        sentences: &["node 3: 30 logins a minute fail"],
        commands: &[],
    },
];
