//! Every codec and many shapes of batches survive encoding and decoding; checksums and numbering agree with
//! slow references.

use barnabas_base::{LeaderEpoch, Offset, TimestampMs};
use bytes::Bytes;

use super::*;
use crate::records::compression::{inflate, inflate_for_magic, inflated_limit};

#[test]
fn records_come_back_as_they_were_put_in() {
    let mut random = Random::new(7);
    for round in 0..200 {
        let codec = CODECS[round % CODECS.len()];
        let options = BatchOptions {
            base_offset: Offset(random.below(1 << 40) as i64),
            compression: Compression { codec, level: [None, Some(1), Some(9)][round % 3] },
            ..BatchOptions::default()
        };
        let mut builder = BatchBuilder::new(options);
        let mut expected = Vec::new();
        let mut delta = -1;
        for _ in 0..1 + random.below(40) {
            delta += 1 + random.below(3) as i32;
            let time = TimestampMs(random.next() as i64 >> random.below(60));
            let (key, value) = (random.field(50), random.field(5000));
            let headers: Vec<(Vec<u8>, Option<Vec<u8>>)> =
                (0..random.below(3)).map(|_| (random.bytes(3), random.field(10))).collect();
            let borrowed: Vec<HeaderRef<'_>> = headers.iter().map(|(k, v)| (&k[..], v.as_deref())).collect();
            let size = builder.size_bytes_with(time, key.as_deref(), value.as_deref(), &borrowed);
            builder.push_at(delta, time, key.as_deref(), value.as_deref(), &borrowed);
            // The size foretold is for the next offset; a gap may make a delta one byte longer.
            assert!(builder.size_bytes().abs_diff(size) <= 1);
            expected.push((delta, time, key, value, headers));
        }
        let batch = Batch::new(builder.build().unwrap()).unwrap();
        batch.check_crc().unwrap();
        assert_eq!(batch.header().record_count as usize, expected.len());
        let records = batch.records().unwrap();
        let read: Vec<_> = records
            .iter()
            .map(|record| {
                let record = record.unwrap();
                let headers: Vec<_> =
                    record.headers().map(|(key, value)| (key.to_vec(), value.map(<[u8]>::to_vec))).collect();
                let (key, value) = (record.key.map(<[u8]>::to_vec), record.value.map(<[u8]>::to_vec));
                (record.offset_delta, record.timestamp, key, value, headers)
            })
            .collect();
        assert_eq!(read, expected, "{codec}");
    }
}

#[test]
fn every_codec_inflates_what_it_deflated() {
    let mut random = Random::new(11);
    for codec in CODECS {
        for len in [0, 1, 100, 32 << 10, (32 << 10) + 1, 64 << 10, (64 << 10) + 1, 300_000] {
            for incompressible in [false, true] {
                let plain = if incompressible { random.bytes(len) } else { vec![b'x'; len] };
                for magic in 0..=2 {
                    let mut deflated = Vec::new();
                    Compression::of(codec).deflate_for_magic(&plain, magic, &mut deflated).unwrap();
                    let deflated = Bytes::from(deflated);
                    let inflated = inflate_for_magic(codec, deflated, magic, 1 << 20).unwrap();
                    assert_eq!(inflated, plain, "{codec} {len} {magic}");
                }
            }
        }
    }
}

#[test]
fn streams_of_other_makers_are_read() {
    // A bare snappy block, as librdkafka sends it.
    let bare = snap::raw::Encoder::new().compress_vec(b"bare block").unwrap();
    assert_eq!(inflate(Codec::Snappy, bare.into()).unwrap(), &b"bare block"[..]);
    // Two gzip members and two zstd frames, one after the other.
    for codec in [Codec::Gzip, Codec::Zstd] {
        let mut two = Vec::new();
        Compression::of(codec).deflate(b"one", &mut two).unwrap();
        Compression::of(codec).deflate(b"two", &mut two).unwrap();
        assert_eq!(inflate(codec, two.into()).unwrap(), &b"onetwo"[..]);
    }
    // An LZ4 frame with 4 MiB blocks, block and content checksums and a content size.
    let info = lz4_frame(b"a frame by the book");
    assert_eq!(inflate(Codec::Lz4, info).unwrap(), &b"a frame by the book"[..]);
}

/// By hand: FLG with content size and content checksum, BD 7, one stored block.
fn lz4_frame(content: &[u8]) -> Bytes {
    let mut frame = vec![0x04, 0x22, 0x4D, 0x18, 0x6C, 0x70];
    frame.extend_from_slice(&(content.len() as u64).to_le_bytes());
    frame.push(0);
    frame.extend_from_slice(&(content.len() as u32 | 1 << 31).to_le_bytes());
    frame.extend_from_slice(content);
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(&[1, 2, 3, 4]);
    // The reader states the expected header checksum: try all values.
    for checksum in 0..=255u8 {
        frame[14] = checksum;
        let frame = Bytes::from(frame.clone());
        if inflate(Codec::Lz4, frame.clone()).is_ok() {
            return frame;
        }
    }
    unreachable!("one of 256 checksums is right");
}

#[test]
fn the_broken_lz4_checksum_belongs_to_format_0() {
    let deflated = |magic| {
        let mut out = Vec::new();
        Compression::of(Codec::Lz4).deflate_for_magic(b"old", magic, &mut out).unwrap();
        Bytes::from(out)
    };
    assert_ne!(deflated(0)[6], deflated(1)[6]);
    assert!(inflate_for_magic(Codec::Lz4, deflated(0), 1, 100).is_err());
    assert_eq!(inflate_for_magic(Codec::Lz4, deflated(0), 0, 100).unwrap(), &b"old"[..]);
    assert_eq!(inflate_for_magic(Codec::Lz4, deflated(1), 0, 100).unwrap(), &b"old"[..]);
}

/// CRC bit by bit, reflected.
fn slow_crc(bytes: &[u8], polynomial: u32) -> u32 {
    let step = |crc: u32| if crc & 1 == 1 { (crc >> 1) ^ polynomial } else { crc >> 1 };
    !bytes.iter().fold(!0u32, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), |crc, _| step(crc)))
}

#[test]
fn checksums_are_what_their_polynomials_say() {
    let mut random = Random::new(3);
    assert_eq!(crc32c(b"123456789"), 0xE306_9283);
    assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
    for len in [0, 1, 7, 15, 16, 63, 255, 256, 1023, 4096, 70_001] {
        let bytes = random.bytes(len);
        assert_eq!(crc32c(&bytes), slow_crc(&bytes, 0x82F6_3B78), "{len}");
        assert_eq!(crc32(&bytes), slow_crc(&bytes, 0xEDB8_8320), "{len}");
    }
}

#[test]
fn numbering_leaves_a_batch_that_checks() {
    let mut random = Random::new(5);
    for len in [0, 1, 59, 1000, 100_000] {
        let value = random.bytes(len);
        let built = batch_of(Codec::None, &[&value, b"second"]);
        let mut batch = built.to_vec();
        let header = number_in_place(&mut batch, Offset(1 << 40), LeaderEpoch(8), None).unwrap();
        assert_eq!((header.base_offset, header.partition_leader_epoch), (Offset(1 << 40), LeaderEpoch(8)));
        assert_eq!(batch[HEADER_BYTES..], built[HEADER_BYTES..]);
        check_crc(&batch).unwrap();
        let stamped = number_in_place(&mut batch, Offset(3), LeaderEpoch(9), Some(TimestampMs(77))).unwrap();
        assert_eq!(stamped.max_timestamp, TimestampMs(77));
        check_crc(&batch).unwrap();
        let records = Batch::new(batch.into()).unwrap().records().unwrap();
        assert!(records.iter().all(|record| record.unwrap().timestamp == TimestampMs(77)));
    }
}

#[test]
fn a_ready_batch_shares_the_frame() {
    let built = batch_of(Codec::None, &[b"value"]);
    let mut ready = validate_produce(built.clone(), &Rules { now: TimestampMs(NOW), ..Rules::default() })
        .unwrap()
        .unwrap()
        .batch;
    assert_eq!(ready.body().as_ptr(), built[HEADER_BYTES..].as_ptr());
    ready.number(Offset(500), LeaderEpoch(2));
    let mut by_hand = built.to_vec();
    number_in_place(&mut by_hand, Offset(500), LeaderEpoch(2), None).unwrap();
    assert_eq!(ready.to_bytes(), by_hand);
}

#[test]
fn a_walk_ends_before_a_torn_batch_and_says_where() {
    let one = batch_of(Codec::None, &[b"a"]);
    let two = batch_of(Codec::Zstd, &[b"b", b"c"]);
    let run: Vec<u8> = [&one[..], &two[..]].concat();
    for cut in 0..=run.len() {
        let mut walk = batches(Bytes::copy_from_slice(&run[..cut]));
        let sizes: Vec<usize> = walk.by_ref().map(|batch| batch.unwrap().bytes().len()).collect();
        let whole = if cut == run.len() { 2 } else { usize::from(cut >= one.len()) };
        let end = [0, one.len(), run.len()][whole];
        assert_eq!(sizes.len(), whole);
        assert_eq!(walk.position(), end);
        assert_eq!(walk.torn(), (cut > end).then_some(Torn { at: end, have: cut - end }));
    }
}

#[test]
fn the_limit_is_a_ratio_with_a_floor() {
    assert_eq!(inflated_limit(0), 64 << 20);
    assert_eq!(inflated_limit(1 << 20), 64 << 20);
    assert_eq!(inflated_limit(2 << 20), 128 << 20);
    assert_eq!(inflated_limit(usize::MAX), usize::MAX);
}

#[test]
fn an_empty_builder_builds_nothing() {
    assert!(BatchBuilder::new(BatchOptions::default()).build().unwrap().is_empty());
}
