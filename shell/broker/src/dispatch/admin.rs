//! What the controller decides: passed on to it, answered when it is committed and published.

use super::{Answer, Call, Started};
use barnabas_quorum::controller::Asked;
use barnabas_wire::RequestBody;

/// Hands a request to the controller as it is.
pub fn forward(call: Call, body: RequestBody) -> Started {
    Started::wait(async move {
        let asked = Asked { version: call.version, ..Asked::default() };
        match call.session.node.controller.ask(body, asked).await {
            Ok(response) => Answer::Reply(response),
            // Nothing was decided: the client connects again and asks again.
            Err(_) => Answer::Close,
        }
    })
}
