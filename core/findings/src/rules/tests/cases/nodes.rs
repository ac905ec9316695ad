//! O, D, N.

use super::Case;
use crate::facts::{Dir, DirFigures, Histogram, Room};
use crate::rules::tests::build::{dir, figures_of, partition};

fn slow(path: &str, seconds: f64) -> Vec<DirFigures> {
    vec![dir(path, Histogram(vec![(seconds, 500.0), (f64::INFINITY, 500.0)]))]
}

pub const CASES: &[Case] = &[
    Case {
        id: "O1",
        plant: |facts| figures_of(facts, 0).runqueue_seconds = 6.0,
        sentences: &["node 1: its threads waited 6.0 s for a processor and ran 2.0 s (75 % waiting)"],
        commands: &[],
    },
    Case {
        id: "O4",
        plant: |facts| {
            figures_of(facts, 0).request_memory = 95.0;
            let machine = &mut figures_of(facts, 1).machine;
            (machine.memory_limit, machine.oom_kills_total) = (Ok(Some(1e6)), Ok(2.0));
        },
        sentences: &[
            "node 1: requests hold 95 B of 100 B (95 %)",
            "node 2: it holds 977 KiB and may hold 100 B more for requests: 100 % of its cgroup's 977 KiB",
            "node 2: the kernel has killed 2 processes of its cgroup for want of memory",
        ],
        commands: &[],
    },
    Case {
        id: "O6",
        plant: |facts| figures_of(facts, 0).open_fds = 900.0,
        sentences: &["node 1: 900 of 1000 descriptors are open (90 %)"],
        commands: &[],
    },
    Case {
        id: "D1",
        plant: |facts| {
            figures_of(facts, 0).dirs = slow("/data", 0.03);
            figures_of(facts, 1).dirs = slow("/data", 0.2);
        },
        sentences: &[
            "node 2: p99 of 500 synced writes in /data is 200.0 ms",
            "node 1: p99 of 500 synced writes in /data is 30.0 ms",
        ],
        commands: &[],
    },
    Case {
        id: "D9",
        plant: |facts| {
            let dir = &mut facts.nodes[0].dirs.as_mut().expect("dirs")[0];
            dir.bytes = Some(Room { total: 1_000_000, usable: 100_000 });
            figures_of(facts, 1).dirs[0].refuses_producers = true;
        },
        sentences: &[
            "node 2: /data has 466 GiB free of 931 GiB (50 %); producers are refused; largest topics: orders 977 KiB",
            "node 1: /data has 98 KiB free of 977 KiB (10 %); largest topics: orders 977 KiB",
        ],
        commands: &[],
    },
    Case {
        id: "D11",
        plant: |facts| {
            let dir = |path: &str, usable| Dir {
                path: path.to_owned(),
                bytes: Some(Room { total: 1000, usable }),
                ..Dir::default()
            };
            facts.nodes[0].dirs = Ok(vec![dir("/a", 500), dir("/b", 500), dir("/c", 900)]);
        },
        sentences: &[
            "node 1: /a and /b have the same total and free bytes: one device",
            "node 1: the free shares of /a and /c are 40 points apart",
            "node 1: the free shares of /b and /c are 40 points apart",
        ],
        commands: &[],
    },
    Case {
        id: "D12",
        plant: |facts| {
            let dir = &mut facts.nodes[0].dirs.as_mut().expect("dirs")[0];
            dir.error = Some("KAFKA_STORAGE_ERROR".to_owned());
            figures_of(facts, 1).damage_found_total = 2.0;
            figures_of(facts, 1).offline_replicas = 3.0;
            let partition = partition(facts, "orders", 1);
            partition.leader = Some(3);
            partition.is_unreadable = true;
        },
        sentences: &[
            "node 1: log directory /data is offline: KAFKA_STORAGE_ERROR",
            "node 3: 1 partition offline that it leads (KAFKA_STORAGE_ERROR): orders-1. Restore what an ERROR in its log names, and start it again",
            "node 2: 2 corrupt ranges were found since its start",
            "node 2: 3 replicas offline: an ERROR in its log names each, and what to do",
        ],
        commands: &[],
    },
    Case {
        id: "D13",
        plant: |facts| figures_of(facts, 0).uncleanable_partitions = 4.0,
        sentences: &["node 1: compaction skips 4 partitions until the next start"],
        commands: &[],
    },
    Case {
        id: "D14",
        plant: |facts| figures_of(facts, 2).dirs = slow("/data", 0.05),
        sentences: &["node 3: p99 of its synced writes is 50.0 ms, that of the median node 5.0 ms"],
        commands: &[],
    },
    Case {
        id: "N7",
        plant: |facts| figures_of(facts, 0).accepted = 100.0,
        sentences: &["node 1: 10.0 new connections a second, and 10 open"],
        commands: &[],
    },
    Case {
        id: "N8",
        plant: |facts| figures_of(facts, 0).connections = 900.0,
        sentences: &["node 1: 900 connections of max.connections=1000"],
        commands: &[
            "barnabas configs --bootstrap-server h:1 --alter --entity-type brokers --entity-name 1 --add-config max.connections=2000",
        ],
    },
];
