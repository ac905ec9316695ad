//! What an operator reads of a denial: its reason, and the command that would allow it.

use super::{Explanation, Question, decides, explain};
use crate::acl::{ResourceType, is_literal};
use crate::authorizer::Verdict;
use barnabas_metadata::access::Acls;

/// The reason, and what to do about it.
pub fn why_denied(acls: &Acls, question: &Question<'_>, verdict: Verdict) -> String {
    if verdict == Verdict::Denied {
        // The ACLs may be newer than the decision: then the one that denied is gone.
        if !acls.iter().any(|(_, acl)| decides(acl, question) == Some(false)) {
            return "an ACL denied it, which was removed since".to_owned();
        }
        if let Explanation::Denied { acl, .. } = explain(acls, question, verdict) {
            let pattern = if is_literal(acl.pattern_type) { "LITERAL" } else { "PREFIXED" };
            return format!(
                "an ACL denies it: principal={:?} host={:?} pattern={pattern} name={:?}",
                acl.principal, acl.host, acl.resource_name
            );
        }
    }
    format!("no ACL allows it. To allow it: {}", command(question))
}

/// The shortest ACL that is missing, as the command that adds it.
fn command(question: &Question<'_>) -> String {
    let name = question.resource_name;
    let resource = match question.resource_type {
        ResourceType::Topic => format!("--topic {name:?}"),
        ResourceType::Group => format!("--group {name:?}"),
        ResourceType::Cluster => "--cluster".to_owned(),
        ResourceType::TransactionalId => format!("--transactional-id {name:?}"),
        ResourceType::DelegationToken => format!("--delegation-token {name:?}"),
        ResourceType::User => format!("--user-principal {name:?}"),
    };
    let word = question.operation.name();
    let words = word.split('_').map(|part| format!("{}{}", &part[..1], part[1..].to_ascii_lowercase()));
    let operation: String = words.collect();
    format!(
        "barnabas acls --add --allow-principal {:?} --operation {operation} {resource}",
        question.principal
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acl::Operation;
    use crate::host::Host;

    #[test]
    fn missing_acl_is_named_as_the_command_that_adds_it() {
        let host = Host::parse("10.0.0.1");
        let of = |operation, resource_type| {
            let question = Question {
                principal: "User:al\"ice",
                host: &host,
                operation,
                resource_type,
                resource_name: "a b",
            };
            why_denied(&Acls::default(), &question, Verdict::NotAllowed)
        };
        assert_eq!(
            of(Operation::DescribeConfigs, ResourceType::Topic),
            "no ACL allows it. To allow it: barnabas acls --add --allow-principal \"User:al\\\"ice\" \
             --operation DescribeConfigs --topic \"a b\""
        );
        assert!(of(Operation::Alter, ResourceType::Cluster).ends_with("--operation Alter --cluster"));
        let question = Question {
            principal: "User:a",
            host: &host,
            operation: Operation::Read,
            resource_type: ResourceType::Topic,
            resource_name: "t",
        };
        let removed = why_denied(&Acls::default(), &question, Verdict::Denied);
        assert_eq!(removed, "an ACL denied it, which was removed since");
    }
}
