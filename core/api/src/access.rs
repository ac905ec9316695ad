//! May the client of a request do this to that resource? The one question that APIs ask of core/security.
//!
//! Without an authorizer everything is allowed: [`Access::OPEN`]. What a request needs as a whole is asked before its
//! API looks at it ([`crate::gate()`]); what it needs for each of its resources is asked in the API's own file.
//! Both stand in the table of gate/tests.rs, which names every served API.
//!
//! Not here: how a principal was proved, how ACLs are matched, what the log says.
//!
//! Source: Kafka 4.4 `AuthHelper`.

mod decisions;

use barnabas_base::ErrorCode;
use barnabas_security::acl::CLUSTER_NAME;
use barnabas_security::{Authorizer, Caller, Operation, ResourceType, Verdict};

use crate::Refusal;
pub use decisions::Decisions;

/// The sentences of Kafka's `Errors`.
pub(crate) fn sentence(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::TopicAuthorizationFailed => "Topic authorization failed.",
        ErrorCode::GroupAuthorizationFailed => "Group authorization failed.",
        ErrorCode::TransactionalIdAuthorizationFailed => "The transactional id authorization failed.",
        _ => "Cluster authorization failed.",
    }
}

/// A denial with its sentence.
pub(crate) fn refusal(code: ErrorCode) -> Refusal {
    Refusal::new(code, sentence(code))
}

/// "Not asked for", in every message that carries authorized operations.
pub const OPERATIONS_NOT_ASKED: i32 = i32::MIN;

/// What one client may do, at one moment.
#[derive(Debug, Clone, Copy)]
pub struct Access<'a> {
    judge: Option<Judge<'a>>,
}

/// Who decides, for whom, and who hears of denials.
#[derive(Debug, Clone, Copy)]
pub struct Judge<'a> {
    pub authorizer: &'a Authorizer,
    /// Resolved by this authorizer.
    pub caller: &'a Caller,
    pub denials: &'a dyn Denials,
    /// What was granted to this caller by this authorizer before.
    pub granted: Option<&'a Decisions>,
    /// Denials stand (`authorizer.shadow` is false). Else everything is allowed, and `denials` hears of what would be
    /// denied.
    pub enforces: bool,
}

/// Hears what was denied, for the log.
pub trait Denials: std::fmt::Debug {
    fn denied(&self, operation: Operation, resource_type: ResourceType, name: &str, verdict: Verdict);
}

impl<'a> Access<'a> {
    /// No authorizer: `authorizer.class.name` is not set.
    pub const OPEN: Access<'static> = Access { judge: None };

    pub const fn new(judge: Judge<'a>) -> Self {
        Self { judge: Some(judge) }
    }

    /// Whether everything is allowed because there is no authorizer.
    pub const fn is_open(&self) -> bool {
        self.judge.is_none()
    }

    /// Whether the client may do it. A denial is logged.
    pub fn may(&self, operation: Operation, resource_type: ResourceType, name: &str) -> bool {
        let Some(judge) = &self.judge else { return true };
        let verdict = judge.verdict(operation, resource_type, name);
        if let Err(denied) = verdict {
            judge.denials.denied(operation, resource_type, name, denied);
        }
        verdict.is_ok() || !judge.enforces
    }

    /// Whether the client may do it, where a denial only hides something: it is not logged.
    pub fn sees(&self, operation: Operation, resource_type: ResourceType, name: &str) -> bool {
        self.judge
            .as_ref()
            .is_none_or(|judge| !judge.enforces || judge.verdict(operation, resource_type, name).is_ok())
    }

    /// Whether ACLs allow it on the cluster, where another way is tried if they do not: in shadow mode the denial that
    /// counts is the last one's, which is logged.
    pub(crate) fn holds_cluster(&self, operation: Operation) -> bool {
        let cluster = ResourceType::Cluster;
        self.judge.as_ref().is_none_or(|judge| judge.verdict(operation, cluster, CLUSTER_NAME).is_ok())
    }

    /// As [`Self::may`].
    pub fn topic(&self, operation: Operation, name: &str) -> bool {
        self.may(operation, ResourceType::Topic, name)
    }

    /// As [`Self::may`].
    pub fn group(&self, operation: Operation, name: &str) -> bool {
        self.may(operation, ResourceType::Group, name)
    }

    /// As [`Self::may`].
    pub fn transactional_id(&self, operation: Operation, name: &str) -> bool {
        self.may(operation, ResourceType::TransactionalId, name)
    }

    /// As [`Self::may`].
    pub fn cluster(&self, operation: Operation) -> bool {
        self.may(operation, ResourceType::Cluster, CLUSTER_NAME)
    }

    /// Whether the client may do it to some resource of the type at all (KIP-679). The cluster is named in the log,
    /// as in Kafka: the request names no resource.
    pub fn any(&self, operation: Operation, resource_type: ResourceType) -> bool {
        let Some(judge) = &self.judge else { return true };
        let decide = || judge.authorizer.allows_any(judge.caller, operation, resource_type);
        match judge.granted {
            Some(granted) if (operation, resource_type) == Decisions::ANY => granted.any(decide),
            _ => decide(),
        }
    }

    /// As [`Self::sees`].
    pub fn sees_topic(&self, operation: Operation, name: &str) -> bool {
        self.sees(operation, ResourceType::Topic, name)
    }

    /// Whether the client may create the topic: by the cluster's CREATE or by the topic's own.
    pub fn create_topic(&self, name: &str) -> bool {
        self.holds_cluster(Operation::Create) || self.topic(Operation::Create, name)
    }

    /// The bits of the operations that the client may do, for fields of "authorized operations": 1 << number. Nothing
    /// of it is logged.
    pub fn operations(&self, resource_type: ResourceType, name: &str) -> i32 {
        match &self.judge {
            Some(judge) if judge.enforces => {
                judge.authorizer.authorized_operations(judge.caller, resource_type, name)
            }
            Some(_) | None => resource_type.operations().iter().fold(0, |bits, one| bits | 1 << one.code()),
        }
    }

    /// The same of the cluster: none where the client may not describe it.
    pub fn cluster_operations(&self) -> i32 {
        if self.cluster(Operation::Describe) {
            self.operations(ResourceType::Cluster, CLUSTER_NAME)
        } else {
            0
        }
    }
}

impl Judge<'_> {
    fn verdict(&self, operation: Operation, resource_type: ResourceType, name: &str) -> Result<(), Verdict> {
        if self.granted.is_some_and(|granted| granted.contains(operation, resource_type, name)) {
            return Ok(());
        }
        let verdict = self.authorizer.decide(self.caller, operation, resource_type, name);
        if !verdict.is_allowed() {
            return Err(verdict);
        }
        if let Some(granted) = self.granted {
            granted.insert(operation, resource_type, name);
        }
        Ok(())
    }
}
