//! What does a large consumer group cost the shard that looks after it, and for how long does any one request keep it?
//!
//! Milliseconds of one core, wall time. Held fixed: topics of 100 partitions each, all subscribed to by everybody, no
//! assignment interval, records handed out and called safe at once. Left out on purpose: the disk, the wire, the
//! worker's other work. The bound that matters: the longest that one call keeps the shard, as everybody else on its
//! worker waits for so long; a target is made elsewhere.
//!
//! `CONSUMER_COST=10000x1000 cargo test -p barnabas-coordinator --release --test consumer_cost -- --nocapture`: members
//! × topics.

// A benchmark reads the clock and its environment.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use std::time::{Duration, Instant};

use barnabas_base::{DurationMs, MonotonicMs, TimestampMs, Uuid};
use barnabas_coordinator::{
    BatchId, Caller, Effect, GroupConfig, GroupShard, Job, Now, Request, Response, Ticket,
};
use barnabas_metadata::{Delta, Image};
use barnabas_wire::messages::consumer_group_heartbeat_request::TopicPartitions;
use barnabas_wire::messages::{
    ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, MetadataRecord, PartitionRecord,
    TopicRecord,
};

const PARTITIONS: i32 = 100;

struct Bench {
    shard: GroupShard,
    jobs: Vec<Job>,
    asked: u64,
    /// The longest call, and all of them.
    longest: Duration,
    total: Duration,
    /// Making targets.
    elsewhere: Vec<Duration>,
    /// Taking them in.
    taken: Duration,
}

const NOW: Now = Now { wall: TimestampMs(1_700_000_000_000), mono: MonotonicMs(1_000) };

impl Bench {
    fn new(topics: usize) -> Self {
        let mut delta = Delta::new(Image::default());
        for topic in 0..topics {
            let topic_id = Uuid(((topic + 1) as u128).to_be_bytes());
            let name = format!("topic-{topic:05}").into();
            let record = MetadataRecord::Topic(TopicRecord { name, topic_id, ..Default::default() });
            delta.replay(&record).expect("a good record");
            for partition_id in 0..PARTITIONS {
                let record = MetadataRecord::Partition(PartitionRecord {
                    topic_id,
                    partition_id,
                    replicas: vec![1],
                    isr: vec![1],
                    leader: 1,
                    ..Default::default()
                });
                delta.replay(&record).expect("a good record");
            }
        }
        let mut config = GroupConfig::default();
        config.consumer.times.standard.assignment_interval = DurationMs(0);
        let mut shard = GroupShard::new(config);
        shard.image_changed(&delta.apply().0, None, true);
        shard.activate(NOW);
        let (longest, total, taken) = Default::default();
        Self { shard, jobs: Vec::new(), asked: 0, longest, total, elsewhere: Vec::new(), taken }
    }

    fn beat(&mut self, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse {
        self.asked += 1;
        let caller =
            Caller { client_id: "bench", client_host: "/127.0.0.1", version: 1, ..Caller::default() };
        let ticket = Ticket(self.asked);
        let began = Instant::now();
        let mut effects = self.shard.handle(&caller, Request::ConsumerGroupHeartbeat(request), ticket, NOW);
        effects.extend(self.shard.durable(BatchId(u64::MAX), NOW));
        let elapsed = began.elapsed();
        self.longest = self.longest.max(elapsed);
        self.total += elapsed;
        let mut answer = None;
        for effect in effects {
            match effect {
                Effect::Answer { response: Response::ConsumerGroupHeartbeat(response), .. } => {
                    answer = Some(response);
                }
                Effect::Compute(job) => self.jobs.push(*job),
                _ => {}
            }
        }
        answer.expect("an answer at once")
    }

    fn run_jobs(&mut self) {
        for job in std::mem::take(&mut self.jobs) {
            let began = Instant::now();
            let done = job.run();
            self.elsewhere.push(began.elapsed());
            let began = Instant::now();
            self.shard.computed(done, NOW);
            self.shard.durable(BatchId(u64::MAX), NOW);
            self.taken = self.taken.max(began.elapsed());
        }
    }
}

fn id(member: usize) -> String {
    format!("member-{member:08}")
}

#[test]
fn a_large_group() {
    let size = std::env::var("CONSUMER_COST").unwrap_or_else(|_| "60x80".to_owned());
    let (members, topics) = size.split_once('x').expect("MEMBERSxTOPICS");
    let (members, topics): (usize, usize) =
        (members.parse().expect("a number"), topics.parse().expect("a number"));
    let names = || Some((0..topics).map(|topic| format!("topic-{topic:05}").into()).collect());
    let mut bench = Bench::new(topics);
    let mut epochs = Vec::with_capacity(members);
    for member in 0..members {
        let told = bench.beat(ConsumerGroupHeartbeatRequest {
            group_id: "g".into(),
            member_id: id(member).into(),
            rebalance_timeout_ms: 60_000,
            subscribed_topic_names: names(),
            topic_partitions: Some(Vec::new()),
            ..Default::default()
        });
        assert_eq!(told.error_code, 0, "{told:?}");
        epochs.push((told.member_epoch, told.assignment));
        // A target is ready now and then, not for everybody who comes.
        if member == 0 || member % 1_000 == 999 {
            bench.run_jobs();
        }
    }
    let (join_longest, join_total) = (std::mem::take(&mut bench.longest), std::mem::take(&mut bench.total));
    let mut beats = 0u32;
    for _ in 0..8 {
        for (member, (epoch, has)) in epochs.iter_mut().enumerate() {
            let owned = has.iter().flat_map(|has| &has.topic_partitions).map(|topic| TopicPartitions {
                topic_id: topic.topic_id,
                partitions: topic.partitions.clone(),
                ..Default::default()
            });
            let told = bench.beat(ConsumerGroupHeartbeatRequest {
                group_id: "g".into(),
                member_id: id(member).into(),
                member_epoch: *epoch,
                topic_partitions: Some(owned.collect()),
                ..Default::default()
            });
            assert_eq!(told.error_code, 0, "{told:?}");
            *epoch = told.member_epoch;
            *has = told.assignment.or(has.take());
            beats += 1;
        }
        bench.run_jobs();
    }
    let parts = |has: &Option<barnabas_wire::messages::consumer_group_heartbeat_response::Assignment>| {
        has.iter().flat_map(|has| &has.topic_partitions).map(|topic| topic.partitions.len()).sum::<usize>()
    };
    let given: usize = epochs.iter().map(|(_, has)| parts(has)).sum();
    assert_eq!(given, topics * PARTITIONS as usize, "everything is somebody's");
    let ms = |duration: Duration| duration.as_secs_f64() * 1e3;
    let last = bench.elsewhere.last().copied().unwrap_or_default();
    println!(
        "{{\"members\":{members},\"partitions\":{given},\"join_mean_ms\":{:.4},\"join_longest_ms\":{:.3},\
         \"beat_mean_ms\":{:.4},\"beat_longest_ms\":{:.3},\"targets\":{},\"target_last_ms\":{:.1},\
         \"target_longest_ms\":{:.1},\"target_taken_longest_ms\":{:.2}}}",
        ms(join_total) / members as f64,
        ms(join_longest),
        ms(bench.total) / f64::from(beats.max(1)),
        ms(bench.longest),
        bench.elsewhere.len(),
        ms(last),
        ms(bench.elsewhere.iter().copied().max().unwrap_or_default()),
        ms(bench.taken),
    );
}
