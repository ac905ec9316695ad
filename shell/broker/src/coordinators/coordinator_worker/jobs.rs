//! What a group's shard hands out as it takes too long for the worker: targets of large groups, expressions against
//! every topic. One thread of low priority for each worker that has met such a group; what comes of a job goes back to
//! the worker as a message.

use crate::mailbox::{Command, Mailbox, PartitionKey};
use barnabas_coordinator::Job;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

/// Jobs that wait. A shard hands out at most two for each of its groups. A job without a place is dropped, and
/// handed out again with the next heartbeat of a member.
const JOBS_MAX: usize = 256;

type Handed = (PartitionKey, Job);

/// The way to the thread; it ends when this is dropped.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    thread: Option<SyncSender<Handed>>,
}

impl Jobs {
    /// Has the job run.
    ///
    /// # Errors
    /// The job, if there is no place for it, or no thread.
    pub fn run(&mut self, shard: PartitionKey, job: Job, back: &Mailbox) -> Result<(), Box<Job>> {
        if self.thread.is_none() {
            self.thread = spawn(back.clone());
        }
        let Some(thread) = &self.thread else { return Err(Box::new(job)) };
        thread.try_send((shard, job)).map_err(|refused| match refused {
            TrySendError::Full((_, job)) | TrySendError::Disconnected((_, job)) => Box::new(job),
        })
    }
}

fn spawn(back: Mailbox) -> Option<SyncSender<Handed>> {
    let (sender, receiver) = sync_channel(JOBS_MAX);
    let spawned =
        std::thread::Builder::new().name("group-jobs".to_owned()).spawn(move || run(&receiver, &back));
    match spawned {
        Ok(_) => Some(sender),
        Err(error) => {
            tracing::warn!(%error, "no thread could be started for assignments of large groups; they do \
                not rebalance until one can");
            None
        }
    }
}

fn run(jobs: &Receiver<Handed>, back: &Mailbox) {
    if let Err(error) = rustix::process::setpriority_process(None, 5) {
        tracing::debug!(%error, "the work of large groups has no priority of its own");
    }
    while let Ok((shard, job)) = jobs.recv() {
        let group = job.group().clone();
        let began = barnabas_clock::now();
        let done = job.run();
        tracing::debug!(%group, elapsed_ms = barnabas_clock::since(began).as_millis(), "work for a group is done");
        back.send_blocking(Command::GroupJobDone(shard, Box::new(done)));
    }
}
