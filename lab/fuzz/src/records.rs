//! Records: batches of every format, what producers may send, what codecs may inflate to.

use barnabas_base::{DurationMs, LeaderEpoch, Offset, TimestampMs};
use barnabas_wire::records::compression::{inflate, inflated_limit};
use barnabas_wire::records::{
    Codec, Compression, Entry, RecordValidation, Rules, TimestampType, crc32c, down_convert, entries,
    validate_produce,
};
use bytes::Bytes;

/// Where a v2 batch keeps its length, its magic, its checksum, and where the checked part begins.
const LENGTH_AT: usize = 8;
const MAGIC_AT: usize = 16;
const CRC_AT: usize = 17;
const CHECKED_AT: usize = 21;

/// Makes the outside of a batch right, so that the search gets inside: length, magic, checksum.
fn dressed(data: &[u8]) -> Bytes {
    let mut batch = data.to_vec();
    if batch.len() > CHECKED_AT {
        let length = (batch.len() - LENGTH_AT - 4) as i32;
        batch[LENGTH_AT..LENGTH_AT + 4].copy_from_slice(&length.to_be_bytes());
        batch[MAGIC_AT] = 2;
        let crc = crc32c(&batch[CHECKED_AT..]);
        batch[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_be_bytes());
    }
    Bytes::from(batch)
}

fn walk(bytes: Bytes) {
    for entry in entries(bytes) {
        match entry {
            Ok(Entry::Batch(batch)) => {
                let Ok(records) = batch.records() else { continue };
                let count = records.iter().take_while(Result::is_ok).count();
                assert!(
                    count <= batch.header().record_count.max(0) as usize,
                    "more records than the header says"
                );
            }
            Ok(_) => {}
            Err(_) => return,
        }
    }
}

pub fn batch(data: &[u8]) {
    walk(Bytes::copy_from_slice(data));
    walk(dressed(data));
}

pub fn old_message_set(data: &[u8]) {
    let Some((choice, rest)) = data.split_first() else { return };
    walk(Bytes::copy_from_slice(rest));
    drop(down_convert(dressed(rest), (choice & 1) as i8, Offset::ZERO));
}

/// What a Produce request brings, under every rule a topic can have. What is taken must be readable.
pub fn produce(data: &[u8]) {
    let Some((choice, rest)) = data.split_first_chunk::<2>() else { return };
    let compressions = [
        None,
        Some(Codec::None),
        Some(Codec::Gzip),
        Some(Codec::Snappy),
        Some(Codec::Lz4),
        Some(Codec::Zstd),
    ];
    let rules = Rules {
        produce_version: i16::from(choice[0] & 15).min(13),
        now: TimestampMs(1_700_000_000_000),
        timestamp_type: if choice[0] & 16 == 0 {
            TimestampType::CreateTime
        } else {
            TimestampType::LogAppendTime
        },
        timestamp_before_max: DurationMs(if choice[0] & 32 == 0 { i64::MAX } else { 1000 }),
        is_compacted: choice[0] & 64 != 0,
        validation: if choice[0] & 128 == 0 { RecordValidation::Header } else { RecordValidation::Full },
        compression: compressions[usize::from(choice[1]) % compressions.len()].map(Compression::of),
        ..Rules::default()
    };
    let is_dressed = choice[1] & 128 != 0;
    let bytes = if is_dressed { dressed(rest) } else { Bytes::copy_from_slice(rest) };
    let Ok(Some(mut taken)) = validate_produce(bytes, &rules) else { return };
    taken.batch.number(Offset(7), LeaderEpoch(3));
    let mut stored = entries(taken.batch.to_bytes());
    let Some(Ok(Entry::Batch(read))) = stored.next() else { panic!("what was taken is no batch") };
    read.check_crc().expect("what was taken has a right checksum");
    assert_eq!(
        (read.header().base_offset, read.header().partition_leader_epoch),
        (Offset(7), LeaderEpoch(3))
    );
    assert!(stored.next().is_none(), "what was taken is more than a batch");
}

fn inflates(codec: Codec, data: &[u8]) {
    let Ok(inflated) = inflate(codec, Bytes::copy_from_slice(data)) else { return };
    assert!(inflated.len() <= inflated_limit(data.len()), "{} bytes became {}", data.len(), inflated.len());
}

pub fn gzip(data: &[u8]) {
    inflates(Codec::Gzip, data);
}

pub fn snappy(data: &[u8]) {
    inflates(Codec::Snappy, data);
}

pub fn lz4(data: &[u8]) {
    inflates(Codec::Lz4, data);
}

pub fn zstd(data: &[u8]) {
    inflates(Codec::Zstd, data);
}
