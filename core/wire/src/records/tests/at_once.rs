//! Bombs, large batches and slow codecs are left to another thread; small batches are checked at once.

use barnabas_base::{Offset, TimestampMs};
use bytes::Bytes;

use super::*;

const AT_ONCE: AtOnce = AtOnce { read_bytes_max: 64 << 10, rebuilt_bytes_max: 16 << 10 };

fn rules(compression: Option<Compression>, validation: RecordValidation) -> Rules {
    Rules { produce_version: 9, now: TimestampMs(NOW), compression, validation, ..Rules::default() }
}

fn is_too_much(batch: &Bytes, rules: &Rules) -> bool {
    let at_once = validate_at_once(batch.clone(), rules, AT_ONCE);
    let whole = validate_produce(batch.clone(), rules);
    match (at_once, whole) {
        (Verdict::TooMuch, _) => true,
        (Verdict::Taken(Some(ours)), Ok(Some(theirs))) => {
            assert_eq!(ours.batch.to_bytes(), theirs.batch.to_bytes());
            false
        }
        (Verdict::Refused(ours), Err(theirs)) => {
            assert_eq!(ours, theirs);
            false
        }
        (at_once, whole) => panic!("{at_once:?} and {whole:?}"),
    }
}

#[test]
fn a_header_is_never_too_much() {
    for codec in CODECS {
        let batch = batch_of(codec, &[&[7; 1 << 20]]);
        let large = Rules { message_bytes_max: 2 << 20, ..rules(None, RecordValidation::Header) };
        assert!(!is_too_much(&batch, &large), "{codec}");
    }
}

#[test]
fn what_inflates_beyond_the_bound_is_too_much() {
    for codec in &CODECS[1..] {
        let structure = rules(None, RecordValidation::Structure);
        assert!(!is_too_much(&batch_of(*codec, &[&[7; 50 << 10]]), &structure), "{codec}");
        let bomb = batch_of(*codec, &[&[7; 1 << 20]]);
        assert!(bomb.len() < 64 << 10, "{codec}");
        for validation in [RecordValidation::Structure, RecordValidation::Full] {
            assert!(is_too_much(&bomb, &rules(None, validation)), "{codec}");
        }
        let compacted = Rules { is_compacted: true, ..rules(None, RecordValidation::Header) };
        assert!(is_too_much(&bomb, &compacted), "{codec}");
    }
}

#[test]
fn what_is_written_again_has_a_lower_bound() {
    for target in CODECS {
        let to = rules(Some(Compression::of(target)), RecordValidation::Header);
        let source = if target == Codec::Lz4 { Codec::Snappy } else { Codec::Lz4 };
        assert!(!is_too_much(&batch_of(source, &[&[7; 10 << 10]]), &to), "{target}");
        assert!(is_too_much(&batch_of(source, &[&[7; 20 << 10]]), &to), "{target}");
    }
    let slow = rules(Some(Compression { codec: Codec::Zstd, level: Some(19) }), RecordValidation::Header);
    assert!(is_too_much(&batch_of(Codec::Lz4, &[b"one"]), &slow));
    // Nothing is written with the slow codec where the batch has it already.
    assert!(!is_too_much(&batch_of(Codec::Zstd, &[b"one"]), &slow));
}

#[test]
fn old_formats_that_inflate_too_far_are_too_much() {
    let old = Rules { produce_version: 2, ..rules(None, RecordValidation::Header) };
    for codec in [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4] {
        for magic in 0..=1 {
            let set = |len: usize| down_convert(batch_of(codec, &[&vec![7; len]]), magic, Offset(0)).unwrap();
            assert!(!is_too_much(&set(10 << 10), &old), "{codec} {magic}");
            assert!(is_too_much(&set(20 << 10), &old), "{codec} {magic}");
        }
    }
}

#[test]
fn rubbish_is_refused_at_once_as_it_is_elsewhere() {
    for codec in &CODECS[1..] {
        let noise = patched(&batch_of(*codec, &[b"one"]), HEADER_BYTES, &[0xa5; 6]);
        assert!(!is_too_much(&noise, &rules(None, RecordValidation::Structure)), "{codec}");
    }
}

#[test]
fn an_old_consumer_gets_as_many_batches_as_were_inflated() {
    let run: Vec<u8> = (0..4).flat_map(|_| batch_of(Codec::Gzip, &[&[7; 10 << 10]])).collect();
    let count = |inflated_max| {
        let made = down_convert_within(run.clone().into(), 1, Offset(0), inflated_max).unwrap();
        entries(made).map(Result::unwrap).count()
    };
    assert_eq!([count(0), count(15 << 10), count(usize::MAX)], [1, 2, 4]);
}

#[test]
fn an_inflated_run_has_the_same_records_in_pieces() {
    let plain = batch_of(Codec::None, &[b"first"]);
    let values: Vec<Vec<u8>> = (0..500u32).map(|number| number.to_be_bytes().repeat(50)).collect();
    let values: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
    let options = |base| BatchOptions {
        base_offset: Offset(base),
        compression: Compression::of(Codec::Zstd),
        ..BatchOptions::default()
    };
    let run = [plain, batch_with(options(1), &values), batch_with(options(501), &[b"last"])].concat();
    let records = |run: Bytes| {
        let mut found = Vec::new();
        for batch in batches(run).map(Result::unwrap) {
            batch.check_crc().unwrap();
            for record in &batch.records().unwrap() {
                let record = record.unwrap();
                found.push((record.offset, record.timestamp, record.value.map(<[u8]>::to_vec)));
            }
        }
        found
    };
    let pieces = inflated_run(run.clone().into(), 16 << 10).unwrap();
    assert!(pieces.len() > 5 && pieces.iter().all(|piece| piece.len() < 20 << 10), "{}", pieces.len());
    assert_eq!(
        pieces.iter().flat_map(|piece| records(piece.clone())).collect::<Vec<_>>(),
        records(run.into())
    );
    for piece in pieces {
        assert!(batches(piece).all(|batch| !batch.unwrap().header().attributes.is_compressed()));
    }
    let noise = patched(&batch_of(Codec::Zstd, &[b"one"]), HEADER_BYTES, &[0; 4]);
    assert!(matches!(inflated_run(noise, 1), Err((Offset(0), BatchError::Decompress { .. }))));
}
