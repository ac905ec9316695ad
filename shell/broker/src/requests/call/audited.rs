//! Changes, for the audit log: what a request asks for is noted before it is carried out, and what came of it with its
//! answer.
//!
//! A request that a broker forwards is noted by the broker, and by the controller with the broker's principal (`via`):
//! the controller's file names each change, whichever broker took it.
//!
//! What changes: core/api's `audited`. After: node/audit.rs.

use super::{Answer, Call, Started, Starting};
use barnabas_api::audited::Asked;
use barnabas_api::audited::events::{Event, Kind, Who};
use barnabas_base::{ErrorCode, Text};
use barnabas_wire::RequestBody;

/// A change under way.
pub struct Audited {
    call: Call,
    asked: Asked,
}

impl Audited {
    /// `None`: the request changes nothing, or no audit log wants it.
    pub fn of(call: &Call, body: &RequestBody) -> Option<Self> {
        let node = &call.session.node;
        if !node.audit.wants(Kind::Change) {
            return None;
        }
        let asked = Asked::of(body, &node.cluster.image.load())?;
        Some(Self { call: call.clone(), asked })
    }

    /// Notes the change when `starting` is answered.
    pub fn follow(self, starting: Starting) -> Starting {
        Box::pin(async move {
            match starting.await {
                Started::Answer(answer) => {
                    self.answered(&answer);
                    Started::Answer(answer)
                }
                Started::Wait(waiting) => Started::wait(async move {
                    let answer = waiting.await;
                    self.answered(&answer);
                    answer
                }),
            }
        })
    }

    fn answered(self, answer: &Answer) {
        let body = match answer {
            Answer::Reply(body) | Answer::Held(body, _) => Some(body),
            Answer::Pieces(_) | Answer::Nothing | Answer::Close => None,
        };
        let settled = self.asked.settle(body);
        let outcome = |code: ErrorCode| if code == ErrorCode::None { "success" } else { code.name() };
        let what = settled.into_iter().map(|(subject, code)| (subject, outcome(code))).collect();
        let (call, node) = (&self.call, &self.call.session.node);
        let (kind, request) = (Kind::Change, Some(call.api));
        node.audit.note(Event { kind, at: node.clock.wall(), who: call.who(), request, what, reason: None });
    }
}

impl Call {
    /// The client, for the audit log.
    pub(in crate::requests) fn who(&self) -> Who {
        let via = self.is_forwarded.then(|| Text::from(&*self.session.described(None).principal));
        Who { via, ..Who::of(&self.client) }
    }
}
