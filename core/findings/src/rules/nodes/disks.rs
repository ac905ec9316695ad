//! D: the devices and file systems that hold the log directories.

use super::{SAMPLES_MIN, by_figures, subject};
use crate::facts::{DirFigures, Facts, Figures, Node};
use crate::report::{Report, Severity};
use crate::rules::words::{bytes, percent, span};
use crate::rules::{Rule, limit};

/// A device that is always busy and answers faster has room: flash works on many requests at once.
const BUSY_AND_SLOW_S: f64 = 0.005;
const SMALL_ROUND: f64 = 65_536.0;
const PRODUCES_PER_S: f64 = 100.0;
/// File systems whose bytes end with the machine, and those behind a network or another layer.
const GONE: &[&str] = &["tmpfs", "ramfs", "devtmpfs"];
const LAYERED: &[&str] =
    &["overlay", "aufs", "nfs", "nfs4", "cifs", "smb3", "9p", "virtiofs", "ceph", "glusterfs"];

pub const SATURATED: Rule = Rule {
    id: "D2",
    name: "A disk that is busy all the time",
    severity: Severity::Warning,
    evidence: "metrics: time in which the directory's block device had requests, and barnabas_journal_write_seconds",
    threshold: "more than {} % of the time, and a p90 of the synced writes above 5 ms",
    limit: limit(90.0),
    advice: "The next write waits. Add a log directory on another device and move replicas there, or stripe several devices.",
    command: "",
    judge: |facts, limit, report| {
        each(facts, report, |node, figures, dir, report| {
            let Some(busy) = report.seen(&dir.busy_seconds).copied() else { return };
            let share = busy / figures.seconds.max(f64::EPSILON);
            let enough = dir.journal_writes.count() >= SAMPLES_MIN;
            let p90 = dir.journal_writes.quantile(0.9).filter(|p90| enough && *p90 > BUSY_AND_SLOW_S);
            if let Some(p90) = p90.filter(|_| share * 100.0 > limit) {
                let sentence = format!(
                    "the device of {} was busy for {} of the time, and p90 of its synced writes is {}",
                    dir.path,
                    percent(share.min(1.0)),
                    span(p90 * 1000.0)
                );
                report.find(subject(node), sentence, Vec::new());
            }
        });
    },
};

pub const SMALL_ROUNDS: Rule = Rule {
    id: "D3",
    name: "Producers mostly wait for small synced writes",
    severity: Severity::Info,
    evidence: "metrics: phases journal_wait and sync of Produce requests, bytes and number of the journal's rounds",
    threshold: "more than {} % of the time of Produce requests, rounds below 64 KiB, at more than 100 requests a second",
    limit: limit(50.0),
    advice: "The disk's latency decides, not its throughput. Larger batches (W1), more requests in flight or more producers share a sync; a faster device shortens it.",
    command: "",
    judge: |facts, limit, report| {
        by_figures(facts, report, |node, figures, report| {
            let rounds: f64 = figures.dirs.iter().map(|dir| dir.journal_writes.count()).sum();
            let written: f64 = figures.dirs.iter().map(|dir| dir.journal_bytes).sum();
            let rate = figures.produce_requests / figures.seconds.max(f64::EPSILON);
            if rounds < SAMPLES_MIN || rate < PRODUCES_PER_S || figures.produce_seconds <= 0.0 {
                return;
            }
            let (share, round) = (figures.produce_sync_seconds / figures.produce_seconds, written / rounds);
            if share * 100.0 > limit && round < SMALL_ROUND {
                let (share, round) = (percent(share), bytes(round));
                let sentence = format!(
                    "{share} of the time of Produce requests is spent on synced writes of {round} each"
                );
                report.find(subject(node), sentence, Vec::new());
            }
        });
    },
};

pub const WRITE_CACHE: Rule = Rule {
    id: "D4",
    name: "A volatile write cache without forced unit access",
    severity: Severity::Info,
    evidence: "metrics: barnabas_log_directory_info (write_cache, fua)",
    threshold: "write back, and no FUA",
    limit: None,
    advice: "Each synced write flushes the whole cache of the device, other programs' writes included. Records are safe. A device with power-loss protection needs no flush; keep other writers off this one.",
    command: "",
    judge: |facts, _, report| {
        each(facts, report, |node, _, dir, report| {
            let Some(holder) = report.seen(&dir.holder) else { return };
            if holder.write_cache == "write back" && holder.fua == "0" {
                let sentence = format!(
                    "{}, the device of {}, has a volatile write cache and no forced unit access: a synced write flushes it",
                    holder.device, dir.path
                );
                report.find(subject(node), sentence, Vec::new());
            }
        });
    },
};

pub const SCHEDULER: Rule = Rule {
    id: "D5",
    name: "An I/O scheduler that is meant for spinning disks",
    severity: Severity::Warning,
    evidence: "metrics: barnabas_log_directory_info (rotational, scheduler)",
    threshold: "bfq on a device that does not rotate",
    limit: None,
    advice: "bfq idles between requests to be fair to processes: on flash that is latency for nothing.",
    command: "echo none > /sys/block/DEVICE/queue/scheduler",
    judge: |facts, _, report| {
        each(facts, report, |node, _, dir, report| {
            let Some(holder) = report.seen(&dir.holder) else { return };
            if holder.rotational == "0" && holder.scheduler == "bfq" {
                let sentence =
                    format!("{}, the flash device of {}, is scheduled by bfq", holder.device, dir.path);
                let line = format!("echo none > /sys/block/{}/queue/scheduler", holder.device);
                report.find(subject(node), sentence, vec![line]);
            }
        });
    },
};

pub const FILE_SYSTEM: Rule = Rule {
    id: "D6",
    name: "A file system that is not made for logs",
    severity: Severity::Warning,
    evidence: "metrics: barnabas_log_directory_info (file_system)",
    threshold: "tmpfs and ramfs; overlay and network file systems",
    limit: None,
    advice: "What is in memory is gone with the machine, synced or not. Layers and networks add latency, and some acknowledge a sync before the bytes are on a disk. Mount ext4 or XFS there; in a container, a volume.",
    command: "",
    judge: |facts, _, report| {
        each(facts, report, |node, _, dir, report| {
            let Some(holder) = report.seen(&dir.holder) else { return };
            let name = holder.file_system.as_str();
            let why = if GONE.contains(&name) {
                "its records are gone with the machine"
            } else if LAYERED.contains(&name) || name.starts_with("fuse") {
                "a layer or a network lies before the disk"
            } else {
                return;
            };
            report.find(subject(node), format!("{} is on {name}: {why}", dir.path), Vec::new());
        });
    },
};

pub const INODES: Rule = Rule {
    id: "D10",
    name: "Few free inodes",
    severity: Severity::Warning,
    evidence: "metrics: barnabas_log_directory_free_inodes and barnabas_log_directory_total_inodes",
    threshold: "less than {} % free",
    limit: limit(5.0),
    advice: "Without inodes no segment is opened, however many bytes are free. Delete what else is on the file system, let segments be larger (T9), or make the file system again with more inodes.",
    command: "",
    judge: |facts, limit, report| {
        each(facts, report, |node, _, dir, report| {
            let Some((free, all)) = report.seen(&dir.inodes).copied().flatten() else { return };
            if all > 0.0 && free / all * 100.0 < limit {
                let share = percent(free / all);
                let sentence = format!("{} has {free:.0} of {all:.0} inodes free ({share})", dir.path);
                report.find(subject(node), sentence, Vec::new());
            }
        });
    },
};

fn each(
    facts: &Facts,
    report: &mut Report,
    mut judge: impl FnMut(&Node, &Figures, &DirFigures, &mut Report),
) {
    by_figures(facts, report, |node, figures, report| {
        figures.dirs.iter().for_each(|dir| judge(node, figures, dir, report));
    });
}
