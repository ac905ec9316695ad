//! Malformed and hostile input: an error each time, no panic, and no more memory than the limit.

use barnabas_base::{DurationMs, Offset, TimestampMs};
use bytes::Bytes;

use super::*;
use crate::records::compression::{inflate, inflate_for_magic};

/// Every way in.
fn feed(bytes: &Bytes) {
    for entry in entries(bytes.clone()) {
        match entry {
            Ok(Entry::Batch(batch)) => {
                let _ = EndTxnMarker::of_batch(&batch);
                if let Ok(records) = batch.records() {
                    for record in records.iter().flatten() {
                        assert_eq!(record.headers().count(), record.header_count());
                    }
                }
            }
            Ok(Entry::Message(bytes)) => {
                if let Ok(messages) = Message::parse(bytes).and_then(|message| message.open()) {
                    messages.flatten().for_each(drop);
                }
            }
            Err(_) => break,
        }
    }
    for magic in 0..=1 {
        let _ = down_convert(bytes.clone(), magic, Offset(0));
    }
    for version in [2, 3, 9] {
        for is_compacted in [false, true] {
            let rules = Rules {
                produce_version: version,
                now: TimestampMs(NOW),
                is_compacted,
                compression: is_compacted.then_some(Compression::of(Codec::Lz4)),
                timestamp_before_max: DurationMs(if is_compacted { 1000 } else { i64::MAX }),
                ..Rules::default()
            };
            if let Ok(Some(validated)) = validate_produce(bytes.clone(), &rules) {
                check_crc(&validated.batch.to_bytes()).unwrap();
            }
        }
    }
}

/// Makes the outer checksum right, so that what lies behind it is reached.
fn mend_crc(bytes: &mut [u8]) {
    match bytes.get(16) {
        Some(2) if bytes.len() >= HEADER_BYTES => {
            let crc = crc32c(&bytes[21..]);
            bytes[17..21].copy_from_slice(&crc.to_be_bytes());
        }
        Some(0 | 1) => {
            let crc = crc32(&bytes[16..]);
            bytes[12..16].copy_from_slice(&crc.to_be_bytes());
        }
        _ => {}
    }
}

fn seeds() -> Vec<Bytes> {
    let mut seeds = Vec::new();
    for codec in CODECS {
        let batch = batch_of(codec, &[b"one", b"two", &[7; 300]]);
        for magic in 0..=1 {
            seeds.extend(down_convert(batch.clone(), magic, Offset(0)));
        }
        seeds.push(batch);
    }
    seeds
}

#[test]
fn mutated_bytes_are_judged_and_not_feared() {
    let seeds = seeds();
    let mut random = Random::new(41);
    for _ in 0..20_000 {
        let mut bytes = seeds[random.below(seeds.len())].to_vec();
        for _ in 0..1 + random.below(4) {
            let at = random.below(bytes.len());
            match random.below(4) {
                0 => bytes[at] = random.next() as u8,
                1 => bytes[at] ^= 1 << random.below(8),
                2 => bytes[at] = [0x00, 0x7f, 0x80, 0xff][random.below(4)],
                _ => bytes.truncate(at.max(1)),
            }
        }
        if random.below(4) > 0 {
            mend_crc(&mut bytes);
        }
        feed(&Bytes::from(bytes));
    }
}

#[test]
fn garbage_is_judged_and_not_feared() {
    let mut random = Random::new(43);
    for _ in 0..20_000 {
        let len = random.below(200);
        let mut bytes = random.bytes(len);
        if len > 17 {
            bytes[16] = random.below(4) as u8;
            let length = random.below(2 * len) as i32;
            bytes[8..12].copy_from_slice(&length.to_be_bytes());
            mend_crc(&mut bytes);
        }
        feed(&Bytes::from(bytes));
    }
}

#[test]
fn garbage_streams_inflate_to_nothing_or_little() {
    let mut random = Random::new(47);
    for codec in CODECS {
        let mut whole = Vec::new();
        Compression::of(codec).deflate(&random.bytes(500), &mut whole).unwrap();
        for _ in 0..3000 {
            let mut stream = whole.clone();
            let at = random.below(stream.len());
            stream[at] = random.next() as u8;
            stream.truncate(stream.len() - random.below(10));
            let _ = inflate(codec, stream.into());
            let len = random.below(100);
            let _ = inflate(codec, random.bytes(len).into());
        }
    }
}

#[test]
fn a_bomb_stops_at_the_limit() {
    const LIMIT: usize = 1 << 20;
    for codec in &CODECS[1..] {
        let deflated = |len: usize| {
            let mut bomb = Vec::new();
            Compression::of(*codec).deflate(&vec![0; len], &mut bomb).unwrap();
            Bytes::from(bomb)
        };
        let bomb = deflated(LIMIT + 1);
        assert!(bomb.len() < LIMIT / 16, "{codec}");
        assert_eq!(
            inflate_for_magic(*codec, bomb, 2, LIMIT),
            Err(BatchError::TooLarge { limit: LIMIT }),
            "{codec}"
        );
        assert_eq!(inflate_for_magic(*codec, deflated(LIMIT), 2, LIMIT).unwrap().len(), LIMIT, "{codec}");
    }
    // A snappy block that claims 4 GiB is refused on the word of its length.
    let claim = [0xff, 0xff, 0xff, 0xff, 0x0f, 0x00, b'x'];
    let refused =
        inflate_for_magic(Codec::Snappy, Bytes::copy_from_slice(&claim), 2, usize::MAX).unwrap_err();
    assert!(refused.to_string().contains("claims more"), "{refused}");
}

#[test]
fn lz4_blocks_keep_to_the_frames_word() {
    let mut frame = Vec::new();
    Compression::of(Codec::Lz4).deflate(&[b'x'; 10], &mut frame).unwrap();
    let refused = |frame: &[u8]| inflate(Codec::Lz4, Bytes::copy_from_slice(frame)).unwrap_err().to_string();
    // Larger than the 64 KiB of the descriptor.
    let mut large = frame.clone();
    large[7..11].copy_from_slice(&(65537u32 | 1 << 31).to_le_bytes());
    large.resize(80_000, 0);
    assert!(refused(&large).contains("larger than the frame allows"));
    // With block checksums: the flag, the header's checksum (the one of 256 that is right), and then none that fits.
    let mut checked = frame.clone();
    checked[4] |= 0x10;
    checked.extend_from_slice(&[0; 8]);
    let says: Vec<String> = (0..=255)
        .map(|checksum| {
            checked[6] = checksum;
            refused(&checked)
        })
        .collect();
    let blocks = says.iter().filter(|what| what.contains("block checksum does not match")).count();
    let headers = says.iter().filter(|what| what.contains("header checksum does not match")).count();
    assert_eq!((blocks, headers), (1, 255));
}

#[test]
fn a_record_fills_its_length() {
    let batch = batch_of(Codec::None, &[b"one", b"two"]);
    // The first record one byte longer than its fields: it takes the next one's length as its own.
    let longer = patched(&batch, HEADER_BYTES, &[batch[HEADER_BYTES] + 2]);
    let records = Batch::new(longer).unwrap().records().unwrap();
    let first = records.iter().next().unwrap();
    assert_eq!(first, Err(BatchError::Record { index: 0, what: "length does not match its fields" }));
}

#[test]
fn a_negative_delta_has_no_last_sequence() {
    let batch = batch_with(
        BatchOptions { base_sequence: barnabas_base::Sequence(5), ..BatchOptions::default() },
        &[b"x"],
    );
    let lying = patched(&batch, 23, &i32::MIN.to_be_bytes());
    let header = BatchHeader::parse(&lying).unwrap();
    assert_eq!(header.last_sequence(), barnabas_base::Sequence::NONE);
    assert_eq!(header.last_offset(), Offset(i64::from(i32::MIN)));
}

#[test]
fn counts_and_lengths_are_not_trusted() {
    let batch = batch_of(Codec::None, &[b"one", b"two"]);
    let count = |count: i32| {
        let lying = patched(&batch, 57, &count.to_be_bytes());
        let records = Batch::new(lying).unwrap().records().unwrap();
        records.iter().last().unwrap().map(drop)
    };
    assert!(count(2).is_ok());
    assert_eq!(count(1), Err(BatchError::Count { counted: 1, found: 1 }));
    assert_eq!(count(0), Err(BatchError::Count { counted: 0, found: 0 }));
    assert_eq!(count(-5), Err(BatchError::Count { counted: -5, found: 0 }));
    assert!(matches!(count(3), Err(BatchError::Record { index: 2, .. })));
    assert!(matches!(count(i32::MAX), Err(BatchError::Record { index: 2, .. })));
    // The first record's length, which is zig-zag.
    let long = patched(&batch, HEADER_BYTES, &[0x7e]);
    let records = Batch::new(long).unwrap().records().unwrap();
    let first = records.iter().next().unwrap();
    assert!(matches!(first, Err(BatchError::Record { index: 0, .. })), "{first:?}");
}

#[test]
fn lengths_of_batches_are_bounded() {
    let batch = batch_of(Codec::None, &[b"one"]);
    let with_length = |length: i32| {
        let mut bytes = batch.to_vec();
        bytes[8..12].copy_from_slice(&length.to_be_bytes());
        let mut walk = batches(bytes.into());
        (walk.next().map(|batch| batch.map(drop)), walk.torn().is_some())
    };
    assert_eq!(with_length(48), (Some(Err(BatchError::Length { length: 48 })), false));
    assert_eq!(with_length(-1), (Some(Err(BatchError::Length { length: -1 })), false));
    assert_eq!(with_length(i32::MIN), (Some(Err(BatchError::Length { length: i32::MIN })), false));
    assert_eq!(with_length(i32::MAX), (None, true));
}
