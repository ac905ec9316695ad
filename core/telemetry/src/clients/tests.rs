//! The two requests of clients: in time or not, and which error comes first.

use barnabas_metadata::Image;

use super::*;
use crate::payload;
use crate::series::tests::push_of;
use crate::subscriptions::tests::with;
use bytes::Bytes;

const LIMITS: Limits = Limits { series_max: 100, client_series_max: 10 };
const ID: Uuid = Uuid([9; 16]);

struct Rig {
    table: ClientTable,
    image: Image,
}

impl Rig {
    fn described(&mut self, now: MonotonicMs) -> Vec<Described> {
        self.table.expire(now);
        self.table.describe()
    }

    fn new() -> Self {
        let image = with(Image::default(), "s", &[("metrics", Some("*")), ("interval.ms", Some("1000"))]);
        let mut rig = Self { table: ClientTable::new(1000, LIMITS), image };
        assert_eq!(rig.table.follow(&rig.image.configs), []);
        rig
    }

    fn get(&mut self, now: u64) -> Result<Offer, ErrorCode> {
        self.table.get(client(ID), MonotonicMs(now))
    }

    fn push(&mut self, push: Push, now: u64) -> Result<Codec, ErrorCode> {
        self.table.push(client(ID), push, MonotonicMs(now))
    }

    /// A push as it should be.
    fn sound(&mut self) -> Push {
        let subscription_id = self.table.subscriptions.of(&client(ID)).subscription_id;
        Push { subscription_id, is_terminating: false, compression_type: 4, metrics_bytes: 100 }
    }

    fn points(&mut self, names: &[&str]) -> Points {
        payload::read(Codec::None, Bytes::from(push_of(names)), 1000, LIMITS).expect("OTLP")
    }
}

fn client(id: Uuid) -> Client {
    Client::new(id, Some("app"), Software::new("apache-kafka-java", "4.3.1"), Text::from("127.0.0.1"), 1)
}

#[test]
fn push_is_in_time_after_a_get_and_then_each_interval() {
    let mut rig = Rig::new();
    let offer = rig.get(100).expect("the first");
    assert_eq!((offer.push_interval_ms, &*offer.metrics), (1000, &[Text::from("*")][..]));
    let push = rig.sound();
    assert_eq!(push.subscription_id, offer.subscription_id);
    assert_eq!(rig.push(push, 101), Ok(Codec::Zstd));
    assert_eq!(rig.push(push, 1100), Err(ErrorCode::ThrottlingQuotaExceeded));
    assert_eq!(rig.push(push, 1101), Ok(Codec::Zstd));
    // The last push of all may come at any time.
    assert_eq!(rig.push(Push { is_terminating: true, ..push }, 1102), Ok(Codec::Zstd));
    assert_eq!(rig.push(Push { is_terminating: true, ..push }, 9000), Err(ErrorCode::InvalidRequest));
    let counts = rig.table.counts();
    assert_eq!(counts.pushes[Outcome::Throttled as usize], 1);
    assert_eq!(counts.pushes[Outcome::Invalid as usize], 1);
}

#[test]
fn get_is_in_time_each_interval_or_after_some_errors() {
    let mut rig = Rig::new();
    rig.get(100).expect("the first");
    assert_eq!(rig.get(1099), Err(ErrorCode::ThrottlingQuotaExceeded));
    let push = rig.sound();
    let other = Push { subscription_id: push.subscription_id ^ 1, ..push };
    assert_eq!(rig.push(other, 1099), Err(ErrorCode::UnknownSubscriptionId));
    rig.get(1099).expect("after an unknown subscription");
    assert_eq!(rig.get(1099), Err(ErrorCode::ThrottlingQuotaExceeded));
    rig.get(2099).expect("an interval after the push");
    assert_eq!(
        rig.push(Push { compression_type: 5, ..push }, 2100),
        Err(ErrorCode::UnsupportedCompressionType)
    );
    rig.get(2101).expect("after an unknown codec");
    assert_eq!(rig.push(Push { metrics_bytes: 1001, ..push }, 3100), Err(ErrorCode::TelemetryTooLarge));
    assert_eq!(rig.get(3101), Err(ErrorCode::ThrottlingQuotaExceeded));
}

#[test]
fn checks_come_in_kafkas_order() {
    let mut rig = Rig::new();
    let mut push =
        Push { subscription_id: 1, is_terminating: true, compression_type: -1, metrics_bytes: 5000 };
    for reserved in [Uuid::ZERO, Uuid::METADATA_TOPIC] {
        assert_eq!(rig.table.push(client(reserved), push, MonotonicMs(0)), Err(ErrorCode::InvalidRequest));
    }
    assert_eq!(rig.table.counts().clients, 0);
    assert_eq!(rig.push(push, 0), Err(ErrorCode::UnknownSubscriptionId));
    // A refused last push was the last one all the same; what comes after it is refused, and begins again.
    push.is_terminating = false;
    assert_eq!(rig.push(push, 0), Err(ErrorCode::InvalidRequest));
    assert_eq!(rig.push(push, 1), Err(ErrorCode::ThrottlingQuotaExceeded));
    push.subscription_id = rig.sound().subscription_id;
    assert_eq!(rig.push(push, 5000), Err(ErrorCode::UnsupportedCompressionType));
    push.compression_type = 0;
    assert_eq!(rig.push(push, 6000), Err(ErrorCode::TelemetryTooLarge));
    push.metrics_bytes = 1000;
    assert_eq!(rig.push(push, 7000), Ok(Codec::None));
}

#[test]
fn changed_subscription_is_offered_at_once() {
    let mut rig = Rig::new();
    rig.get(0).expect("the first");
    let push = rig.sound();
    rig.push(push, 1).expect("in time");
    let points = rig.points(&["a"]);
    rig.table.take(ID, points);
    rig.image = with(rig.image.clone(), "s", &[("metrics", Some("x"))]);
    rig.table.follow(&rig.image.configs);
    assert_eq!(rig.push(push, 2), Err(ErrorCode::UnknownSubscriptionId));
    let offer = rig.get(2).expect("something has changed");
    assert_eq!(&*offer.metrics, &[Text::from("x")]);
    assert_eq!(rig.described(MonotonicMs(2)).len(), 1, "what it pushed stays");
}

#[test]
fn silent_client_is_forgotten_with_its_series() {
    let mut rig = Rig::new();
    rig.get(0).expect("the first");
    let points = rig.points(&["a", "b"]);
    rig.table.take(ID, points);
    assert_eq!(rig.table.counts().series, 2);
    let described = rig.described(MonotonicMs(59_999));
    assert_eq!(described[0].samples.len(), 2);
    assert_eq!(described[0].client_id.as_deref(), Some("app"));
    assert_eq!(rig.described(MonotonicMs(60_000)), [], "a minute at least");
    assert_eq!((rig.table.counts().clients, rig.table.counts().series), (0, 0));
    // Interval 5 min without a subscription.
    rig.table.follow(&Image::default().configs);
    rig.get(60_000).expect("it is new");
    rig.described(MonotonicMs(60_000 + 899_999));
    assert_eq!(rig.table.counts().clients, 1);
    rig.described(MonotonicMs(60_000 + 900_000));
    assert_eq!(rig.table.counts().clients, 0);
}

#[test]
fn clients_are_bounded_and_the_first_to_expire_goes() {
    let mut rig = Rig::new();
    for number in 0..CLIENTS_MAX as u64 + 10 {
        let mut id = [1; 16];
        id[..8].copy_from_slice(&number.to_be_bytes());
        rig.table.get(client(Uuid(id)), MonotonicMs(number)).expect("the first of this client");
        if number < 20 {
            let points = rig.points(&["a", "b", "c"]);
            rig.table.take(Uuid(id), points);
        }
    }
    let counts = rig.table.counts();
    assert_eq!((counts.clients, counts.evicted), (CLIENTS_MAX, 10));
    assert_eq!(counts.series, 30, "with their series");
    assert_eq!(rig.table.by_expiry.len(), CLIENTS_MAX);
}

#[test]
fn refused_metrics_are_counted_and_the_client_remembers() {
    let mut rig = Rig::new();
    rig.get(0).expect("the first");
    rig.table.refuse(ID, ErrorCode::InvalidRecord);
    rig.table.refuse(ID, ErrorCode::TelemetryTooLarge);
    let counts = rig.table.counts();
    assert_eq!(counts.pushes[Outcome::Malformed as usize], 1);
    assert_eq!(counts.pushes[Outcome::TooLarge as usize], 1);
}
