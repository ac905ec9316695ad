//! What comes to a partition's former leader, just after another broker was elected, is handed on to that one: its
//! producer hears no error, and where to go.

use crate::harness::replicas::{Cluster, PARTITIONS, append, consume, eventually, leaders, reassign};
use crate::harness::{Client, now_ms};
use barnabas_base::{ProducerEpoch, ProducerId, Sequence, TimestampMs, TopicId};
use barnabas_wire::ApiKey;
use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use barnabas_wire::messages::produce_response::PartitionProduceResponse;
use barnabas_wire::messages::{ElectLeadersRequest, ProduceRequest, ResponseBody};
use barnabas_wire::records::{BatchBuilder, BatchOptions};

const NOT_LEADER_OR_FOLLOWER: i16 = 6;
/// Elections after which the machine may be too busy for a batch to come in time.
const ATTEMPTS: i32 = 8;

/// Three nodes, a topic whose leader is the first of them, and who produces to it.
fn one_that_produces() -> (Cluster, TopicId, Producer) {
    let cluster = Cluster::start();
    let topic = cluster.create("t");
    let producer = Producer::of(&cluster, topic);
    (cluster, topic, producer)
}

/// A producer that names itself, on one connection.
pub struct Producer {
    client: Client,
    topic: TopicId,
    id: ProducerId,
    next: i32,
}

impl Producer {
    /// To a topic "t", which broker 1 leads from now on.
    pub fn of(cluster: &Cluster, topic: TopicId) -> Self {
        led_by(cluster, &[1, 2, 3]);
        let mut client = cluster.client(1);
        let id = client.producer_id();
        Self { client, topic, id, next: 0 }
    }

    /// The refused record is the next one.
    pub fn back(&mut self) {
        self.next -= 1;
    }

    /// Sends one record whose value is its number.
    pub fn send(&mut self) {
        let options = BatchOptions {
            producer_id: self.id,
            producer_epoch: ProducerEpoch(0),
            base_sequence: Sequence(self.next),
            ..BatchOptions::default()
        };
        let mut builder = BatchBuilder::new(options);
        builder.push(TimestampMs(now_ms()), None, Some(self.next.to_string().as_bytes()), &[]);
        let records = Some(builder.build().expect("a batch"));
        let data = PartitionProduceData { index: 0, records, ..Default::default() };
        let topic =
            TopicProduceData { topic_id: self.topic, partition_data: vec![data], ..Default::default() };
        let request =
            ProduceRequest { acks: -1, timeout_ms: 30_000, topic_data: vec![topic], ..Default::default() };
        assert!(self.client.try_send(request, 13));
        self.next += 1;
    }

    pub fn answer(&mut self) -> PartitionProduceResponse {
        let Some((_, ResponseBody::Produce(response))) = self.client.try_receive(ApiKey::Produce, 13) else {
            panic!("no answer")
        };
        response.responses[0].partition_responses[0].clone()
    }
}

/// All partitions get these replicas, and the first of them leads, as all brokers know.
pub fn led_by(cluster: &Cluster, replicas: &[i32]) {
    reassign(cluster, &[1, 2, 3], "t", replicas);
    cluster.await_in_sync("t", 3);
    let is_led = |node: i32| {
        let leaders = leaders(&mut cluster.client(node), "t");
        leaders.len() == PARTITIONS as usize && leaders.values().all(|leader| *leader == replicas[0])
    };
    eventually("the first replica leads", || {
        let request =
            ElectLeadersRequest { timeout_ms: 20_000, topic_partitions: None, ..Default::default() };
        let ResponseBody::ElectLeaders(_) = cluster.client(1).call(request, 2) else {
            panic!("another response")
        };
        is_led(replicas[0])
    });
    (1..=3).for_each(|node| eventually("all know it", || is_led(node)));
}

/// Four batches for broker 1, just after broker 2 was elected: whether all of them were taken, one after the other.
fn is_forwarded(cluster: &Cluster, producer: &mut Producer) -> bool {
    let first = producer.next;
    led_by(cluster, &[2, 1, 3]);
    // Several are under way.
    (0..4).for_each(|_| producer.send());
    let answers: Vec<PartitionProduceResponse> = (0..4).map(|_| producer.answer()).collect();
    assert!(answers.iter().all(|answer| answer.current_leader.leader_id == 2), "{answers:?}");
    let mut taken = Vec::new();
    for answer in &answers {
        assert!([0, NOT_LEADER_OR_FOLLOWER].contains(&answer.error_code), "{answers:?}");
        taken.extend((answer.error_code == 0).then_some(answer.base_offset));
    }
    producer.next = first + taken.len() as i32;
    assert_eq!(taken, (i64::from(first)..i64::from(producer.next)).collect::<Vec<i64>>(), "{answers:?}");
    taken.len() == answers.len()
}

#[test]
fn who_sends_to_the_former_leader_hears_no_error_and_who_leads() {
    let (cluster, topic, mut producer) = one_that_produces();
    producer.send();
    let answer = producer.answer();
    assert_eq!((answer.error_code, answer.base_offset, answer.current_leader.leader_id), (0, 0, -1));

    // Half a second counts as just after: where the machine is busy that may be over when they come.
    let mut attempts = 0;
    while !is_forwarded(&cluster, &mut producer) {
        attempts += 1;
        assert!(attempts < ATTEMPTS, "what is sent just after is handed on");
        led_by(&cluster, &[1, 2, 3]);
    }
    // A batch that names no producer could be written twice.
    let mut plain = cluster.client(1);
    assert!(matches!(append(&mut plain, topic, 0, "plain"), Some(Err(Some((2, _))))));

    // Who does not go there is refused in the end, and told again.
    let mut taken = i64::from(producer.next);
    eventually("the former leader refuses", || {
        producer.send();
        let answer = producer.answer();
        assert_eq!(answer.current_leader.leader_id, 2);
        taken += i64::from(answer.error_code == 0);
        answer.error_code == NOT_LEADER_OR_FOLLOWER
    });
    // The refused one is the next for the leader.
    producer.next -= 1;
    producer.client = cluster.client(2);
    producer.send();
    let answer = producer.answer();
    assert_eq!((answer.error_code, answer.base_offset), (0, taken));

    let expected: Vec<(i64, String)> = (0..=taken).map(|number| (number, number.to_string())).collect();
    let found: Vec<(i64, String)> = consume(&cluster, "t", topic, 0).into_iter().collect();
    assert_eq!(found, expected);
    cluster.stop();
}

/// Leadership goes to and fro under a producer that never looks for the leader but goes where its acknowledgements send
/// it.
#[test]
fn a_producer_follows_its_acknowledgements_from_leader_to_leader() {
    let (cluster, _, mut producer) = one_that_produces();
    let (mut round, mut forwarded) = (0, 0);
    while forwarded < 6 {
        round += 1;
        assert!(round < 6 + ATTEMPTS, "six are handed on, not {forwarded}");
        let to = 1 + round % 3;
        let mut replicas = vec![1, 2, 3];
        replicas.rotate_left(to as usize - 1);
        led_by(&cluster, &replicas);
        producer.send();
        let answer = producer.answer();
        assert_eq!(answer.current_leader.leader_id, to, "{answer:?}");
        producer.client = cluster.client(to);
        if answer.error_code == NOT_LEADER_OR_FOLLOWER {
            // It was too late for that: it is the next for the leader.
            producer.next -= 1;
        } else {
            assert_eq!(
                (answer.error_code, answer.base_offset),
                (0, i64::from(producer.next - 1)),
                "{answer:?}"
            );
            forwarded += 1;
        }
    }
    cluster.stop();
}
