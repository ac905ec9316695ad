//! Segments as a broker leaves them that had transactions.

use super::now_ms;
use barnabas_base::{CoordinatorEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};
use barnabas_wire::records::{BatchBuilder, BatchOptions, EndTxnMarker, control_batch};
use std::collections::BTreeMap;

/// Keys and what they stand for.
pub type Model = BTreeMap<String, Option<String>>;

/// What a broker left that had transactions: two producers' records interleaved, every third transaction aborted.
/// Returns what a reader of committed records has to find in the end.
pub fn write_transactions(dir: &std::path::Path) -> Model {
    let (mut next, mut model, mut segment) = (0_i64, Model::new(), Vec::new());
    let mut base = 0;
    let mut sequences = [0; 2];
    for round in 0..180_i64 {
        let mut news: [Vec<(String, Option<String>)>; 2] = Default::default();
        for (turn, producer) in [(0, 0), (1, 1), (2, 0), (3, 1)] {
            let mut builder = BatchBuilder::new(BatchOptions {
                base_offset: Offset(next),
                leader_epoch: 0.into(),
                producer_id: ProducerId(producer as i64),
                producer_epoch: ProducerEpoch(0),
                base_sequence: Sequence(sequences[producer]),
                transactional: true,
                ..Default::default()
            });
            for at in 0..3 {
                let key = format!("key{}", (round * 31 + turn * 7 + at) % 40);
                let value = format!("{round}-{turn}-{at}-{:0>500}", next);
                builder.push(TimestampMs(now_ms()), Some(key.as_bytes()), Some(value.as_bytes()), &[]);
                news[producer].push((key, Some(value)));
            }
            segment.extend(builder.build().expect("a batch"));
            next += 3;
            sequences[producer] += 3;
        }
        for producer in 0..2 {
            let commit = (round + producer as i64) % 3 != 0;
            let options = BatchOptions {
                base_offset: Offset(next),
                leader_epoch: 0.into(),
                producer_id: ProducerId(producer as i64),
                producer_epoch: ProducerEpoch(0),
                transactional: true,
                ..Default::default()
            };
            let marker = EndTxnMarker { commit, coordinator_epoch: CoordinatorEpoch(0) };
            let batch = control_batch(options, TimestampMs(now_ms()), marker.control_type(), &marker.value());
            segment.extend(batch.expect("a marker"));
            next += 1;
        }
        // The producers wrote in turn: what is committed counts in the order of offsets.
        let mut committed: Vec<_> = Vec::new();
        for (producer, news) in news.iter().enumerate() {
            for (at, record) in news.iter().enumerate() {
                if (round + producer as i64) % 3 != 0 {
                    committed.push((at / 3 * 6 + producer * 3 + at % 3, record.clone()));
                }
            }
        }
        committed.sort();
        model.extend(committed.into_iter().map(|(_, record)| record));
        if segment.len() > 150_000 {
            std::fs::write(dir.join(format!("{base:020}.log")), std::mem::take(&mut segment))
                .expect("written");
            base = next;
        }
    }
    std::fs::write(dir.join(format!("{base:020}.log")), segment).expect("written");
    model
}
