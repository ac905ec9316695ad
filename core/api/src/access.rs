//! May the client of a request do this to that resource? The one question that APIs ask of core/security.
//!
//! Without an authorizer everything is allowed: [`Access::OPEN`]. Which operation on which resource an API needs stands
//! in the API's own file.
//!
//! Not here: how a principal was proved, how ACLs are matched, what the log says.
//!
//! Source: Kafka 4.4 `AuthHelper`.

use barnabas_security::{Authorizer, Caller, Operation, ResourceType, Verdict};

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

    /// Whether the client may do it. A denial is logged.
    pub fn may(&self, operation: Operation, resource_type: ResourceType, name: &str) -> bool {
        let Some(judge) = &self.judge else { return true };
        let verdict = judge.authorizer.decide(judge.caller, operation, resource_type, name);
        if !verdict.is_allowed() {
            judge.denials.denied(operation, resource_type, name, verdict);
        }
        verdict.is_allowed()
    }
}
