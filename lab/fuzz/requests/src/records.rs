//! What goes into a `records` field: batches of every codec and format, bombs, and batches with something wrong in
//! them.

use crate::random::Random;
use barnabas_base::{Offset, TimestampMs};
use barnabas_wire::records::{BatchBuilder, BatchOptions, Codec, Compression, crc32c, down_convert};
use bytes::Bytes;
use std::time::{SystemTime, UNIX_EPOCH};

const CODECS: [Codec; 5] = [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd];
/// Length, CRC, attributes, last offset delta, timestamps, producer id, epoch, sequence, record count.
const NUMBERS_AT: [usize; 9] = [8, 17, 21, 23, 27, 43, 51, 53, 57];

/// Batches that are made once: bombs take a while.
#[derive(Debug)]
pub struct Batches {
    sound: Vec<Bytes>,
    bombs: Vec<Bytes>,
}

impl Batches {
    pub fn new() -> Self {
        let sound = CODECS.iter().map(|codec| batch(*codec, 20, 100)).collect::<Vec<_>>();
        let mut bombs: Vec<Bytes> = CODECS[1..].iter().map(|codec| batch(*codec, 1, 16 << 20)).collect();
        // A million records of nothing, counted right.
        bombs.push(batch(Codec::Gzip, 1_000_000, 0));
        let old = |batch: &Bytes| {
            (0..=1)
                .filter_map(|magic| down_convert(batch.clone(), magic, Offset::ZERO).ok())
                .collect::<Vec<_>>()
        };
        let of_sound: Vec<Bytes> = sound.iter().flat_map(old).collect();
        let of_bombs: Vec<Bytes> = bombs.iter().flat_map(old).collect();
        Self { sound: [sound, of_sound].concat(), bombs: [bombs, of_bombs].concat() }
    }

    pub fn any(&self, random: &mut Random) -> Bytes {
        if random.once_in(40) {
            return self.bombs[random.below(self.bombs.len())].clone();
        }
        let sound = &self.sound[random.below(self.sound.len())];
        match random.below(6) {
            0..=2 => sound.clone(),
            3 => mended(rubbish(sound, random)),
            4 => mended(numbered(sound, random)),
            _ => {
                let mut bytes = sound.to_vec();
                let at = random.below(bytes.len());
                bytes[at] ^= 1 << random.below(8);
                bytes.into()
            }
        }
    }
}

fn now() -> TimestampMs {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    TimestampMs(since.as_millis() as i64)
}

fn batch(codec: Codec, count: usize, bytes: usize) -> Bytes {
    let options = BatchOptions { compression: Compression::of(codec), ..BatchOptions::default() };
    let mut builder = BatchBuilder::new(options);
    let (value, now) = (vec![b'x'; bytes], now());
    for number in 0..count {
        let key = (number as u32).to_be_bytes();
        builder.push(now, Some(&key), Some(&value), &[]);
    }
    builder.build().unwrap_or_default()
}

fn rubbish(batch: &Bytes, random: &mut Random) -> Vec<u8> {
    let mut bytes = batch.to_vec();
    let from = 61.min(bytes.len() - 1);
    for byte in &mut bytes[from..] {
        *byte = random.next() as u8;
    }
    bytes
}

fn numbered(batch: &Bytes, random: &mut Random) -> Vec<u8> {
    let mut bytes = batch.to_vec();
    let at = random.of_slice(&NUMBERS_AT);
    let number = random.of_slice(&[0, 1, -1, i64::MAX, i64::MIN, 0x7fff_ffff, 0x8000_0000]);
    if let Some(place) = bytes.get_mut(at..at + 4) {
        place.copy_from_slice(&(number as i32).to_be_bytes());
    }
    bytes
}

/// With a right checksum, where it is a batch of the current format.
fn mended(mut bytes: Vec<u8>) -> Bytes {
    if bytes.len() > 61 && bytes[16] == 2 {
        let crc = crc32c(&bytes[21..]);
        bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    }
    bytes.into()
}
