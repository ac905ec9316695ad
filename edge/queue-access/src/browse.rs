//! Where a look at a queue ends: at the end that each partition had when it was asked.

use barnabas_base::{Map, Offset, PartitionIndex};
use barnabas_client::{ClientError, Cluster, Consumer};

const LATEST: i64 = -1;

/// The ends of partitions.
#[derive(Debug)]
pub struct Ends(Vec<(PartitionIndex, Offset)>);

impl Ends {
    /// The log ends of these partitions of `topic`, as they are now.
    ///
    /// # Errors
    /// One of them is not told.
    pub async fn now(
        cluster: &mut Cluster,
        topic: &str,
        partitions: impl Iterator<Item = PartitionIndex>,
    ) -> Result<Self, ClientError> {
        let wanted = partitions.map(|index| (topic.to_owned(), index.get()));
        let told = cluster.list_offsets(wanted, LATEST).await.into_iter();
        let ends = told.map(|((_, index), end)| Ok((PartitionIndex(index), end?)));
        Ok(Self(ends.collect::<Result<_, ClientError>>()?))
    }

    /// Whether the consumer, which began at `starts`, has read up to them.
    pub fn are_reached(&self, consumer: &Consumer, starts: &Map<PartitionIndex, Offset>) -> bool {
        let positions: Map<PartitionIndex, Offset> = consumer.positions().collect();
        self.0.iter().all(|(index, end)| {
            let position = positions.get(index).or_else(|| starts.get(index));
            position.is_some_and(|position| position >= end)
        })
    }
}
