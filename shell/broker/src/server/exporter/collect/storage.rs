//! Log directories: syncs, journals, room, compaction, scrubbing; and what the process holds.

use super::Snapshot;
use crate::config::logging;
use crate::log_dirs::directories::Directory;
use crate::log_dirs::full::Impairs;
use crate::node::Node;
use crate::node::workers::quotas::Quotas;
use barnabas_metrics::text::{Labels, Page, Summary};
use barnabas_metrics::threads;
use barnabas_tls::{REVOCATION_LISTS, refused_by_lists};
use std::sync::atomic::Ordering;

pub fn kafka(page: &mut Page, node: &Node, now: &Snapshot, older: &Snapshot) {
    let recent = now.syncs.since(&older.syncs);
    let requests = (now.syncs.count(), recent.count());
    let summary = Summary { all: &now.syncs, recent: &recent, requests, unit: 1_000_000 };
    page.summary("kafka_log_logflushstats_logflushrateandtimems", &[], &summary);
    let is_offline = |directory: &&Directory| !directory.is_online();
    let offline = node.log_dirs.directories.iter().filter(is_offline).count();
    page.count("kafka_log_logmanager_offlinelogdirectorycount", &[], offline as u64);
    for directory in node.log_dirs.directories.iter() {
        let path = directory.path.to_string_lossy();
        let value = u64::from(is_offline(&directory));
        page.count("kafka_log_logmanager_logdirectoryoffline", &[("logDirectory", &*path)], value);
    }
    let (partitions, bytes) = node.log_dirs.compaction.candidates.lock().uncleanable();
    page.count("kafka_log_logcleanermanager_uncleanable_partitions_count", &[], partitions as u64);
    page.count("kafka_log_logcleanermanager_uncleanable_bytes", &[], bytes);
    let dirtiest = node.log_dirs.compaction.figures.dirty_percent_max.load(Ordering::Relaxed);
    page.count("kafka_log_logcleanermanager_max_dirty_percent", &[], dirtiest);
}

pub fn directories(page: &mut Page, node: &Node, is_fine: bool) {
    let named: Vec<(String, &Directory)> = node
        .log_dirs
        .directories
        .iter()
        .filter(|directory| directory.holds_partitions)
        .map(|directory| (directory.path.to_string_lossy().into_owned(), directory))
        .collect();
    let each = |write: &mut dyn FnMut(Labels<'_>, &Directory)| {
        named.iter().for_each(|(path, directory)| write(&[("log_directory", path)], directory));
    };
    each(&mut |labels, each| {
        page.times("barnabas_journal_write_seconds", labels, &each.journal.cells().writes.counts(), is_fine);
    });
    each(&mut |labels, each| {
        page.sizes("barnabas_journal_round_bytes", labels, &each.journal.cells().round_bytes.counts(), 4, 12);
    });
    each(&mut |labels, each| {
        let partitions = each.journal.cells().round_partitions.counts();
        page.sizes("barnabas_journal_round_partitions", labels, &partitions, 4, 6);
    });
    each(&mut |labels, each| {
        page.count("barnabas_journal_queue_bytes", labels, each.journal.waiting_bytes())
    });
    page.count("barnabas_journal_written_back_bytes_total", &[], node.workers.meter.written_back_bytes.get());
    page.count("barnabas_direct_appends_total", &[], node.workers.meter.direct_appends.get());
    page.count("barnabas_appends_delayed_total", &[], node.workers.meter.appends_held.get());
    each(&mut |labels, each| {
        page.times("barnabas_segment_sync_seconds", labels, &each.committer.cells().syncs.counts(), is_fine);
    });
    each(&mut |labels, each| {
        page.sizes("barnabas_segment_sync_files", labels, &each.committer.cells().files.counts(), 4, 6);
    });
    let spaces: Vec<_> = named
        .iter()
        .map(|(path, directory)| {
            (path, directory.is_online().then(|| directory.disk.space(&directory.path).ok()).flatten())
        })
        .collect();
    for (path, space) in spaces.iter().filter_map(|(path, space)| Some((path, space.as_ref()?))) {
        page.count("barnabas_log_directory_free_bytes", &[("log_directory", path)], space.free);
    }
    for (path, space) in spaces.iter().filter_map(|(path, space)| Some((path, space.as_ref()?))) {
        page.count("barnabas_log_directory_total_bytes", &[("log_directory", path)], space.total);
    }
    each(&mut |labels, each| {
        page.count("barnabas_log_directory_refuses_producers", labels, u64::from(each.room.is_short()));
    });
    let now = node.clock.monotonic();
    each(&mut |labels, each| {
        page.count(
            "barnabas_log_directory_leadership_impaired",
            labels,
            u64::from(each.room.impairs(now) > Impairs::Nothing),
        );
    });
}

fn logins(page: &mut Page, node: &Node) {
    let logins = &node.workers.meter.logins;
    let seconds = |ns: u64| ns as f64 / 1e9;
    page.count("barnabas_authentications_total", &[("result", "success")], logins.succeeded.get());
    page.count("barnabas_authentications_total", &[("result", "failure")], logins.failed.get());
    page.value("barnabas_authentication_seconds_total", &[], seconds(logins.first_ns.get()));
    page.count("barnabas_reauthentications_total", &[("result", "success")], logins.succeeded_again.get());
    page.count("barnabas_reauthentications_total", &[("result", "failure")], logins.failed_again.get());
    page.value("barnabas_reauthentication_seconds_total", &[], seconds(logins.again_ns.get()));
    for (used_by, end) in node.peers.tls.expiring() {
        if end.store == REVOCATION_LISTS {
            let labels = [("used_by", used_by.as_str()), ("issuer", end.subject.as_str())];
            page.value("barnabas_revocation_list_next_update_seconds", &labels, end.not_after_s as f64);
            continue;
        }
        let labels = [("used_by", used_by.as_str()), ("store", end.store), ("subject", end.subject.as_str())];
        page.value("barnabas_certificate_not_after_seconds", &labels, end.not_after_s as f64);
    }
    page.count("barnabas_certificates_refused_revoked_total", &[], refused_by_lists());
    page.count("barnabas_expired_connections_killed_total", &[], logins.expired.get());
    page.count("barnabas_revoked_connections_killed_total", &[], logins.revoked.get());
    page.count("barnabas_authorizations_denied_total", &[], node.workers.meter.denied.get());
    let audit = &node.workers.meter.audit;
    page.count("barnabas_audit_events_total", &[], audit.taken.get());
    page.count("barnabas_audit_events_dropped_total", &[], audit.dropped.get());
    page.count("barnabas_audit_write_failures_total", &[], audit.failed.get());
    page.count("barnabas_audit_topic_lines_total", &[], audit.topic_written.get());
    page.count("barnabas_audit_topic_dropped_total", &[], audit.topic_dropped.get());
    let (dropped, failed) = logging::file_losses();
    page.count("barnabas_log_lines_dropped_total", &[], dropped);
    page.count("barnabas_log_write_failures_total", &[], failed);
    let otlp = &node.workers.meter.otlp;
    page.count("barnabas_otlp_pushes_total", &[("result", "taken")], otlp.taken.get());
    page.count("barnabas_otlp_pushes_total", &[("result", "failed")], otlp.failed.get());
    page.count("barnabas_otlp_points_rejected_total", &[], otlp.points_rejected.get());
    let dropped = node.workers.metering.samples().map_or(0, |samples| samples.dropped.get());
    for (result, requests) in
        [("taken", otlp.spans_taken.get()), ("failed", otlp.spans_failed.get()), ("dropped", dropped)]
    {
        page.count("barnabas_otlp_span_requests_total", &[("result", result)], requests);
    }
    let standing = node.doctor.standing();
    for finding in standing.findings() {
        let labels =
            [("id", finding.id), ("severity", finding.severity.name()), ("subject", &*finding.subject)];
        page.count("barnabas_finding", &labels, 1);
    }
    page.count("barnabas_findings_unlisted", &[], standing.unlisted() as u64);
}

pub fn process(page: &mut Page, node: &Node) {
    let (meter, figures) = (&node.workers.meter, &node.log_dirs.compaction.figures);
    let cells = || node.workers.metering.workers().iter();
    page.count("barnabas_batches_refused_full_total", &[], meter.batches_refused_full.get());
    page.count("barnabas_batches_forwarded_total", &[], meter.batches_forwarded.get());
    page.count("barnabas_compaction_dirty_bytes", &[], figures.dirty_bytes.load(Ordering::Relaxed));
    page.count("barnabas_compaction_ineligible_bytes", &[], figures.held_back_bytes.load(Ordering::Relaxed));
    page.count(
        "barnabas_compaction_partitions_waiting",
        &[],
        figures.partitions_waiting.load(Ordering::Relaxed),
    );
    page.count("barnabas_compaction_read_bytes_total", &[], figures.bytes_read.get());
    page.count("barnabas_compaction_written_bytes_total", &[], figures.bytes_written.get());
    let deleted = cells().map(|cells| cells.segments_deleted.get()).sum();
    page.count("barnabas_retention_segments_deleted_total", &[], deleted);
    page.count("barnabas_scrubbed_bytes_total", &[], meter.bytes_scrubbed.get());
    page.count("barnabas_damage_found_total", &[], meter.damage_found.get());
    page.count("barnabas_partitions_leadership_impaired", &[], node.log_dirs.impaired.count() as u64);
    page.count("barnabas_replica_fetches_damaged_total", &[], meter.fetches_damaged.get());
    page.count("barnabas_request_memory_bytes", &[], node.workers.budget.claimed_bytes());
    page.count("barnabas_request_memory_limit_bytes", &[], node.workers.budget.limit_bytes());
    page.count("barnabas_connections_accepted_total", &[], meter.connections_accepted.get());
    page.count("barnabas_connections_refused_total", &[], meter.connections_refused.get());
    let closed: u64 = cells().map(|cells| cells.disconnected.get()).sum();
    let opened: u64 = cells().map(|cells| cells.connected.get()).sum();
    page.count("barnabas_connections", &[], opened.saturating_sub(closed));
    page.count("barnabas_bad_requests_total", &[], meter.bad_frames.get() + meter.bad_requests.get());
    logins(page, node);
    quotas(page, &node.workers.quotas);
    connection_quotas(page, node);
    page.count("barnabas_network_bytes_in_total", &[], cells().map(|cells| cells.bytes_in.get()).sum());
    page.count("barnabas_network_bytes_out_total", &[], cells().map(|cells| cells.bytes_out.get()).sum());
    page.count("barnabas_log_files_open_max", &[], node.log_dirs.open_files_max as u64);
    page.value("barnabas_uptime_seconds", &[], node.clock.monotonic().0 as f64 / 1000.0);
    if let Some(state) = broker_state(node) {
        page.count("kafka_server_kafkaserver_brokerstate", &[], state);
    }
    let process = threads::process();
    if let (Some(read), Some(written)) = (process.disk_read_bytes, process.disk_write_bytes) {
        page.count("kafka_server_kafkaserver_linux_disk_read_bytes", &[], read);
        page.count("kafka_server_kafkaserver_linux_disk_write_bytes", &[], written);
    }
    page.value("process_cpu_seconds_total", &[], process.cpu_seconds);
    page.count("process_resident_memory_bytes", &[], process.resident_bytes);
    page.count("process_open_fds", &[], process.open_fds);
    if let Some(most) = process.max_fds {
        page.count("process_max_fds", &[], most);
    }
}

/// Kafka's BrokerState.
fn broker_state(node: &Node) -> Option<u64> {
    let (starting, running, stopping) = (1, 3, 6);
    if !node.identity.is_broker {
        return None;
    }
    if node.shutdown.is_wanted() {
        return Some(stopping);
    }
    let image = node.cluster.image.load();
    let is_unfenced = image.cluster.broker(node.identity.broker_id).is_some_and(|broker| !broker.fenced);
    Some(if is_unfenced { running } else { starting })
}

/// New connections, and the waits of those over a rate.
fn connection_quotas(page: &mut Page, node: &Node) {
    let figures = node.workers.connection_quotas.figures(node.clock.monotonic());
    for (name, connections) in node.workers.connection_places.connections() {
        let count = "kafka_server_socket_server_metrics_connection_count";
        page.count(count, &[("listener", name)], connections as u64);
    }
    for (name, of) in &figures.listeners {
        let rate = "kafka_server_socket_server_metrics_connection_creation_rate";
        page.value(rate, &[("listener", name)], of.per_second);
    }
    const RATE: &str = "kafka_server_socket_server_metrics_connection_accept_rate";
    for (name, of) in &figures.listeners {
        page.value(RATE, &[("listener", name)], of.per_second);
    }
    for (address, per_second) in &figures.addresses {
        page.value(RATE, &[("ip", &address.to_string())], *per_second);
    }
    page.value("kafka_server_socket_server_metrics_broker_connection_accept_rate", &[], figures.per_second);
    for (name, of) in &figures.listeners {
        let wait = "kafka_server_socket_server_metrics_connection_accept_throttle_time";
        page.value(wait, &[("listener", name)], of.wait_ms);
    }
    for (name, of) in &figures.listeners {
        let wait = "kafka_server_socket_server_metrics_ip_connection_accept_throttle_time";
        page.value(wait, &[("listener", name)], of.address_wait_ms);
    }
}

/// What client quotas throttled.
fn quotas(page: &mut Page, quotas: &Quotas) {
    let named = || ["produce", "fetch", "request", "controller_mutation"].into_iter().zip(&quotas.figures);
    for (name, figures) in named() {
        let requests = figures.requests.load(Ordering::Relaxed);
        page.count("barnabas_quota_throttled_requests_total", &[("quota", name)], requests);
    }
    for (name, figures) in named() {
        let seconds = figures.throttle_ms.load(Ordering::Relaxed) as f64 / 1000.0;
        page.value("barnabas_quota_throttle_seconds_total", &[("quota", name)], seconds);
    }
    page.count("barnabas_quota_accounts", &[], quotas.accounts() as u64);
    page.count("barnabas_quota_clients_shared_total", &[], quotas.shared_clients.load(Ordering::Relaxed));
}
