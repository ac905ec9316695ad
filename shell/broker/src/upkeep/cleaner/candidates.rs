//! The candidates of compaction, asked for by owner, and found in the directories after a start.

use crate::log_dirs::directories::Directory;
use crate::mailbox::PartitionKey;
use crate::node::Node;
use crate::node::topic_settings;
use crate::upkeep::checkpoints::clean_point;
use barnabas_base::{Offset, Text, TopicPartition};
use barnabas_storage::{DirKind, PartitionDir, StorageError};

/// Partitions asked for at once: the worker serves its clients between two questions.
const PARTITIONS_PER_QUESTION: usize = 64;

type Question = (usize, Vec<(PartitionKey, Option<Offset>)>);

/// The candidates in pieces for one [`Look`](crate::mailbox::CleanCommand::Look) each, with the workers that own them.
pub(super) fn by_owner(node: &Node) -> Vec<Question> {
    let waiting = node.log_dirs.compaction.candidates.lock().waiting();
    let mut by_owner: Vec<Vec<(PartitionKey, Option<Offset>)>> = vec![Vec::new(); node.workers.count];
    for partition in waiting {
        by_owner[partition.owner(node.workers.count)].push((partition, clean_point(node, partition)));
    }
    let pieces = by_owner.into_iter().enumerate().flat_map(|(owner, partitions)| {
        let pieces: Vec<_> = partitions.chunks(PARTITIONS_PER_QUESTION).map(<[_]>::to_vec).collect();
        pieces.into_iter().map(move |piece| (owner, piece))
    });
    pieces.collect()
}

/// Names the compacted partitions on disk whose newest segment begins past what is clean. File names are all that is
/// read.
pub(super) fn sweep(node: &Node) {
    let mut last: Option<(Text, bool)> = None;
    for directory in node.log_dirs.directories.iter().filter(|directory| directory.is_usable()) {
        let listed = directory.lock().partitions();
        for entry in listed.unwrap_or_default().iter().filter(|entry| entry.kind == DirKind::Current) {
            let image = node.cluster.image.load();
            let TopicPartition { topic, partition } = &entry.topic_partition;
            let Some(id) = image.topics.id_of(topic) else { continue };
            // Partitions of a topic mostly follow one another.
            let is_compacted = match &last {
                Some((known, is_compacted)) if known == topic => *is_compacted,
                _ => topic_settings::log_config(node, &image, topic).cleanup.compact,
            };
            last = Some((topic.clone(), is_compacted));
            // A directory that cannot be read is the next opener's to complain of.
            if is_compacted && is_dirty(directory, entry).unwrap_or(false) {
                node.log_dirs
                    .compaction
                    .candidates
                    .lock()
                    .add(PartitionKey { topic: id, partition: *partition });
            }
        }
    }
}

fn is_dirty(directory: &Directory, entry: &PartitionDir) -> Result<bool, StorageError> {
    let files = directory.disk.list(&directory.path.join(&entry.name))?;
    let base = |name: &str| name.strip_suffix(".log")?.parse::<i64>().ok();
    let newest = files.iter().filter_map(|file| base(&file.name)).max();
    let clean_to = directory.lock().cleaner_point(&entry.topic_partition).unwrap_or(Offset::ZERO);
    Ok(newest.is_some_and(|newest| newest > clean_to.get()))
}
