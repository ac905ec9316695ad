//! `streams-application-reset`, as Kafka's `kafka-streams-application-reset`: resets the offsets of a Streams
//! application's input topics, and deletes its internal topics.
//!
//! It does what Kafka's tool does, in the same order: members, then offsets, then topics. Topics and partitions are in
//! the order of their names and numbers; those of Kafka's tool come in the order of a hash map.
//!
//! Source: Kafka 4.3 `StreamsResetter`.

use super::description::{Partition, describe};
use super::listing::is_missing;
use super::offsets::{EARLIEST, LATEST, offset_at};
use super::reset::{self, Plan, Scenario, all_partitions};
use super::streams_groups::is_internal_name;
use crate::command_line::args::{excludes, given, renamed, switch, text, texts, value};
use crate::command_line::connection::{bootstrap_server, cluster_config_of};
use crate::output::kafka_errors;
use crate::{ToolError, block_on, say, tell};
use barnabas_base::ErrorCode;
use barnabas_client::{Admin, ClientError, Cluster, Coordinated, check};
use barnabas_wire::messages::leave_group_request::MemberIdentity;
use barnabas_wire::messages::{LeaveGroupRequest, LeaveGroupResponse};
use clap::{Arg, ArgMatches};

const SCENARIOS: &[&str] =
    &["to-offset", "to-datetime", "by-duration", "to-earliest", "to-latest", "from-file", "shift-by"];

pub fn flags() -> Vec<Arg> {
    let list = |name, help| value(name, "topics", help).value_delimiter(',').action(clap::ArgAction::Append);
    vec![
        value("application-id", "id", "The application's application.id").required(true),
        bootstrap_server().default_value("localhost:9092"),
        list("input-topics", "The topics whose offsets are reset, with commas between"),
        list(
            "intermediate-topics",
            "Older: topics that the application writes and reads; it skips to their end",
        ),
        list("internal-topics", "Delete these internal topics alone (default: all of the application)"),
        value("to-offset", "offset", "Reset to this offset"),
        value(
            "to-datetime",
            "datetime",
            "Reset to a time: YYYY-MM-DDTHH:mm:SS.sss, UTC or with a zone behind it",
        ),
        value("by-duration", "duration", "Reset to so long ago: PnDTnHnMnS. Example: PT30M"),
        switch("to-earliest", "Reset to the first offset (the default)"),
        switch("to-latest", "Reset to the end offset"),
        value("from-file", "path", "Reset to the offsets of a file with lines topic,partition,offset"),
        value("shift-by", "number", "Shift the offset by so many, forwards or, below zero, back"),
        value("command-config", "path", "A file with configs of the client"),
        value("config-file", "path", "The older name of --command-config"),
        switch("force", "Remove the members of the group first; stop the application before"),
        switch("dry-run", "Show what would be done, and change nothing"),
    ]
}

pub fn run(matches: &ArgMatches) -> Result<(), ToolError> {
    for flag in SCENARIOS {
        let others: Vec<&str> = SCENARIOS.iter().copied().filter(|other| other != flag).collect();
        excludes(matches, flag, &others)?;
    }
    let file = renamed(matches, "command-config", "config-file")?;
    let config = cluster_config_of(matches, "barnabas-streams-application-reset", file)?;
    let job = Job::new(matches)?;
    let done = block_on(job.reset(&mut Cluster::new(config)));
    match done {
        Ok(true) => Ok(()),
        Ok(false) => Err(ToolError::Code(1)),
        Err(ToolError::Client(error)) => {
            Err(ToolError::Plain(format!("ERROR: {}", kafka_errors::of(&error))))
        }
        Err(error) => Err(error),
    }
}

/// What was asked for.
#[derive(Debug)]
struct Job {
    application: String,
    inputs: Vec<String>,
    intermediates: Vec<String>,
    internals: Vec<String>,
    scenario: Scenario,
    is_forced: bool,
    is_dry: bool,
}

impl Job {
    fn new(matches: &ArgMatches) -> Result<Self, ToolError> {
        let list = |name| texts(matches, name).map(str::to_owned).collect::<Vec<_>>();
        let application = text(matches, "application-id").unwrap_or_default().to_owned();
        let scenario = match given(matches, SCENARIOS).first() {
            Some(flag) => reset::named(matches, flag, &[&application])?,
            None => Scenario::Earliest,
        };
        let intermediates = list("intermediate-topics");
        if !intermediates.is_empty() {
            say("WARN: `--intermediate-topics` is deprecated and will be removed in a future release")?;
        }
        Ok(Self {
            inputs: list("input-topics"),
            intermediates,
            internals: list("internal-topics"),
            scenario,
            is_forced: matches.get_flag("force"),
            is_dry: matches.get_flag("dry-run"),
            application,
        })
    }

    /// `false`: a topic that was named is not there.
    async fn reset(&self, cluster: &mut Cluster) -> Result<bool, ToolError> {
        self.remove_members(cluster).await?;
        let topics = Admin::new(cluster).list_topics().await?;
        let topics: Vec<String> = topics.into_iter().map(|(name, _)| name).collect();
        if self.is_dry {
            say(
                "----Dry run displays the actions which will be performed when running Streams Reset Tool----",
            )?;
        }
        let is_complete = self.reset_offsets(cluster, &topics).await?;
        self.delete_internal(cluster, &topics).await?;
        Ok(is_complete)
    }

    async fn remove_members(&self, cluster: &mut Cluster) -> Result<(), ToolError> {
        let group = &self.application;
        let members = match describe(cluster, group).await {
            Ok(known) => known.members,
            Err(error) if is_missing(&error) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        if members.is_empty() {
            return Ok(());
        }
        if !self.is_forced {
            let ids: Vec<&str> = members.iter().map(|member| member.id.as_str()).collect();
            return Err(ToolError::Plain(format!(
                "ERROR: java.lang.IllegalStateException: Consumer group '{group}' is still active and has following members: \
                 [{}]. Make sure to stop all running application instances before running the reset tool. You can use option \
                 '--force' to remove active members from the group.",
                ids.join(", ")
            )));
        }
        say(&format!("Force deleting all active members in the group: {group}"))?;
        let identity = |member: &super::description::Member| MemberIdentity {
            member_id: member.id.as_str().into(),
            group_instance_id: Some(member.instance.as_str()).filter(|name| !name.is_empty()).map(Into::into),
            reason: Some("removed by streams-application-reset".into()),
            ..Default::default()
        };
        let request = LeaveGroupRequest {
            group_id: group.as_str().into(),
            members: members.iter().map(identity).collect(),
            ..Default::default()
        };
        let code = |answer: &LeaveGroupResponse| answer.error_code;
        let (_, answer) = cluster.ask_coordinator(Coordinated::Group(group), &request, code).await?;
        check(format!("group {group}"), answer.error_code, None)?;
        for member in &answer.members {
            // One that has left by itself is gone too.
            if member.error_code != ErrorCode::UnknownMemberId.code() {
                check(format!("member {}", &*member.member_id), member.error_code, None)?;
            }
        }
        Ok(())
    }

    async fn reset_offsets(&self, cluster: &mut Cluster, topics: &[String]) -> Result<bool, ToolError> {
        if self.inputs.is_empty() && self.intermediates.is_empty() {
            say("No input or intermediate topics specified. Skipping seek.")?;
            return Ok(true);
        }
        for (what, named) in [
            ("Reset-offsets for input topics", &self.inputs),
            ("Seek-to-end for intermediate topics", &self.intermediates),
        ] {
            if !named.is_empty() {
                say(&format!("{what} {}", list(named)))?;
            }
        }
        let (inputs, missing_inputs) = there(&self.inputs, topics);
        let (intermediates, missing_intermediates) = there(&self.intermediates, topics);
        for (what, before, missing) in
            [("input", "Topic: ", &missing_inputs), ("intermediate", "Topic:", &missing_intermediates)]
        {
            if !missing.is_empty() {
                say(&format!("Following {what} topics are not found, skipping them"))?;
                missing.iter().try_for_each(|topic| say(&format!("{before}{topic}")))?;
            }
        }
        let is_complete = missing_inputs.is_empty() && missing_intermediates.is_empty();
        if inputs.is_empty() && intermediates.is_empty() {
            return Ok(is_complete);
        }
        let mut plan = self.input_plan(cluster, &inputs).await?;
        plan.extend(self.intermediate_plan(cluster, &intermediates).await?);
        if !self.is_dry {
            cluster.commit_offsets(&self.application, &plan).await?;
        }
        say("Done.")?;
        Ok(is_complete)
    }

    async fn input_plan(&self, cluster: &mut Cluster, topics: &[String]) -> Result<Plan, ToolError> {
        let mut plan = Plan::new();
        let partitions = partitions(cluster, topics).await?;
        if partitions.is_empty() {
            return Ok(plan);
        }
        say(&format!(
            "Following input topics offsets will be reset to (for consumer group {})",
            self.application
        ))?;
        for partition in partitions {
            let offset = self.target(cluster, &partition).await?;
            plan.insert(partition, offset);
        }
        for ((topic, partition), offset) in &plan {
            say(&format!("Topic: {topic} Partition: {partition} Offset: {offset}"))?;
        }
        Ok(plan)
    }

    async fn intermediate_plan(&self, cluster: &mut Cluster, topics: &[String]) -> Result<Plan, ToolError> {
        let mut plan = Plan::new();
        let partitions = partitions(cluster, topics).await?;
        if partitions.is_empty() {
            return Ok(plan);
        }
        say(&format!(
            "Following intermediate topics offsets will be reset to end (for consumer group {})",
            self.application
        ))?;
        for partition in partitions {
            say(&format!("Topic: {}", partition.0))?;
            let end = edge(cluster, &partition, LATEST).await?;
            plan.insert(partition, end);
        }
        Ok(plan)
    }

    async fn target(&self, cluster: &mut Cluster, partition: &Partition) -> Result<i64, ToolError> {
        match &self.scenario {
            Scenario::Earliest => edge(cluster, partition, EARLIEST).await,
            Scenario::Latest | Scenario::Current => edge(cluster, partition, LATEST).await,
            Scenario::Offset(offset) => within(cluster, partition, *offset).await,
            Scenario::ShiftBy(by) => {
                let committed = cluster.committed_offsets(&self.application).await?;
                let current = match committed.get(partition) {
                    Some(committed) => committed.offset,
                    // Where Kafka's consumer begins without a committed offset.
                    None => edge(cluster, partition, LATEST).await?,
                };
                within(cluster, partition, current.saturating_add(*by)).await
            }
            Scenario::Time(ms) => match offset_at(cluster, partition, *ms).await? {
                Some(offset) => Ok(offset),
                None => {
                    say(&format!(
                        "Partition {} from topic {} is empty, without a committed record. Falling back to latest known offset.",
                        partition.1, partition.0
                    ))?;
                    edge(cluster, partition, LATEST).await
                }
            },
            Scenario::Planned(plans) => {
                let planned = plans.get(&self.application).and_then(|plan| plan.get(partition));
                let planned = planned.ok_or_else(|| {
                    ToolError::Plain(format!(
                        "ERROR: Resetting offsets failed. The file has no offset for {}-{}",
                        partition.0, partition.1
                    ))
                })?;
                within(cluster, partition, *planned).await
            }
        }
    }

    async fn delete_internal(&self, cluster: &mut Cluster, topics: &[String]) -> Result<(), ToolError> {
        let is_inferred = |topic: &&String| {
            !self.inputs.contains(topic)
                && !self.intermediates.contains(topic)
                && is_internal_name(topic, &self.application)
        };
        let inferred: Vec<String> = topics.iter().filter(is_inferred).cloned().collect();
        let chosen = if self.internals.is_empty() {
            say(&format!("Deleting inferred internal topics {}", list(&inferred)))?;
            inferred
        } else {
            if !self.internals.iter().all(|topic| inferred.contains(topic)) {
                return Err(ToolError::Plain(
                    "ERROR: java.lang.IllegalArgumentException: Invalid topic specified in the --internal-topics option. Ensure \
                     that the topics specified are all internal topics. Do a dry run without the --internal-topics option to see \
                     the list of all internal topics that can be deleted."
                        .to_owned(),
                ));
            }
            say(&format!("Deleting specified internal topics {}", list(&self.internals)))?;
            self.internals.clone()
        };
        if !self.is_dry {
            delete_topics(cluster, &chosen).await?;
        }
        say("Done.")
    }
}

async fn delete_topics(cluster: &mut Cluster, topics: &[String]) -> Result<(), ToolError> {
    let mut has_failed = false;
    for topic in topics {
        match Admin::new(cluster).delete_topic(topic).await {
            Ok(()) => {}
            Err(error @ ClientError::Refused { .. }) => {
                tell(&format!("ERROR: deleting topic {topic}: {error}"));
                has_failed = true;
            }
            Err(error) => return Err(error.into()),
        }
    }
    if has_failed {
        return Err(ToolError::Plain(
            "ERROR: java.lang.RuntimeException: Encountered an error deleting one or more topics".to_owned(),
        ));
    }
    Ok(())
}

/// The named topics that are there, each once and in order, and those that are not.
fn there(named: &[String], topics: &[String]) -> (Vec<String>, Vec<String>) {
    let (mut there, missing): (Vec<String>, Vec<String>) =
        named.iter().cloned().partition(|topic| topics.contains(topic));
    there.sort();
    there.dedup();
    (there, missing)
}

async fn partitions(cluster: &mut Cluster, topics: &[String]) -> Result<Vec<Partition>, ToolError> {
    let mut all = Vec::new();
    for topic in topics {
        all.extend(all_partitions(cluster, topic).await?);
    }
    all.sort();
    Ok(all)
}

async fn edge(cluster: &mut Cluster, partition: &Partition, timestamp: i64) -> Result<i64, ToolError> {
    let missing = || {
        let what = format!("{}-{}", partition.0, partition.1);
        ClientError::refused(what, ErrorCode::LeaderNotAvailable.code(), None)
    };
    Ok(offset_at(cluster, partition, timestamp).await?.ok_or_else(missing)?)
}

async fn within(cluster: &mut Cluster, partition: &Partition, offset: i64) -> Result<i64, ToolError> {
    let (first, end) = (edge(cluster, partition, EARLIEST).await?, edge(cluster, partition, LATEST).await?);
    let (taken, warning) = bounded(offset, first, end);
    warning.map_or(Ok(()), |warning| say(&warning))?;
    Ok(taken)
}

/// An offset between the first and the end. As with Kafka's tool, one that is equal to either is warned of too.
fn bounded(offset: i64, first: i64, end: i64) -> (i64, Option<String>) {
    let moved = |is: &str, what: &str, to: i64| {
        let warning = format!("New offset ({offset}) is {is} than {what} offset. Value will be set to {to}");
        (to, Some(warning))
    };
    match offset {
        offset if offset >= end => moved("higher", "latest", end),
        offset if offset <= first => moved("lower", "earliest", first),
        offset => (offset, None),
    }
}

/// As Java writes a list.
fn list(topics: &[String]) -> String {
    format!("[{}]", topics.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(words: &str) -> Result<Job, String> {
        let words = format!("streams-application-reset --application-id app {words}");
        let command = clap::Command::new("streams-application-reset").args(flags());
        let matches =
            command.try_get_matches_from(words.split_whitespace()).map_err(|error| error.to_string())?;
        Job::new(&matches).map_err(|error| error.to_string())
    }

    #[test]
    fn topics_are_lists_with_commas() {
        let read =
            job("--input-topics a,b --input-topics c --internal-topics app-x-changelog").expect("a job");
        assert_eq!(
            (list(&read.inputs), list(&read.internals)),
            ("[a, b, c]".into(), "[app-x-changelog]".into())
        );
        assert_eq!((read.scenario, read.is_dry), (Scenario::Earliest, false));
    }

    #[test]
    fn scenario_is_the_flag_that_is_given() {
        let of = |words| job(words).expect("a job").scenario;
        assert_eq!(of("--to-latest"), Scenario::Latest);
        assert_eq!(of("--shift-by -3"), Scenario::ShiftBy(-3));
        assert_eq!(of("--to-offset 7"), Scenario::Offset(7));
        assert!(job("--to-datetime noon").is_err());
    }

    #[test]
    fn offsets_at_the_bounds_are_warned_of_as_by_kafka() {
        let set = |offset| bounded(offset, 2, 9);
        assert_eq!(set(5), (5, None));
        let (taken, warning) = set(9);
        let expected = "New offset (9) is higher than latest offset. Value will be set to 9";
        assert_eq!((taken, warning.as_deref()), (9, Some(expected)));
        let (taken, warning) = set(-4);
        let expected = "New offset (-4) is lower than earliest offset. Value will be set to 2";
        assert_eq!((taken, warning.as_deref()), (2, Some(expected)));
    }

    #[test]
    fn topics_that_are_missing_are_told_apart() {
        let named = ["b", "a", "x", "a"].map(str::to_owned);
        let (known, missing) = there(&named, &["a", "b"].map(str::to_owned));
        assert_eq!((known, missing), (vec!["a".to_owned(), "b".to_owned()], vec!["x".to_owned()]));
    }
}
