//! What the figures of a path mean for acks and replication, with the arithmetic shown.

use super::caller::{NetBench, Toward};
use super::kernel::segment_bytes;
use super::ms;
use crate::DiskBench;
use barnabas_findings::{Limits, find};
use std::time::Duration;

/// From half of a limit on, a figure is near it.
const NEAR: f64 = 0.5;
/// Several connections that carry so much more than one show a limit of the one.
const MORE: f64 = 1.3;
/// Below this, shares of segments say nothing; as N2 has it.
const SEGMENTS_MIN: u64 = 1000;

/// Figures of `bench-disk` that a follower's ack rests on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Disk {
    /// A synced write of 4 KiB.
    pub write: Duration,
    pub write_p99: Duration,
    /// In rounds of 256 KiB, synced.
    pub mib_s: f64,
}

impl From<&DiskBench> for Disk {
    fn from(bench: &DiskBench) -> Self {
        let (small, round) = (bench.writes[0], bench.writes[2]);
        Self { write: small.p50, write_p99: small.p99, mib_s: round.mib_s }
    }
}

/// What is known, to be put into sentences.
#[derive(Debug)]
pub struct Meaning<'a> {
    pub net: &'a NetBench,
    pub disk: Option<Disk>,
}

fn seconds(time: Duration) -> f64 {
    time.as_secs_f64().max(1e-9)
}

impl Meaning<'_> {
    pub fn sentences(&self) -> Vec<String> {
        let mut lines = vec![self.acks()];
        lines.extend(self.acks_with_disk());
        lines.push(self.replication());
        lines.extend(self.window());
        lines.extend(self.queues());
        lines.extend(self.path());
        lines.extend(self.near());
        lines
    }

    fn acks(&self) -> String {
        let rounds = &self.net.rounds;
        format!(
            "acks=all waits for one hop more than acks=1: the records go to the follower and its next fetch comes back, one round \
             trip of {} ({} in one of a hundred, {} in one of a thousand)",
            ms(rounds.p50),
            ms(rounds.p99),
            ms(rounds.p999)
        )
    }

    fn acks_with_disk(&self) -> Option<String> {
        let (disk, rounds) = (self.disk?, &self.net.rounds);
        let together = rounds.p50 + disk.write;
        let (larger, other) = if rounds.p50 > disk.write { ("path", "disk") } else { ("disk", "path") };
        Some(format!(
            "with a synced write of {} on a disk as this one, a copy takes {} + {} = {} and more; a producer with one request in \
             flight gets 1 / {} = {:.0} acks a second at most. The {larger} takes more of it than the {other}",
            ms(disk.write),
            ms(rounds.p50),
            ms(disk.write),
            ms(together),
            ms(together),
            1.0 / seconds(together)
        ))
    }

    fn replication(&self) -> String {
        let (there, back) = (self.net.mib_s(Toward::There), self.net.mib_s(Toward::Here));
        let path = there.min(back);
        let way = if there <= back { "to the other side" } else { "from the other side" };
        let (limit, what) = match self.disk {
            Some(disk) if disk.mib_s < path => (disk.mib_s, "the disk, in synced rounds of 256 KiB"),
            _ => (path, "the path"),
        };
        let disk = self.disk.map(|disk| format!(", disk {:.0} MiB/s", disk.mib_s)).unwrap_or_default();
        format!(
            "replication takes {limit:.0} MiB/s of records at most between these two, limited by {what} (path {path:.0} MiB/s {way}{disk}). \
             With a replication factor of 3, a leader sends 2 copies over its interface: {path:.0} / 2 = {:.0} MiB/s, less what \
             consumers read",
            path / 2.0
        )
    }

    /// What one connection has under way, where several carry more.
    fn window(&self) -> Option<String> {
        let of = |one: bool| {
            let wanted = self.net.flows.iter().filter(|flow| flow.toward == Toward::There);
            wanted.filter(|flow| (flow.connections == 1) == one).map(|flow| flow.mib_s).next()
        };
        let (one, several) = (of(true)?, of(false)?);
        if one <= 0.0 || several < one * MORE {
            return None;
        }
        let rounds = &self.net.rounds;
        let kib = one * 1024.0 * seconds(rounds.p50);
        Some(format!(
            "one connection carries {one:.0} MiB/s, several {several:.0}: with {one:.0} MiB/s × {} = {kib:.0} KiB under way, the window \
             (tcp_rmem, tcp_wmem, socket.*.buffer.bytes; N5) or one core limits it. A follower has a connection for each worker",
            ms(rounds.p50)
        ))
    }

    /// Whether a busy path makes round trips longer.
    fn queues(&self) -> Option<String> {
        let quiet = self.net.rounds.p99;
        let worst = self.net.flows.iter().max_by_key(|flow| flow.rounds.p99)?;
        (worst.rounds.p99 > quiet * 3).then(|| {
            format!(
                "beside a full flow the p99 of a round trip grows from {} to {}: catching-up followers and consumers add as much to \
                 acks=all. A replication throttle (leader.replication.throttled.rate) keeps the queues short",
                ms(quiet),
                ms(worst.rounds.p99)
            )
        })
    }

    fn path(&self) -> Option<String> {
        let mtu = self.net.mtu?;
        let segment = segment_bytes(mtu, self.net.is_v4);
        (1..9000).contains(&segment).then(|| {
            let rate = self.net.mib_s(Toward::There) * 1_048_576.0 / f64::from(segment);
            format!(
                "at {segment} bytes a segment, {:.0} MiB/s are {rate:.0} segments a second. An MTU of 9000 on both machines and \
                 everything between them makes a sixth of those of 1500; different MTUs are N1",
                self.net.mib_s(Toward::There)
            )
        })
    }

    /// Thresholds of the doctor that the figures are near or above.
    fn near(&self) -> Vec<String> {
        let limit_of = |id: &str| find(id).map(|rule| Limits::default().of(rule)).unwrap_or(f64::INFINITY);
        let mut lines = Vec::new();
        let mut judge = |id: &str, what: String, figure: f64, unit: &str| {
            let limit = limit_of(id);
            let word = if figure > limit {
                "above"
            } else if figure > limit * NEAR {
                "near"
            } else {
                return;
            };
            lines.push(format!(
                "{word} the threshold of {id}: {what} {figure:.2} {unit}, threshold {limit} {unit}"
            ));
        };
        for flow in self.net.flows.iter().filter(|flow| flow.segments.sent >= SEGMENTS_MIN) {
            let share = flow.segments.again as f64 / flow.segments.sent as f64 * 100.0;
            let what = format!("{} of {} segments were sent again,", flow.segments.again, flow.segments.sent);
            judge("N2", what, share, "%");
        }
        if let Some(disk) = self.disk {
            judge("D1", "p99 of a synced write is".to_owned(), seconds(disk.write_p99) * 1000.0, "ms");
        }
        if lines.is_empty() {
            lines.push(match self.disk {
                Some(_) => "no threshold of the doctor is near (N2, D1)".to_owned(),
                None => "no threshold of the doctor is near (N2)".to_owned(),
            });
        }
        lines
    }
}
