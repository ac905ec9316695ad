//! Kafka's flags of the tools of `src/access`.

use super::Here::{But, Yes};
use super::OfKafka;

pub(super) const TABLES: &[OfKafka] = &[
    OfKafka {
        tool: "acls",
        flags: &[
            ("bootstrap-server", Yes),
            ("bootstrap-controller", Yes),
            ("command-config", Yes),
            ("add", Yes),
            (
                "remove",
                But(
                    "the answer is read from standard input, also where that is no terminal; Kafka's tool fails there",
                ),
            ),
            ("list", Yes),
            ("topic", Yes),
            ("group", Yes),
            ("cluster", Yes),
            ("transactional-id", Yes),
            ("delegation-token", Yes),
            ("user-principal", Yes),
            ("resource-pattern-type", Yes),
            ("operation", But("in any case, with or without underscores")),
            ("allow-principal", Yes),
            ("deny-principal", Yes),
            ("allow-host", Yes),
            ("deny-host", Yes),
            ("principal", Yes),
            ("producer", Yes),
            ("consumer", Yes),
            ("idempotent", Yes),
            ("force", Yes),
        ],
        notes: "Resources and ACLs are listed in order; Kafka's tool lists them in the order of a hash map. `--explain User:alice Read topic:orders 10.0.0.1` says which ACL allows or denies it, or \
                which one is missing; `--who-can Write topic:orders` lists principals; `--shadowed` lists ACLs that another one makes useless; `--without-resource` lists those of topics and groups \
                that do not exist. They judge what DescribeAcls answers, so they work with Apache Kafka's brokers too. RESOURCE is topic:NAME, group:NAME, cluster, transactional-id:ID, \
                delegation-token:ID or user:PRINCIPAL.",
    },
    OfKafka {
        tool: "delegation-tokens",
        flags: &[
            ("bootstrap-server", Yes),
            ("command-config", Yes),
            ("create", Yes),
            ("renew", Yes),
            ("expire", Yes),
            (
                "describe",
                But(
                    "without `--owner-principal`: every token that the user may see; Kafka's tool shows none. Both print `for current user` then",
                ),
            ),
            ("owner-principal", Yes),
            ("renewer-principal", Yes),
            ("max-life-time-period", Yes),
            ("renew-time-period", Yes),
            ("expiry-time-period", Yes),
            ("hmac", Yes),
        ],
        notes: "Times are UTC. A token logs in by SCRAM: `ScramLoginModule required username=TOKENID password=HMAC tokenauth=true`.",
    },
];
