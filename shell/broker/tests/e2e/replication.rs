//! Three processes hold the same records: acknowledged records survive the death of any of them, and all replicas
//! are equal in the end.
//!
//! Producers write to topics of replication factor 3 with `acks=all` and `min.insync.replicas=2` while brokers are
//! killed and come back. Each acknowledgement names an offset; in the end that very record lies at that offset, on
//! whichever broker leads.

use crate::harness::replicas::{
    Cluster, PARTITIONS, Producers, append, append_patiently, eventually, folders, judge, leaders, missing,
    reassign, signal,
};
use crate::harness::txn::offset_at;
use crate::harness::{BROKER, Client, TOPIC};
use barnabas_wire::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use barnabas_wire::messages::{DeleteRecordsRequest, ResponseBody};
use std::time::Duration;

#[test]
fn acknowledged_records_survive_the_kill_of_any_broker() {
    let mut cluster = Cluster::start();
    let topic = cluster.create("kept");
    cluster.await_in_sync("kept", 3);
    let producers = Producers::start(&cluster, topic);
    producers.await_more(100);
    for round in 0..6 {
        let victim = 1 + round % 3;
        cluster.nodes.get_mut(&victim).expect("there").kill();
        std::thread::sleep(Duration::from_millis(1_500));
        cluster.nodes.get_mut(&victim).expect("there").launch();
        cluster.await_in_sync("kept", 3);
        std::thread::sleep(Duration::from_millis(300));
    }
    let all = producers.stop();
    let count: usize = all.iter().map(|one| one.records.len()).sum();
    let longest = all.iter().map(|one| one.longest_gap).max().unwrap_or_default();
    println!("{count} records acknowledged through 6 kills; longest gap {longest:?}");
    assert!(count > 500, "{count}");
    judge(&cluster, "kept", topic, &all);
    // Any other leader has the same.
    cluster.judge_on_all("kept", topic, &all);
    let cuts: usize =
        cluster.nodes.values().map(|node| node.log().matches("truncated the log from").count()).sum();
    println!("{cuts} times a log was cut");
    cluster.stop();
}

/// The followers stand still while producers write, and the leader dies before they go on. What is missing then.
fn lost_with_the_leader(before: Option<&str>) -> Vec<String> {
    let mut cluster = Cluster::start_with(before, &["data"], "");
    let topic = cluster.create("still");
    cluster.await_in_sync("still", 3);
    let producers = Producers::start(&cluster, topic);
    producers.await_more(100);
    for other in [2, 3] {
        signal(&cluster.nodes[&other], "-STOP");
    }
    match before {
        // What is acknowledged now is on no other disk.
        Some(_) => producers.await_more(50),
        None => std::thread::sleep(Duration::from_millis(400)),
    }
    cluster.nodes.get_mut(&1).expect("there").kill();
    for other in [2, 3] {
        signal(&cluster.nodes[&other], "-CONT");
    }
    eventually("others lead", || {
        let leaders = leaders(&mut cluster.client(2), "still");
        leaders.len() == PARTITIONS as usize && leaders.values().all(|leader| *leader != 1)
    });
    producers.await_more(50);
    let all = producers.stop();
    cluster.nodes.get_mut(&1).expect("there").launch();
    cluster.await_in_sync("still", 3);
    let missing = missing(&cluster, "still", topic, &all);
    cluster.stop();
    missing
}

#[test]
fn an_acknowledgement_before_the_isr_would_be_noticed() {
    assert_eq!(lost_with_the_leader(None), Vec::<String>::new());
    let planted = "export BARNABAS_PLANTED_MISTAKE=acks-before-the-isr";
    assert!(!lost_with_the_leader(Some(planted)).is_empty());
}

#[test]
fn a_planned_restart_is_a_short_pause() {
    let mut cluster = Cluster::start();
    let topic = cluster.create("calm");
    cluster.await_in_sync("calm", 3);
    let producers = Producers::start(&cluster, topic);
    producers.await_more(100);
    for restarted in 1..=3 {
        let node = cluster.nodes.get_mut(&restarted).expect("there");
        assert!(node.stop().success(), "{}", node.log());
        node.launch();
        cluster.await_in_sync("calm", 3);
    }
    let all = producers.stop();
    let count: usize = all.iter().map(|one| one.records.len()).sum();
    let longest = all.iter().map(|one| one.longest_gap).max().unwrap_or_default();
    let gaps: Vec<Duration> = all.iter().map(|one| one.longest_gap).collect();
    let refusals: usize = all.iter().map(|one| one.refusals).sum();
    println!(
        "{count} records acknowledged through 3 restarts; longest gap {longest:?}, by partition {gaps:?}; {refusals} refusals"
    );
    judge(&cluster, "calm", topic, &all);
    cluster.stop();
}

#[test]
fn replicas_move_from_broker_to_broker_and_leave_nothing_behind() {
    let cluster = Cluster::start();
    let topic = cluster.create("moves");
    let producers = Producers::start(&cluster, topic);
    producers.await_more(100);
    // Away from broker 1, then away from broker 2, then everywhere.
    for replicas in [vec![2, 3], vec![1, 3], vec![1, 2, 3]] {
        reassign(&cluster, &[2, 1, 3], "moves", &replicas);
        cluster.await_in_sync("moves", replicas.len());
        for (id, node) in &cluster.nodes {
            let expected = if replicas.contains(id) { PARTITIONS as usize } else { 0 };
            eventually("folders come and go", || {
                let (there, _) = folders(node, "moves");
                // What is in the journal alone has no folder yet.
                if expected == 0 { there == 0 } else { there <= expected }
            });
        }
    }
    let all = producers.stop();
    let count: usize = all.iter().map(|one| one.records.len()).sum();
    let longest = all.iter().map(|one| one.longest_gap).max().unwrap_or_default();
    println!("{count} records acknowledged through 3 moves; longest gap {longest:?}");
    judge(&cluster, "moves", topic, &all);
    cluster.stop();
}

fn set(client: &mut Client, of: (i8, &str), (key, value): (&str, &str)) {
    assert_eq!(client.alter_config(1, of, key, Some(value)), 0);
}

#[test]
fn progress_of_a_reassignment_is_shown_while_it_lasts() {
    // A batch at a time, so that a throttle holds from the first one on.
    let small = "replica.fetch.max.bytes=1024\nreplica.fetch.response.max.bytes=1024";
    let cluster = Cluster::start_with(None, &["data"], small);
    let topic = cluster.create("slow");
    reassign(&cluster, &[2, 3], "slow", &[2, 3]);
    let value = "v".repeat(50_000);
    for partition in 0..PARTITIONS {
        (0..6).for_each(|_| append_patiently(&cluster, topic, partition, &value));
    }
    let mut client = cluster.client(2);
    set(&mut client, (TOPIC, "slow"), ("follower.replication.throttled.replicas", "*"));
    set(&mut client, (BROKER, ""), ("follower.replication.throttled.rate", "20000"));
    std::thread::scope(|scope| {
        let moved = scope.spawn(|| reassign(&cluster, &[2, 1, 3], "slow", &[1, 2, 3]));
        let node = &cluster.nodes[&1];
        eventually("its broker says what is on its way", || {
            node.log().contains("are on their way to this broker and lack")
        });
        set(&mut client, (BROKER, ""), ("follower.replication.throttled.rate", "1000000000"));
        moved.join().expect("it was moved");
        eventually("it says that all are there", || node.log().contains("every replica that was on its way"));
    });
    cluster.stop();
}

const EARLIEST: i64 = -2;

/// What a node says whose disk was replaced.
const REFILLS: &str = "they are fetched again from the leaders";

#[test]
fn a_replaced_disk_is_filled_again_from_the_leaders() {
    let mut cluster = Cluster::start();
    let topic = cluster.create("kept");
    // One replica each: no other broker has the records of broker 2.
    cluster.client(1).create_topic("alone", PARTITIONS, &[]);
    cluster.await_in_sync("kept", 3);
    cluster.await_in_sync("alone", 1);
    let producers = Producers::start(&cluster, topic);
    producers.await_more(100);
    let on_2 = leaders(&mut cluster.client(1), "alone").values().filter(|leader| **leader == 2).count();
    cluster.nodes.get_mut(&2).expect("there").kill();
    cluster.replace_disk(2, "data");
    cluster.format(2);
    cluster.nodes.get_mut(&2).expect("there").launch();
    eventually("it says what it lacks", || cluster.nodes[&2].log().contains(REFILLS));
    cluster.await_in_sync("kept", 3);
    let log = cluster.nodes[&2].log();
    let kept = log.lines().find(|line| line.contains(REFILLS)).expect("said");
    assert!(kept.contains(&format!("{PARTITIONS} partitions (such as kept-")), "{kept}");
    let alone =
        log.lines().find(|line| line.contains("no other broker has all their records")).expect("said");
    assert!(alone.contains(&format!("{on_2} partitions (such as alone-")), "{alone}");
    let others_are_led = || leaders(&mut cluster.client(2), "alone").len() == PARTITIONS as usize - on_2;
    eventually("they are offline", others_are_led);
    let all = producers.stop();
    cluster.judge_on_all("kept", topic, &all);
    // The broker that was killed last has its own records again; these stay offline.
    let led = || leaders(&mut cluster.client(2), "alone").len();
    eventually("all others are led", || led() >= PARTITIONS as usize - on_2);
    assert_eq!(led(), PARTITIONS as usize - on_2);
    cluster.stop_expecting(&[REFILLS, "no other broker has all their records"]);
}

#[test]
fn one_of_two_disks_is_replaced_while_its_broker_is_stopped() {
    let mut cluster = Cluster::start_with(None, &["data", "more"], "");
    let topic = cluster.create("kept");
    cluster.await_in_sync("kept", 3);
    let producers = Producers::start(&cluster, topic);
    producers.await_more(100);
    for victim in [3, 1] {
        let node = cluster.nodes.get_mut(&victim).expect("there");
        assert!(node.stop_expecting_trouble().success(), "{}", node.log());
        cluster.replace_disk(victim, "more");
        cluster.format(victim);
        cluster.nodes.get_mut(&victim).expect("there").launch();
        eventually("it says what it lacks", || cluster.nodes[&victim].log().contains(REFILLS));
        cluster.await_in_sync("kept", 3);
    }
    let all = producers.stop();
    cluster.judge_on_all("kept", topic, &all);
    cluster.stop_expecting(&[REFILLS]);
}

#[test]
fn what_moved_away_while_its_broker_was_down_is_put_aside() {
    let mut cluster = Cluster::start();
    let topic = cluster.create("moved");
    cluster.await_in_sync("moved", 3);
    let producers = Producers::start(&cluster, topic);
    producers.await_more(100);
    cluster.nodes.get_mut(&1).expect("there").kill();
    eventually("others lead", || {
        let leaders = leaders(&mut cluster.client(2), "moved");
        leaders.len() == PARTITIONS as usize && leaders.values().all(|leader| *leader != 1)
    });
    reassign(&cluster, &[2, 3], "moved", &[2, 3]);
    cluster.nodes.get_mut(&1).expect("there").launch();
    // What the journal alone held of them comes along.
    eventually("all of them are put aside", || {
        folders(&cluster.nodes[&1], "moved") == (0, PARTITIONS as usize)
    });
    reassign(&cluster, &[2, 3, 1], "moved", &[1, 2, 3]);
    cluster.await_in_sync("moved", 3);
    let all = producers.stop();
    cluster.judge_on_all("moved", topic, &all);
    assert_eq!(folders(&cluster.nodes[&1], "moved").1, PARTITIONS as usize, "nothing was deleted");
    cluster.stop_expecting(&["the local directory was renamed to"]);
}

#[test]
fn reassignment_to_others_is_no_unclean_election() {
    let cluster = Cluster::start();
    cluster.create("moves");
    cluster.await_in_sync("moves", 3);
    // Each of these ends with a leader that was not in the ISR before.
    for replicas in [&[1][..], &[2], &[2, 1], &[3]] {
        reassign(&cluster, &[1, 2, 3], "moves", replicas);
    }
    for node in cluster.nodes.values() {
        assert!(!node.log().contains("unclean election"), "{}", node.log());
    }
    cluster.stop_expecting(&[]);
}

/// The low watermark of partition 0, or why there is none.
fn delete_records(client: &mut Client, topic: &str, below: i64, timeout_ms: i32) -> Result<i64, i16> {
    let partition = DeleteRecordsPartition { partition_index: 0, offset: below, ..Default::default() };
    let topic = DeleteRecordsTopic { name: topic.into(), partitions: vec![partition], ..Default::default() };
    let request = DeleteRecordsRequest { topics: vec![topic], timeout_ms, ..Default::default() };
    let ResponseBody::DeleteRecords(response) = client.call(request, 2) else { panic!("another response") };
    let answer = &response.topics[0].partitions[0];
    if answer.error_code == 0 { Ok(answer.low_watermark) } else { Err(answer.error_code) }
}

#[test]
fn records_are_deleted_once_all_replicas_have_deleted_them() {
    const REQUEST_TIMED_OUT: i16 = 7;
    let mut cluster = Cluster::start();
    let topic = cluster.create("short");
    cluster.await_in_sync("short", 3);
    let leader = leaders(&mut cluster.client(1), "short")[&0];
    let mut client = cluster.client(leader);
    for offset in 0..30 {
        assert_eq!(append(&mut client, topic, 0, "short"), Some(Ok(offset)));
    }
    assert_eq!(delete_records(&mut client, "short", 10, 20_000), Ok(10));
    let still = 1 + leader % 3;
    signal(&cluster.nodes[&still], "-STOP");
    assert_eq!(delete_records(&mut client, "short", 20, 500), Err(REQUEST_TIMED_OUT));
    signal(&cluster.nodes[&still], "-CONT");
    assert_eq!(delete_records(&mut client, "short", 20, 20_000), Ok(20));
    cluster.await_in_sync("short", 3);
    // Each leader begins there, also after a kill.
    for victim in 1..=3 {
        cluster.nodes.get_mut(&victim).expect("there").kill();
        let asked = 1 + victim % 3;
        eventually("another leads", || {
            leaders(&mut cluster.client(asked), "short").get(&0).is_some_and(|leader| *leader != victim)
        });
        let leader = leaders(&mut cluster.client(asked), "short")[&0];
        assert_eq!(offset_at(&mut cluster.client(leader), "short", 0, false, EARLIEST), 20);
        cluster.nodes.get_mut(&victim).expect("there").launch();
        cluster.await_in_sync("short", 3);
    }
    cluster.stop();
}
