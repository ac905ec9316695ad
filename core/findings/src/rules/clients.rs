//! W: what clients do to the nodes.

mod wire;

pub use wire::{
    DOES_NOT_READ, NEW_PRODUCERS, NOT_COMPRESSED, NOT_IDEMPOTENT, OLD_CLIENTS, REFUSED, TINY_FETCHES,
    WEAK_ACKS,
};

use super::words::{count, quoted, several, span, tool};
use super::{Rule, limit};
use crate::facts::{Facts, Figures, Node};
use crate::report::{Report, Severity};

/// The doctor's own client id.
const OURS: &str = "barnabas-doctor";
/// What the metrics page calls requests without a client id.
const NONE: &str = "(none)";
const PRODUCES_PER_S: f64 = 100.0;

pub const SMALL_BATCHES: Rule = Rule {
    id: "W1",
    name: "Small batches",
    severity: Severity::Warning,
    evidence: "metrics: barnabas_batch_records and Produce requests between the two looks",
    threshold: "a median of less than {} records, at more than 100 Produce requests a second and node",
    limit: limit(5.0),
    advice: "Every batch costs a request, a header of 61 bytes, a check and a place in the journal. Let producers wait for more: linger.ms=5 to 20, batch.size=65536.",
    command: "",
    judge: |facts, limit, report| {
        each(facts, report, |node, figures, report| {
            let rate = figures.produce_requests / figures.seconds;
            let Some(median) = figures.batch_records.quantile(0.5) else { return };
            if rate > PRODUCES_PER_S && median < limit {
                let sentence = format!(
                    "half of the batches have at most {median:.0} records, at {rate:.0} Produce requests a second"
                );
                report.find(format!("node {}", node.id), sentence, Vec::new());
            }
        });
    },
};

pub const COMMITS: Rule = Rule {
    id: "W8",
    name: "A client that commits all the time",
    severity: Severity::Warning,
    evidence: "metrics: OffsetCommit requests of a node, and requests by client id that are neither Produce nor Fetch",
    threshold: "more than {} a second of both, and the first at least half of the second",
    limit: limit(10.0),
    advice: "A commit is a synced write on every replica of __consumer_offsets. Commit by time or once a poll, not once a record.",
    command: "",
    judge: |facts, limit, report| by_client(facts, report, "OffsetCommit", limit),
};

pub const METADATA: Rule = Rule {
    id: "W9",
    name: "A client that asks for metadata all the time",
    severity: Severity::Warning,
    evidence: "metrics: Metadata requests of a node, and requests by client id that are neither Produce nor Fetch",
    threshold: "more than {} a second of both, and the first at least half of the second",
    limit: limit(10.0),
    advice: "A client that asks so often opens a new client for each record, asks for topics that do not exist, or has a metadata.max.age.ms of seconds. Keep one client open and reuse it.",
    command: "",
    judge: |facts, limit, report| by_client(facts, report, "Metadata", limit),
};

pub const NAMELESS: Rule = Rule {
    id: "W14",
    name: "Clients without a name",
    severity: Severity::Info,
    evidence: "metrics: requests without a client id",
    threshold: "more than {} a second",
    limit: limit(1.0),
    advice: "Quotas, logs and every figure by client need a name. Set client.id to the application's name.",
    command: "",
    judge: |facts, limit, report| {
        each(facts, report, |node, figures, report| {
            let nameless = figures.clients.iter().filter(|client| client.id == NONE);
            let requests: f64 = nameless.flat_map(|client| &client.requests).map(|(_, count)| count).sum();
            let rate = requests / figures.seconds;
            if rate > limit {
                let sentence = format!("{rate:.1} requests a second come without a client id");
                report.find(format!("node {}", node.id), sentence, Vec::new());
            }
        });
    },
};

pub const OLD_TRANSACTION: Rule = Rule {
    id: "W11",
    name: "A transaction that stays open",
    severity: Severity::Warning,
    evidence: "ListTransactions, DescribeTransactions",
    threshold: "open for longer than {} s",
    limit: limit(900.0),
    advice: "Consumers with read_committed see nothing that comes after it, in all of its partitions. End it; lower transaction.timeout.ms of that producer.",
    command: "barnabas transactions … forceTerminateTransaction --transactionalId ID",
    judge: |facts, limit, report| {
        for open in report.seen(&facts.transactions).into_iter().flatten() {
            let age_ms = (facts.now_ms - open.started_ms) as f64;
            if age_ms > limit * 1000.0 {
                let names: Vec<String> =
                    open.partitions.iter().map(|(topic, n)| format!("{topic}-{n}")).collect();
                let sentence = format!(
                    "open for {}, in {} ({}); its timeout is {}",
                    span(age_ms),
                    count(names.len(), "partition"),
                    several(&names),
                    span(f64::from(open.timeout_ms))
                );
                let rest = format!("forceTerminateTransaction --transactionalId {}", quoted(&open.id));
                let line = tool(facts, "transactions", &rest);
                report.find(format!("transaction {}", open.id), sentence, vec![line]);
            }
        }
    },
};

pub const QUOTA: Rule = Rule {
    id: "W12",
    name: "Clients throttled by a quota",
    severity: Severity::Warning,
    evidence: "metrics: time for which connections were muted; DescribeClientQuotas",
    threshold: "connections were muted, together, for more than {} % of the time",
    limit: limit(10.0),
    advice: "A throttled client waits with its connection muted. Raise the quota that it meets, or remove it; spread the client over more brokers, since quotas count by broker.",
    command: "barnabas configs … --alter --entity-type clients --entity-name NAME --delete-config producer_byte_rate",
    judge: |facts, limit, report| {
        each(facts, report, |node, figures, report| {
            let share = figures.throttle_seconds / figures.seconds;
            if share * 100.0 <= limit {
                return;
            }
            let sentence = format!(
                "{:.0} requests were over a quota, and their connections muted for {:.1} s together in {:.1} s",
                figures.throttled_requests, figures.throttle_seconds, figures.seconds
            );
            // Which of several quotas was met is not known: none is named then.
            let commands = Some(quota_commands(facts, report)).filter(|all| all.len() == 1);
            report.find(format!("node {}", node.id), sentence, commands.unwrap_or_default());
        });
    },
};

fn quota_commands(facts: &Facts, report: &mut Report) -> Vec<String> {
    let quotas = report.seen(&facts.quotas).into_iter().flatten();
    let of_clients = quotas.filter(|quota| {
        let is_counted =
            matches!(quota.key.as_str(), "producer_byte_rate" | "consumer_byte_rate" | "request_percentage");
        is_counted && quota.entity.iter().all(|(kind, _)| kind == "user" || kind == "client-id")
    });
    let line = |quota: &crate::facts::Quota| {
        let entity = quota.entity.iter().map(|(kind, name)| {
            let kind = if kind == "client-id" { "clients" } else { "users" };
            match name {
                Some(name) => format!("--entity-type {kind} --entity-name {}", quoted(name)),
                None => format!("--entity-type {kind} --entity-default"),
            }
        });
        let entity = entity.collect::<Vec<_>>().join(" ");
        tool(facts, "configs", &format!("--alter {entity} --delete-config {}", quota.key))
    };
    of_clients.map(line).collect()
}

/// The page counts APIs by node, and clients by Produce, Fetch and other: a client whose other requests are about as
/// many as the node's of this API sends them.
fn by_client(facts: &Facts, report: &mut Report, api: &str, limit: f64) {
    each(facts, report, |node, figures, report| {
        let of_api = figures.apis.iter().filter(|(name, _)| name == api).map(|(_, count)| count);
        let all = of_api.sum::<f64>() / figures.seconds;
        for client in figures.clients.iter().filter(|client| client.id != OURS) {
            let rate = client.of("other") / figures.seconds;
            if rate > limit && all > limit && all >= rate / 2.0 {
                let sentence = format!(
                    "{rate:.1} requests a second to node {}, neither Produce nor Fetch, and the node gets {all:.1} {api} requests a second",
                    node.id
                );
                report.find(format!("client {}", client.id), sentence, Vec::new());
            }
        }
    });
}

fn each(facts: &Facts, report: &mut Report, mut judge: impl FnMut(&Node, &Figures, &mut Report)) {
    for node in facts.alive() {
        if let Some(figures) = report.seen(&node.figures).filter(|figures| figures.seconds > 0.0) {
            judge(node, figures, report);
        }
    }
}
