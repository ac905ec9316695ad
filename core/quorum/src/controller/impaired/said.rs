//! What impairs a broker from leading, as its BrokerHeartbeat carries it: a tagged field that no schema of Kafka's
//! names.
//!
//! Apache Kafka's readers keep tagged fields that they do not know, and ignore them (KIP-482): its controllers do
//! nothing about these, its brokers never say any. The tag is far above those that Kafka gives out one by one.
//!
//! ```text
//! tag 10001 of a BrokerHeartbeat, left out where nothing impairs
//! ├─ directories  compact array, at most 1,000
//! │  └─ id        uuid: producers are refused there. DIRECTORY_UNASSIGNED: wherever the replica lies
//! ├─ partitions   compact array, at most 1,000: the copies of these are damaged
//! │  ├─ topic id  uuid
//! │  └─ index     int32, not negative
//! └─ full         compact array, at most 1,000: those of the directories in which nothing can be written
//!    └─ id        uuid, as above
//! ```
//!
//! Always true: what is longer, negative or followed by more bytes is refused as a whole.

use barnabas_base::{DirectoryId, PartitionIndex, TopicId};
use barnabas_wire::{DecodeError, DecodeErrorKind, Reader, TaggedFields, Writer};

/// The field's tag. Known to no Kafka.
pub const TAG: u32 = 10_001;
/// Directories, and partitions, that one heartbeat names.
pub const NAMED_MAX: usize = 1_000;

const DIRECTORIES: &str = "impaired_directories";
const PARTITIONS: &str = "impaired_partitions";
const FULL: &str = "full_directories";
const UUID_BYTES: usize = 16;

/// See the file's header.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Impairments {
    pub directories: Vec<DirectoryId>,
    pub partitions: Vec<(TopicId, PartitionIndex)>,
    /// Some of the directories.
    pub full: Vec<DirectoryId>,
}

impl Impairments {
    pub fn are_none(&self) -> bool {
        self.directories.is_empty() && self.partitions.is_empty()
    }

    /// Adds the field, unless there is nothing to say. What goes beyond the bounds is left out. To be called before any
    /// field of a higher tag is added.
    pub fn write(&self, fields: &mut TaggedFields) {
        if self.are_none() {
            return;
        }
        let mut w = Writer::new();
        let partitions = &self.partitions[..self.partitions.len().min(NAMED_MAX)];
        let id = |w: &mut Writer, id: &DirectoryId| {
            w.uuid(id);
            Ok(())
        };
        let written = w
            .array(DIRECTORIES, some(&self.directories), true, id)
            .and_then(|()| {
                w.array(PARTITIONS, partitions, true, |w, (topic, index)| {
                    w.uuid(topic);
                    w.int32(index.get());
                    Ok(())
                })
            })
            .and_then(|()| w.array(FULL, some(&self.full), true, id));
        written.expect("invariant: only an array of more than 2^31 elements cannot be written");
        fields.push(TAG, w.finish().into_bytes());
    }

    /// What a heartbeat says; nothing where it lacks the field.
    ///
    /// # Errors
    /// The field is there, and is not what the header of this file draws.
    pub fn read(fields: &TaggedFields) -> Result<Self, DecodeError> {
        let Some(field) = fields.as_slice().iter().find(|field| field.tag == TAG) else {
            return Ok(Self::default());
        };
        let mut r = Reader::new(field.data.clone());
        let directories = r.array(DIRECTORIES, true, UUID_BYTES, |r| r.uuid(DIRECTORIES))?;
        check_count(&r, DIRECTORIES, directories.len())?;
        let partitions = r.array(PARTITIONS, true, UUID_BYTES + 4, |r| {
            let topic = r.uuid(PARTITIONS)?;
            match r.int32(PARTITIONS)? {
                index if index < 0 => Err(r.error(PARTITIONS, DecodeErrorKind::Length(index.into()))),
                index => Ok((topic, PartitionIndex(index))),
            }
        })?;
        check_count(&r, PARTITIONS, partitions.len())?;
        let full = r.array(FULL, true, UUID_BYTES, |r| r.uuid(FULL))?;
        check_count(&r, FULL, full.len())?;
        r.finish()?;
        Ok(Self { directories, partitions, full })
    }
}

fn some(ids: &[DirectoryId]) -> &[DirectoryId] {
    &ids[..ids.len().min(NAMED_MAX)]
}

fn check_count(r: &Reader, field: &'static str, count: usize) -> Result<(), DecodeError> {
    if count <= NAMED_MAX {
        return Ok(());
    }
    Err(r.error(field, DecodeErrorKind::Length(count as i64)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_base::Uuid;
    use barnabas_wire::messages::BrokerHeartbeatRequest;
    use barnabas_wire::{Message, UnknownTaggedField};
    use bytes::Bytes;

    fn impairments(directories: u8, partitions: i32) -> Impairments {
        let topic = Uuid([7; 16]);
        Impairments {
            directories: (0..directories).map(|id| Uuid([id; 16])).collect(),
            partitions: (0..partitions).map(|index| (topic, PartitionIndex(index))).collect(),
            full: (0..directories / 2).map(|id| Uuid([id; 16])).collect(),
        }
    }

    fn fields(data: Vec<u8>) -> TaggedFields {
        let mut fields = TaggedFields::default();
        fields.push(TAG, Bytes::from(data));
        fields
    }

    #[test]
    fn a_heartbeat_carries_them_there_and_back() {
        for said in [impairments(0, 0), impairments(2, 0), impairments(0, 1), impairments(3, 1_000)] {
            for version in BrokerHeartbeatRequest::VERSIONS.min..=BrokerHeartbeatRequest::VERSIONS.max {
                let mut request =
                    BrokerHeartbeatRequest { broker_id: 3, ..BrokerHeartbeatRequest::default() };
                said.write(&mut request.unknown_tagged_fields);
                let mut w = Writer::new();
                request.encode(&mut w, version).unwrap();
                let mut r = Reader::new(w.finish().into_bytes());
                let read = BrokerHeartbeatRequest::decode(&mut r, version).unwrap();
                r.finish().unwrap();
                assert_eq!(Impairments::read(&read.unknown_tagged_fields), Ok(said.clone()), "{version}");
            }
        }
    }

    #[test]
    fn its_bytes_are_as_drawn() {
        let mut fields = TaggedFields::default();
        let said = Impairments {
            directories: vec![Uuid([1; 16])],
            partitions: vec![(Uuid([2; 16]), PartitionIndex(258))],
            full: vec![Uuid([3; 16])],
        };
        said.write(&mut fields);
        let drawn = [&[2][..], &[1; 16], &[2], &[2; 16], &[0, 0, 1, 2], &[2], &[3; 16]].concat();
        assert_eq!(fields.as_slice(), [UnknownTaggedField { tag: TAG, data: Bytes::from(drawn) }]);
    }

    #[test]
    fn nothing_to_say_is_no_field() {
        let mut fields = TaggedFields::default();
        Impairments::default().write(&mut fields);
        assert!(fields.is_empty());
        fields.push(TAG + 1, Bytes::from_static(&[9]));
        assert_eq!(Impairments::read(&fields), Ok(Impairments::default()), "another's field");
    }

    #[test]
    fn more_than_the_bound_is_neither_said_nor_believed() {
        let mut fields_of_many = TaggedFields::default();
        impairments(0, 2_000).write(&mut fields_of_many);
        let read = Impairments::read(&fields_of_many).unwrap();
        assert_eq!(read.partitions.len(), NAMED_MAX);
        // 1,001 of them: a length of 1,002, seven bits at a time.
        let mut many = vec![1, 0xea, 0x07];
        many.extend(vec![0; 20 * 1_001]);
        many.push(1);
        assert!(Impairments::read(&fields(many)).is_err());
    }

    #[test]
    fn garbage_says_nothing() {
        let ends_early = [&[2][..], &[1; 15]].concat();
        let trails = [&[1][..], &[1], &[1], &[0]].concat();
        let negative = [&[1][..], &[2], &[2; 16], &[255; 4], &[1]].concat();
        let huge = vec![0xff, 0xff, 0xff, 0xff, 0x0f];
        let null = vec![0, 0, 0];
        for bytes in [vec![], ends_early, trails, negative, huge, null] {
            assert!(Impairments::read(&fields(bytes.clone())).is_err(), "{bytes:?}");
        }
    }
}
