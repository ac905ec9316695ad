//! One worker: a thread with its own runtime, its partitions, its coordinators and its connections.
//!
//! The loop takes everything that has arrived in its mailbox and everything that the storage threads report, lets the
//! owners work through it, and closes the round: one submission to each journal and each committer. Connections are
//! tasks of the same thread; what they start for this worker's own partitions takes the same way, without leaving the
//! thread.

use crate::coordinators::coordinator_worker::CoordinatorWorker;
use crate::mailbox::NewConnection;
use crate::mailbox::{Command, Inbox};
use crate::node::Node;
use crate::node::workers::repeated::Repeated;
use crate::requests::connection::{Handover, serve};
use crate::requests::session::Session;
use crate::worker::partition_worker::{FLUSH_LOOK, PartitionWorker};
use barnabas_metrics::Recorder;
use barnabas_net::FrameReader;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::LocalSet;

/// Commands taken at once. More than a round ever gathers: it bounds the time until answers go out.
const ROUND_COMMANDS_MAX: usize = 256;
/// How often waits are looked at whose time may have run out.
const EXPIRE_EVERY: Duration = Duration::from_millis(100);
/// How long a full disk is left alone.
const RETRY_AFTER: Duration = Duration::from_secs(1);
const IDLE_CHECK_EVERY: Duration = Duration::from_secs(5);
/// How late timers may be while commands keep coming. What has arrived is worked on first: a heartbeat in the mailbox
/// counts.
const TIMERS_LATE_MAX: Duration = Duration::from_millis(200);

/// Runs worker `id` until its mailbox closes or it is stopped.
///
/// # Errors
/// The system gives no event queue.
pub fn run(id: usize, node: Arc<Node>, inbox: Inbox) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let recorder = Rc::new(node.workers.metering.recorder(id));
    let _ = recorder.cells().runtime.set(runtime.metrics());
    let local = LocalSet::new();
    // A task beside the connections: what they send to it is worked on in the same turn of the runtime. The future that
    // the runtime itself waits for is polled again only after the event queue was asked, with a system call for each
    // such step.
    let worker = local.spawn_local(async move {
        let worker = Worker {
            id,
            partitions: PartitionWorker::new(id, node.clone(), recorder.clone()),
            coordinators: CoordinatorWorker::new(id, node.clone()),
            sessions: Vec::new(),
            node,
            recorder,
            lazy_since: None,
            expire_at: None,
            retry_at: None,
            idle_check_at: barnabas_clock::now() + IDLE_CHECK_EVERY,
        };
        if id == 0 {
            tokio::task::spawn_local(crate::worker::replica::isr::run(worker.node.clone()));
        }
        worker.run(inbox).await;
    });
    local.block_on(&runtime, worker).unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
    Ok(())
}

/// Whether timers that were due at `due` have waited long enough for a mailbox that is never empty. A worker that has
/// more to do than it can would otherwise not expire a session, end a join phase or answer a waiting fetch for as long
/// as that lasts.
fn is_late(due: Option<Instant>, now: Instant) -> bool {
    due.is_some_and(|due| due + TIMERS_LATE_MAX <= now)
}

struct Worker {
    id: usize,
    node: Arc<Node>,
    recorder: Rc<Recorder>,
    partitions: PartitionWorker,
    coordinators: CoordinatorWorker,
    sessions: Vec<Weak<Session>>,
    lazy_since: Option<Instant>,
    expire_at: Option<Instant>,
    /// When what a full disk kept from being written back is tried again.
    retry_at: Option<Instant>,
    idle_check_at: Instant,
}

impl Worker {
    async fn run(mut self, inbox: Inbox) {
        let Inbox { commands: mut mailbox, reports } = inbox;
        let mut commands = Vec::with_capacity(ROUND_COMMANDS_MAX);
        let mut reported = Vec::new();
        let sleep = tokio::time::sleep(IDLE_CHECK_EVERY);
        tokio::pin!(sleep);
        let mut sleeps_until = None;
        let mut has_more = false;
        loop {
            let due = self.due();
            if sleeps_until != Some(due) {
                sleep.as_mut().reset(due.into());
                sleeps_until = Some(due);
            }
            tokio::select! {
                biased;
                () = reports.arrived() => {}
                count = mailbox.recv_many(&mut commands, ROUND_COMMANDS_MAX), if commands.is_empty() && self.partitions.takes_commands() => {
                    if count == 0 {
                        return;
                    }
                    if commands.iter().any(|command| matches!(command, Command::End)) {
                        return;
                    }
                }
                () = &mut sleep => {
                    sleeps_until = None;
                    self.tick();
                }
                // Connections have their turn in between.
                () = tokio::task::yield_now(), if has_more => {}
            }
            let (begun, waiting) = (self.partitions.begin_turn(), commands.len());
            if self.partitions.takes_commands() {
                self.take_some(&mut commands);
            }
            let taken = waiting - commands.len();
            self.partitions.end_commands(waiting <= 1 && mailbox.is_empty());
            reports.take(&mut reported);
            for report in reported.drain(..) {
                self.partitions.hear(report);
            }
            if is_late(sleeps_until, begun.instant()) {
                sleeps_until = None;
                self.tick();
            }
            self.coordinators.work(&mut self.partitions);
            self.partitions.finish_round();
            self.partitions.take_held();
            let must_replicate = self.partitions.replicate();
            // Writing back takes its time: what this turn has answered goes out first.
            let has_yielded = std::mem::take(&mut has_more);
            has_more |= must_replicate || (!commands.is_empty() && self.partitions.takes_commands());
            has_more |= self.partitions.close_some_deleted();
            has_more |= self.partitions.answer_some();
            has_more |=
                if has_yielded { self.partitions.write_back_some() } else { self.partitions.has_orders() };
            self.coordinators.work(&mut self.partitions);
            has_more |= self.coordinators.is_loading() || self.partitions.has_round();
            self.watch_timers();
            self.recorder.turn(begun, taken);
        }
    }

    /// Takes commands in their order, until enough was read for one turn. What is left stays.
    fn take_some(&mut self, commands: &mut Vec<Command>) {
        let mut drain = commands.drain(..);
        for command in drain.by_ref() {
            self.take(command);
            if self.partitions.has_read_enough() {
                break;
            }
        }
        if drain.len() > 0 {
            let left = drain.collect();
            *commands = left;
        }
    }

    fn take(&mut self, command: Command) {
        match command {
            Command::Connection(new) => self.connect(new),
            Command::Group(group) => self.coordinators.take(group, &mut self.partitions),
            Command::HostGroups => self.coordinators.host_groups(),
            Command::GroupAsk(ask) => self.coordinators.look(ask),
            Command::GroupJobDone(shard, done) => {
                self.coordinators.job_done(shard, *done, &mut self.partitions);
            }
            Command::GroupShareStateDone(shard, done) => {
                self.coordinators.share_state_done(shard, done, &mut self.partitions);
            }
            Command::Transaction(transaction) => {
                self.coordinators.take_transaction(transaction, &mut self.partitions);
            }
            Command::ShareState(command) => {
                self.coordinators.take_share_state(command, &mut self.partitions);
            }
            Command::Begin => {
                self.partitions.begin();
                self.coordinators.begin();
            }
            Command::ImageChanged(change) => {
                self.partitions.take(Command::ImageChanged(change.clone()));
                self.coordinators.image_changed(&change, &mut self.partitions);
            }
            Command::Close(reply) => {
                for session in self.sessions.drain(..).filter_map(|session| session.upgrade()) {
                    session.close();
                }
                self.partitions.take(Command::Close(reply));
            }
            command => self.partitions.take(command),
        }
    }

    fn connect(&mut self, new: NewConnection) {
        let session = Rc::new(Session::new(self.node.clone(), self.recorder.clone(), &new, self.id));
        if new.reader.is_none() {
            session.note_certificate();
        }
        match new.stream.attach() {
            Ok(stream) => {
                self.sessions.push(Rc::downgrade(&session));
                let node = &self.node;
                let fresh = || {
                    FrameReader::new(session.claim(), node.workers.request_bytes_max)
                        .paced(new.slot.first_request())
                };
                let reader = new.reader.unwrap_or_else(fresh);
                tokio::task::spawn_local(serve(session, stream, Handover { slot: new.slot, reader }));
            }
            Err(error) => {
                if let Some(unsaid) = self.node.workers.repeated.happened(Repeated::NotSetUp) {
                    tracing::warn!(peer = %new.peer, %error, "connection could not be set up{unsaid}");
                }
            }
        }
    }

    /// When the loop must wake up by itself.
    fn due(&mut self) -> Instant {
        let lazy = self.lazy_since.map(|since| since + FLUSH_LOOK);
        let replication = self.partitions.replication_due();
        let coordinators = self.coordinators.next_deadline().map(|at| self.node.clock.instant(at));
        let shares = self.partitions.share_deadline().map(|at| self.node.clock.instant(at));
        [lazy, self.expire_at, self.retry_at, coordinators, replication, shares]
            .into_iter()
            .flatten()
            .fold(self.idle_check_at, Instant::min)
    }

    fn tick(&mut self) {
        let now = barnabas_clock::now();
        if self.lazy_since.is_some_and(|since| since + FLUSH_LOOK <= now) {
            self.lazy_since = None;
            self.partitions.flush_lazy();
        }
        if self.expire_at.is_some_and(|at| at <= now) {
            self.expire_at = None;
            self.partitions.expire();
        }
        if self.idle_check_at <= now {
            self.idle_check_at = now + IDLE_CHECK_EVERY;
            self.close_idle();
            self.partitions.expire_checks();
            let (groups, offsets) = self.coordinators.counts();
            self.recorder.cells().groups.set(groups);
            self.recorder.cells().group_offsets.set(offsets);
            self.recorder.group_counts(&self.coordinators.take_group_counts());
            let (records, batches) = self.partitions.shares_in_flight();
            self.recorder.cells().share_records.set(records);
            self.recorder.cells().share_batches.set(batches);
        }
        if self.retry_at.is_some_and(|at| at <= now) {
            self.retry_at = None;
            self.partitions.retry_postponed();
        }
        self.partitions.check_replicas();
        self.partitions.expire_shares();
        self.coordinators.tick(&mut self.partitions);
    }

    fn watch_timers(&mut self) {
        if self.partitions.has_lazy() && self.lazy_since.is_none() {
            self.lazy_since = Some(barnabas_clock::now());
        }
        if self.partitions.has_postponed() && self.retry_at.is_none() {
            self.retry_at = Some(barnabas_clock::now() + RETRY_AFTER);
        }
        if self.partitions.has_awaited() && self.expire_at.is_none() {
            self.expire_at = Some(barnabas_clock::now() + EXPIRE_EVERY);
        }
    }

    /// Closes connections on which nothing has moved for `connections.max.idle.ms`.
    fn close_idle(&mut self) {
        let Ok(idle_max) = u64::try_from(self.node.cluster.config.load().long("connections.max.idle.ms"))
        else {
            return;
        };
        let now = self.node.clock.monotonic().0;
        let meter = &self.node.workers.meter;
        self.sessions.retain(|session| {
            let Some(session) = session.upgrade() else { return false };
            if session.is_revoked() {
                meter.logins.revoked.one();
                tracing::info!(peer = %session.peer, "connection closed: its user or token was deleted");
                session.close();
                return false;
            }
            if now.saturating_sub(session.active_ms.get()) < idle_max {
                return true;
            }
            meter.connections_idle_closed.one();
            tracing::debug!(peer = %session.peer, "idle connection closed");
            session.close();
            false
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_wait_for_a_full_mailbox_and_not_for_ever() {
        let now = barnabas_clock::now();
        assert!(!is_late(None, now), "they have fired in this turn");
        assert!(!is_late(Some(now), now));
        assert!(!is_late(Some(now + Duration::from_secs(1)), now));
        assert!(is_late(Some(now), now + TIMERS_LATE_MAX));
    }
}
