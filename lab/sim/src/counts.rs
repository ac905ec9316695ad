//! What a day was made of: what went wrong, by kind, and how often each invariant was asked.

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    Crash,
    LostDisk,
    /// A broker that lives is taken for dead.
    FencedAlive,
    CutLine,
    MovedReplicas,
    CalledOffMove,
    Election,
    LostMessage,
    LateMessage,
    DoubledMessage,
    SlowSync,
    /// The process dies, the machine goes on.
    Killed,
    CleanStop,
    FullDisk,
    /// A full disk kept something from being written back.
    PostponedWriteBack,
    FailedSync,
    /// Bytes of a segment were changed.
    Damage,
    DeletedRecords,
    /// Retention took segments.
    DeletedSegments,
    /// The cleaner ended in the midst of its work.
    StoppedCleaning,
    /// A write, a sync or a rename of the cleaner's was to fail.
    FailedCleaning,
    /// A replica was to move to another log directory of its broker.
    MovedDirectory,
    /// It lies there.
    FinishedMove,
    /// A write, a sync or a rename of a broker's disk was to fail.
    FailedOperation,
    /// A damaged file was put back.
    RestoredFile,
    /// A file of a broker that is down was lost, or changed.
    RottenFile,
}

impl Fault {
    pub const ALL: [Self; 26] = [
        Self::Crash,
        Self::LostDisk,
        Self::FencedAlive,
        Self::CutLine,
        Self::MovedReplicas,
        Self::CalledOffMove,
        Self::Election,
        Self::LostMessage,
        Self::LateMessage,
        Self::DoubledMessage,
        Self::SlowSync,
        Self::Killed,
        Self::CleanStop,
        Self::FullDisk,
        Self::PostponedWriteBack,
        Self::FailedSync,
        Self::Damage,
        Self::DeletedRecords,
        Self::DeletedSegments,
        Self::StoppedCleaning,
        Self::FailedCleaning,
        Self::MovedDirectory,
        Self::FinishedMove,
        Self::FailedOperation,
        Self::RestoredFile,
        Self::RottenFile,
    ];

    const fn word(self) -> &'static str {
        match self {
            Self::Crash => "crashes",
            Self::LostDisk => "lost_disks",
            Self::FencedAlive => "fenced_alive",
            Self::CutLine => "cut_lines",
            Self::MovedReplicas => "moved_replicas",
            Self::CalledOffMove => "called_off_moves",
            Self::Election => "elections",
            Self::LostMessage => "lost_messages",
            Self::LateMessage => "late_messages",
            Self::DoubledMessage => "doubled_messages",
            Self::SlowSync => "slow_syncs",
            Self::Killed => "killed",
            Self::CleanStop => "clean_stops",
            Self::FullDisk => "full_disks",
            Self::PostponedWriteBack => "postponed_write_backs",
            Self::FailedSync => "failed_syncs",
            Self::Damage => "damaged",
            Self::DeletedRecords => "deleted_records",
            Self::DeletedSegments => "deleted_segments",
            Self::StoppedCleaning => "stopped_cleanings",
            Self::FailedCleaning => "failed_cleanings",
            Self::MovedDirectory => "moves_between_directories",
            Self::FinishedMove => "finished_moves",
            Self::FailedOperation => "failed_operations",
            Self::RestoredFile => "restored_files",
            Self::RottenFile => "rotten_files",
        }
    }
}

/// One file each in `invariants/`, but for lookups; [`Invariant::Transactions`] stands for those of their folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Invariant {
    ExposedIsSafe,
    BatchesOnce,
    LogsMatch,
    NothingCutBelow,
    AcknowledgedIsKept,
    DurableIsKept,
    MetadataIsSound,
    DamagedStaysOut,
    StartsAreSafe,
    FetchesFit,
    LookupsAreRight,
    CompactionKeeps,
    MovesKeepAll,
    Transactions,
    AtRest,
}

impl Invariant {
    const ALL: [Self; 15] = [
        Self::ExposedIsSafe,
        Self::BatchesOnce,
        Self::LogsMatch,
        Self::NothingCutBelow,
        Self::AcknowledgedIsKept,
        Self::DurableIsKept,
        Self::MetadataIsSound,
        Self::DamagedStaysOut,
        Self::StartsAreSafe,
        Self::FetchesFit,
        Self::LookupsAreRight,
        Self::CompactionKeeps,
        Self::MovesKeepAll,
        Self::Transactions,
        Self::AtRest,
    ];

    const fn word(self) -> &'static str {
        match self {
            Self::ExposedIsSafe => "exposed_is_safe",
            Self::BatchesOnce => "batches_once",
            Self::LogsMatch => "logs_match",
            Self::NothingCutBelow => "nothing_cut_below",
            Self::AcknowledgedIsKept => "acknowledged_is_kept",
            Self::DurableIsKept => "durable_is_kept",
            Self::MetadataIsSound => "metadata_is_sound",
            Self::DamagedStaysOut => "damaged_stays_out",
            Self::StartsAreSafe => "starts_are_safe",
            Self::FetchesFit => "fetches_fit",
            Self::LookupsAreRight => "lookups_are_right",
            Self::CompactionKeeps => "compaction_keeps",
            Self::MovesKeepAll => "moves_keep_all",
            Self::Transactions => "transactions",
            Self::AtRest => "at_rest",
        }
    }
}

/// How often each of `N` things came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tally<const N: usize>([u64; N]);

pub type Faults = Tally<{ Fault::ALL.len() }>;
pub type Checks = Tally<{ Invariant::ALL.len() }>;

impl<const N: usize> Default for Tally<N> {
    fn default() -> Self {
        Self([0; N])
    }
}

impl<const N: usize> Tally<N> {
    pub fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(mine, theirs)| *mine += theirs);
    }

    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    fn spelled(&self, words: impl Iterator<Item = &'static str>) -> String {
        let each: Vec<String> =
            words.zip(self.0).map(|(word, count)| format!("\"{word}\":{count}")).collect();
        format!("{{{}}}", each.join(","))
    }
}

impl Faults {
    pub fn note(&mut self, fault: Fault) {
        self.0[fault as usize] += 1;
    }

    pub fn of(&self, fault: Fault) -> u64 {
        self.0[fault as usize]
    }

    pub fn json(&self) -> String {
        self.spelled(Fault::ALL.iter().map(|fault| fault.word()))
    }
}

impl Checks {
    pub fn note(&mut self, invariant: Invariant) {
        self.0[invariant as usize] += 1;
    }

    pub fn json(&self) -> String {
        self.spelled(Invariant::ALL.iter().map(|invariant| invariant.word()))
    }
}
