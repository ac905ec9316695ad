//! One sentence that names the bottleneck: what is used up, or what requests wait for, or that it is not the server.
//!
//! Looked at in this order: something that is busy most of the time cannot do more, whatever requests wait for; where
//! nothing is, the largest part of the requests' time is what a faster answer would come from; and where hardly a
//! request is under way, the server waits for its clients.

use super::figures::{Figures, share};
use super::units::{bytes, duration, percent};

/// Busy for so much of the time is used up.
const USED_UP: f64 = 0.8;
/// Other workers have so much less to do than the busiest that it is one alone.
const ALONE: f64 = 0.6;
/// So much of the threads' wish to run was not met.
const STARVED: f64 = 0.25;
/// Fewer requests under way than this, on average, and the clients are what there is too little of.
const UNDER_WAY: f64 = 0.5;

/// See the file's header.
pub fn verdict(figures: &Figures) -> String {
    starved(figures)
        .or_else(|| worker(figures))
        .or_else(|| disk(figures))
        .or_else(|| idle(figures))
        .unwrap_or_else(|| slowest(figures))
}

fn starved(figures: &Figures) -> Option<String> {
    let cpu: f64 = figures.threads.iter().map(|thread| thread.cpu_seconds).sum();
    let queued: f64 = figures.threads.iter().map(|thread| thread.queued_seconds).sum();
    let lost = share(queued, cpu + queued);
    let is_busy = cpu + queued > figures.seconds * UNDER_WAY;
    (lost > STARVED && is_busy).then(|| {
        format!(
            "The machine's processors: for {} of the time in which the node's threads could have run, none was free.",
            percent(lost)
        )
    })
}

fn worker(figures: &Figures) -> Option<String> {
    let busy = |seconds: f64| share(seconds, figures.seconds);
    let busiest =
        figures.workers.iter().max_by(|one, other| one.busy_seconds.total_cmp(&other.busy_seconds))?;
    if busy(busiest.busy_seconds) < USED_UP {
        return None;
    }
    let others = figures.workers.len() - 1;
    let rest: f64 =
        figures.workers.iter().map(|worker| worker.busy_seconds).sum::<f64>() - busiest.busy_seconds;
    let mean = share(rest, others as f64);
    if others > 0 && mean < busiest.busy_seconds * ALONE {
        return Some(format!(
            "One partition's worker: worker {} is busy {} of the time, the others {} on average; what it owns is asked for most.",
            busiest.name,
            percent(busy(busiest.busy_seconds)),
            percent(busy(mean))
        ));
    }
    let all = share(rest + busiest.busy_seconds, figures.workers.len() as f64);
    Some(format!("The workers: they are busy {} of the time, all of them.", percent(busy(all))))
}

fn disk(figures: &Figures) -> Option<String> {
    let busiest = figures
        .directories
        .iter()
        .max_by(|one, other| one.writes.seconds.total_cmp(&other.writes.seconds))?;
    let busy = share(busiest.writes.seconds, figures.seconds);
    let waits = figures.phase_share(&["sync", "journal_wait"]);
    let is_waited_for = waits > 0.5 && figures.busy_request_seconds() > figures.seconds * UNDER_WAY;
    (busy >= USED_UP || is_waited_for).then(|| {
        format!(
            "The disk's sync: {} of the requests' time is waiting for it; {} is written {} of the time, {} in {} on average.",
            percent(waits),
            busiest.path,
            percent(busy),
            bytes(share(busiest.write_bytes, busiest.writes.count)),
            duration(busiest.writes.mean())
        )
    })
}

fn idle(figures: &Figures) -> Option<String> {
    let under_way = share(figures.busy_request_seconds(), figures.seconds);
    if figures.requests == 0.0 {
        return Some("The client: idle. No request came.".to_owned());
    }
    let busiest = figures.workers.iter().map(|worker| worker.busy_seconds).fold(0.0, f64::max);
    (under_way < UNDER_WAY).then(|| {
        format!(
            "The client: idle. {under_way:.2} requests were under way on average, and the busiest worker had {} of its time to do.",
            percent(share(busiest, figures.seconds))
        )
    })
}

fn slowest(figures: &Figures) -> String {
    let phase = figures.phases.iter().find(|phase| !phase.is_idle());
    let Some(phase) = phase else { return "The client: idle.".to_owned() };
    let what = match &*phase.phase {
        "decide" => "reading and checking requests",
        "queue" => "the workers' mailboxes",
        "read" => "reading records",
        "journal_wait" | "sync" => "the disk's sync",
        "replicate" => "other replicas",
        "answer" => "the way back between threads",
        "write" => "the clients' sockets: answers wait to be taken, or for earlier ones",
        other => other,
    };
    format!(
        "Nothing is used up; what {} requests wait for most is {what}: {} of all requests' time.",
        phase.request,
        percent(share(phase.times.seconds, figures.busy_request_seconds()))
    )
}
