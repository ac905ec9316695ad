//! The headers of this crate's API files, for docs/COMPAT.md.
//!
//! A header has a regular shape: `# Name, key N, versions A–B`, a paragraph, a table of versions, and a chapter `##
//! Left out`. Tests hold that, and that the versions are those of the wire. The requests that only members of the
//! quorum ask each other have such headers in core/quorum/src/raft/requests; the page's test reads them there.

use barnabas_wire::ApiKey;

/// One API, as its file's header tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// `k00_produce`
    pub file: &'static str,
    pub name: String,
    pub key: i16,
    pub min_version: i16,
    pub max_version: i16,
    /// What it is for, as one paragraph of Markdown.
    pub about: String,
    /// Version, what it added.
    pub versions: Vec<(String, String)>,
    /// What is left out, one entry per list item; empty where nothing is.
    pub left_out: Vec<String>,
}

impl Header {
    /// # Errors
    /// In what it is not true, or out of shape.
    pub fn check(&self) -> Result<(), String> {
        let file = self.file;
        let key = ApiKey::from_number(self.key).ok_or_else(|| format!("{file}: no key"))?;
        let versions = key.stable_versions();
        let (found, expected) = (
            (self.name.as_str(), self.min_version, self.max_version),
            (key.name(), versions.min, versions.max),
        );
        if found != expected {
            return Err(format!("{file}: says {found:?}, is {expected:?}"));
        }
        if !file.starts_with(&format!("k{:02}_", self.key)) {
            return Err(format!("{file}: has key {}", self.key));
        }
        let expected = (versions.min..=versions.max).map(|version| version.to_string());
        if !self.versions.iter().map(|row| row.0.clone()).eq(expected) {
            return Err(format!("{file}: the table of versions has others"));
        }
        let is_paragraph = !self.about.is_empty() && self.about.ends_with('.');
        if is_paragraph { Ok(()) } else { Err(format!("{file}: no paragraph on what it is for")) }
    }
}

macro_rules! files {
    ($($file:literal),* $(,)?) => {
        /// File name without `.rs`, and its text.
        const FILES: &[(&str, &str)] = &[$(($file, include_str!(concat!($file, ".rs")))),*];
    };
}
files!(
    "k00_produce",
    "k01_fetch",
    "k02_list_offsets",
    "k03_metadata",
    "k08_offset_commit",
    "k09_offset_fetch",
    "k10_find_coordinator",
    "k11_join_group",
    "k12_heartbeat",
    "k13_leave_group",
    "k14_sync_group",
    "k15_describe_groups",
    "k16_list_groups",
    "k17_sasl_handshake",
    "k18_api_versions",
    "k19_create_topics",
    "k20_delete_topics",
    "k21_delete_records",
    "k22_init_producer_id",
    "k23_offset_for_leader_epoch",
    "k24_add_partitions_to_txn",
    "k25_add_offsets_to_txn",
    "k26_end_txn",
    "k27_write_txn_markers",
    "k28_txn_offset_commit",
    "k29_describe_acls",
    "k30_create_acls",
    "k31_delete_acls",
    "k32_describe_configs",
    "k33_alter_configs",
    "k34_alter_replica_log_dirs",
    "k35_describe_log_dirs",
    "k36_sasl_authenticate",
    "k37_create_partitions",
    "k38_create_delegation_token",
    "k39_renew_delegation_token",
    "k40_expire_delegation_token",
    "k41_describe_delegation_token",
    "k42_delete_groups",
    "k43_elect_leaders",
    "k44_incremental_alter_configs",
    "k45_alter_partition_reassignments",
    "k46_list_partition_reassignments",
    "k47_offset_delete",
    "k48_describe_client_quotas",
    "k49_alter_client_quotas",
    "k50_describe_user_scram_credentials",
    "k51_alter_user_scram_credentials",
    "k55_describe_quorum",
    "k56_alter_partition",
    "k57_update_features",
    "k58_envelope",
    "k60_describe_cluster",
    "k61_describe_producers",
    "k62_broker_registration",
    "k63_broker_heartbeat",
    "k64_unregister_broker",
    "k65_describe_transactions",
    "k66_list_transactions",
    "k67_allocate_producer_ids",
    "k68_consumer_group_heartbeat",
    "k69_consumer_group_describe",
    "k70_controller_registration",
    "k71_get_telemetry_subscriptions",
    "k72_push_telemetry",
    "k73_assign_replicas_to_dirs",
    "k74_list_config_resources",
    "k75_describe_topic_partitions",
    "k76_share_group_heartbeat",
    "k77_share_group_describe",
    "k78_share_fetch",
    "k79_share_acknowledge",
    "k80_add_raft_voter",
    "k81_remove_raft_voter",
    "k83_initialize_share_group_state",
    "k84_read_share_group_state",
    "k85_write_share_group_state",
    "k86_delete_share_group_state",
    "k87_read_share_group_state_summary",
    "k88_streams_group_heartbeat",
    "k89_streams_group_describe",
    "k90_describe_share_group_offsets",
    "k91_alter_share_group_offsets",
    "k92_delete_share_group_offsets",
    "k93_streams_group_topology_description_update",
    "k94_unregister_controller",
);

/// Every API's header, by key.
pub fn headers() -> Vec<Header> {
    FILES.iter().filter_map(|(file, text)| parse(file, text)).collect()
}

/// The header at the beginning of such a file; `None` for a text that does not begin as an API's file does.
pub fn parse(file: &'static str, text: &str) -> Option<Header> {
    let mut lines = text.lines().map_while(|line| line.strip_prefix("//!").map(str::trim));
    let title = lines.next()?.strip_prefix("# ")?;
    let mut parts = title.split(", ");
    let name = parts.next()?.to_owned();
    let key = parts.next()?.strip_prefix("key ")?.parse().ok()?;
    let range = parts.next()?;
    let range = range.strip_prefix("versions ").or_else(|| range.strip_prefix("version "))?;
    let (min, max) = range.split_once('–').unwrap_or((range, range));
    let mut header = Header {
        file,
        name,
        key,
        min_version: min.parse().ok()?,
        max_version: max.parse().ok()?,
        about: String::new(),
        versions: Vec::new(),
        left_out: Vec::new(),
    };
    let mut in_left_out = false;
    for line in lines {
        if line.starts_with("## ") {
            in_left_out = line == "## Left out";
        } else if let Some(row) = line.strip_prefix('|') {
            let mut cells = row.split('|').map(str::trim);
            let (version, what) = (cells.next()?, cells.next()?);
            if version.starts_with(|letter: char| letter.is_ascii_digit()) {
                header.versions.push((version.to_owned(), what.to_owned()));
            }
        } else if in_left_out {
            match line.strip_prefix("- ") {
                Some(item) => header.left_out.push(item.to_owned()),
                None if line.is_empty() => in_left_out = header.left_out.is_empty(),
                None => push_words(header.left_out.last_mut()?, line),
            }
        } else if header.versions.is_empty() && !line.starts_with("Source:") {
            push_words(&mut header.about, line);
        }
    }
    header.left_out.retain(|item| !item.starts_with("Nothing"));
    Some(header)
}

fn push_words(text: &mut String, line: &str) {
    if !text.is_empty() && !line.is_empty() {
        text.push(' ');
    }
    text.push_str(line);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_header_is_regular_and_true() {
        let headers = headers();
        assert_eq!(headers.len(), FILES.len(), "a header is not in shape");
        assert!(headers.is_sorted_by_key(|header| header.key));
        for header in headers {
            assert_eq!(header.check(), Ok(()));
        }
    }

    #[test]
    fn what_is_answered_is_described() {
        let described: Vec<i16> = headers().iter().map(|header| header.key).collect();
        for key in crate::k18_api_versions::ANSWERED {
            assert!(described.contains(&key.number()), "{key} has no file");
        }
    }
}
