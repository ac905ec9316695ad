//! Why an operation is allowed or denied, who may do something, which ACLs have no effect.
//!
//! Asks the cluster for its ACLs and judges them here with the authorizer that our brokers have, so it works with
//! Apache Kafka's too. `super.users` and `allow.everyone.if.no.acl.found` are taken from a broker's configuration where
//! it shows them; where it does not, the answer says so.

use super::entries::check_principal;
use super::patterns::{binding, of_acl, operation, pascal, resource};
use super::requests;
use crate::ToolError;
use crate::command_line::args::{text, texts};
use barnabas_base::ErrorCode;
use barnabas_client::{ClientError, Cluster};
use barnabas_metadata::Image;
use barnabas_metadata::access::{Acl, Acls};
use barnabas_security::acl::WILDCARD;
use barnabas_security::explain::{Explanation, Question, explain, who_can};
use barnabas_security::review::{shadowed, without_resource};
use barnabas_security::{Authorizer, Host, Operation, ResourceType, SuperUsers};
use barnabas_wire::messages::describe_configs_request::DescribeConfigsResource;
use barnabas_wire::messages::{DescribeConfigsRequest, ListGroupsRequest};
use clap::ArgMatches;

/// DescribeConfigs' number for a broker.
const BROKER: i8 = 4;
/// Ours: Kafka's brokers do not list it.
const SHADOW: &str = "authorizer.shadow";

/// What is asked for.
#[derive(Debug)]
pub enum Advice {
    Explain {
        principal: String,
        operation: Operation,
        resource: (ResourceType, String),
        host: Option<String>,
        /// The flags by which the cluster was reached, for the commands that are advised.
        reach: String,
    },
    WhoCan {
        operation: Operation,
        resource: (ResourceType, String),
    },
    Shadowed,
    WithoutResource,
}

/// The settings that an authorizer has besides ACLs, as far as a broker shows them.
#[derive(Debug, Default)]
struct Settings {
    super_users: Option<SuperUsers>,
    /// It has some, and hides them: Kafka's brokers treat keys that are no broker's own as secrets.
    hides_super_users: bool,
    allow_everyone: Option<bool>,
    /// The broker that was asked only reports denials (`authorizer.shadow`).
    is_shadow: bool,
}

impl Advice {
    /// # Errors
    /// A word that is no principal, operation or resource.
    pub fn read(matches: &ArgMatches, action: &str) -> Result<Self, ToolError> {
        let words: Vec<&str> = if ["explain", "who-can"].contains(&action) {
            texts(matches, action).collect()
        } else {
            Vec::new()
        };
        let operation = |word: &str| {
            let example = "Read, Write, Create, Describe, Alter, Delete, DescribeConfigs …";
            operation(word).ok_or_else(|| {
                ToolError::Usage(format!("no operation is called '{word}': expected {example}"))
            })
        };
        let resource = |word: &str| {
            let expected =
                "topic:NAME, group:NAME, cluster, transactional-id:ID, delegation-token:ID or user:PRINCIPAL";
            resource(word)
                .ok_or_else(|| ToolError::Usage(format!("'{word}' is no resource: expected {expected}")))
        };
        match (action, &words[..]) {
            ("explain", [principal, asked, on, host @ ..]) if host.len() < 2 => {
                check_principal(principal)?;
                let (operation, resource) = (operation(asked)?, resource(on)?);
                if operation != Operation::All && !resource.0.operations().contains(&operation) {
                    let known: Vec<&str> = resource.0.operations().iter().map(|known| known.name()).collect();
                    return Err(ToolError::Usage(format!(
                        "no request asks for {} on a {}, but for {}",
                        operation.name(),
                        resource.0.name(),
                        known.join(", ")
                    )));
                }
                Ok(Self::Explain {
                    principal: (*principal).to_owned(),
                    operation,
                    resource,
                    host: host.first().map(|host| (*host).to_owned()),
                    reach: reach(matches),
                })
            }
            ("who-can", [asked, on]) => {
                Ok(Self::WhoCan { operation: operation(asked)?, resource: resource(on)? })
            }
            ("shadowed", _) => Ok(Self::Shadowed),
            ("without-resource", _) => Ok(Self::WithoutResource),
            _ => Err(ToolError::Usage(format!("--{action} is given once"))),
        }
    }

    /// # Errors
    /// The cluster's refusal: CLUSTER_AUTHORIZATION_FAILED, SECURITY_DISABLED.
    pub async fn lines(&self, cluster: &mut Cluster) -> Result<Vec<String>, ClientError> {
        let acls = requests::acls(cluster, &[]).await?;
        match self {
            Self::Explain { principal, operation, resource, host, reach } => {
                let settings = settings(cluster).await;
                let question = Question {
                    principal,
                    host: &Host::parse(host.as_deref().unwrap_or(WILDCARD)),
                    operation: *operation,
                    resource_type: resource.0,
                    resource_name: &resource.1,
                };
                Ok(explained(acls, settings, &question, reach))
            }
            Self::WhoCan { operation, resource } => {
                let mut lines = listed_callers(&acls, *operation, resource);
                lines.push(match settings(cluster).await.super_users {
                    Some(users) => {
                        let users: Vec<&str> = users.iter().map(|user| &**user).collect();
                        let users = if users.is_empty() { "none".to_owned() } else { users.join(", ") };
                        format!("Super users may do everything: {users}")
                    }
                    None => "Super users may do everything. The broker does not show super.users".to_owned(),
                });
                Ok(lines)
            }
            Self::Shadowed => Ok(without_effect(&acls)),
            Self::WithoutResource => unmatched(cluster, &acls).await,
        }
    }
}

fn explained(acls: Acls, settings: Settings, question: &Question<'_>, reach: &str) -> Vec<String> {
    let image = Image { acls, ..Image::default() };
    let super_users = settings.super_users.clone().unwrap_or_default();
    let authorizer = Authorizer::new(&image, super_users, settings.allow_everyone.unwrap_or(false));
    let caller = authorizer.caller(question.principal, question.host);
    let Question { principal, operation, resource_type, resource_name, .. } = *question;
    let verdict = authorizer.decide(&caller, operation, resource_type, resource_name);
    let outcome = match verdict.is_allowed() {
        true => "ALLOWED",
        false if settings.hides_super_users => {
            "DENIED, unless it is one of super.users, which the broker hides"
        }
        false => "DENIED",
    };
    let host = question.host.text();
    let from = if host == WILDCARD { "any host".to_owned() } else { host.to_owned() };
    let mut lines =
        vec![format!("{outcome}: {principal}, {operation} on {resource_type}:{resource_name} from {from}")];
    match explain(&image.acls, question, verdict) {
        Explanation::SuperUser => {
            lines.push("The principal is one of super.users: no ACL counts.".to_owned())
        }
        Explanation::Allowed { acl, .. } => lines.push(format!("This ACL allows it:\n\t{}", binding(acl))),
        Explanation::Denied { acl, .. } => lines.push(format!(
            "This ACL denies it, and a DENY counts before every ALLOW:\n\t{}\nTo remove it:\n\t{}",
            binding(acl),
            command(reach, "--remove", acl)
        )),
        Explanation::AllowedWithoutAcls => lines.push(
            "The resource has no ACLs, and allow.everyone.if.no.acl.found is true on the broker.".to_owned(),
        ),
        Explanation::Missing { acl } => lines.push(format!(
            "No ACL allows it. This one would:\n\t{}\nTo add it:\n\t{}",
            binding(&acl),
            command(reach, "--add", &acl)
        )),
    }
    lines.extend(reservations(&settings, host == WILDCARD, verdict.is_allowed()));
    lines
}

/// What the answer could not take into account.
fn reservations(settings: &Settings, is_any_host: bool, is_allowed: bool) -> Vec<String> {
    let mut lines = Vec::new();
    if settings.is_shadow && !is_allowed {
        lines.push(
            "authorizer.shadow is true on the broker: it carries the request out all the same, and logs that it would \
             be denied."
                .to_owned(),
        );
    }
    if is_any_host {
        lines.push(
            "ACLs of single hosts were not counted. Give the client's address as the fourth word.".to_owned(),
        );
    }
    if settings.super_users.is_none() && !is_allowed {
        let how = if settings.hides_super_users {
            "has super.users and hides them"
        } else {
            "does not show super.users"
        };
        lines.push(format!("The broker {how}: a super user may do it all the same."));
    }
    if settings.allow_everyone.is_none() && !is_allowed {
        lines.push(
            "The broker does not show allow.everyone.if.no.acl.found: taken as false, its default."
                .to_owned(),
        );
    }
    lines
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = word.chars().all(|letter| letter.is_ascii_alphanumeric() || "._:-/,".contains(letter));
    if is_plain { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

/// The flags of this command line that reach the cluster.
fn reach(matches: &ArgMatches) -> String {
    let flags = ["bootstrap-server", "bootstrap-controller", "command-config"];
    let given = flags.iter().filter_map(|flag| Some(format!(" --{flag} {}", quoted(text(matches, flag)?))));
    given.collect()
}

/// The command that adds or removes one ACL.
fn command(reach: &str, action: &str, acl: &Acl) -> String {
    let (pattern, _) = of_acl(acl);
    let name = &pattern.name;
    let resource = match ResourceType::from_code(acl.resource_type) {
        Some(ResourceType::Topic) => format!("--topic {}", quoted(name)),
        Some(ResourceType::Group) => format!("--group {}", quoted(name)),
        Some(ResourceType::TransactionalId) => format!("--transactional-id {}", quoted(name)),
        Some(ResourceType::DelegationToken) => format!("--delegation-token {}", quoted(name)),
        Some(ResourceType::User) => format!("--user-principal {}", quoted(name)),
        Some(ResourceType::Cluster) | None => "--cluster".to_owned(),
    };
    let prefixed = if pattern.pattern_type == 4 { " --resource-pattern-type prefixed" } else { "" };
    let who = if acl.permission == 2 { "deny" } else { "allow" };
    let host =
        if &*acl.host == WILDCARD { String::new() } else { format!(" --{who}-host {}", quoted(&acl.host)) };
    let operation = Operation::from_code(acl.operation).map(pascal).unwrap_or_default();
    let principal = quoted(&acl.principal);
    format!(
        "barnabas acls{reach} {action} --{who}-principal {principal}{host} --operation {operation} {resource}{prefixed}"
    )
}

fn listed_callers(acls: &Acls, operation: Operation, (kind, name): &(ResourceType, String)) -> Vec<String> {
    let found = who_can(acls, operation, *kind, name);
    let mut lines = vec![format!("{operation} on {kind}:{name}")];
    let row = |(_, acl): &(_, &Acl)| format!("\t{} from {} by {}", acl.principal, acl.host, binding(acl));
    if found.allowed.is_empty() {
        lines.push("No ACL allows it to any principal.".to_owned());
    } else {
        lines.push("Allowed:".to_owned());
        lines.extend(found.allowed.iter().map(row));
    }
    if !found.denied.is_empty() {
        lines.push("Except, since denied:".to_owned());
        lines.extend(found.denied.iter().map(row));
    }
    lines
}

fn without_effect(acls: &Acls) -> Vec<String> {
    let found = shadowed(acls);
    if found.is_empty() {
        return vec!["No ACL is made useless by another one.".to_owned()];
    }
    let row = |one: &barnabas_security::review::Shadowed| {
        format!("{}\n\thas no effect because of\n\t{}", binding(&acls[&one.acl]), binding(&acls[&one.by]))
    };
    found.iter().map(row).collect()
}

async fn unmatched(cluster: &mut Cluster, acls: &Acls) -> Result<Vec<String>, ClientError> {
    let topics: Vec<String> = cluster
        .refresh(None, false)
        .await?
        .topics
        .iter()
        .filter_map(|topic| topic.name.as_ref().map(ToString::to_string))
        .collect();
    let mut groups: Vec<String> = Vec::new();
    for node in cluster.nodes().await? {
        let answer = cluster.ask(node, &ListGroupsRequest::default()).await?;
        if answer.error_code != 0 {
            return Err(ClientError::refused(format!("listing groups of {node}"), answer.error_code, None));
        }
        groups.extend(answer.groups.iter().map(|group| group.group_id.to_string()));
    }
    let mut lines = Vec::new();
    for (kind, names) in [(ResourceType::Topic, &topics), (ResourceType::Group, &groups)] {
        let found = without_resource(acls, kind, names.iter().map(String::as_str));
        lines.extend(found.iter().map(|id| binding(&acls[id])));
    }
    if lines.is_empty() {
        lines.push("Every ACL of topics and groups matches one that there is.".to_owned());
    }
    Ok(lines)
}

/// Not shown, not allowed, or no broker at hand: all the same here, and said with the answer.
async fn settings(cluster: &mut Cluster) -> Settings {
    let mut settings = Settings::default();
    let Ok(nodes) = cluster.nodes().await else { return settings };
    let Some(node) = nodes.first() else { return settings };
    let keys = ["super.users", "allow.everyone.if.no.acl.found", SHADOW];
    let resource = DescribeConfigsResource {
        resource_type: BROKER,
        resource_name: node.to_string().as_str().into(),
        configuration_keys: Some(keys.iter().map(|key| (*key).into()).collect()),
        ..Default::default()
    };
    let request = DescribeConfigsRequest { resources: vec![resource], ..Default::default() };
    let Ok(answer) = cluster.ask(*node, &request).await else { return settings };
    let told = answer.results.iter().filter(|told| ErrorCode::from_code(told.error_code) == ErrorCode::None);
    let told: Vec<_> = told.collect();
    if !told.is_empty() {
        // A broker lists every key that its file sets: one that is not listed has its default.
        (settings.super_users, settings.allow_everyone) = (Some(SuperUsers::default()), Some(false));
    }
    for config in told.iter().flat_map(|told| &told.configs) {
        match (&*config.name, config.value.as_deref()) {
            ("super.users", None) => (settings.super_users, settings.hides_super_users) = (None, true),
            ("super.users", Some(users)) => settings.super_users = SuperUsers::parse(users).ok(),
            ("allow.everyone.if.no.acl.found", Some(value)) => {
                settings.allow_everyone = Some(value.eq_ignore_ascii_case("true"));
            }
            ("allow.everyone.if.no.acl.found", None) => settings.allow_everyone = None,
            (SHADOW, Some(value)) => settings.is_shadow = value == "true",
            _ => {}
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denial_in_shadow_mode_is_explained_with_it() {
        let image = |is_shadow| Settings {
            super_users: Some(SuperUsers::default()),
            allow_everyone: Some(false),
            is_shadow,
            ..Settings::default()
        };
        let question = Question {
            principal: "User:alice",
            host: &Host::parse("10.0.0.1"),
            operation: Operation::Read,
            resource_type: ResourceType::Topic,
            resource_name: "orders",
        };
        let text = |settings| explained(Acls::default(), settings, &question, "").join("\n");
        assert!(text(image(true)).starts_with("DENIED"), "{}", text(image(true)));
        assert!(text(image(true)).contains("authorizer.shadow is true"), "{}", text(image(true)));
        assert!(!text(image(false)).contains("authorizer.shadow"), "{}", text(image(false)));
        // An operation that is allowed is the same in both.
        assert!(reservations(&image(true), false, true).is_empty());
    }
}
