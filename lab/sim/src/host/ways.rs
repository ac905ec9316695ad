//! How a broker is set up on a day: what the other days leave at its simplest.

/// See the file's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ways {
    /// Log directories, of one disk. Replicas move between them.
    pub directories: usize,
    /// `log.ack.durability=written`: there is no journal, and batches count as durable once they are in a file.
    pub acks_are_written: bool,
    /// `flush.messages`; 0: not set.
    pub flush_messages: i64,
    /// `log.preallocate`
    pub preallocates: bool,
    /// Writes of so many bytes go past the page cache.
    pub direct_from: Option<usize>,
    /// `segment.ms` is short, with `segment.jitter.ms`.
    pub rolls_by_time: bool,
    /// Appends ahead of the metadata, and those that find a journal full, wait as shell/broker has them wait.
    pub holds_appends: bool,
    /// A directory keeps room back, by core/storage's rule.
    pub keeps_reserve: bool,
    /// Rounds of a journal that a worker alone has handed in are written by it.
    pub writes_inline: bool,
    /// A replica that has to stay where it is fetches damaged places aside.
    pub fetches_aside: bool,
    /// A start removes what the last process has not, and the scrub begins with what may be new.
    pub sweeps: bool,
    /// Segments are deleted by age and size.
    pub retains: bool,
    /// What is unsynced of several files is synced with the file system as a whole.
    pub syncs_whole: bool,
}

impl Default for Ways {
    fn default() -> Self {
        Self {
            directories: 1,
            acks_are_written: false,
            flush_messages: 0,
            preallocates: false,
            direct_from: None,
            rolls_by_time: false,
            holds_appends: false,
            keeps_reserve: false,
            writes_inline: false,
            fetches_aside: false,
            sweeps: false,
            retains: false,
            syncs_whole: false,
        }
    }
}
