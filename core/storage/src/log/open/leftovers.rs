//! What an interrupted deletion or compaction left in a log's directory: removed, finished or undone before segments
//! are loaded.
//!
//! Always true:
//! 1. nothing gives way to a `.swap` file that was not checked from its first batch to its last
//! 2. a `.swap` file counts only where something has given way already: else the log is whole without it
//!
//! Source: Kafka `LogLoader.load`, `removeTempFilesAndCollectSwapFiles`.

use barnabas_base::Offset;

use crate::disk::file_pool::FilePool;
use crate::error::StorageError;
use crate::log::retention::front;
use crate::log::{Log, OpenFrom, Opened};
use crate::segment::batch::BatchHeader;
use crate::segment::walker::{NOT_NEXT, Step, Walker};
use crate::segment::{self, offset_path, parse_offset_name};

impl Log {
    /// Kafka's first three passes: `.deleted`, `.cleaned`, `.swap`. Returns where the log begins, if the name of a
    /// deleted file says it (retention/front.rs).
    pub(in crate::log) fn clear_leftovers(
        &mut self,
        files: &mut FilePool,
        from: OpenFrom,
        opened: &mut Opened,
    ) -> Result<Option<Offset>, StorageError> {
        let dir = self.place.dir();
        let names = files.disk().list(&dir)?;
        let names: Vec<&str> =
            names.iter().filter(|entry| !entry.is_dir).map(|entry| entry.name.as_str()).collect();
        let deleted_up_to = self.deleted_front(files, &names, from)?;
        let stands = |base: Offset| -> Result<bool, StorageError> {
            let stat = files.disk().stat(&offset_path(&dir, base, segment::LOG))?;
            Ok(stat.is_some_and(|stat| stat.len > 0))
        };
        let mut leftovers = Leftovers::among(&names, stands)?;
        if let Some(kept) = self.front_named.map(front::name_of) {
            leftovers.remove.retain(|name| *name != kept);
        }
        // A finished compaction: its segments replace those whose offsets they cover. Looked at before anything goes:
        // where one is damaged, what gave way to it is all there is.
        let (mut low, mut high) = (Offset(i64::MAX), Offset::NONE);
        for base in leftovers.swaps.iter().filter_map(|name| swap_base(name)) {
            low = low.min(base);
            high = high.max(self.check_swap(files, base)?);
        }
        for name in &leftovers.remove {
            let path = dir.join(name);
            files.disk().remove_file(&path)?;
            opened.removed.push(path);
        }
        if leftovers.swaps.is_empty() {
            return Ok(deleted_up_to);
        }
        for name in &names {
            let covered = parse_offset_name(name).is_some_and(|(offset, suffix)| {
                offset >= low && offset < high && !suffix.ends_with(segment::SWAP)
            });
            if covered && !leftovers.remove.contains(name) {
                files.disk().remove_file(&dir.join(name))?;
                opened.removed.push(dir.join(name));
            }
        }
        for name in &leftovers.swaps {
            let to = dir.join(name.trim_end_matches(segment::SWAP));
            files.disk().rename(&dir.join(name), &to)?;
        }
        files.disk().sync_dir(&dir)?;
        Ok(deleted_up_to)
    }

    /// Checks every batch of a swap segment before anything gives way to it. Returns the offset after its last.
    fn check_swap(&self, files: &mut FilePool, base: Offset) -> Result<Offset, StorageError> {
        let suffix = format!("{}{}", segment::LOG, segment::SWAP);
        let path = offset_path(&self.place.dir(), base, &suffix);
        let file = files.disk().open(&path, crate::disk::OpenMode::Read)?;
        let len = file.len()?;
        let mut walker = Walker::new(file, 0, len, true);
        let mut next = base;
        loop {
            let (position, what) = match walker.step()? {
                Step::Batch { position, header, bytes } => match check_batch(&header, &bytes, next) {
                    Ok(()) => {
                        next = header.next_offset();
                        continue;
                    }
                    Err(why) => (position, why),
                },
                Step::End => return Ok(next),
                Step::Bad { position, why } => (position, why),
            };
            return Err(StorageError::Damaged { file: path, position, offset: next, what });
        }
    }
}

/// What a directory holds of interrupted work.
struct Leftovers<'a> {
    remove: Vec<&'a str>,
    swaps: Vec<&'a str>,
}

impl<'a> Leftovers<'a> {
    /// An unfinished compaction's files are deleted, and with them swap files at or past its first offset
    /// (KAFKA-6264). So are all swap files while the first segment that they replace exists: then none was replaced,
    /// and the writer of the swap files is unknown. The compaction is done again. (Kafka puts them into the
    /// segments' place, whatever they hold.)
    ///
    /// An empty file stands for nothing: where a rename failed, a process that went on reading may have made one in the
    /// place of a segment that had given way. `stands`: the segment with this base has something in it.
    fn among(
        names: &[&'a str],
        stands: impl Fn(Offset) -> Result<bool, StorageError>,
    ) -> Result<Self, StorageError> {
        let first_swap = names.iter().filter_map(|name| swap_base(name)).min();
        let nothing_gave_way = first_swap.map_or(Ok(false), stands)?;
        let is_cleaned = |name: &&&str| name.ends_with(segment::CLEANED);
        let cleaned = names.iter().filter(is_cleaned).filter_map(|name| parse_offset_name(name));
        let first_cleaned = cleaned.map(|(offset, _)| offset).min();
        let mut found = Self { remove: Vec::new(), swaps: Vec::new() };
        for name in names {
            let offset = parse_offset_name(name).map(|(offset, _)| offset);
            // Snapshots of the metadata log are its owner's business.
            let deleted = name.ends_with(segment::DELETED) && !name.ends_with(".checkpoint.deleted");
            let undone = nothing_gave_way || (first_cleaned.is_some() && offset >= first_cleaned);
            if deleted || name.ends_with(segment::CLEANED) || (name.ends_with(segment::SWAP) && undone) {
                found.remove.push(name);
            } else if name.ends_with(segment::SWAP) {
                found.swaps.push(name);
            }
        }
        Ok(found)
    }
}

fn swap_base(name: &str) -> Option<Offset> {
    let (offset, suffix) = parse_offset_name(name)?;
    (suffix.strip_suffix(segment::SWAP) == Some(segment::LOG)).then_some(offset)
}

fn check_batch(header: &BatchHeader, bytes: &[u8], next: Offset) -> Result<(), &'static str> {
    if header.base_offset < next {
        return Err(NOT_NEXT);
    }
    if !header.checksum_is_right(bytes) {
        return Err("its checksum is wrong");
    }
    Ok(())
}
