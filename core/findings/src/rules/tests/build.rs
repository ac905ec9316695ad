//! The facts of a healthy cluster: three brokers that are controllers too, one topic, one group.

use crate::facts::{
    Committed, Config, Configs, Dir, DirFigures, Facts, Features, Figures, Group, GroupKind, Histogram,
    Holder, Interface, Machine, Member, Node, Offsets, Partition, Quorum, RecordSample, Replica, Room,
    Shared, Source, Topic, Voter,
};

pub const NOW_MS: i64 = 1_800_000_000_000;

pub fn healthy() -> Facts {
    let voter =
        |id: i32| Voter { id, directory: format!("dir-{id}"), behind_ms: Ok(Some(0)), silent_ms: Some(100) };
    Facts {
        connect: "--bootstrap-server h:1".to_owned(),
        now_ms: NOW_MS,
        seconds: 10.0,
        nodes: (1..=3).map(node).collect(),
        topics: Ok(vec![topic("orders", 3)]),
        groups: Ok(vec![group()]),
        quorum: Ok(Quorum { leader: 1, voters: (1..=3).map(voter).collect(), observers: Vec::new() }),
        no_leader: None,
        controllers: Ok(Vec::new()),
        reassigning: Ok(Vec::new()),
        quotas: Ok(Vec::new()),
        acls: Ok(Vec::new()),
        scram: Ok(Vec::new()),
        transactions: Ok(Vec::new()),
        samples: Ok(vec![Ok(sample())]),
    }
}

fn configs(rows: &[(&str, &str)], source: Source) -> Configs {
    let row = |(key, value): &(&str, &str)| {
        ((*key).to_owned(), Config { value: Some((*value).to_owned()), source })
    };
    rows.iter().map(row).collect()
}

pub fn node(id: i32) -> Node {
    let levels = [("metadata.version".to_owned(), 25)];
    let rows = [
        ("process.roles", "broker,controller"),
        ("listeners", "PLAINTEXT://127.0.0.1:9092"),
        ("max.connections", "1000"),
        ("num.partitions", "3"),
    ];
    let replica = Replica { topic: "orders".to_owned(), partition: 0, bytes: 1_000_000 };
    let room = Room { total: 1_000_000_000_000, usable: 500_000_000_000 };
    Node {
        id,
        host: "10.0.0.1".to_owned(),
        port: 9092,
        rack: Some(format!("r{id}")),
        is_fenced: false,
        reached: Ok(()),
        configs: Ok(configs(&rows, Source::Static)),
        features: Ok(Features { finalized: levels.clone().into(), supported: levels.into() }),
        dirs: Ok(vec![Dir {
            path: "/data".to_owned(),
            error: None,
            bytes: Some(room),
            replicas: vec![replica],
        }]),
        figures: Ok(figures()),
    }
}

fn figures() -> Figures {
    Figures {
        seconds: 10.0,
        cpu_seconds: 2.0,
        runqueue_seconds: 0.1,
        open_fds: 100.0,
        max_fds: 1000.0,
        connections: 10.0,
        request_memory: 1.0,
        request_memory_limit: 100.0,
        produce_requests: 2000.0,
        batch_records: Histogram(vec![(4.0, 10.0), (64.0, 2000.0)]),
        dirs: vec![dir("/data", Histogram(vec![(0.005, 500.0), (1.0, 500.0)]))],
        accepted: 0.0,
        apis: Vec::new(),
        throttled_requests: 0.0,
        throttle_seconds: 0.0,
        failed_logins: 0.0,
        isr_shrinks: 0.0,
        isr_expands: 0.0,
        unclean_elections_total: 0.0,
        uncleanable_partitions: 0.0,
        damage_found_total: 0.0,
        offline_replicas: 0.0,
        clients: Vec::new(),
        certificates: Vec::new(),
        produced: 2000.0,
        produced_weakly: Ok(0.0),
        produce_refused: 0.0,
        produce_seconds: 10.0,
        produce_sync_seconds: 2.0,
        versions: vec![("Produce".to_owned(), 13, 2000.0), ("Fetch".to_owned(), 18, 100.0)],
        fetch_bytes: Histogram(vec![(65_536.0, 2000.0)]),
        denied: Ok(0.0),
        rebalances: 0.0,
        shared: Shared { acknowledged: 1000.0, rejected: 0.0, lock_timeouts: 0.0 },
        machine: machine(),
    }
}

pub fn dir(path: &str, journal_writes: Histogram) -> DirFigures {
    DirFigures {
        path: path.to_owned(),
        refuses_producers: false,
        journal_writes,
        journal_bytes: 1e8,
        holder: Ok(Holder {
            device: "nvme0n1".to_owned(),
            file_system: "xfs".to_owned(),
            scheduler: "none".to_owned(),
            rotational: "0".to_owned(),
            write_cache: "write through".to_owned(),
            fua: "0".to_owned(),
        }),
        busy_seconds: Ok(1.0),
        inodes: Ok(Some((900.0, 1000.0))),
    }
}

fn machine() -> Machine {
    let eth0 = Interface {
        name: "eth0".to_owned(),
        received: 1e6,
        sent: 1e6,
        dropped: 0.0,
        mtu: 1500.0,
        speed: Some(1.25e9),
    };
    Machine {
        workers: 4.0,
        cpus_granted: Ok(4.0),
        quota_periods: Ok((100.0, 0.0)),
        resident_bytes: 1e6,
        memory_limit: Ok(Some(1e9)),
        oom_kills_total: Ok(0.0),
        swap_bytes: Ok(0.0),
        clock_source: Ok("tsc".to_owned()),
        clock_ahead_ms: Ok((10.0, 1.0)),
        processor_seconds: Ok((40.0, 0.0)),
        segments: Ok((10_000.0, 1.0)),
        listen_drops: Ok(0.0),
        interfaces: Ok(vec![eth0]),
    }
}

pub fn sample() -> RecordSample {
    RecordSample {
        topic: "orders".to_owned(),
        partition: 0,
        batches: 10,
        batches_without_id: 0,
        records: 200,
        same_key: 2,
        keyed: 200,
        plain_bytes: 100_000,
        deflated_bytes: 90_000,
        bytes: 100_000,
    }
}

pub fn topic(name: &str, partitions: i32) -> Topic {
    let rows = [
        ("cleanup.policy", "delete"),
        ("delete.retention.ms", "86400000"),
        ("max.message.bytes", "1048588"),
        ("min.cleanable.dirty.ratio", "0.5"),
        ("min.compaction.lag.ms", "0"),
        ("message.timestamp.type", "CreateTime"),
        ("min.insync.replicas", "2"),
        ("retention.bytes", "-1"),
        ("retention.ms", "604800000"),
        ("segment.bytes", "1073741824"),
        ("segment.ms", "604800000"),
        ("unclean.leader.election.enable", "false"),
    ];
    let partition = |index: i32| Partition {
        index,
        leader: Some(1 + index % 3),
        replicas: (0..3).map(|at| 1 + (index + at) % 3).collect(),
        isr: vec![1, 2, 3],
        was_under_replicated: false,
        is_unreadable: false,
        offsets: Ok(Offsets { start: 0, end: 1000, end_before: 900, newest_ms: Ok(Some(NOW_MS - 10)) }),
    };
    Topic {
        name: name.to_owned(),
        is_internal: false,
        partitions: (0..partitions).map(partition).collect(),
        configs: Ok(configs(&rows, Source::Topic)),
    }
}

fn group() -> Group {
    let row = |partition: i32| Committed {
        topic: "orders".to_owned(),
        partition,
        offset: 990,
        offset_before: 900,
        oldest_unread_ms: Ok(Some(NOW_MS - 1000)),
    };
    Group {
        name: "billing".to_owned(),
        kind: GroupKind::Classic,
        state: "Stable".to_owned(),
        assignor: "range".to_owned(),
        members: Ok((0..3).map(|at| member(&format!("m{at}"), Some(at))).collect()),
        committed: Ok((0..3).map(row).collect()),
    }
}

pub fn member(id: &str, partition: Option<i32>) -> Member {
    Member {
        id: id.to_owned(),
        client_id: "app".to_owned(),
        host: "/10.0.0.9".to_owned(),
        rack: None,
        assigned: partition.map(|partition| ("orders".to_owned(), partition)).into_iter().collect(),
    }
}

pub fn topic_of<'a>(facts: &'a mut Facts, name: &str) -> &'a mut Topic {
    let topics = facts.topics.as_mut().expect("topics");
    topics.iter_mut().find(|topic| topic.name == name).expect("a topic")
}

pub fn partition<'a>(facts: &'a mut Facts, name: &str, index: i32) -> &'a mut Partition {
    &mut topic_of(facts, name).partitions[index as usize]
}

/// So many times the bytes that the topic holds now.
pub fn grow(facts: &mut Facts, times: i64) {
    for dir in facts.nodes.iter_mut().flat_map(|node| node.dirs.as_mut().expect("dirs")) {
        dir.replicas.iter_mut().for_each(|replica| replica.bytes *= times);
    }
}

pub fn set(facts: &mut Facts, name: &str, key: &str, value: &str) {
    let config = Config { value: Some(value.to_owned()), source: Source::Topic };
    topic_of(facts, name).configs.as_mut().expect("configs").insert(key.to_owned(), config);
}

pub fn figures_of(facts: &mut Facts, node: usize) -> &mut Figures {
    facts.nodes[node].figures.as_mut().expect("figures")
}

pub fn configs_of(facts: &mut Facts, node: usize) -> &mut Configs {
    facts.nodes[node].configs.as_mut().expect("configs")
}

pub fn group_of(facts: &mut Facts) -> &mut Group {
    &mut facts.groups.as_mut().expect("groups")[0]
}
