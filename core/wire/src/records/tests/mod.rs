//! Tests of `records` from outside: Apache Kafka's own bytes (`golden`), encoding and decoding
//! (`round_trip`), hostile input (`hostile`), old message formats (`old_formats`), work for another
//! thread (`at_once`), each rule (`rules`), and Apache Kafka's own verdicts (`verdicts`).

mod at_once;
mod golden;
mod hostile;
mod old_formats;
mod round_trip;
mod rules;
mod verdicts;

use barnabas_base::TimestampMs;
use bytes::Bytes;

use super::*;

pub(super) const NOW: i64 = 1_700_000_000_000;

/// A generator with a seed: xorshift64*. Tests must fail the same way twice.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    pub(super) fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }

    /// Half the time random, half the time one byte over and over.
    pub(super) fn field(&mut self, len_max: usize) -> Option<Vec<u8>> {
        let len = self.below(len_max + 1);
        match self.below(5) {
            0 => None,
            1 | 2 => Some(vec![self.next() as u8; len]),
            _ => Some(self.bytes(len)),
        }
    }
}

pub(super) const CODECS: [Codec; 5] = [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd];

/// A batch of `values` with keys, dated from [`NOW`] on.
pub(super) fn batch_of(codec: Codec, values: &[&[u8]]) -> Bytes {
    batch_with(BatchOptions { compression: Compression::of(codec), ..BatchOptions::default() }, values)
}

pub(super) fn batch_with(options: BatchOptions, values: &[&[u8]]) -> Bytes {
    let mut builder = BatchBuilder::new(options);
    for (index, value) in values.iter().enumerate() {
        builder.push(TimestampMs(NOW + index as i64), Some(b"key"), Some(value), &[]);
    }
    builder.build().unwrap()
}

/// Values of a batch's records.
pub(super) fn values_of(batch: &Bytes) -> Vec<Vec<u8>> {
    let records = Batch::new(batch.clone()).unwrap().records().unwrap();
    records.iter().map(|record| record.unwrap().value.unwrap_or_default().to_vec()).collect()
}

/// `batch` with the bytes at `at` replaced and the CRC made right again.
pub(super) fn patched(batch: &Bytes, at: usize, bytes: &[u8]) -> Bytes {
    let mut copy = batch.to_vec();
    copy[at..at + bytes.len()].copy_from_slice(bytes);
    let crc = crc32c(&copy[21..]);
    copy[17..21].copy_from_slice(&crc.to_be_bytes());
    Bytes::from(copy)
}
