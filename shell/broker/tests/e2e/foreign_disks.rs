//! A node is given a disk that is not its own, or a clock that is not the others': refused with both sides named, or of
//! no consequence; nothing is deleted because of it.

use crate::harness::free_port;
use crate::harness::quorum::{Three, create, eventually, format, metadata, prepared, random_uuid, topics};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Every file below a directory, and its contents.
fn files(below: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(below).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            found.extend(files(&entry.path()));
        } else if entry.file_name() != ".lock" {
            found.insert(entry.path(), std::fs::read(entry.path()).expect("read"));
        }
    }
    found
}

#[test]
fn another_nodes_disk_is_refused_and_left_as_it_is() {
    let mut cluster = Three::start();
    assert_eq!(create(&mut cluster.client(1), 7, "t", 3, 3), 0);
    // The disks of nodes 2 and 3 are exchanged.
    for node in [2, 3] {
        assert!(cluster.nodes.get_mut(&node).expect("there").stop_expecting_trouble().success());
    }
    let places: Vec<PathBuf> = [2, 3].map(|node| cluster.nodes[&node].data()).into();
    let aside = places[0].with_extension("aside");
    std::fs::rename(&places[0], &aside).expect("moved");
    std::fs::rename(&places[1], &places[0]).expect("moved");
    std::fs::rename(&aside, &places[1]).expect("moved");
    for (node, owner) in [(2, 3), (3, 2)] {
        let before = files(&cluster.nodes[&node].data());
        let one = cluster.nodes.get_mut(&node).expect("there");
        one.launch_unawaited();
        assert!(!one.wait().success(), "it does not start");
        let wanted = format!("node.id: is {node}, but {} belongs to node {owner}", one.data().display());
        assert!(one.log().contains(&wanted), "{}", one.log());
        assert_eq!(files(&one.data()), before, "nothing was touched");
        // Nor does the format tool take it for a disk of this node.
        let (ok, said) = format(&one.dir.path().join("server.properties"), &cluster.id, &["-g"]);
        assert!(!ok && said.contains(&format!("belongs to node {owner}, not to {node}")), "{said}");
    }
    // Back where they belong, they serve.
    std::fs::rename(&places[1], &aside).expect("moved");
    std::fs::rename(&places[0], &places[1]).expect("moved");
    std::fs::rename(&aside, &places[0]).expect("moved");
    for node in [2, 3] {
        cluster.nodes.get_mut(&node).expect("there").launch();
    }
    cluster.await_brokers(&[1, 2, 3]);
    eventually("all in sync", || {
        let known = metadata(&mut cluster.client(2));
        let topic = known.topics.first();
        topic.is_some_and(|topic| topic.partitions.iter().all(|partition| partition.isr_nodes.len() == 3))
    });
    for node in cluster.nodes.values_mut() {
        assert!(node.stop_expecting_trouble().success(), "{}", node.log());
    }
}

#[test]
fn another_clusters_disk_is_refused_and_left_as_it_is() {
    let (mine, theirs) = (random_uuid(), random_uuid());
    let ports = (free_port(), free_port());
    let voters = format!("controller.quorum.voters=1@127.0.0.1:{}", ports.1);
    let mut node = prepared(None, 1, "broker,controller", ports, &theirs, &voters, &[]);
    node.launch();
    assert_eq!(create(&mut node.client(), 7, "theirs", 1, 1), 0);
    assert!(node.stop().success());
    let before = files(&node.data());
    let (ok, said) = format(&node.dir.path().join("server.properties"), &mine, &["-g"]);
    assert!(!ok && said.contains(&mine) && said.contains(&theirs), "{said}");
    // Beside a directory of this node's own cluster.
    let own = node.dir.path().join("own");
    let text = std::fs::read_to_string(node.dir.path().join("server.properties")).expect("there");
    let only_own =
        text.replace(&format!("log.dirs={}", node.data().display()), &format!("log.dirs={}", own.display()));
    let file = node.dir.path().join("own.properties");
    std::fs::write(&file, &only_own).expect("written");
    let (ok, said) = format(&file, &mine, &[]);
    assert!(ok, "{said}");
    let both = only_own.replace(
        &format!("log.dirs={}", own.display()),
        &format!("log.dirs={},{}", own.display(), node.data().display()),
    );
    std::fs::write(&file, both).expect("written");
    node.set_file(file.to_str().expect("a path"), ports);
    node.launch_unawaited();
    assert!(!node.wait().success(), "it does not start");
    assert!(node.log().contains(&mine) && node.log().contains(&theirs), "{}", node.log());
    assert_eq!(files(&node.data()), before, "nothing was touched");
}

#[test]
fn a_node_that_has_voters_at_each_others_addresses_says_so() {
    let mut cluster = Three::start();
    let leader = cluster.leader(1);
    let lost = (1..=3).find(|&node| node != leader).expect("another");
    let other = (1..=3).find(|&node| node != leader && node != lost).expect("another");
    let node = cluster.nodes.get_mut(&lost).expect("there");
    assert!(node.stop_expecting_trouble().success());
    let file = node.dir.path().join("server.properties");
    let text = std::fs::read_to_string(&file).expect("there");
    let address = |id: i32| {
        let (_, rest) = text.split_once(&format!("{id}@")).expect("a voter");
        rest.split([',', '\n']).next().expect("an address").to_owned()
    };
    let (of_leader, of_other) = (address(leader), address(other));
    let swapped = text
        .replace(&format!("{leader}@{of_leader}"), &format!("{leader}@{of_other}"))
        .replace(&format!("{other}@{of_other}"), &format!("{other}@{of_leader}"));
    assert_ne!(swapped, text);
    std::fs::write(&file, swapped).expect("written");
    node.launch_unawaited();
    let wanted = format!("broker {lost} is not registered yet");
    eventually("it says so", || node.log().contains(&wanted));
    assert!(node.log().contains("gives each controller its own address"), "{}", node.log());
    node.kill();
    // As it was, it serves.
    std::fs::write(&file, &text).expect("written");
    node.launch();
    cluster.await_brokers(&[1, 2, 3]);
    for node in cluster.nodes.values_mut() {
        assert!(node.stop_expecting_trouble().success(), "{}", node.log());
    }
}

/// A library that shows programs another time.
fn faketime() -> Option<PathBuf> {
    let installed = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";
    let fetched = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.cache/compat/faketime");
    let unpacked = format!("{fetched}{installed}");
    [installed, unpacked.as_str()].into_iter().map(PathBuf::from).find(|path| path.exists())
}

#[test]
fn clocks_that_are_hours_apart_are_of_no_consequence() {
    let Some(library) = faketime() else {
        println!("SKIP: no libfaketime here (lab/compat/history/run fetches it)");
        return;
    };
    let clock = |hours: i32| {
        format!(
            "export LD_PRELOAD={} FAKETIME={hours:+}h FAKETIME_DONT_FAKE_MONOTONIC=1 DONT_FAKE_MONOTONIC=1 FAKETIME_DISABLE_SHM=1",
            library.display()
        )
    };
    let mut cluster = Three::start_as(&|node| match node {
        1 => Some(clock(-7)),
        2 => None,
        _ => Some(clock(9)),
    });
    assert_eq!(create(&mut cluster.client(2), 7, "t", 6, 3), 0);
    // Each leads the quorum in turn, so that the metadata log's times jump back and forth.
    for round in 0..3 {
        let leader = cluster.leader(1 + round % 3);
        let other = (1..=3).find(|&node| node != leader).expect("another");
        cluster.nodes.get_mut(&leader).expect("there").kill();
        eventually("another leads", || cluster.leader(other) != leader);
        let others: Vec<i32> = (1..=3).filter(|&node| node != leader).collect();
        cluster.await_brokers(&others);
        // Who is away may follow what is made meanwhile, as with Kafka.
        assert_eq!(create(&mut cluster.client(other), 7, &format!("t{round}"), 3, 3), 0);
        assert_eq!(create(&mut cluster.client(other), 7, &format!("u{round}"), 3, 2), 0);
        cluster.nodes.get_mut(&leader).expect("there").launch();
        cluster.await_brokers(&[1, 2, 3]);
    }
    for node in 1..=3 {
        eventually("all know all", || {
            topics(&mut cluster.client(node)) == ["t", "t0", "t1", "t2", "u0", "u1", "u2"]
        });
    }
    eventually("all in sync", || {
        let known = metadata(&mut cluster.client(2));
        known.topics.iter().flat_map(|topic| &topic.partitions).all(|partition| {
            partition.isr_nodes.len() == partition.replica_nodes.len() && partition.leader_id >= 0
        })
    });
    // The sessions of brokers run by clocks that cannot jump.
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert_eq!(metadata(&mut cluster.client(2)).brokers.len(), 3);
    for node in cluster.nodes.values_mut() {
        assert!(node.stop_expecting_trouble().success(), "{}", node.log());
    }
}
