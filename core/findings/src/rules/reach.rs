//! Who answers, and who does not: the quorum's leader, its voters, the brokers.

use super::Rule;
use super::words::count;
use crate::facts::{Controller, Node};
use crate::report::Severity;

pub const NO_LEADER: Rule = Rule {
    id: "C14",
    name: "The metadata quorum has no leader",
    severity: Severity::Critical,
    evidence: "DescribeQuorum, answered by any broker; connections to the controllers that controller.quorum.bootstrap.servers or \
               controller.quorum.voters names",
    threshold: "DescribeQuorum names no leader, is refused for want of one, or is not answered within 5 s",
    limit: None,
    advice: "Brokers serve what they lead, but nothing is created, altered, elected or fenced until a majority of the voters runs. Start \
             the controllers that do not answer, on the directories that they had: their metadata log makes the majority. Never format \
             one of them meanwhile. Where all of them answer, look at their logs: do they reach each other?",
    command: "systemctl start barnabas",
    judge: |facts, _, report| {
        let Some(why) = &facts.no_leader else {
            report.seen(&facts.quorum);
            return;
        };
        let controllers = report.seen(&facts.controllers).map(Vec::as_slice).unwrap_or_default();
        let silent: Vec<&Controller> = controllers.iter().filter(|known| known.answers.is_err()).collect();
        let (all, needed) = (controllers.len(), controllers.len() / 2 + 1);
        let words = match silent.as_slice() {
            [] if controllers.is_empty() => String::new(),
            [] => format!("; {} answer", count(all, "controller")),
            silent => {
                let names: Vec<&str> = silent.iter().map(|known| known.address.as_str()).collect();
                let verb = if silent.len() == 1 { "does" } else { "do" };
                format!(
                    "; {} of {} {verb} not answer ({}), and {needed} must run",
                    silent.len(),
                    count(all, "controller"),
                    names.join(", ")
                )
            }
        };
        let start =
            |known: &&Controller| format!("systemctl start barnabas  # on the host of {}", known.address);
        let sentence = format!("no broker reaches a leader of the metadata quorum ({why}){words}");
        report.find("cluster", sentence, silent.iter().map(start).collect());
    },
};

pub const SILENT: Rule = Rule {
    id: "C15",
    name: "A broker that does not answer",
    severity: Severity::Critical,
    evidence: "a connection from here to each address in Metadata; DescribeQuorum: when the broker last fetched",
    threshold: "no answer within 5 s, and the metadata quorum has no leader, or its leader has not heard of the broker for 3 s",
    limit: None,
    advice: "It is listed as alive, and is not: the controller fences a broker that is silent, unless there is no controller (C14). Is its \
             process running, or stopped, and is its machine reachable? Start it again.",
    command: "systemctl start barnabas",
    judge: |facts, _, report| {
        for node in facts.alive().filter(|node| !facts.is_heard(node.id)) {
            if let Err(why) = &node.reached {
                let line = format!("systemctl start barnabas  # on {}", node.host);
                let sentence = format!("it does not answer at {}: {}", address(node), why.0);
                report.find(format!("node {}", node.id), sentence, vec![line]);
            }
        }
    },
};

pub const UNREACHABLE: Rule = Rule {
    id: "N6",
    name: "An advertised address that cannot be reached",
    severity: Severity::Critical,
    evidence: "a connection from here to each address in Metadata; DescribeQuorum: when the broker last fetched",
    threshold: "no connection to a broker that the quorum's leader hears; a loopback address beside others that are none",
    limit: None,
    advice: "Clients connect to what advertised.listeners says, whatever they began with. Set it to an address that they reach, and start the node again.",
    command: "advertised.listeners=PLAINTEXT://HOST:PORT",
    judge: |facts, _, report| {
        let is_loopback =
            |node: &Node| node.host == "localhost" || node.host.starts_with("127.") || node.host == "::1";
        let has_others = facts.alive().any(|node| !is_loopback(node));
        for node in facts.alive() {
            let address = address(node);
            let sentence = match &node.reached {
                Err(why) if facts.is_heard(node.id) => {
                    format!("it runs, and advertises {address}, which cannot be reached from here: {}", why.0)
                }
                Ok(()) if has_others && is_loopback(node) => {
                    format!("it advertises the loopback address {address}")
                }
                _ => continue,
            };
            report.find(format!("node {}", node.id), sentence, Vec::new());
        }
    },
};

fn address(node: &Node) -> String {
    format!("{}:{}", node.host, node.port)
}
