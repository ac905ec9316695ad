//! The directories of a broker with many partitions, written piece by piece.
//!
//! Always true: the pieces in their order are the bytes that the encoder makes of [`super::whole`]'s.

use std::sync::Arc;

use barnabas_wire::messages::describe_log_dirs_response::{DescribeLogDirsResponse, DescribeLogDirsTopic};
use barnabas_wire::{EncodeError, Str, Struct, Writer};
use bytes::Bytes;

use super::{Directory, Wanted, entry, head};
use crate::Context;
use crate::pieces::{InPieces, PIECE_BYTES, around};

/// A long answer while it is written.
#[derive(Debug)]
pub struct Large {
    /// Their partitions by topic.
    directories: Arc<Vec<Directory>>,
    version: i16,
    place: Place,
}

/// Where the next piece begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Start,
    /// Before a directory; after the last one, before the end of the answer.
    Directory(usize),
    /// Before a directory's topic, or its end: at this one of its partitions.
    Topic(usize, usize),
    /// Before a partition of a topic that ends before `end`.
    Partition {
        directory: usize,
        at: usize,
        end: usize,
    },
    End,
}

impl Large {
    pub fn new(wanted: &Wanted, mut directories: Vec<Directory>, version: i16) -> Self {
        for directory in &mut directories {
            let is_shown = !directory.is_offline;
            directory
                .partitions
                .retain(|replica| is_shown && wanted.contains(&replica.topic, replica.partition));
            directory.partitions.sort_by(|a, b| a.topic.cmp(&b.topic));
        }
        Self { directories: Arc::new(directories), version, place: Place::Start }
    }

    /// What stands before and after so many directories.
    fn around_directories(&self) -> Result<(Bytes, Bytes), EncodeError> {
        self.around(&DescribeLogDirsResponse::default(), 0, self.directories.len())
    }

    /// What stands before and after a directory's topics.
    fn around_topics(&self, directory: usize) -> Result<(Bytes, Bytes), EncodeError> {
        let directory = &self.directories[directory];
        let topics = directory.partitions.chunk_by(|a, b| a.topic == b.topic).count();
        let after = match self.version {
            ..4 => 0,
            4 => 16,
            _ => 17,
        };
        self.around(&head(directory, self.version), after, topics)
    }

    /// What stands before and after a topic's partitions.
    fn around_partitions(
        &self,
        directory: usize,
        at: usize,
        count: usize,
    ) -> Result<(Bytes, Bytes), EncodeError> {
        let name = Str::from(&self.directories[directory].partitions[at].topic);
        self.around(&DescribeLogDirsTopic { name, ..DescribeLogDirsTopic::default() }, 0, count)
    }

    fn around(&self, bare: &impl Struct, after: usize, count: usize) -> Result<(Bytes, Bytes), EncodeError> {
        let mut w = Writer::new();
        bare.write(&mut w, self.version)?;
        Ok(around(&w.into_bytes(), after, count, self.version >= 2))
    }

    /// Writes what comes next. Returns where to go on.
    fn step(&self, w: &mut Writer) -> Result<Place, EncodeError> {
        Ok(match self.place {
            Place::Start => {
                w.raw_slice(&self.around_directories()?.0);
                Place::Directory(0)
            }
            Place::Directory(number) if number == self.directories.len() => {
                w.raw_slice(&self.around_directories()?.1);
                Place::End
            }
            Place::Directory(number) => {
                w.raw_slice(&self.around_topics(number)?.0);
                Place::Topic(number, 0)
            }
            Place::Topic(directory, at) => {
                let rest = &self.directories[directory].partitions[at..];
                let Some(topic) = rest.chunk_by(|a, b| a.topic == b.topic).next() else {
                    w.raw_slice(&self.around_topics(directory)?.1);
                    return Ok(Place::Directory(directory + 1));
                };
                w.raw_slice(&self.around_partitions(directory, at, topic.len())?.0);
                Place::Partition { directory, at, end: at + topic.len() }
            }
            Place::Partition { directory, at, end } => {
                entry(&self.directories[directory].partitions[at]).write(w, self.version)?;
                if at + 1 < end {
                    return Ok(Place::Partition { directory, at: at + 1, end });
                }
                w.raw_slice(&self.around_partitions(directory, at, 0)?.1);
                Place::Topic(directory, end)
            }
            Place::End => Place::End,
        })
    }
}

impl InPieces for Large {
    fn piece(&mut self, _: &Context<'_>) -> Result<Option<Bytes>, EncodeError> {
        if self.place == Place::End {
            return Ok(None);
        }
        let mut w = Writer::with_capacity(PIECE_BYTES + PIECE_BYTES / 8);
        while w.len() < PIECE_BYTES && self.place != Place::End {
            self.place = self.step(&mut w)?;
        }
        Ok(Some(w.into_bytes()))
    }

    fn rewound(&self) -> Box<dyn InPieces> {
        Box::new(Self { directories: self.directories.clone(), version: self.version, place: Place::Start })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Replica, plan, whole};
    use super::*;
    use crate::testing::{Fixture, versions};
    use barnabas_base::PartitionIndex;
    use barnabas_wire::Message;
    use barnabas_wire::messages::describe_log_dirs_request::{
        DescribableLogDirTopic, DescribeLogDirsRequest,
    };

    /// Three directories: one with a topic of 30,000 partitions among 200 small ones, one that failed, an empty one.
    fn directories() -> Vec<Directory> {
        let replica = |topic: String, partition| Replica {
            topic: topic.into(),
            partition: PartitionIndex(partition),
            size_bytes: 7,
            offset_lag: -1,
            is_future: partition % 3 == 0,
        };
        let small = |number: i32| replica(format!("small-{}", number % 200), number / 200);
        let large = (0..30_000).map(|number| replica("large".to_owned(), number));
        let full = Directory {
            path: "/d1".into(),
            is_offline: false,
            is_cordoned: true,
            total_bytes: Some(1000),
            usable_bytes: Some(10),
            partitions: (0..600).map(small).chain(large).chain((600..900).map(small)).collect(),
        };
        let failed = Directory { path: "/d2".into(), is_offline: true, ..full.clone() };
        let empty = Directory { path: "/d3".into(), partitions: Vec::new(), ..full.clone() };
        vec![full, failed, empty]
    }

    fn pieces(large: &mut dyn InPieces) -> Vec<Bytes> {
        let fixture = Fixture::new();
        std::iter::from_fn(|| large.piece(&fixture.ctx()).expect("a piece")).collect()
    }

    #[test]
    fn pieces_equal_the_whole_answer() {
        let all = DescribeLogDirsRequest { topics: None, ..Default::default() };
        let topic = |name: &str, partitions: &[i32]| DescribableLogDirTopic {
            topic: name.into(),
            partitions: partitions.to_vec(),
            ..Default::default()
        };
        let some = vec![topic("large", &[5, 29_999, 70_000]), topic("small-3", &[0, 1]), topic("none", &[0])];
        let some = DescribeLogDirsRequest { topics: Some(some), ..Default::default() };
        for request in [all, some] {
            let wanted = plan(request);
            for version in versions::<DescribeLogDirsResponse>() {
                let mut w = Writer::new();
                whole(&wanted, directories(), version).encode(&mut w, version).expect("encodes");
                let mut large = Large::new(&wanted, directories(), version);
                let first = pieces(&mut large);
                assert!(first.iter().all(|piece| piece.len() < PIECE_BYTES + 1024), "bounded");
                assert!(first.concat() == w.into_bytes(), "version {version}");
                assert_eq!(pieces(&mut *large.rewound()), first, "the same again");
            }
        }
    }
}
