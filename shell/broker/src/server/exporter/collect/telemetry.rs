//! What clients pushed (KIP-714), and figures about it.

use crate::node::Node;
use barnabas_metrics::clients;
use barnabas_metrics::families::Kind;
use barnabas_metrics::text::Page;
use barnabas_telemetry::{Counts, Described, Kind as Pushed, Outcome, Sample};

/// For a page with series; `false`: the figures alone.
pub fn write(page: &mut Page, node: &Node, has_series: bool) {
    let (counts, described) = {
        let mut table = node.workers.client_metrics.table();
        table.expire(node.clock.monotonic());
        (table.counts(), has_series.then(|| table.describe()))
    };
    figures(page, &counts);
    if let Some(described) = described {
        info(page, &described);
        series(page, &described);
    }
}

fn figures(page: &mut Page, counts: &Counts) {
    page.count("kafka_server_client_metrics_instance_count", &[], counts.clients as u64);
    page.count("barnabas_client_metrics_clients_evicted_total", &[], counts.evicted);
    for outcome in Outcome::ALL {
        let count = counts.pushes[outcome as usize];
        page.count("barnabas_client_metrics_pushes_total", &[("result", outcome.name())], count);
    }
    page.count("barnabas_client_metrics_series", &[], counts.series as u64);
    let dropped = [
        ("beyond_limit", counts.dropped.beyond_limit),
        ("other_kind", counts.dropped.other_kind),
        ("no_value", counts.dropped.no_value),
    ];
    for (reason, count) in dropped {
        page.count("barnabas_client_metrics_points_dropped_total", &[("reason", reason)], count);
    }
}

fn info(page: &mut Page, described: &[Described]) {
    const OWN: [&str; 5] =
        ["client_id", "client_instance_id", "software_name", "software_version", "source_address"];
    for client in described {
        let id = client.instance_id.to_string();
        let values =
            [shown_id(client), &id, &client.software.name, &client.software.version, &client.address];
        let own = OWN.into_iter().zip(values);
        let resource = client.resource.iter().map(|(name, value)| (&**name, &**value));
        let others = resource.filter(|(name, _)| !OWN.contains(name));
        let labels: Vec<(&str, &str)> = own.chain(others).collect();
        page.count("barnabas_client_metrics_client_info", &labels, 1);
    }
}

/// By name, since a name's samples stand together.
fn series(page: &mut Page, described: &[Described]) {
    let each = described.iter().flat_map(|client| client.samples.iter().map(move |sample| (client, sample)));
    let mut all: Vec<(&Described, &Sample)> = each.collect();
    all.sort_by_key(|(_, sample)| &sample.series.name);
    for (client, sample) in all {
        let id = client.instance_id.to_string();
        let own = [("client_id", shown_id(client)), ("client_instance_id", &*id)];
        let labels = sample.series.labels.iter().map(|(name, value)| (&**name, &**value));
        let labels: Vec<(&str, &str)> = own.into_iter().chain(labels).collect();
        let kind = match sample.kind {
            Pushed::Counter => Kind::Counter,
            Pushed::Gauge => Kind::Gauge,
        };
        page.pushed(&sample.series.name, kind, &labels, sample.value);
    }
}

fn shown_id(client: &Described) -> &str {
    clients::label(Some(client.client_id.as_deref().unwrap_or_default()))
}
