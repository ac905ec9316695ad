//! S: who may do what, and how they prove who they are.

use super::words::{quoted, span, tool};
use super::{Rule, limit};
use crate::facts::{Acl, Configs, Facts, text};
use crate::report::Severity;

const DAY_MS: f64 = 86_400_000.0;
const CRITICAL_DAYS: f64 = 7.0;

pub const OPEN: Rule = Rule {
    id: "S1",
    name: "Open to all",
    severity: Severity::Warning,
    evidence: "DescribeConfigs: listeners, authorizer; DescribeAcls",
    threshold: "a listener off loopback without TLS and login; allow.everyone.if.no.acl.found; an ACL that allows User:*",
    limit: None,
    advice: "SECURITY.md and docs/SECURITY.md say how to turn on TLS, logins and ACLs.",
    command: "barnabas acls … --remove --allow-principal 'User:*' …",
    judge: |facts, _, report| {
        for node in facts.alive() {
            let Some(configs) = report.seen(&node.configs) else { continue };
            let subject = format!("node {}", node.id);
            let has_authorizer =
                text(configs, "authorizer.class.name").is_some_and(|class| !class.is_empty());
            if has_authorizer && text(configs, "allow.everyone.if.no.acl.found") == Some("true") {
                let sentence =
                    "allow.everyone.if.no.acl.found=true: what has no ACL is open to all".to_owned();
                report.find(subject.clone(), sentence, Vec::new());
            }
            for listener in open_listeners(configs) {
                let sentence = format!("listener {listener} takes anyone off this machine, in clear text");
                report.find(subject.clone(), sentence, Vec::new());
            }
        }
        for acl in report.seen(&facts.acls).into_iter().flatten() {
            if acl.is_allow && acl.principal == "User:*" {
                let sentence = format!(
                    "User:* may {} {} {}: everyone who can connect",
                    acl.operation, acl.resource_type, acl.resource
                );
                report.find(
                    format!("acl {} {}", acl.resource_type, acl.resource),
                    sentence,
                    vec![remove(facts, acl)],
                );
            }
        }
    },
};

/// `PLAINTEXT` listeners that are not bound to loopback.
fn open_listeners(configs: &Configs) -> Vec<&str> {
    let map = text(configs, "listener.security.protocol.map").unwrap_or_default();
    let is_plain = |name: &str| {
        let mut pairs = map.split(',').filter_map(|pair| pair.trim().split_once(':'));
        let mapped = pairs.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, protocol)| protocol);
        mapped.unwrap_or(name).eq_ignore_ascii_case("PLAINTEXT")
    };
    let is_open = |listener: &&str| {
        let Some((name, address)) = listener.split_once("://") else { return false };
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        let is_loopback = host == "localhost" || host.starts_with("127.") || host == "[::1]";
        is_plain(name) && !is_loopback
    };
    let listeners = text(configs, "listeners").unwrap_or_default();
    listeners.split(',').map(str::trim).filter(is_open).collect()
}

fn remove(facts: &Facts, acl: &Acl) -> String {
    let resource = match acl.resource_type.as_str() {
        "cluster" => "--cluster".to_owned(),
        "user" => format!("--user-principal {}", quoted(&acl.resource)),
        kind => format!("--{kind} {}", quoted(&acl.resource)),
    };
    let pattern = if acl.is_prefixed { " --resource-pattern-type prefixed" } else { "" };
    let rest = format!(
        "--remove --force --allow-principal {} --allow-host {} --operation {} {resource}{pattern}",
        quoted(&acl.principal),
        quoted(&acl.host),
        acl.operation
    );
    tool(facts, "acls", &rest)
}

pub const CERTIFICATES: Rule = Rule {
    id: "S3",
    name: "A certificate that ends soon",
    severity: Severity::Warning,
    evidence: "metrics: barnabas_certificate_not_after_seconds",
    threshold: "in less than {} d; critical under 7 d",
    limit: limit(30.0),
    advice: "Put the new certificate in the key store and set the key store's path again: the node reads it without a restart.",
    command: "",
    judge: |facts, limit, report| {
        for node in facts.alive() {
            for (name, not_after) in
                report.seen(&node.figures).into_iter().flat_map(|figures| &figures.certificates)
            {
                let left_ms = not_after * 1000.0 - facts.now_ms as f64;
                if left_ms < limit * DAY_MS {
                    let is_near = left_ms < CRITICAL_DAYS * DAY_MS;
                    let severity = if is_near { Severity::Critical } else { Severity::Warning };
                    let sentence = if left_ms < 0.0 {
                        format!("the certificate of {name} ended {} ago", span(-left_ms))
                    } else {
                        format!("the certificate of {name} ends in {}", span(left_ms))
                    };
                    report.find_as(severity, format!("node {}", node.id), sentence, Vec::new());
                }
            }
        }
    },
};

pub const WEAK_SCRAM: Rule = Rule {
    id: "S4",
    name: "SCRAM credentials with few iterations",
    severity: Severity::Info,
    evidence: "DescribeUserScramCredentials",
    threshold: "fewer than {} iterations",
    limit: limit(8192.0),
    advice: "Iterations are what a stolen credential costs to guess. Set the password again with more of them.",
    command: "barnabas configs … --alter --entity-type users --entity-name NAME --add-config 'SCRAM-SHA-512=[iterations=8192,password=PASSWORD]'",
    judge: |facts, limit, report| {
        for scram in report.seen(&facts.scram).into_iter().flatten() {
            if f64::from(scram.iterations) < limit {
                let sentence = format!("{} with {} iterations", scram.mechanism, scram.iterations);
                let rest = format!(
                    "--alter --entity-type users --entity-name {} --add-config '{}=[iterations={limit:.0},password=PASSWORD]'",
                    quoted(&scram.user),
                    scram.mechanism
                );
                let line = tool(facts, "configs", &rest);
                report.find(format!("user {}", scram.user), sentence, vec![line]);
            }
        }
    },
};

pub const DENIED: Rule = Rule {
    id: "S2",
    name: "Requests that ACLs deny",
    severity: Severity::Warning,
    evidence: "metrics: barnabas_authorizations_denied_total",
    threshold: "more than {} a minute and node",
    limit: limit(10.0),
    advice: "A client without the ACL that it needs, which asks again and again, or one that tries doors. The audit log names principal, operation and resource: give it the ACL, or stop it.",
    command: "barnabas acls … --add --allow-principal PRINCIPAL --operation OPERATION --topic NAME",
    judge: |facts, limit, report| {
        for node in facts.alive() {
            let Some(figures) = report.seen(&node.figures).filter(|figures| figures.seconds > 0.0) else {
                continue;
            };
            let Some(denied) = report.seen(&figures.denied).copied() else { continue };
            let rate = denied / figures.seconds * 60.0;
            if rate > limit {
                let sentence = format!("{rate:.0} requests a minute ask for what their principal may not do");
                report.find(format!("node {}", node.id), sentence, Vec::new());
            }
        }
    },
};

pub const FAILED_LOGINS: Rule = Rule {
    id: "S5",
    name: "Logins that fail",
    severity: Severity::Warning,
    evidence: "metrics: barnabas_authentications_total",
    threshold: "more than {} a minute and node",
    limit: limit(10.0),
    advice: "A client with an old password, or an attack that tries passwords. The audit log names users and addresses.",
    command: "",
    judge: |facts, limit, report| {
        for node in facts.alive() {
            let Some(figures) = report.seen(&node.figures).filter(|figures| figures.seconds > 0.0) else {
                continue;
            };
            let rate = figures.failed_logins / figures.seconds * 60.0;
            if rate > limit {
                let sentence = format!("{rate:.0} logins a minute fail");
                report.find(format!("node {}", node.id), sentence, Vec::new());
            }
        }
    },
};
