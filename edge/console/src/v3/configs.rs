//! Configurations of topics, of one broker, and of all brokers together (their dynamic defaults).

use super::check_cluster;
use super::clusters::no_broker;
use crate::http::call::{Answer, Call, Fields};
use crate::http::problem::Problem;
use crate::kafka::configs::{self, Change, Operation, Resource};
use crate::kafka::metadata;
use barnabas_wire::messages::describe_configs_response::DescribeConfigsResourceResult as Config;
use serde_json::{Value, json};

/// How many topics one request describes.
const TOPICS_AT_ONCE: usize = 500;

/// The resource that a path names, and its place in it.
struct Named {
    resource: Resource,
    place: Vec<String>,
}

impl Named {
    fn topic(name: &str) -> Self {
        let place = vec!["topics".to_owned(), name.to_owned(), "configs".to_owned()];
        Self { resource: Resource::Topic(name.to_owned()), place }
    }

    fn all_brokers() -> Self {
        Self { resource: Resource::AllBrokers, place: vec!["broker-configs".to_owned()] }
    }

    async fn broker(call: &mut Call) -> Result<Self, Problem> {
        let id = call.at.number("broker")?;
        let node = metadata::broker(&mut call.cluster, id).await?.ok_or_else(|| no_broker(id))?;
        let place = vec!["brokers".to_owned(), id.to_string(), "configs".to_owned()];
        Ok(Self { resource: Resource::Broker(node), place })
    }

    fn place(&self) -> Vec<&str> {
        self.place.iter().map(String::as_str).collect()
    }

    fn list_kind(&self) -> &'static str {
        match self.resource {
            Resource::Topic(_) => "KafkaTopicConfigList",
            Resource::Broker(_) => "KafkaBrokerConfigList",
            Resource::AllBrokers => "KafkaClusterConfigList",
        }
    }

    async fn list(self, call: &mut Call) -> Result<Answer, Problem> {
        let rows = self.described(call).await?;
        let rows = rows.iter().map(|config| self.document(call, config)).collect();
        Ok(call.list(self.list_kind(), &self.place(), rows))
    }

    /// Of all brokers together only what is set: the rest is each broker's own.
    async fn described(&self, call: &mut Call) -> Result<Vec<Config>, Problem> {
        let described = configs::describe(&mut call.cluster, std::slice::from_ref(&self.resource)).await?;
        Ok(described.into_iter().next().unwrap_or_default())
    }

    async fn get(self, call: &mut Call) -> Result<Answer, Problem> {
        let name = call.at.param("name").to_owned();
        let rows = self.described(call).await?;
        let found = rows.iter().find(|config| *config.name == *name);
        let found = found.ok_or_else(|| Problem::not_found(format!("no config has the name {name}")))?;
        Ok(Answer::json(self.document(call, found)))
    }

    async fn set(self, call: &mut Call) -> Result<Answer, Problem> {
        let value = Some(call.fields_of(&["value"])?.needed_text("value")?);
        self.change(call, Operation::Set, value).await
    }

    async fn reset(self, call: &mut Call) -> Result<Answer, Problem> {
        self.change(call, Operation::Delete, None).await
    }

    async fn change(
        self,
        call: &mut Call,
        operation: Operation,
        value: Option<String>,
    ) -> Result<Answer, Problem> {
        let change = Change { name: call.at.param("name").to_owned(), operation, value };
        configs::alter(&mut call.cluster, &self.resource, &[change], false).await?;
        Ok(Answer::nothing())
    }

    async fn alter(self, call: &mut Call) -> Result<Answer, Problem> {
        let fields = call.fields_of(&["data", "validate_only"])?;
        let changes: Vec<Change> = fields.objects("data")?.iter().map(change).collect::<Result<_, _>>()?;
        if changes.is_empty() {
            return Err(Problem::bad("data is missing, or empty"));
        }
        let validate_only = fields.is_true("validate_only")?;
        configs::alter(&mut call.cluster, &self.resource, &changes, validate_only).await?;
        Ok(Answer::nothing())
    }

    fn document(&self, call: &Call, config: &Config) -> Value {
        let name = &*config.name;
        let place = [&self.place()[..], &[name]].concat();
        let synonym =
            |synonym: &barnabas_wire::messages::describe_configs_response::DescribeConfigsSynonym| {
                json!({
                    "name": &*synonym.name,
                    "value": synonym.value.as_deref(),
                    "source": configs::source(synonym.source),
                })
            };
        let mut document = json!({
            "cluster_id": call.cluster.id(),
            "name": name,
            "value": config.value.as_deref(),
            "is_default": config.config_source == 5,
            "is_read_only": config.read_only,
            "is_sensitive": config.is_sensitive,
            "source": configs::source(config.config_source),
            "synonyms": config.synonyms.iter().map(synonym).collect::<Vec<_>>(),
        });
        let (kind, crn) = match &self.resource {
            Resource::Topic(topic) => {
                document["topic_name"] = topic.as_str().into();
                ("KafkaTopicConfig", format!("topic={topic}/config={name}"))
            }
            Resource::Broker(id) => {
                document["broker_id"] = id.get().into();
                ("KafkaBrokerConfig", format!("broker={id}/config={name}"))
            }
            Resource::AllBrokers => {
                document["config_type"] = "BROKER".into();
                ("KafkaClusterConfig", format!("broker-config={name}"))
            }
        };
        document["kind"] = kind.into();
        document["metadata"] = call.metadata(&place, &crn);
        document
    }
}

fn change(row: &Fields) -> Result<Change, Problem> {
    row.only(&["name", "value", "operation"])?;
    let word = row.text("operation")?.unwrap_or_else(|| "SET".to_owned());
    let operation = Operation::parse(&word).ok_or_else(|| {
        Problem::bad(format!(
            "operation takes SET, DELETE, APPEND or SUBTRACT, not '{}'",
            word.escape_debug()
        ))
    })?;
    let value = row.text("value")?;
    if operation != Operation::Delete && value.is_none() {
        return Err(Problem::bad(format!("{word} needs a value")));
    }
    let value = value.filter(|_| operation != Operation::Delete);
    Ok(Change { name: row.needed_text("name")?, operation, value })
}

pub async fn of_topic(call: &mut Call) -> Result<Answer, Problem> {
    topic_of(call)?.list(call).await
}

pub async fn get_of_topic(call: &mut Call) -> Result<Answer, Problem> {
    topic_of(call)?.get(call).await
}

pub async fn set_of_topic(call: &mut Call) -> Result<Answer, Problem> {
    topic_of(call)?.set(call).await
}

pub async fn reset_of_topic(call: &mut Call) -> Result<Answer, Problem> {
    topic_of(call)?.reset(call).await
}

pub async fn alter_topic(call: &mut Call) -> Result<Answer, Problem> {
    topic_of(call)?.alter(call).await
}

fn topic_of(call: &Call) -> Result<Named, Problem> {
    check_cluster(call)?;
    Ok(Named::topic(call.at.param("topic")))
}

/// Of all topics that the caller may see.
pub async fn of_every_topic(call: &mut Call) -> Result<Answer, Problem> {
    check_cluster(call)?;
    let topics = metadata::topics(&mut call.cluster).await?;
    let names: Vec<String> =
        topics.iter().filter_map(|topic| topic.name.as_ref()).map(|name| name.to_string()).collect();
    let mut rows = Vec::new();
    for some in names.chunks(TOPICS_AT_ONCE) {
        let resources: Vec<Resource> = some.iter().map(|name| Resource::Topic(name.clone())).collect();
        let described = configs::describe(&mut call.cluster, &resources).await?;
        for (name, configs) in some.iter().zip(described) {
            let named = Named::topic(name);
            rows.extend(configs.iter().map(|config| named.document(call, config)));
        }
    }
    Ok(call.list("KafkaTopicConfigList", &["topics", "-", "configs"], rows))
}

pub async fn of_broker(call: &mut Call) -> Result<Answer, Problem> {
    check_cluster(call)?;
    Named::broker(call).await?.list(call).await
}

pub async fn get_of_broker(call: &mut Call) -> Result<Answer, Problem> {
    check_cluster(call)?;
    Named::broker(call).await?.get(call).await
}

pub async fn set_of_broker(call: &mut Call) -> Result<Answer, Problem> {
    check_cluster(call)?;
    Named::broker(call).await?.set(call).await
}

pub async fn reset_of_broker(call: &mut Call) -> Result<Answer, Problem> {
    check_cluster(call)?;
    Named::broker(call).await?.reset(call).await
}

pub async fn alter_broker(call: &mut Call) -> Result<Answer, Problem> {
    check_cluster(call)?;
    Named::broker(call).await?.alter(call).await
}

/// Of each broker in turn.
pub async fn of_every_broker(call: &mut Call) -> Result<Answer, Problem> {
    check_cluster(call)?;
    let mut rows = Vec::new();
    for node in call.cluster.nodes().await? {
        let place = vec!["brokers".to_owned(), node.to_string(), "configs".to_owned()];
        let named = Named { resource: Resource::Broker(node), place };
        let described = named.described(call).await?;
        rows.extend(described.iter().map(|config| named.document(call, config)));
    }
    Ok(call.list("KafkaBrokerConfigList", &["brokers", "-", "configs"], rows))
}

pub async fn of_all_brokers(call: &mut Call) -> Result<Answer, Problem> {
    check_cluster(call)?;
    Named::all_brokers().list(call).await
}

pub async fn get_of_all_brokers(call: &mut Call) -> Result<Answer, Problem> {
    check_cluster(call)?;
    Named::all_brokers().get(call).await
}

pub async fn set_of_all_brokers(call: &mut Call) -> Result<Answer, Problem> {
    check_cluster(call)?;
    Named::all_brokers().set(call).await
}

pub async fn reset_of_all_brokers(call: &mut Call) -> Result<Answer, Problem> {
    check_cluster(call)?;
    Named::all_brokers().reset(call).await
}

pub async fn alter_all_brokers(call: &mut Call) -> Result<Answer, Problem> {
    check_cluster(call)?;
    Named::all_brokers().alter(call).await
}
