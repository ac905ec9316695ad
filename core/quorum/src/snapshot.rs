//! Snapshots in Kafka's form: name, header and footer, the image's records between them.
//!
//! ```text
//! control batch   SNAPSHOT_HEADER [, KRAFT_VERSION, KRAFT_VOTERS]     the two where kraft.version is 1
//! data batches    the image's records
//! control batch   SNAPSHOT_FOOTER
//! ```
//! Offsets count from 0; the epoch of every batch is the snapshot's. The file is written under its name with `.part` at
//! the end, synced, renamed: a file without `.part` is whole, and yet a reader insists on the footer.
//!
//! Sources: KIP-630, KIP-853; Kafka `Snapshots`, `RecordsSnapshotWriter`, `RecordsSnapshotReader`.

use barnabas_base::{Offset, TimestampMs};
use barnabas_metadata::{Image, MetadataVersion, snapshot};
use barnabas_wire::MetadataRecord;
use barnabas_wire::messages::{KRaftVersionRecord, SnapshotFooterRecord, SnapshotHeaderRecord};
use barnabas_wire::records::{Batch, LOG_OVERHEAD_BYTES};
use bytes::{Bytes, BytesMut};

use crate::QuorumError;
use crate::batches::{BATCH_BYTES_MAX, Content, Control, Place, control_batch, data_batch, read_batch};
use crate::snapshot_id::SnapshotId;
use crate::voters::Voters;

/// Where the voters stand in a snapshot. `None` at `kraft.version` 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotVoters {
    pub kraft_version: i16,
    pub voters: Option<Voters>,
}

/// A snapshot to be written: the frozen image, and how to encode it piece by piece. For a background thread: it
/// takes a while and blocks no other work.
#[derive(Debug, Clone)]
pub struct SnapshotTask {
    pub id: SnapshotId,
    pub image: Image,
    pub voters: Option<SnapshotVoters>,
    /// The time in its batches.
    pub now: TimestampMs,
}

impl SnapshotTask {
    /// Hands out the file's bytes in pieces of about a megabyte, in order.
    ///
    /// # Errors
    /// Whatever `sink` says, and a record that cannot be written.
    pub fn write<E: From<QuorumError>>(&self, mut sink: impl FnMut(Bytes) -> Result<(), E>) -> Result<(), E> {
        let version = self.image.metadata_version();
        let header_time = self.image.provenance.last_timestamp;
        let mut writer = SnapshotWriter::new(self.id, self.now, version);
        sink(writer.header(header_time, self.voters.as_ref())?)?;
        for record in snapshot::records(&self.image) {
            if let Some(bytes) = writer.push(&record)? {
                sink(bytes)?;
            }
        }
        if let Some(bytes) = writer.flush()? {
            sink(bytes)?;
        }
        sink(writer.footer()?)
    }
}

/// Turns records into a snapshot's batches.
#[derive(Debug)]
pub struct SnapshotWriter {
    next: Place,
    version: MetadataVersion,
    values: Vec<Bytes>,
    value_bytes: usize,
}

impl SnapshotWriter {
    pub fn new(id: SnapshotId, now: TimestampMs, version: MetadataVersion) -> Self {
        let next = Place { base: Offset::ZERO, epoch: id.epoch, timestamp: now };
        Self { next, version, values: Vec::new(), value_bytes: 0 }
    }

    /// The first batch. `last_timestamp` is that of the newest batch that the snapshot stands for.
    pub fn header(
        &mut self,
        last_timestamp: TimestampMs,
        voters: Option<&SnapshotVoters>,
    ) -> Result<Bytes, QuorumError> {
        let mut controls = vec![Control::SnapshotHeader(SnapshotHeaderRecord {
            version: 0,
            last_contained_log_timestamp: last_timestamp.0,
            ..SnapshotHeaderRecord::default()
        })];
        if let Some(SnapshotVoters { kraft_version, voters }) = voters {
            let record = KRaftVersionRecord {
                version: 0,
                kraft_version: *kraft_version,
                ..KRaftVersionRecord::default()
            };
            controls.push(Control::KRaftVersion(record));
            controls.extend(voters.as_ref().map(|voters| Control::Voters(voters.to_record())));
        }
        self.control(&controls)
    }

    /// Adds a record; a batch when one is full.
    pub fn push(&mut self, record: &MetadataRecord) -> Result<Option<Bytes>, QuorumError> {
        let value = record.encode_value(snapshot::record_version(record, self.version))?;
        let full = self.value_bytes + value.len() > BATCH_BYTES_MAX;
        let batch = if full { self.flush()? } else { None };
        self.value_bytes += value.len();
        self.values.push(value);
        Ok(batch)
    }

    /// The batch of what was pushed since the last one, if anything was.
    pub fn flush(&mut self) -> Result<Option<Bytes>, QuorumError> {
        if self.values.is_empty() {
            return Ok(None);
        }
        let batch = data_batch(&self.values, self.next)?;
        self.values.clear();
        self.value_bytes = 0;
        self.next.base = batch.end;
        Ok(Some(batch.bytes))
    }

    /// The last batch.
    pub fn footer(&mut self) -> Result<Bytes, QuorumError> {
        debug_assert!(self.values.is_empty(), "flush comes before the footer");
        self.control(&[Control::SnapshotFooter(SnapshotFooterRecord::default())])
    }

    fn control(&mut self, controls: &[Control]) -> Result<Bytes, QuorumError> {
        let batch = control_batch(controls, self.next)?;
        self.next.base = batch.end;
        Ok(batch.bytes)
    }
}

/// What a snapshot says besides its records.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SnapshotFacts {
    pub last_timestamp: TimestampMs,
    pub kraft_version: i16,
    pub voters: Option<Voters>,
}

/// Reads a snapshot from pieces that may be cut anywhere.
#[derive(Debug)]
pub struct SnapshotReader {
    id: SnapshotId,
    rest: BytesMut,
    facts: Option<SnapshotFacts>,
    ended: bool,
}

impl SnapshotReader {
    pub fn new(id: SnapshotId) -> Self {
        Self { id, rest: BytesMut::new(), facts: None, ended: false }
    }

    /// Takes the next piece and hands `each` the records that are whole now.
    ///
    /// # Errors
    /// Damage; records that are not understood; whatever `each` says.
    pub fn feed(
        &mut self,
        piece: &[u8],
        mut each: impl FnMut(MetadataRecord) -> Result<(), QuorumError>,
    ) -> Result<(), QuorumError> {
        self.rest.extend_from_slice(piece);
        while let Some(batch) = self.next_batch()? {
            match read_batch(&batch)? {
                Content::Control(controls) => self.controls(controls)?,
                Content::Records(records) => {
                    if self.facts.is_none() || self.ended {
                        return Err(self.damaged("records outside header and footer"));
                    }
                    records.into_iter().try_for_each(&mut each)?;
                }
            }
        }
        Ok(())
    }

    /// The next batch, if all of it is here.
    fn next_batch(&mut self) -> Result<Option<Batch>, QuorumError> {
        let Some(start) = self.rest.first_chunk::<LOG_OVERHEAD_BYTES>() else { return Ok(None) };
        let length = i32::from_be_bytes([start[8], start[9], start[10], start[11]]);
        let Some(size) = usize::try_from(length).ok().map(|length| LOG_OVERHEAD_BYTES + length) else {
            return Err(self.damaged("a batch has a length below zero"));
        };
        if self.rest.len() < size {
            return Ok(None);
        }
        let bytes = self.rest.split_to(size).freeze();
        let damaged = |source| QuorumError::Batch { offset: self.id.end, source };
        Batch::new(bytes).map(Some).map_err(damaged)
    }

    fn controls(&mut self, controls: Vec<Control>) -> Result<(), QuorumError> {
        for control in controls {
            match control {
                Control::SnapshotHeader(header) if self.facts.is_none() => {
                    let last_timestamp = TimestampMs(header.last_contained_log_timestamp);
                    self.facts = Some(SnapshotFacts { last_timestamp, ..SnapshotFacts::default() });
                }
                Control::SnapshotFooter(_) if self.facts.is_some() => self.ended = true,
                Control::KRaftVersion(record) => self.facts()?.kraft_version = record.kraft_version,
                Control::Voters(record) => self.facts()?.voters = Some(Voters::from_record(&record)),
                Control::SnapshotHeader(_) => return Err(self.damaged("two headers")),
                Control::SnapshotFooter(_) => return Err(self.damaged("a footer before the header")),
                Control::LeaderChange(_) => return Err(self.damaged("a leader change")),
            }
        }
        Ok(())
    }

    fn facts(&mut self) -> Result<&mut SnapshotFacts, QuorumError> {
        let id = self.id;
        self.facts.as_mut().ok_or(QuorumError::Snapshot { id, what: "no header" })
    }

    /// After the last piece.
    ///
    /// # Errors
    /// The snapshot is not whole.
    pub fn finish(self) -> Result<SnapshotFacts, QuorumError> {
        if !self.rest.is_empty() {
            return Err(self.damaged("it ends in the middle of a batch"));
        }
        if !self.ended {
            return Err(self.damaged("no footer"));
        }
        let id = self.id;
        self.facts.ok_or(QuorumError::Snapshot { id, what: "no header" })
    }

    fn damaged(&self, what: &'static str) -> QuorumError {
        QuorumError::Snapshot { id: self.id, what }
    }
}
