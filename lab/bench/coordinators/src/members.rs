//! A thousand members join a group of KIP-848 at once, and leave it at once.
//!
//! A member does what Apache's Java consumer does: it beats as often as the broker says, and at once when it has taken
//! up what it was given, which it tells. It is given up when the broker forgets it. The group's partitions are twice as
//! many as all members, so that it is known without asking when all is settled: everybody holds two; when all but the
//! stayers have left, each stayer holds its share of all.

use crate::ask::{Wrong, coordinator, is_passing, open, open_many};
use barnabas_client::Connection;
use barnabas_wire::Str;
use barnabas_wire::messages::ConsumerGroupHeartbeatRequest;
use barnabas_wire::messages::consumer_group_heartbeat_request::TopicPartitions;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The first version in which a member chooses its own id.
const HEARTBEAT: i16 = 1;
const PATIENCE: Duration = Duration::from_secs(240);
/// Partitions for each member while all are there.
const EACH: u32 = 2;

/// What the members show of themselves.
#[derive(Debug)]
struct Board {
    owned: Vec<AtomicU32>,
    beats: AtomicU64,
    beats_us: AtomicU64,
    longest_beat_us: AtomicU64,
}

#[derive(Debug, Clone)]
struct Whom {
    group: Str,
    topic: Str,
}

#[derive(Debug)]
struct Member {
    connection: Connection,
    whom: Whom,
    number: usize,
    id: Str,
    epoch: i32,
    owned: Vec<TopicPartitions>,
    interval: Duration,
    board: Arc<Board>,
}

impl Member {
    fn new(connection: Connection, whom: &Whom, number: usize, board: &Arc<Board>) -> Self {
        let id = format!("member-{number}-{}", std::process::id());
        Self {
            connection,
            whom: whom.clone(),
            number,
            id: id.as_str().into(),
            epoch: 0,
            owned: Vec::new(),
            interval: Duration::ZERO,
            board: Arc::clone(board),
        }
    }

    /// Beats until it is told to leave; then it leaves.
    async fn live(mut self, mut leave: watch::Receiver<bool>) -> Result<(), Wrong> {
        let mut has_changed = false;
        loop {
            has_changed = self.beat(has_changed).await?;
            if !has_changed {
                tokio::select! {
                    () = tokio::time::sleep(self.interval) => {}
                    _ = leave.wait_for(|is_over| *is_over) => break,
                }
            } else if *leave.borrow() {
                break;
            }
        }
        self.epoch = -1;
        let request = self.request(false);
        self.ask(&request).await.map(drop)
    }

    fn request(&self, tells_owned: bool) -> ConsumerGroupHeartbeatRequest {
        let joins = self.epoch == 0;
        ConsumerGroupHeartbeatRequest {
            group_id: self.whom.group.clone(),
            member_id: self.id.clone(),
            member_epoch: self.epoch,
            rebalance_timeout_ms: if joins { 300_000 } else { -1 },
            subscribed_topic_names: joins.then(|| vec![self.whom.topic.clone()]),
            topic_partitions: (joins || tells_owned).then(|| self.owned.clone()),
            ..Default::default()
        }
    }

    /// One heartbeat; whether it was given something else than it had.
    async fn beat(&mut self, tells_owned: bool) -> Result<bool, Wrong> {
        let request = self.request(tells_owned);
        let Some(given) = self.ask(&request).await? else { return Ok(false) };
        if given == self.owned {
            return Ok(false);
        }
        self.owned = given;
        let count = self.owned.iter().map(|one| one.partitions.len() as u32).sum();
        self.board.owned[self.number].store(count, Relaxed);
        Ok(true)
    }

    /// What the answer gives it, if it says.
    async fn ask(
        &mut self,
        request: &ConsumerGroupHeartbeatRequest,
    ) -> Result<Option<Vec<TopicPartitions>>, Wrong> {
        loop {
            let begun = Instant::now();
            let answer = self.connection.call_at(request, HEARTBEAT).await?;
            let took = u64::try_from(begun.elapsed().as_micros())?;
            self.board.beats.fetch_add(1, Relaxed);
            self.board.beats_us.fetch_add(took, Relaxed);
            self.board.longest_beat_us.fetch_max(took, Relaxed);
            if is_passing(answer.error_code) {
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
            if answer.error_code != 0 {
                return Err(format!(
                    "member {} is refused: {} {:?}",
                    self.number,
                    answer.error_code,
                    answer.error_message.as_deref()
                )
                .into());
            }
            self.epoch = answer.member_epoch;
            self.interval = Duration::from_millis(u64::try_from(answer.heartbeat_interval_ms)?);
            let Some(assignment) = answer.assignment else { return Ok(None) };
            let given = assignment.topic_partitions.into_iter();
            let mut given: Vec<_> = given
                .map(|one| TopicPartitions {
                    topic_id: one.topic_id,
                    partitions: one.partitions,
                    ..Default::default()
                })
                .collect();
            given.iter_mut().for_each(|one| one.partitions.sort_unstable());
            given.sort_by_key(|one| one.topic_id);
            return Ok(Some(given));
        }
    }
}

/// Waits until each of `whom` holds `count` partitions; the seconds since `begun`.
async fn until(
    board: &Board,
    whom: std::ops::Range<usize>,
    count: u32,
    begun: Instant,
    alive: &[JoinHandle<Result<(), Wrong>>],
) -> Result<f64, Wrong> {
    loop {
        let held = &board.owned[whom.clone()];
        if held.iter().all(|one| one.load(Relaxed) == count) {
            return Ok(begun.elapsed().as_secs_f64());
        }
        if alive.iter().any(JoinHandle::is_finished) {
            return Err("a member ended".into());
        }
        if begun.elapsed() > PATIENCE {
            let settled = held.iter().filter(|one| one.load(Relaxed) == count).count();
            return Err(format!(
                "only {settled} of {} members hold {count} partitions after {} s",
                held.len(),
                PATIENCE.as_secs()
            )
            .into());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn ended(tasks: Vec<JoinHandle<Result<(), Wrong>>>) -> Result<(), Wrong> {
    for task in tasks {
        task.await??;
    }
    Ok(())
}

pub async fn run(
    bootstrap: &str,
    topic: &str,
    group: &str,
    members: usize,
    stayers: usize,
) -> Result<Value, Wrong> {
    let all = stayers + members;
    let partitions = EACH * all as u32;
    let share = partitions / stayers as u32;
    let board = Arc::new(Board {
        owned: (0..all).map(|_| AtomicU32::new(0)).collect(),
        beats: AtomicU64::new(0),
        beats_us: AtomicU64::new(0),
        longest_beat_us: AtomicU64::new(0),
    });
    let whom = Whom { group: group.into(), topic: topic.into() };
    coordinator(&mut open(bootstrap).await?, group).await?;
    let (leave, is_leaving) = watch::channel(false);
    let (end, is_ending) = watch::channel(false);
    let born = |connection, number, until: &watch::Receiver<bool>| {
        tokio::spawn(Member::new(connection, &whom, number, &board).live(until.clone()))
    };

    let first = open_many(bootstrap, stayers).await?.into_iter().enumerate();
    let staying: Vec<_> = first.map(|(number, connection)| born(connection, number, &is_ending)).collect();
    until(&board, 0..stayers, share, Instant::now(), &staying).await?;

    let more = open_many(bootstrap, members).await?.into_iter().enumerate();
    let (beats, begun) = (board.beats.load(Relaxed), Instant::now());
    let coming: Vec<_> =
        more.map(|(number, connection)| born(connection, stayers + number, &is_leaving)).collect();
    let join_s = until(&board, 0..all, EACH, begun, &coming).await?;
    let join_beats = board.beats.load(Relaxed) - beats;

    let (beats, begun) = (board.beats.load(Relaxed), Instant::now());
    leave.send(true)?;
    ended(coming).await?;
    let leave_s = until(&board, 0..stayers, share, begun, &staying).await?;
    let leave_beats = board.beats.load(Relaxed) - beats;
    end.send(true)?;
    ended(staying).await?;
    let mean_ms = board.beats_us.load(Relaxed) as f64 / board.beats.load(Relaxed).max(1) as f64 / 1000.0;
    Ok(json!({
        "join_s": join_s, "leave_s": leave_s, "join_heartbeats": join_beats, "leave_heartbeats": leave_beats,
        "heartbeat_ms": mean_ms, "longest_heartbeat_ms": board.longest_beat_us.load(Relaxed) as f64 / 1000.0,
    }))
}
