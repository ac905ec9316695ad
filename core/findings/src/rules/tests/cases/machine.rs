//! O, D, N: what the machine gives.

use super::Case;
use crate::facts::{Facts, Histogram, Holder, Machine};
use crate::rules::tests::build::figures_of;

fn machine(facts: &mut Facts, node: usize) -> &mut Machine {
    &mut figures_of(facts, node).machine
}

fn holder(facts: &mut Facts, node: usize) -> &mut Holder {
    figures_of(facts, node).dirs[0].holder.as_mut().expect("a holder")
}

pub const CASES: &[Case] = &[
    Case {
        id: "O2",
        plant: |facts| machine(facts, 0).quota_periods = Ok((100.0, 12.0)),
        sentences: &["node 1: its CPU quota stopped it in 12 of 100 periods (12 %)"],
        commands: &["systemctl set-property barnabas.service CPUQuota="],
    },
    Case {
        id: "O3",
        plant: |facts| machine(facts, 1).cpus_granted = Ok(1.5),
        sentences: &["node 2: 4 workers share 1.5 processors"],
        commands: &["systemctl restart barnabas"],
    },
    Case {
        id: "O5",
        plant: |facts| machine(facts, 0).swap_bytes = Ok(4e6),
        sentences: &["node 1: 3.8 MiB of its memory are swapped out"],
        commands: &["sysctl vm.swappiness=1"],
    },
    Case {
        id: "O7",
        plant: |facts| {
            machine(facts, 0).clock_ahead_ms = Ok((900.0, 1.0));
            machine(facts, 2).clock_ahead_ms = Ok((-600.0, 200.0));
        },
        sentences: &["node 1: its clock is 890.0 ms ahead of the median node's"],
        commands: &["timedatectl set-ntp true"],
    },
    Case {
        id: "O8",
        plant: |facts| {
            machine(facts, 0).clock_source = Ok("hpet".to_owned());
            machine(facts, 1).processor_seconds = Ok((40.0, 4.0));
        },
        sentences: &[
            "node 1: its clock source is hpet",
            "node 2: the hypervisor took 10 % of its processors' time, 4.0 s",
        ],
        commands: &["echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource"],
    },
    Case {
        id: "D2",
        plant: |facts| {
            let dir = &mut figures_of(facts, 0).dirs[0];
            dir.busy_seconds = Ok(9.8);
            dir.journal_writes = Histogram(vec![(0.01, 500.0)]);
            // Flash that is always busy, and fast.
            figures_of(facts, 1).dirs[0].busy_seconds = Ok(9.9);
        },
        sentences: &[
            "node 1: the device of /data was busy for 98 % of the time, and p90 of its synced writes is 10.0 ms",
        ],
        commands: &[],
    },
    Case {
        id: "D3",
        plant: |facts| {
            let figures = figures_of(facts, 0);
            (figures.produce_sync_seconds, figures.dirs[0].journal_bytes) = (8.0, 500.0 * 4096.0);
        },
        sentences: &[
            "node 1: 80 % of the time of Produce requests is spent on synced writes of 4.0 KiB each",
        ],
        commands: &[],
    },
    Case {
        id: "D4",
        plant: |facts| holder(facts, 0).write_cache = "write back".to_owned(),
        sentences: &[
            "node 1: nvme0n1, the device of /data, has a volatile write cache and no forced unit access: a synced write flushes it",
        ],
        commands: &[],
    },
    Case {
        id: "D5",
        plant: |facts| {
            holder(facts, 0).scheduler = "bfq".to_owned();
            (holder(facts, 1).scheduler, holder(facts, 1).rotational) = ("bfq".to_owned(), "1".to_owned());
        },
        sentences: &["node 1: nvme0n1, the flash device of /data, is scheduled by bfq"],
        commands: &["echo none > /sys/block/nvme0n1/queue/scheduler"],
    },
    Case {
        id: "D6",
        plant: |facts| {
            holder(facts, 0).file_system = "tmpfs".to_owned();
            holder(facts, 1).file_system = "fuse.sshfs".to_owned();
        },
        sentences: &[
            "node 1: /data is on tmpfs: its records are gone with the machine",
            "node 2: /data is on fuse.sshfs: a layer or a network lies before the disk",
        ],
        commands: &[],
    },
    Case {
        id: "D10",
        plant: |facts| figures_of(facts, 2).dirs[0].inodes = Ok(Some((10.0, 1000.0))),
        sentences: &["node 3: /data has 10 of 1000 inodes free (1 %)"],
        commands: &[],
    },
    Case {
        id: "N1",
        plant: |facts| machine(facts, 1).interfaces.as_mut().expect("interfaces")[0].mtu = 9000.0,
        sentences: &["node 2: the MTU of eth0 is 9000, another node's 1500"],
        commands: &["ip link set dev eth0 mtu 1500  # on 10.0.0.1"],
    },
    Case {
        id: "N2",
        plant: |facts| machine(facts, 0).segments = Ok((10_000.0, 250.0)),
        sentences: &["node 1: 250 of 10000 TCP segments were sent again (2.5 %)"],
        commands: &[],
    },
    Case {
        id: "N3",
        plant: |facts| {
            machine(facts, 0).interfaces.as_mut().expect("interfaces")[0].dropped = 200.0;
            machine(facts, 1).interfaces.as_mut().expect("interfaces")[0].sent = 1.125e10;
        },
        sentences: &[
            "node 1: eth0 drops 20.0 packets a second",
            "node 2: eth0 carries 1.0 GiB a second in one direction, 90 % of its speed",
        ],
        commands: &["ethtool -G eth0 rx 4096 tx 4096"],
    },
    Case {
        id: "N4",
        plant: |facts| machine(facts, 0).listen_drops = Ok(7.0),
        sentences: &["node 1: 7 connections were dropped in listen queues"],
        commands: &["sysctl net.core.somaxconn=4096"],
    },
];
