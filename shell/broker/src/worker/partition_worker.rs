//! The single writer: everything that happens to the partitions of one worker, in the order it arrives.
//!
//! The mailbox is drained in rounds. In a round every batch gets its offset; then each touched partition's batches are
//! taken into its log's memory, and all of them go to their directory's journal in one submission (journaled.rs).
//! `acks=1` and `acks=all` are answered when the journal's round is durable. With `log.ack.durability=written` batches
//! are written into segments instead and answered at once.
//!
//! Partitions are opened on first use: after a start nothing is read without a request.
//!
//! Always true:
//! 1. only this worker touches its partitions; it waits for no other thread
//! 2. a partition that failed stays failed until the process ends, and costs one line in the log
//! 3. with `written`, unsynced bytes that no producer waits for are handed to the committer within ten seconds
//!
//! Produce path 3 of 5. Before: core/api/src/k00_produce.rs, through connection.rs. After: core/replica/src/append.rs,
//! journal_thread.rs.
//!
//! | file | what of this worker |
//! |---|---|
//! | `partition_worker/appends.rs` | rounds of appends, and what they are held back for |
//! | `partition_worker/lifecycle.rs` | partitions are opened, change their role or directory, and go |
//! | `partition_worker/reading.rs` | fetches and small questions |
//! | `partition_worker/replica_fetcher.rs` | whom its replicas fetch from, and when |
//! | `partition_worker/replication.rs` | fetches of followers, truncation, repair |
//! | `partition_worker/share.rs` | share partitions |
//! | `partition_worker/upkeep.rs` | retention, checkpoints, compaction, the end |

mod appends;
mod lifecycle;
mod reading;
mod replica_fetcher;
mod replication;
mod share;
mod upkeep;

use crate::log_dirs::committer::SyncRequest;
use crate::log_dirs::directories::Directory;
use crate::mailbox::{AppendCommand, AppendItem, AppendOutcome, Command, Declined, PartitionKey, Report};
use crate::node::Node;
use crate::node::peers::planted::{self, Mistake};
use crate::upkeep::impairments;
use crate::worker::replica::Hosted;
use crate::worker::tickets::{NO_TICKET, Opened, Tickets};
use appends::await_metadata::Early;
use appends::journaled::Journaled;
use appends::rounds::{carry_out, surroundings};
use barnabas_base::{LeaderEpoch, Map, Offset, Set};
use barnabas_metrics::{Recorder, Stamp};
use barnabas_partition::{Acks, Append, BatchSequence, Origin, RefusedBatches, Ticket};
use barnabas_replica::{Appended, BatchLists, Leaving, Moment, Outbox, batch_sequence};
use barnabas_storage::{FilePool, TailMemory};
use bytes::Bytes;
use lifecycle::deleting::Deleting;
use reading::asks::Asks;
use reading::await_durable::Patient;
use reading::turn::ReadTurn;
use replica_fetcher::Following;
use replication::followers::Leading;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// How often the partitions are looked at that were written with `log.ack.durability=written` and not flushed.
pub const FLUSH_LOOK: Duration = Duration::from_millis(100);
/// Memory of batches that a worker keeps to be used again, at least; else half as much again as its share of
/// `log.cache.bytes`, as what waits to be written back lies in it too.
const MEMORY_KEPT_MIN: u64 = 16 << 20;

/// How far the log of a partition reaches that this broker leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LedRange {
    pub start: Offset,
    pub end: Offset,
    /// The high watermark.
    pub committed: Offset,
}

/// The partitions of one worker. See the file's header.
#[derive(Debug)]
pub struct PartitionWorker {
    pub(crate) id: usize,
    pub(crate) node: Arc<Node>,
    pub(crate) recorder: Rc<Recorder>,
    replicas: Map<PartitionKey, Hosted>,
    failed: Set<PartitionKey>,
    /// The node is stopping: every log is closed, and none is opened any more.
    closed: bool,
    /// One pool of open files for each log directory.
    files: Vec<FilePool>,
    tickets: Tickets,
    effects: Outbox,
    /// Partitions with batches in this round.
    touched: Vec<PartitionKey>,
    /// When the first of them came.
    moment: Option<Moment>,
    lists: BatchLists,
    /// Partitions with unsynced bytes for which no request waits.
    lazy: Vec<PartitionKey>,
    /// Partitions in which producers wait for `acks=all`.
    awaited: Vec<PartitionKey>,
    /// Readers that wait until what producers count as written is durable.
    patient: Vec<Patient>,
    /// For each log directory: what the committer gets at the end of the round.
    submissions: Vec<Vec<SyncRequest>>,
    journaled: Journaled,
    /// Deleted topics whose partitions are not all closed yet.
    deleting: VecDeque<Deleting>,
    /// Replicas that have left this broker, until the journal has their removals.
    leaving: Leaving,
    /// Those among them whose records an operator abandons: all is done but to remove the operator's file.
    abandoned: Set<PartitionKey>,
    shares: share::Shares,
    /// Replicas opened so far.
    opened: u64,
    following: Following,
    leading: Leading,
    early: Early,
    refused: RefusedBatches,
    asks: Asks,
    read_turn: ReadTurn,
}

impl PartitionWorker {
    pub fn new(id: usize, node: Arc<Node>, recorder: Rc<Recorder>) -> Self {
        let share =
            node.log_dirs.open_files_max / (node.workers.count * node.log_dirs.directories.len()).max(1);
        let pool = |dir: &Directory| {
            FilePool::new(dir.disk.clone(), share).with_file_system(dir.file_system.clone())
        };
        let files = node.log_dirs.directories.iter().map(pool).collect();
        let submissions = node.log_dirs.directories.iter().map(|_| Vec::new()).collect();
        let memory = TailMemory::new((node.cache_share() / 2 * 3).max(MEMORY_KEPT_MIN));
        let journaled = Journaled::new(node.log_dirs.directories.len(), memory);
        let following = Following::new(&node.cluster.config.load());
        Self {
            id,
            node,
            recorder,
            replicas: Map::default(),
            failed: Set::default(),
            closed: false,
            files,
            tickets: Tickets::default(),
            effects: Outbox::default(),
            touched: Vec::new(),
            moment: None,
            lists: BatchLists::default(),
            lazy: Vec::new(),
            awaited: Vec::new(),
            patient: Vec::new(),
            submissions,
            journaled,
            deleting: VecDeque::new(),
            leaving: Leaving::default(),
            abandoned: Set::default(),
            shares: share::Shares::default(),
            opened: 0,
            following,
            leading: Leading::default(),
            early: Early::default(),
            refused: RefusedBatches::default(),
            asks: Asks::default(),
            read_turn: ReadTurn::default(),
        }
    }

    /// Carries out one command; appends are written by [`PartitionWorker::finish_round`].
    pub fn take(&mut self, command: Command) {
        match command {
            Command::Append(append) => {
                if let Some(append) = self.hold(append) {
                    self.append(append);
                }
            }
            Command::Refused(batches) => self.note_refused(batches),
            Command::Read(read) => self.read_when_durable(read),
            Command::Ask(ask) => self.ask_when_durable(ask),
            Command::ImageChanged(change) => self.image_changed(&change),
            Command::Share(command) => self.take_share(*command),
            Command::Move(command) => self.take_move(command),
            Command::Housekeep { retain, reply } => {
                let _ = reply.send(self.housekeep(retain));
            }
            Command::Clean(command) => self.clean(command),
            Command::Damaged(key, error) => self.scrub_met_damage(key, &error),
            // A partition that cannot be opened has a line in the log then.
            Command::Open(key) => {
                let _ = self.open(key);
            }
            Command::ExpireProducers => self.expire_producers(),
            Command::Retain(keys) => self.retain_unopened(&keys),
            Command::Stray(key) => self.put_stray_aside(key),
            Command::Sizes(reply) => {
                let _ = reply.send(self.sizes());
            }
            Command::Close(reply) => {
                self.drop_shares();
                let _ = reply.send(self.close());
            }
            Command::Begin => self.begin(),
            Command::Connection(_)
            | Command::Group(_)
            | Command::HostGroups
            | Command::GroupAsk(_)
            | Command::GroupJobDone(..)
            | Command::GroupShareStateDone(..)
            | Command::Transaction(_)
            | Command::ShareState(_)
            | Command::End => {
                unreachable!("the worker's loop keeps these for connections and coordinators")
            }
        }
    }

    /// Everything from here on belongs to the turn that begins now.
    pub fn begin_turn(&mut self) -> Stamp {
        self.moment = None;
        self.tickets.turn = Stamp::now();
        self.read_turn.begin(self.tickets.turn);
        self.tickets.turn
    }

    /// The commands of this turn are done. `is_alone`: there was one, and no other has come meanwhile.
    pub fn end_commands(&mut self, is_alone: bool) {
        self.read_turn.end(is_alone);
    }

    /// Whether so much was read in this turn that the commands after it wait for the next one.
    pub fn has_read_enough(&self) -> bool {
        self.read_turn.is_over()
    }

    /// Whether batches wait for [`PartitionWorker::finish_round`].
    pub fn has_round(&self) -> bool {
        !self.touched.is_empty()
    }

    /// What a storage thread reports.
    pub fn hear(&mut self, report: Report) {
        match report {
            Report::Synced(synced) => self.synced(synced),
            Report::Durable(directory, ends, round) => {
                (self.tickets.round, self.tickets.is_round_told) = (round, true);
                self.durable(directory, ends);
                self.tickets.is_round_told = false;
            }
            Report::WriteBack(orders) => self.ordered_to_write_back(orders),
            // Looked at after every turn.
            Report::Room => {}
            Report::DirectoryFailed(directory) => self.directory_failed(directory),
            Report::Replication(event) => self.on_replication_event(event),
        }
    }

    /// Whether unsynced bytes wait for [`PartitionWorker::flush_lazy`].
    pub fn has_lazy(&self) -> bool {
        !self.lazy.is_empty()
    }

    /// Whether producers wait whose time may run out: [`PartitionWorker::expire`].
    pub fn has_awaited(&self) -> bool {
        !self.awaited.is_empty()
    }

    /// Gives each batch of a request its ticket, and its place in the round unless it is ahead of the metadata.
    fn append(&mut self, command: AppendCommand) {
        let AppendCommand { acks, deadline, items, reply } = command;
        let opened = reply.map(|reply| self.tickets.open(items.len(), reply));
        let is_early =
            acks == Acks::All && planted::is(&self.node.peers.replication.planted, Mistake::AcksBeforeTheIsr);
        let acks = if is_early { Acks::Leader } else { acks };
        for item in items {
            let ticket = opened.map_or(NO_TICKET, |opened| self.tickets.ticket(opened, item.slot));
            let append = Append {
                origin: item.origin,
                acks,
                ticket,
                deadline,
                leader_epoch: None,
                verified: false,
                follows_refused: false,
            };
            if let Some(item) = self.hold_early(item, &append) {
                // A refusal has reached the ticket.
                let _ = self.place(item, append);
            }
        }
    }

    /// Gives a batch its offsets and keeps it for the round's write.
    ///
    /// # Errors
    /// Nothing was kept of it, and the ticket has the refusal.
    pub(crate) fn place(&mut self, item: AppendItem, append: Append) -> Result<(), Declined> {
        let (key, now, sequence) = (item.partition, self.moment(), batch_sequence(item.batch.header()));
        let is_open = self.replicas.get(&key).is_some_and(|replica| !replica.partition.is_failed());
        if !is_open && let Err(declined) = self.open(key) {
            return Err(self.refuse(key, &append, sequence, declined));
        }
        let is_new = self.is_new(key, sequence);
        let follows_refused = self.follows_refused(key, &append, sequence, is_new);
        let append = Append { follows_refused, ..append };
        let Self { replicas, files, node, journaled, lists, effects, tickets, following, .. } = self;
        let Some(hosted) = replicas.get_mut(&key) else {
            return Err(self.refuse(key, &append, sequence, Declined::Unknown));
        };
        let directory = hosted.directory;
        let (room, files) = (&node.log_dirs.directories[directory].room, &mut files[directory]);
        let admit = |bytes, writer| room.admit(bytes, writer, now.monotonic);
        let mut around = surroundings(now, (directory, files), journaled, lists, node, effects);
        let placed = hosted.replica.append(item.batch, item.standing, append, admit, &mut around);
        if let Ok(placed) = placed {
            if let Appended::InRound { records, bytes, opens_round } = placed {
                self.recorder.batch(key.topic, records, bytes);
                if opens_round {
                    self.touched.push(key);
                }
                if !hosted.follower_waiters.is_empty() {
                    self.leading.to_wake.push(key);
                }
            }
            if append.acks == Acks::All && !hosted.is_awaited {
                hosted.is_awaited = true;
                self.awaited.push(key);
            }
        }
        carry_out(effects, tickets, node, following, Some(hosted));
        if placed.is_ok() {
            self.was_placed(key, sequence.producer_id, is_new);
        }
        self.carry_out_rest(key);
        placed.map(|_| ()).map_err(|declined| {
            if declined == Declined::Full {
                self.node.workers.meter.batches_refused_full.one();
                impairments::no_room(&self.node, directory);
            }
            self.refuse(key, &append, sequence, declined)
        })
    }

    /// Answers a batch that got no offsets.
    fn refuse(
        &mut self,
        key: PartitionKey,
        append: &Append,
        batch: BatchSequence,
        declined: Declined,
    ) -> Declined {
        if append.origin == Origin::Client {
            if declined.code().is_retriable() {
                self.note_refused([(key, batch)]);
            }
            self.node.workers.meter.batches_refused.one();
            self.recorder.refused(key.topic);
        }
        self.tickets.answer(append.ticket, Err(declined));
        declined
    }

    /// Now, or when the round's first batch came, which is as good.
    fn moment(&mut self) -> Moment {
        let moment = self.moment.unwrap_or_else(|| self.now());
        *self.moment.insert(moment)
    }

    /// A place for one batch of a coordinator of this worker.
    pub(crate) fn open_ticket(&mut self, reply: oneshot::Sender<Vec<AppendOutcome>>) -> Opened {
        self.tickets.open(1, reply)
    }

    pub(crate) fn ticket(&self, opened: Opened) -> Ticket {
        self.tickets.ticket(opened, 0)
    }

    /// From where to where the log of a partition reaches that this broker leads. `None`: not in this epoch yet, or its
    /// log is about to be cut.
    pub(crate) fn led_range(
        &mut self,
        key: PartitionKey,
        epoch: LeaderEpoch,
    ) -> Result<Option<LedRange>, Declined> {
        self.open(key)?;
        let replica = self.replicas.get(&key).ok_or(Declined::Unknown)?;
        let partition = &replica.partition;
        let end = partition.log_end();
        // What the round holds is not in the log yet.
        let is_ready = replica.truncation.is_none() && replica.log.end() == end;
        let leads = partition.is_leader() && partition.leader_epoch() == epoch;
        let range = LedRange { start: replica.log.start(), end, committed: partition.high_watermark() };
        Ok((leads && is_ready).then_some(range))
    }

    /// Whole batches from the one that holds `from` on, durable or not: for a coordinator that loads.
    pub(crate) fn read_log(
        &mut self,
        key: PartitionKey,
        from: Offset,
        max_bytes: usize,
    ) -> Result<Bytes, Declined> {
        let Self { replicas, files, .. } = self;
        let replica = replicas.get_mut(&key).ok_or(Declined::Unknown)?;
        let (end, files) = (replica.log.end(), &mut files[replica.directory]);
        let read = replica.log.read(files, from, max_bytes, end, true);
        read.map(|read| read.records).map_err(|error| {
            self.read_failed(key, &error);
            Declined::Storage
        })
    }
}
