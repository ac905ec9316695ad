//! O, D, N: processors, memory, descriptors, disks and network of each node.

mod disks;
mod machine;

pub use disks::{FILE_SYSTEM, INODES, SATURATED, SCHEDULER, SMALL_ROUNDS, WRITE_CACHE};
pub use machine::{CLOCK, INTERFACE, LISTEN_DROPS, MTU, QUOTA, RETRANSMITS, SWAPPED, TIME, WORKERS};

use super::words::{bytes, count, percent, several, span, tool};
use super::{Rule, limit};
use crate::facts::{Dir, Facts, Figures, Node, Topic, number};
use crate::report::{Report, Severity};

/// Observations without which a quantile says nothing.
const SAMPLES_MIN: f64 = 100.0;

pub const CPU: Rule = Rule {
    id: "O1",
    name: "Processors short",
    severity: Severity::Warning,
    evidence: "metrics: time in which the node's threads were runnable and waited, beside their CPU time",
    threshold: "waiting is more than {} % of both, at half a core and more",
    limit: limit(25.0),
    advice: "Other processes or a CPU quota take the processors. Give the node more cores, or fewer neighbours.",
    command: "",
    judge: |facts, limit, report| {
        by_figures(facts, report, |node, figures, report| {
            let wanted = figures.cpu_seconds + figures.runqueue_seconds;
            let share = figures.runqueue_seconds / wanted.max(f64::EPSILON);
            if wanted > figures.seconds / 2.0 && share * 100.0 > limit {
                let sentence = format!(
                    "its threads waited {:.1} s for a processor and ran {:.1} s ({} waiting)",
                    figures.runqueue_seconds,
                    figures.cpu_seconds,
                    percent(share)
                );
                report.find(subject(node), sentence, Vec::new());
            }
        });
    },
};

pub const REQUEST_MEMORY: Rule = Rule {
    id: "O4",
    name: "Memory used up",
    severity: Severity::Warning,
    evidence: "metrics: barnabas_request_memory_bytes and its limit, the cgroup's memory limit and what the kernel killed there",
    threshold: "more than {} % of the request memory used; it and what else the node holds more than that of the cgroup's limit; any kill",
    limit: limit(90.0),
    advice: "At the limit sockets are not read, and every client waits. Raise queued.max.request.bytes, or find the client that does not read its answers. Where request memory may grow past the cgroup's limit, the kernel kills the node: lower queued.max.request.bytes or raise the limit.",
    command: "",
    judge: |facts, limit, report| {
        by_figures(facts, report, |node, figures, report| {
            let (used, most) = (figures.request_memory, figures.request_memory_limit);
            if most > 0.0 && used / most * 100.0 > limit {
                let share = percent(used / most);
                let sentence = format!("requests hold {} of {} ({share})", bytes(used), bytes(most));
                report.find(subject(node), sentence, Vec::new());
            }
            cgroup_memory(node, figures, limit, report);
        });
    },
};

/// Whether the cgroup's limit is enough for all the request memory, and whether it has been enough.
fn cgroup_memory(node: &Node, figures: &Figures, limit: f64, report: &mut Report) {
    let machine = &figures.machine;
    if let Some(Some(most)) = report.seen(&machine.memory_limit).copied() {
        // What requests hold now is resident already.
        let rest = (machine.resident_bytes - figures.request_memory).max(0.0);
        let wanted = rest + figures.request_memory_limit;
        if wanted / most * 100.0 > limit {
            let sentence = format!(
                "it holds {} and may hold {} more for requests: {} of its cgroup's {}",
                bytes(rest),
                bytes(figures.request_memory_limit),
                percent(wanted / most),
                bytes(most)
            );
            report.find(subject(node), sentence, Vec::new());
        }
    }
    if let Some(kills) = report.seen(&machine.oom_kills_total).copied().filter(|kills| *kills > 0.0) {
        let sentence = format!("the kernel has killed {kills:.0} processes of its cgroup for want of memory");
        report.find(subject(node), sentence, Vec::new());
    }
}

pub const DESCRIPTORS: Rule = Rule {
    id: "O6",
    name: "Descriptors nearly used up",
    severity: Severity::Warning,
    evidence: "metrics: process_open_fds, process_max_fds",
    threshold: "more than {} % used",
    limit: limit(80.0),
    advice: "Without descriptors no connection is accepted and no segment is opened. Set LimitNOFILE=1048576 in the unit and start the node again; `prlimit` raises it for the running process.",
    command: "prlimit --pid PID --nofile=1048576:1048576",
    judge: |facts, limit, report| {
        by_figures(facts, report, |node, figures, report| {
            let (open, most) = (figures.open_fds, figures.max_fds);
            if most > 0.0 && open / most * 100.0 > limit {
                let share = percent(open / most);
                let sentence = format!("{open:.0} of {most:.0} descriptors are open ({share})");
                report.find(subject(node), sentence, Vec::new());
            }
        });
    },
};

pub const SYNC: Rule = Rule {
    id: "D1",
    name: "Synced writes are slow",
    severity: Severity::Warning,
    evidence: "metrics: barnabas_journal_write_seconds between the two looks, a hundred writes and more",
    threshold: "p99 above {} ms; critical at five times that",
    limit: limit(20.0),
    advice: "Every acks=all waits for it. Another class of disk, or a device of its own for the directory; `barnabas doctor bench-disk` says what a device can do.",
    command: "",
    judge: |facts, limit, report| {
        by_figures(facts, report, |node, figures, report| {
            for dir in figures.dirs.iter().filter(|dir| dir.journal_writes.count() >= SAMPLES_MIN) {
                let Some(p99) = dir.journal_writes.quantile(0.99) else { continue };
                let ms = p99 * 1000.0;
                if ms > limit {
                    let severity = if ms > limit * 5.0 { Severity::Critical } else { Severity::Warning };
                    let sentence = format!(
                        "p99 of {:.0} synced writes in {} is {}",
                        dir.journal_writes.count(),
                        dir.path,
                        span(ms)
                    );
                    report.find_as(severity, subject(node), sentence, Vec::new());
                }
            }
        });
    },
};

pub const ROOM: Rule = Rule {
    id: "D9",
    name: "Little room in a log directory",
    severity: Severity::Warning,
    evidence: "DescribeLogDirs (KIP-827); metrics: barnabas_log_directory_refuses_producers",
    threshold: "less than {} % free; critical while producers are refused",
    limit: limit(15.0),
    advice: "Make room before producers are refused: lower retention of the largest topics, move replicas, add a disk. docs/OPERATIONS.md has the steps.",
    command: "",
    judge: |facts, limit, report| {
        for node in facts.alive() {
            for dir in report.seen(&node.dirs).into_iter().flatten().filter(|dir| dir.error.is_none()) {
                let Some(room) = dir.bytes.filter(|room| room.total > 0) else {
                    report.not_seen(&format!("node {} does not show the size of its disks", node.id));
                    continue;
                };
                let share = room.usable as f64 / room.total as f64;
                let figures = node.figures.as_ref().ok();
                let mut known = figures.into_iter().flat_map(|figures| &figures.dirs);
                let refuses = known.any(|known| known.path == dir.path && known.refuses_producers);
                if share * 100.0 < limit || refuses {
                    let severity = if refuses { Severity::Critical } else { Severity::Warning };
                    let words = if refuses { "; producers are refused" } else { "" };
                    let sentence = format!(
                        "{} has {} free of {} ({}){words}{}",
                        dir.path,
                        bytes(room.usable as f64),
                        bytes(room.total as f64),
                        percent(share),
                        largest(dir)
                    );
                    report.find_as(severity, subject(node), sentence, Vec::new());
                }
            }
        }
    },
};

/// The topics that hold most of a directory.
fn largest(dir: &Dir) -> String {
    let mut sizes = std::collections::BTreeMap::<&str, i64>::new();
    for replica in &dir.replicas {
        *sizes.entry(&replica.topic).or_default() += replica.bytes;
    }
    let mut sizes: Vec<(&str, i64)> = sizes.into_iter().filter(|(_, size)| *size > 0).collect();
    sizes.sort_by_key(|(_, size)| -size);
    let words = sizes.iter().take(3).map(|(topic, size)| format!("{topic} {}", bytes(*size as f64)));
    let words: Vec<String> = words.collect();
    if words.is_empty() { String::new() } else { format!("; largest topics: {}", words.join(", ")) }
}

pub const SHARED_DEVICE: Rule = Rule {
    id: "D11",
    name: "Two log directories on one device, or unequal ones",
    severity: Severity::Info,
    evidence: "DescribeLogDirs: total and free bytes of a node's directories",
    threshold: "total and free bytes the same; free shares {} points apart",
    limit: limit(20.0),
    advice: "Two directories of one device share its speed and fail together: use one. Where the directories are unequal, move replicas to the emptier one.",
    command: "",
    judge: |facts, limit, report| {
        for node in facts.alive() {
            let Some(dirs) = report.seen(&node.dirs) else { continue };
            let rooms: Vec<_> = dirs.iter().filter_map(|dir| Some((&dir.path, dir.bytes?))).collect();
            for (at, (path, room)) in rooms.iter().enumerate() {
                for (other, other_room) in &rooms[at + 1..] {
                    let share = |room: &crate::facts::Room| room.usable as f64 / room.total.max(1) as f64;
                    let points = (share(room) - share(other_room)).abs() * 100.0;
                    let sentence = if room == other_room {
                        format!("{path} and {other} have the same total and free bytes: one device")
                    } else if points > limit {
                        format!("the free shares of {path} and {other} are {points:.0} points apart")
                    } else {
                        continue;
                    };
                    report.find(subject(node), sentence, Vec::new());
                }
            }
        }
    },
};

pub const OFFLINE_DIR: Rule = Rule {
    id: "D12",
    name: "A log directory or a partition is offline, or damage was found",
    severity: Severity::Critical,
    evidence: "DescribeLogDirs; ListOffsets: KAFKA_STORAGE_ERROR of a leader; metrics: barnabas_damage_found_total, offlinereplicacount",
    threshold: "any",
    limit: None,
    advice: "Replace the disk, or give the directory back to the node, and start it again. docs/OPERATIONS.md has the steps. A partition that is offline in a sound directory: an ERROR in the node's log names what is missing or damaged; restore it and start the node again. Where no copy is left, docs/DAMAGE.md says how to abandon the partition's records.",
    command: "",
    judge: |facts, _, report| {
        for node in facts.alive() {
            unreadable(facts, node, report);
            for dir in report.seen(&node.dirs).into_iter().flatten() {
                if let Some(error) = &dir.error {
                    let sentence = format!("log directory {} is offline: {error}", dir.path);
                    report.find(subject(node), sentence, Vec::new());
                }
            }
        }
        by_figures(facts, report, |node, figures, report| {
            if figures.damage_found_total > 0.0 {
                let sentence =
                    format!("{:.0} corrupt ranges were found since its start", figures.damage_found_total);
                report.find(subject(node), sentence, Vec::new());
            }
            if figures.offline_replicas > 0.0 {
                let words = count(figures.offline_replicas as usize, "replica");
                let sentence = format!("{words} offline: an ERROR in its log names each, and what to do");
                report.find(subject(node), sentence, Vec::new());
            }
        });
    },
};

/// Partitions that a node leads and cannot read.
fn unreadable(facts: &Facts, node: &Node, report: &mut Report) {
    let Some(topics) = report.seen(&facts.topics) else { return };
    let of = |topic: &Topic| {
        let led = topic.partitions.iter().filter(|p| p.is_unreadable && p.leader == Some(node.id));
        led.map(|partition| format!("{}-{}", topic.name, partition.index)).collect::<Vec<_>>()
    };
    let names: Vec<String> = topics.iter().flat_map(of).collect();
    if names.is_empty() {
        return;
    }
    let words = count(names.len(), "partition");
    let sentence = format!(
        "{words} offline that it leads (KAFKA_STORAGE_ERROR): {}. Restore what an ERROR in its log names, and start it again",
        several(&names)
    );
    report.find(subject(node), sentence, Vec::new());
}

pub const UNCLEANABLE: Rule = Rule {
    id: "D13",
    name: "Partitions that compaction has given up",
    severity: Severity::Warning,
    evidence: "metrics: uncleanable-partitions-count",
    threshold: "any",
    limit: None,
    advice: "They grow until the next start. The node's log names the error of each.",
    command: "",
    judge: |facts, _, report| {
        by_figures(facts, report, |node, figures, report| {
            let number = figures.uncleanable_partitions;
            if number > 0.0 {
                let sentence = format!("compaction skips {number:.0} partitions until the next start");
                report.find(subject(node), sentence, Vec::new());
            }
        });
    },
};

pub const SLOWEST_DISK: Rule = Rule {
    id: "D14",
    name: "One node's disk is slower than its peers'",
    severity: Severity::Warning,
    evidence: "metrics: barnabas_journal_write_seconds of every node",
    threshold: "a p99 of {} times the median node's, above 20 ms, of three nodes and more",
    limit: limit(3.0),
    advice: "Every acks=all that this node replicates waits for it. Let others lead, and replace the disk.",
    command: "",
    judge: |facts, limit, report| {
        let mut worst: Vec<(i32, f64)> = Vec::new();
        by_figures(facts, report, |node, figures, _| {
            let dirs = figures.dirs.iter().filter(|dir| dir.journal_writes.count() >= SAMPLES_MIN);
            let p99 = dirs.filter_map(|dir| dir.journal_writes.quantile(0.99)).max_by(f64::total_cmp);
            worst.extend(p99.map(|p99| (node.id, p99)));
        });
        if worst.len() < 3 {
            return;
        }
        worst.sort_by(|one, other| one.1.total_cmp(&other.1));
        let median = worst[worst.len() / 2].1;
        for (node, p99) in worst.iter().filter(|(_, p99)| *p99 > 0.02 && *p99 >= median * limit) {
            let (p99, median) = (span(p99 * 1000.0), span(median * 1000.0));
            let sentence = format!("p99 of its synced writes is {p99}, that of the median node {median}");
            report.find(format!("node {node}"), sentence, Vec::new());
        }
    },
};

pub const CHURN: Rule = Rule {
    id: "N7",
    name: "Connections come and go",
    severity: Severity::Warning,
    evidence: "metrics: barnabas_connections_accepted_total",
    threshold: "more than {} new ones a second and node",
    limit: limit(5.0),
    advice: "A connection costs handshakes, a login and metadata. Keep one client open in each process; W9 names the client ids.",
    command: "",
    judge: |facts, limit, report| {
        by_figures(facts, report, |node, figures, report| {
            let rate = figures.accepted / figures.seconds.max(f64::EPSILON);
            if rate > limit {
                let sentence =
                    format!("{rate:.1} new connections a second, and {:.0} open", figures.connections);
                report.find(subject(node), sentence, Vec::new());
            }
        });
    },
};

pub const CONNECTIONS: Rule = Rule {
    id: "N8",
    name: "Nearly as many connections as are allowed",
    severity: Severity::Warning,
    evidence: "metrics: barnabas_connections; DescribeConfigs: max.connections",
    threshold: "more than {} % of max.connections",
    limit: limit(80.0),
    advice: "At the limit new connections are refused. Raise max.connections, or find the client that opens so many.",
    command: "barnabas configs … --alter --entity-type brokers --entity-name N --add-config max.connections=NUMBER",
    judge: |facts, limit, report| {
        by_figures(facts, report, |node, figures, report| {
            let Some(configs) = report.seen(&node.configs) else { return };
            let Some(most) = number(configs, "max.connections").filter(|most| *most > 0.0) else { return };
            if figures.connections / most * 100.0 > limit {
                let sentence = format!("{:.0} connections of max.connections={most:.0}", figures.connections);
                let rest = format!(
                    "--alter --entity-type brokers --entity-name {} --add-config max.connections={:.0}",
                    node.id,
                    (most * 2.0).min(f64::from(i32::MAX))
                );
                report.find(subject(node), sentence, vec![tool(facts, "configs", &rest)]);
            }
        });
    },
};

fn by_figures(facts: &Facts, report: &mut Report, mut judge: impl FnMut(&Node, &Figures, &mut Report)) {
    for node in facts.alive() {
        if let Some(figures) = report.seen(&node.figures) {
            judge(node, figures, report);
        }
    }
}

fn subject(node: &Node) -> String {
    format!("node {}", node.id)
}
