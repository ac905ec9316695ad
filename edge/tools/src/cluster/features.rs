//! `features`, as Kafka's `kafka-features`: shows and changes the cluster's feature levels, and shows their
//! dependencies.
//!
//! Source: Kafka 4.3 `FeatureCommand`.

use super::broker_api_versions;
use crate::command_line::args::{
    GoesWith, action, action_of, check_goes_with, is_given, number, switch, text, texts, value, values,
};
use crate::command_line::connection::{
    bootstrap_controller, bootstrap_server, cluster_config, command_config,
};
use crate::output::kafka_errors::message;
use crate::output::table::{Layout, Table, is_json, output};
use crate::waiting::telling;
use crate::{ToolError, block_on, say};
use barnabas_base::{BrokerId, ErrorCode};
use barnabas_client::Cluster;
use barnabas_metadata::features::{FEATURES, name as feature_name};
use barnabas_metadata::{Feature, MetadataVersion};
use barnabas_wire::messages::UpdateFeaturesRequest;
use barnabas_wire::messages::update_features_request::FeatureUpdateKey;
use clap::{Arg, ArgMatches};
use std::collections::BTreeMap;

const TOOL: &str = "features";
const ACTIONS: &str = "describe|upgrade|downgrade|disable|version-mapping|feature-dependencies";
const CHANGES: &[&str] = &["upgrade", "downgrade", "disable"];
const FLAGS: [GoesWith<'_>; 6] = [
    ("node-id", &["describe"]),
    ("metadata", &["upgrade", "downgrade"]),
    ("release-version", &["upgrade", "downgrade", "version-mapping"]),
    ("feature", &["upgrade", "downgrade", "disable", "feature-dependencies"]),
    ("unsafe", &["downgrade", "disable"]),
    ("dry-run", CHANGES),
];
const TIMEOUT_MS: i32 = 60_000;
/// UpdateFeatures' types of a change.
const UPGRADE: i8 = 1;
const SAFE_DOWNGRADE: i8 = 2;
const UNSAFE_DOWNGRADE: i8 = 3;

pub fn flags() -> Vec<Arg> {
    vec![
        bootstrap_server(),
        bootstrap_controller(),
        command_config(),
        action(ACTIONS),
        value("node-id", "id", "With describe: the node that answers (default: any)"),
        value(
            "metadata",
            "version",
            "With upgrade, downgrade: the older form of --feature metadata.version=LEVEL",
        ),
        value("release-version", "version", "All features of a release. Example: 4.4-IV2"),
        values(
            "feature",
            "feature=level",
            "A feature and its level; with disable the feature alone. May be repeated",
        ),
        switch("unsafe", "With downgrade, disable: even if metadata is lost"),
        switch("dry-run", "With upgrade, downgrade, disable: only validate the change"),
        output(),
    ]
}

pub fn run(matches: &ArgMatches) -> Result<(), ToolError> {
    let action = action_of(matches, ACTIONS)?;
    check_goes_with(matches, action, &FLAGS)?;
    match action {
        "version-mapping" => {
            let version = release(matches)?.unwrap_or(MetadataVersion::LATEST);
            return mapping(version, text(matches, "release-version").unwrap_or(version.name()));
        }
        "feature-dependencies" => {
            let lines = dependencies(texts(matches, "feature")).map_err(ToolError::Plain)?;
            return lines.iter().try_for_each(|line| say(line));
        }
        _ => {}
    }
    let config = cluster_config(matches, "barnabas-features")?;
    let mut cluster = Cluster::new(config);
    block_on(async {
        match action {
            "describe" => describe(&mut cluster, matches).await,
            _ => change(&mut cluster, matches, action).await,
        }
    })
}

/// The version that `--release-version` or `--metadata` names.
fn release(matches: &ArgMatches) -> Result<Option<MetadataVersion>, ToolError> {
    let given = text(matches, "release-version").or(text(matches, "metadata"));
    given.map(version).transpose()
}

fn version(word: &str) -> Result<MetadataVersion, ToolError> {
    MetadataVersion::parse(word).ok_or_else(|| {
        let levels = MetadataVersion::MIN.level()..=MetadataVersion::LATEST.level();
        let known: Vec<&str> =
            levels.filter_map(MetadataVersion::from_level).map(MetadataVersion::name).collect();
        let known = known.join(", ");
        ToolError::Plain(format!(
            "Unknown metadata.version '{word}'. Supported metadata.version are: {known}"
        ))
    })
}

/// `shown`: the version as it was given.
fn mapping(version: MetadataVersion, shown: &str) -> Result<(), ToolError> {
    say(&format!("metadata.version={} ({shown})", version.level()))?;
    let others = FEATURES.iter().filter(|feature| feature.name != feature_name::METADATA);
    let mut others = others.map(|feature| format!("{}={}", feature.name, feature.default_level(version)));
    others.try_for_each(|line| say(&line))
}

/// `name=level`.
fn name_and_level(word: &str) -> Result<(&str, i16), String> {
    let (name, level) = word
        .split_once('=')
        .ok_or_else(|| format!("Can't parse feature=level string {word}: equals sign not found."))?;
    let (name, level) = (name.trim(), level.trim());
    let parsed = level.parse();
    parsed
        .map(|level| (name, level))
        .map_err(|_| format!("Can't parse feature=level string {word}: unable to parse {level} as a short."))
}

fn dependencies<'a>(words: impl Iterator<Item = &'a str>) -> Result<Vec<String>, String> {
    let mut lines = Vec::new();
    for word in words {
        let (name, level) = name_and_level(word)?;
        let feature = Feature::named(name).ok_or_else(|| format!("Unknown feature: {name}"))?;
        if level < feature.min || level > feature.max {
            return Err(match name {
                feature_name::METADATA => format!("No MetadataVersion with feature level {level}"),
                _ => format!("No feature:{name} with feature level {level}"),
            });
        }
        let version = MetadataVersion::from_level(level).filter(|_| name == feature_name::METADATA);
        let shown = version.map_or_else(String::new, |version| format!(" ({version})"));
        let needed = feature.needs_metadata_version(level);
        if name == feature_name::METADATA || needed == MetadataVersion::MIN {
            lines.push(format!("{name}={level}{shown} has no dependencies."));
        } else {
            lines.push(format!("{name}={level}{shown} requires:"));
            lines.push(format!("    metadata.version={} ({needed})", needed.level()));
        }
    }
    Ok(lines)
}

async fn describe(cluster: &mut Cluster, matches: &ArgMatches) -> Result<(), ToolError> {
    let request = broker_api_versions::request();
    let told = match number::<i32>(matches, "node-id")? {
        Some(id) => {
            cluster.nodes().await?;
            cluster.ask(BrokerId(id), &request).await?
        }
        None => cluster.ask_any(&request).await?,
    };
    if told.error_code != 0 {
        return Err(ToolError::Plain(message(ErrorCode::from_code(told.error_code), None)));
    }
    let finalized: BTreeMap<&str, i16> =
        told.finalized_features.iter().map(|row| (row.name.as_str(), row.max_version_level)).collect();
    let epoch = Some(told.finalized_features_epoch).filter(|epoch| *epoch >= 0);
    let epoch = epoch.map_or_else(|| "-".to_owned(), |epoch| epoch.to_string());
    let mut rows: Vec<[String; 5]> = told
        .supported_features
        .iter()
        .map(|row| {
            let name = row.name.as_str();
            let level = |level: i16| shown(name, level);
            let is = finalized.get(name).copied().unwrap_or(0);
            [name.to_owned(), level(row.min_version), level(row.max_version), level(is), epoch.clone()]
        })
        .collect();
    rows.sort();
    if is_json(matches) {
        let mut table = Table::new(Layout::Blanks)
            .text("Feature", 0)
            .text("SupportedMinVersion", 0)
            .text("SupportedMaxVersion", 0)
            .text("FinalizedVersionLevel", 0)
            .number("Epoch", 0);
        rows.into_iter().for_each(|row| table.row(row));
        return table.print(matches);
    }
    rows.iter().try_for_each(|[name, min, max, level, epoch]| {
        say(&format!(
            "Feature: {name:<42}SupportedMinVersion: {min:<17}SupportedMaxVersion: {max:<17}FinalizedVersionLevel: {level:<17}Epoch: {epoch}"
        ))
    })
}

fn shown(feature: &str, level: i16) -> String {
    match (feature, MetadataVersion::from_level(level)) {
        (feature_name::METADATA, Some(version)) => version.to_string(),
        (feature_name::METADATA, None) if level != 0 => format!("UNKNOWN {level}"),
        _ => level.to_string(),
    }
}

/// The level of each feature that is to be changed.
fn wanted(matches: &ArgMatches, action: &str) -> Result<BTreeMap<String, i16>, ToolError> {
    let mut wanted = BTreeMap::new();
    if is_given(matches, "metadata") {
        say(" `metadata` flag is deprecated and may be removed in a future release.")?;
    }
    if let Some(version) = release(matches)? {
        if is_given(matches, "metadata") {
            wanted.insert(feature_name::METADATA.to_owned(), version.level());
        } else {
            let levels =
                FEATURES.iter().map(|feature| (feature.name.to_owned(), feature.default_level(version)));
            wanted.extend(levels.filter(|(_, level)| *level > 0 || action != "upgrade"));
        }
    }
    for word in texts(matches, "feature") {
        let (name, level) = match action {
            "disable" => (word, 0),
            _ => name_and_level(word).map_err(ToolError::Plain)?,
        };
        if wanted.insert(name.to_owned(), level).is_some() {
            return Err(ToolError::Plain(format!("Feature {name} was specified more than once.")));
        }
    }
    match wanted.is_empty() {
        true => Err(ToolError::Plain(format!("You must specify at least one feature to {action}"))),
        false => Ok(wanted),
    }
}

async fn change(cluster: &mut Cluster, matches: &ArgMatches, action: &str) -> Result<(), ToolError> {
    let wanted = wanted(matches, action)?;
    let is_dry = matches.get_flag("dry-run");
    let upgrade_type = match (action, matches.get_flag("unsafe")) {
        ("upgrade", _) => UPGRADE,
        (_, false) => SAFE_DOWNGRADE,
        (_, true) => UNSAFE_DOWNGRADE,
    };
    let update = |(name, level): (&String, &i16)| FeatureUpdateKey {
        feature: name.as_str().into(),
        max_version_level: *level,
        upgrade_type,
        ..Default::default()
    };
    let request = UpdateFeaturesRequest {
        timeout_ms: TIMEOUT_MS,
        feature_updates: wanted.iter().map(update).collect(),
        validate_only: is_dry,
        ..Default::default()
    };
    let config = cluster.config().clone();
    let told = telling(TOOL, config, cluster.ask_controller(|_| request.clone())).await?;
    let mut failures = 0;
    for (name, level) in &wanted {
        let own = told.results.iter().find(|row| *row.feature == **name);
        let (code, why) = match (told.error_code, own) {
            (0, Some(row)) => (row.error_code, row.error_message.as_deref()),
            (code, _) => (code, told.error_message.as_deref()),
        };
        let why = (code != 0).then(|| message(ErrorCode::from_code(code), why));
        failures += usize::from(why.is_some());
        say(&outcome(action, is_dry, name, *level, why.as_deref()))?;
    }
    match failures {
        0 => Ok(()),
        failures => Err(ToolError::Plain(format!("{failures} out of {} operation(s) failed.", wanted.len()))),
    }
}

fn outcome(action: &str, is_dry: bool, name: &str, level: i16, failure: Option<&str>) -> String {
    match (failure, action) {
        (Some(why), _) => {
            let verb = if is_dry { "Can not" } else { "Could not" };
            let to = if action == "disable" { String::new() } else { format!(" to {level}") };
            format!("{verb} {action} {name}{to}. {why}")
        }
        (None, _) => {
            let verb = if is_dry { "can be" } else { "was" };
            let what =
                if action == "disable" { "disabled.".to_owned() } else { format!("{action}d to {level}.") };
            format!("{name} {verb} {what}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_are_worded_as_kafkas() {
        let told = |words: &[&str]| dependencies(words.iter().copied());
        assert_eq!(
            told(&["transaction.version=2", "metadata.version=25"]).expect("known"),
            [
                "transaction.version=2 has no dependencies.",
                "metadata.version=25 (4.0-IV3) has no dependencies."
            ]
        );
        assert_eq!(
            told(&["eligible.leader.replicas.version=1"]).expect("known"),
            ["eligible.leader.replicas.version=1 requires:", "    metadata.version=23 (4.0-IV1)"]
        );
        for (word, why) in [
            ("foo=1", "Unknown feature: foo"),
            ("kraft.version=7", "No feature:kraft.version with feature level 7"),
            ("group.version", "Can't parse feature=level string group.version: equals sign not found."),
            (
                "group.version=x",
                "Can't parse feature=level string group.version=x: unable to parse x as a short.",
            ),
        ] {
            assert_eq!(told(&[word]).expect_err(word), why);
        }
    }

    #[test]
    fn outcomes_are_worded_as_kafkas() {
        assert_eq!(outcome("upgrade", false, "group.version", 1, None), "group.version was upgraded to 1.");
        assert_eq!(outcome("disable", true, "group.version", 0, None), "group.version can be disabled.");
        assert_eq!(
            outcome("downgrade", true, "group.version", 0, Some("No.")),
            "Can not downgrade group.version to 0. No."
        );
        assert_eq!(outcome("disable", false, "x", 0, Some("No.")), "Could not disable x. No.");
    }
}
