//! How much goes into a batch, and what comes out of it.

use barnabas_wire::Str;
use barnabas_wire::messages::{NoOpRecord, UserScramCredentialRecord};
use barnabas_wire::records::batches;

use super::*;

const PLACE: Place = Place { base: Offset(100), epoch: LeaderEpoch(3), timestamp: TimestampMs(9) };

fn read(encoded: &[EncodedBatch]) -> Vec<MetadataRecord> {
    let mut next = PLACE.base;
    let mut records = Vec::new();
    for one in encoded {
        assert_eq!(one.base, next);
        next = one.end;
        let batch = batches(one.bytes.clone()).next().unwrap().unwrap();
        assert_eq!(batch.header().partition_leader_epoch, PLACE.epoch);
        assert_eq!((batch.header().base_offset, batch.header().next_offset()), (one.base, one.end));
        match read_batch(&batch).unwrap() {
            Content::Records(of_batch) => records.extend(of_batch),
            Content::Control(_) => panic!("records were written"),
        }
    }
    records
}

fn large(bytes: usize) -> MetadataRecord {
    // A field of bytes: strings end at 32 KiB.
    let salt = Bytes::from(vec![7; bytes]);
    UserScramCredentialRecord { name: Str::from("user"), salt, ..UserScramCredentialRecord::default() }.into()
}

#[test]
fn what_fits_is_one_batch() {
    let records = vec![large(10), large(20)];
    let encoded = data_batches(&records, MetadataVersion::LATEST, true, PLACE).unwrap();
    assert_eq!(encoded.len(), 1);
    assert_eq!(read(&encoded), records);
}

#[test]
fn what_does_not_fit_is_a_transaction_if_it_must_be_seen_at_once() {
    let records = vec![MetadataRecord::from(NoOpRecord::default()); BATCH_RECORDS_MAX + 1];
    let encoded = data_batches(&records, MetadataVersion::LATEST, true, PLACE).unwrap();
    let written = read(&encoded);
    assert_eq!((encoded.len(), written.len()), (2, records.len() + 2));
    assert!(matches!(written[0], MetadataRecord::BeginTransaction(_)));
    assert!(matches!(written[written.len() - 1], MetadataRecord::EndTransaction(_)));
    let apart = data_batches(&records, MetadataVersion::LATEST, false, PLACE).unwrap();
    assert_eq!((apart.len(), read(&apart).len()), (2, records.len()));
}

#[test]
fn bytes_count_too_and_one_large_record_stands_alone() {
    let records =
        vec![large(BATCH_BYTES_MAX / 2), large(BATCH_BYTES_MAX / 2), large(BATCH_BYTES_MAX * 2), large(1)];
    let encoded = data_batches(&records, MetadataVersion::LATEST, false, PLACE).unwrap();
    assert_eq!(encoded.len(), 4);
    assert_eq!(read(&encoded), records);
}

#[test]
fn without_transactions_at_once_means_one_batch() {
    let version = MetadataVersion::parse("3.5").unwrap();
    let many = vec![MetadataRecord::from(NoOpRecord::default()); BATCH_RECORDS_MAX + 1];
    assert_eq!(data_batches(&many, version, true, PLACE).unwrap().len(), 1);
    let records = vec![large(ATOMIC_BATCH_BYTES_MAX / 2); 3];
    assert!(matches!(data_batches(&records, version, true, PLACE), Err(QuorumError::TooLarge { .. })));
}

#[test]
fn control_records_read_back() {
    let controls = [
        Control::LeaderChange(LeaderChangeMessage { leader_id: 5, ..LeaderChangeMessage::default() }),
        Control::KRaftVersion(KRaftVersionRecord { kraft_version: 1, ..KRaftVersionRecord::default() }),
        Control::Voters(VotersRecord::default()),
        Control::SnapshotHeader(SnapshotHeaderRecord::default()),
        Control::SnapshotFooter(SnapshotFooterRecord::default()),
    ];
    let encoded = control_batch(&controls, PLACE).unwrap();
    let batch = batches(encoded.bytes).next().unwrap().unwrap();
    assert!(batch.header().attributes.is_control());
    assert_eq!(read_batch(&batch).unwrap(), Content::Control(controls.to_vec()));
}

#[test]
fn a_record_from_the_future_stops_the_reader() {
    let unknown: &[&[u8]] = &[&[1, 99, 0], &[1, 2, 77, 0], &[2, 2, 0, 0], &[], &[1]];
    for value in unknown {
        let encoded = data_batch(&[Bytes::from_static(value)], PLACE).unwrap();
        let batch = batches(encoded.bytes).next().unwrap().unwrap();
        let read = read_batch(&batch);
        assert!(matches!(read, Err(QuorumError::Decode { offset: Offset(100), .. })), "{value:?}: {read:?}");
    }
}
