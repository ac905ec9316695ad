//! What clients push (KIP-714): compressed, and OTLP inside. The first byte chooses the codec.

use barnabas_base::{MonotonicMs, Text, Uuid};
use barnabas_telemetry::{Client, ClientTable, Limits, Push, Software, payload};
use barnabas_wire::records::Codec;
use bytes::Bytes;

const BYTES_MAX: usize = 1 << 20;
const LIMITS: Limits = Limits { series_max: 1000, client_series_max: 100 };

/// A push, and then the same once more: no series beyond the bound, and no name that a page could not show.
pub fn otlp(data: &[u8]) {
    let Some((choice, metrics)) = data.split_first() else { return };
    let Some(codec) = Codec::from_id(i16::from(choice % 5)) else { return };
    let metrics = Bytes::copy_from_slice(metrics);
    let mut table = ClientTable::new(BYTES_MAX, LIMITS);
    let client = || {
        let address = Text::from("127.0.0.1");
        Client::new(Uuid([7; 16]), Some("fuzz"), Software::default(), address, 1)
    };
    let offer = table.get(client(), MonotonicMs(0)).expect("the first request is in time");
    let push = Push {
        subscription_id: offer.subscription_id,
        is_terminating: false,
        compression_type: (choice % 5) as i8,
        metrics_bytes: metrics.len(),
    };
    for now in [1, 1 + u64::try_from(offer.push_interval_ms).expect("an interval")] {
        assert_eq!(table.push(client(), push, MonotonicMs(now)), Ok(codec));
        match payload::read(codec, metrics.clone(), BYTES_MAX, LIMITS) {
            Ok(points) => table.take(Uuid([7; 16]), points),
            Err(code) => table.refuse(Uuid([7; 16]), code),
        }
    }
    let counts = table.counts();
    assert!(counts.series <= LIMITS.client_series_max, "{} series", counts.series);
    let described = table.describe();
    assert_eq!(described.iter().map(|client| client.samples.len()).sum::<usize>(), counts.series);
    for sample in described.iter().flat_map(|client| &client.samples) {
        let labels = sample.series.labels.iter().map(|(name, _)| name);
        for word in labels.chain([&sample.series.name]) {
            let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
            assert!(
                word.bytes().all(is_word) && word.starts_with(|first: char| first.is_ascii_lowercase()),
                "{word}"
            );
        }
    }
}
