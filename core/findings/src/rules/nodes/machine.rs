//! O, N: what the machine of a node gives it: processors, memory, clock, network.

use super::{by_figures, subject};
use crate::facts::{Facts, Interface, Machine, Node};
use crate::report::{Report, Severity};
use crate::rules::words::{bytes, percent, span};
use crate::rules::{Rule, limit};

/// Periods and segments without which a share says nothing.
const PERIODS_MIN: f64 = 10.0;
const SEGMENTS_MIN: f64 = 1000.0;
const SPEED_MOST: f64 = 0.8;
/// Clock sources that a thread cannot read without a system call, or slowly.
const SLOW_CLOCKS: &[&str] = &["hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit", "xen"];

pub const QUOTA: Rule = Rule {
    id: "O2",
    name: "The CPU quota stops the node",
    severity: Severity::Warning,
    evidence: "metrics: periods of the cgroup's CPU quota, and those in which the node was stopped (version 2)",
    threshold: "in more than {} % of ten periods and more",
    limit: limit(5.0),
    advice: "A stopped worker answers no request for the rest of the period, 100 ms as a rule: latency has steps. Raise the quota or take it away; requests of a pod's processors give it a share without a limit.",
    command: "systemctl set-property barnabas.service CPUQuota=",
    judge: |facts, limit, report| {
        each(facts, report, |node, machine, report| {
            let Some((periods, stopped)) = report.seen(&machine.quota_periods).copied() else { return };
            if periods >= PERIODS_MIN && stopped / periods * 100.0 > limit {
                let share = percent(stopped / periods);
                let sentence =
                    format!("its CPU quota stopped it in {stopped:.0} of {periods:.0} periods ({share})");
                let line = "systemctl set-property barnabas.service CPUQuota=".to_owned();
                report.find(subject(node), sentence, vec![line]);
            }
        });
    },
};

pub const WORKERS: Rule = Rule {
    id: "O3",
    name: "More workers than processors",
    severity: Severity::Warning,
    evidence: "metrics: workers, and barnabas_cpus_granted",
    threshold: "more than {} times the processors",
    limit: limit(1.5),
    advice: "The node starts a worker for each processor that it may use. The quota or the affinity has been narrowed since. Start it again, or give the processors back.",
    command: "systemctl restart barnabas",
    judge: |facts, limit, report| {
        each(facts, report, |node, machine, report| {
            let Some(granted) = report.seen(&machine.cpus_granted).copied() else { return };
            if granted > 0.0 && machine.workers > 1.0 && machine.workers / granted > limit {
                let sentence = format!("{:.0} workers share {granted:.1} processors", machine.workers);
                report.find(subject(node), sentence, vec!["systemctl restart barnabas".to_owned()]);
            }
        });
    },
};

pub const SWAPPED: Rule = Rule {
    id: "O5",
    name: "Memory of the node is swapped out",
    severity: Severity::Warning,
    evidence: "metrics: barnabas_process_swap_bytes",
    threshold: "more than {} MiB",
    limit: limit(1.0),
    advice: "A worker that touches a swapped page waits for the disk, and all its partitions with it. Keep the kernel from swapping, or give the machine memory.",
    command: "sysctl vm.swappiness=1",
    judge: |facts, limit, report| {
        each(facts, report, |node, machine, report| {
            let Some(swapped) = report.seen(&machine.swap_bytes).copied() else { return };
            if swapped > limit * 1_048_576.0 {
                let sentence = format!("{} of its memory are swapped out", bytes(swapped));
                report.find(subject(node), sentence, vec!["sysctl vm.swappiness=1".to_owned()]);
            }
        });
    },
};

pub const CLOCK: Rule = Rule {
    id: "O7",
    name: "Clocks that disagree",
    severity: Severity::Warning,
    evidence: "metrics: barnabas_clock_seconds, beside the clock of this machine and those of the other nodes",
    threshold: "more than {} ms from the median of three nodes and more, else from this machine's; the answer's way is subtracted",
    limit: limit(500.0),
    advice: "Timestamps of the broker, retention, transaction timeouts and tokens go by the clock. Let a time service set it.",
    command: "timedatectl set-ntp true",
    judge: |facts, limit, report| {
        let mut clocks: Vec<(&Node, f64, f64)> = Vec::new();
        for node in facts.alive() {
            let machine = report.seen(&node.figures).map(|figures| &figures.machine);
            let ahead = machine.and_then(|machine| report.seen(&machine.clock_ahead_ms).copied());
            clocks.extend(ahead.map(|(ahead, uncertain)| (node, ahead, uncertain)));
        }
        let mut sorted: Vec<f64> = clocks.iter().map(|(_, ahead, _)| *ahead).collect();
        sorted.sort_by(f64::total_cmp);
        let (middle, other) = match sorted.len() {
            0..3 => (0.0, "this machine's"),
            number => (sorted[number / 2], "the median node's"),
        };
        for (node, ahead, uncertain) in clocks {
            let off = ahead - middle;
            if off.abs() - uncertain > limit {
                let way = if off > 0.0 { "ahead of" } else { "behind" };
                let sentence = format!("its clock is {} {way} {other}", span(off.abs()));
                report.find(subject(node), sentence, vec!["timedatectl set-ntp true".to_owned()]);
            }
        }
    },
};

pub const TIME: Rule = Rule {
    id: "O8",
    name: "A slow clock source, or stolen processor time",
    severity: Severity::Warning,
    evidence: "metrics: barnabas_clock_source, steal time of the machine",
    threshold: "hpet, acpi_pm, jiffies, pit or xen; more than {} % of the processors' time stolen",
    limit: limit(5.0),
    advice: "Every request reads the clock a dozen times: with these sources each reading is a system call of microseconds. Stolen time: the host has more guests than processors; ask for another one.",
    command: "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource",
    judge: |facts, limit, report| {
        each(facts, report, |node, machine, report| {
            let source = report.seen(&machine.clock_source);
            if let Some(source) = source.filter(|source| SLOW_CLOCKS.contains(&source.as_str())) {
                let line = "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource";
                report.find(subject(node), format!("its clock source is {source}"), vec![line.to_owned()]);
            }
            let Some((all, stolen)) = report.seen(&machine.processor_seconds).copied() else { return };
            if all > 0.0 && stolen / all * 100.0 > limit {
                let share = percent(stolen / all);
                let sentence = format!("the hypervisor took {share} of its processors' time, {stolen:.1} s");
                report.find(subject(node), sentence, Vec::new());
            }
        });
    },
};

pub const MTU: Rule = Rule {
    id: "N1",
    name: "Nodes with different MTUs",
    severity: Severity::Warning,
    evidence: "metrics: MTU of the interface of each node that carries the most bytes",
    threshold: "any difference between nodes",
    limit: None,
    advice: "Full packets of the node with the larger MTU are dropped or cut on the way, and the connection hangs on large batches only. Use one MTU on all nodes and on everything between them.",
    command: "ip link set dev INTERFACE mtu BYTES",
    judge: |facts, _, report| {
        let mut used: Vec<(&Node, &Interface)> = Vec::new();
        for node in facts.alive() {
            let Some(figures) = report.seen(&node.figures) else { continue };
            let known = report.seen(&figures.machine.interfaces).into_iter().flatten();
            let busiest =
                known.filter(|interface| interface.mtu > 0.0).max_by(|a, b| a.bytes().total_cmp(&b.bytes()));
            used.extend(busiest.map(|interface| (node, interface)));
        }
        let Some(least) = used.iter().map(|(_, interface)| interface.mtu).min_by(f64::total_cmp) else {
            return;
        };
        for (node, interface) in used.iter().filter(|(_, interface)| interface.mtu > least) {
            let sentence =
                format!("the MTU of {} is {:.0}, another node's {least:.0}", interface.name, interface.mtu);
            let line = format!("ip link set dev {} mtu {least:.0}  # on {}", interface.name, node.host);
            report.find(subject(node), sentence, vec![line]);
        }
    },
};

pub const RETRANSMITS: Rule = Rule {
    id: "N2",
    name: "TCP segments that are sent again",
    severity: Severity::Warning,
    evidence: "metrics: TCP segments sent and retransmitted between the two looks",
    threshold: "more than {} % of a thousand segments and more",
    limit: limit(1.0),
    advice: "Each lost segment holds up its connection for 200 ms and more. Look for a bad cable or port, drops of the interface (N3), different MTUs (N1), or a limit on the way.",
    command: "",
    judge: |facts, limit, report| {
        each(facts, report, |node, machine, report| {
            let Some((sent, again)) = report.seen(&machine.segments).copied() else { return };
            if sent >= SEGMENTS_MIN && again / sent * 100.0 > limit {
                let share = again / sent * 100.0;
                let sentence = format!("{again:.0} of {sent:.0} TCP segments were sent again ({share:.1} %)");
                report.find(subject(node), sentence, Vec::new());
            }
        });
    },
};

pub const INTERFACE: Rule = Rule {
    id: "N3",
    name: "An interface that drops packets or is near its speed",
    severity: Severity::Warning,
    evidence: "metrics: bytes, drops and speed of the network interfaces",
    threshold: "more than {} dropped packets a second; one direction above 80 % of the speed",
    limit: limit(10.0),
    advice: "Larger rings take bursts. Near its speed: compress (W2), read from the consumers' own racks (N9), or add a node.",
    command: "ethtool -G INTERFACE rx 4096 tx 4096",
    judge: |facts, limit, report| {
        for node in facts.alive() {
            let Some(figures) = report.seen(&node.figures).filter(|figures| figures.seconds > 0.0) else {
                continue;
            };
            let seconds = figures.seconds;
            for interface in report.seen(&figures.machine.interfaces).into_iter().flatten() {
                let name = &interface.name;
                let dropped = interface.dropped / seconds;
                if dropped > limit {
                    let sentence = format!("{name} drops {dropped:.1} packets a second");
                    report.find(subject(node), sentence, vec![format!("ethtool -G {name} rx 4096 tx 4096")]);
                }
                let rate = interface.received.max(interface.sent) / seconds;
                let Some(speed) = interface.speed.filter(|speed| rate > speed * SPEED_MOST) else { continue };
                let share = percent(rate / speed);
                let sentence =
                    format!("{name} carries {} a second in one direction, {share} of its speed", bytes(rate));
                report.find(subject(node), sentence, Vec::new());
            }
        }
    },
};

pub const LISTEN_DROPS: Rule = Rule {
    id: "N4",
    name: "Connections dropped before they were accepted",
    severity: Severity::Warning,
    evidence: "metrics: barnabas_machine_tcp_listen_drops_total between the two looks",
    threshold: "any",
    limit: None,
    advice: "A listen queue was full: the client waits for a second and tries again. Raise the limit of the queues, start the node again so that it takes effect, and look for who connects so often (N7).",
    command: "sysctl net.core.somaxconn=4096",
    judge: |facts, _, report| {
        each(facts, report, |node, machine, report| {
            let Some(dropped) = report.seen(&machine.listen_drops).copied() else { return };
            if dropped > 0.0 {
                let sentence = format!("{dropped:.0} connections were dropped in listen queues");
                report.find(subject(node), sentence, vec!["sysctl net.core.somaxconn=4096".to_owned()]);
            }
        });
    },
};

fn each(facts: &Facts, report: &mut Report, mut judge: impl FnMut(&Node, &Machine, &mut Report)) {
    by_figures(facts, report, |node, figures, report| judge(node, &figures.machine, report));
}
