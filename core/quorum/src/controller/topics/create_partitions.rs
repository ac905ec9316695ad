//! CreatePartitions: more partitions for topics that there are.
//!
//! Source: KIP-195; Kafka `ReplicationControlManager.createPartitions`, `ControllerApis.createPartitions`.

use barnabas_base::{ErrorCode, Map, PartitionIndex, Set};
use barnabas_metadata::topics::PARTITIONS_PER_TOPIC_MAX;
use barnabas_wire::MetadataRecord;
use barnabas_wire::messages::create_partitions_request::CreatePartitionsTopic;
use barnabas_wire::messages::create_partitions_response::CreatePartitionsTopicResult;
use barnabas_wire::messages::{CreatePartitionsRequest, CreatePartitionsResponse};

use crate::controller::topics::create_topics::{Spread, check_assignment, place};
use crate::controller::{Case, Outcome, Refusal, Sentences, limits};

pub(crate) fn create(case: &mut Case<'_>, request: &CreatePartitionsRequest) -> Outcome {
    let mut count: Map<&str, u32> = Map::default();
    for topic in &request.topics {
        *count.entry(&*topic.name).or_default() += 1;
    }
    let within_bounds = check_bounds(case, request);
    let mut told = Set::default();
    let mut sentences = Sentences::default();
    let mut records = Vec::new();
    let mut results = Vec::new();
    for topic in &request.topics {
        if !told.insert(&*topic.name) {
            continue;
        }
        let twice = count.get(&*topic.name).is_some_and(|&count| count > 1);
        let created = if twice {
            Err(Refusal::new(ErrorCode::InvalidRequest, "Duplicate topic name."))
        } else {
            within_bounds.clone().and_then(|()| create_for(case, topic, request.validate_only, &mut records))
        };
        results.push(result(topic, created.err().as_ref(), &mut sentences));
    }
    let topics = request.topics.clone();
    let throttle_time_ms = case.budget.throttle_ms();
    let response =
        CreatePartitionsResponse { results, throttle_time_ms, ..CreatePartitionsResponse::default() };
    Outcome::atomic(records, response, move |why| {
        let refusal = Refusal::new(ErrorCode::PolicyViolation, why);
        let mut sentences = Sentences::default();
        let results = topics.iter().map(|topic| result(topic, Some(&refusal), &mut sentences)).collect();
        CreatePartitionsResponse { results, ..CreatePartitionsResponse::default() }.into()
    })
}

fn check_bounds(case: &Case<'_>, request: &CreatePartitionsRequest) -> Result<(), Refusal> {
    let more = |topic: &CreatePartitionsTopic| {
        let have = case.image.topics.by_name(&topic.name).map_or(0, |topic| topic.partition_count());
        (i64::from(topic.count) - have as i64).max(0)
    };
    limits::check_named(case.config, request.topics.len(), "topics")?;
    let total: i64 = request.topics.iter().map(more).sum();
    limits::check_request(case.config, limits::PARTITIONS_PER_REQUEST, total, "partitions")
}

fn result(
    topic: &CreatePartitionsTopic,
    refusal: Option<&Refusal>,
    sentences: &mut Sentences,
) -> CreatePartitionsTopicResult {
    let (error_code, error_message) = sentences.fields(refusal);
    CreatePartitionsTopicResult {
        name: topic.name.clone(),
        error_code,
        error_message,
        ..CreatePartitionsTopicResult::default()
    }
}

fn create_for(
    case: &mut Case<'_>,
    wanted: &CreatePartitionsTopic,
    validate_only: bool,
    records: &mut Vec<MetadataRecord>,
) -> Result<(), Refusal> {
    let image = case.image;
    let topic = image.topics.by_name(&wanted.name).ok_or_else(|| {
        let why = "This server does not host this topic-partition.";
        Refusal::new(ErrorCode::UnknownTopicOrPartition, why)
    })?;
    let have = topic.partition_count();
    let want = usize::try_from(wanted.count).unwrap_or(0);
    if want <= have {
        let message = if want == have {
            format!("Topic already has {have} partition(s).")
        } else {
            format!(
                "The topic {} currently has {have} partition(s); {} would not be an increase.",
                wanted.name, wanted.count
            )
        };
        return Err(Refusal::new(ErrorCode::InvalidPartitions, message));
    }
    let more = want - have;
    if wanted.count > PARTITIONS_PER_TOPIC_MAX {
        let message = format!("a topic has at most {PARTITIONS_PER_TOPIC_MAX} partitions");
        return Err(Refusal::new(ErrorCode::InvalidPartitions, message));
    }
    let first = topic.partition(PartitionIndex(0));
    let replicas = first.map_or(1, |partition| partition.replicas().len());
    let spread = match &wanted.assignments {
        None => place(case, more, i16::try_from(replicas).unwrap_or(i16::MAX))?,
        Some(given) if given.len() != more => {
            return Err(Refusal::new(
                ErrorCode::InvalidReplicaAssignment,
                format!(
                    "Attempted to add {more} additional partition(s), but only {} assignment(s) were specified.",
                    given.len()
                ),
            ));
        }
        Some(given) => {
            let check = |(offset, assignment): (usize, &_)| {
                let assignment: &barnabas_wire::messages::create_partitions_request::CreatePartitionsAssignment =
                    assignment;
                check_assignment(image, (have + offset) as i32, &assignment.broker_ids, Some(replicas))
            };
            Spread::Manual(given.iter().enumerate().map(check).collect::<Result<_, _>>()?)
        }
    };
    limits::check_directory_name(&wanted.name, want)?;
    case.room.take_partitions(more)?;
    case.budget.take(more)?;
    if validate_only {
        return Ok(());
    }
    spread.write(case, topic.id, PartitionIndex(have as i32), records);
    Ok(())
}
