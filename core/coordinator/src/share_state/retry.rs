//! Which refusals of a share coordinator may pass, and how long its caller goes on asking.
//!
//! Pauses double from the first to the last, for about nine seconds in all.
//!
//! Neighbours: shell/broker/src/routing/share_persister.rs, which waits and asks.
//!
//! # Source
//! Kafka 4.4 `PersisterStateManager`'s handlers.

use barnabas_base::{DurationMs, ErrorCode};

use super::request::ShareStateResponse;

const FIRST_PAUSE: DurationMs = DurationMs(20);
const LAST_PAUSE: DurationMs = DurationMs(2_000);
/// Tries in all.
const TRIES: u32 = 11;

/// One request's tries.
#[derive(Debug)]
pub struct ShareStateRetry {
    tries: u32,
    pause: DurationMs,
}

impl Default for ShareStateRetry {
    fn default() -> Self {
        Self { tries: 0, pause: FIRST_PAUSE }
    }
}

impl ShareStateRetry {
    /// The pause before the request is sent again. `None`: `response` is the answer, since it cannot pass or it was the
    /// last try.
    pub fn pause_after(&mut self, response: &ShareStateResponse) -> Option<DurationMs> {
        self.tries += 1;
        if self.tries >= TRIES || !may_pass(response) {
            return None;
        }
        let pause = self.pause;
        self.pause = DurationMs(pause.0 * 2).min(LAST_PAUSE);
        Some(pause)
    }
}

fn may_pass(response: &ShareStateResponse) -> bool {
    let refusal = match response {
        ShareStateResponse::Done(result) => result.as_ref().err(),
        ShareStateResponse::Read(result) => result.as_ref().err(),
        ShareStateResponse::Summary(result) => result.as_ref().err(),
    };
    refusal.is_some_and(|refusal| {
        matches!(
            refusal.code,
            ErrorCode::CoordinatorNotAvailable
                | ErrorCode::CoordinatorLoadInProgress
                | ErrorCode::NotCoordinator
                | ErrorCode::NetworkException
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: ErrorCode) -> ShareStateResponse {
        ShareStateResponse::Done(Err(code.into()))
    }

    #[test]
    fn absent_coordinator_is_asked_eleven_times_in_nine_seconds() {
        let mut retry = ShareStateRetry::default();
        let absent = refused(ErrorCode::CoordinatorNotAvailable);
        let pauses: Vec<i64> =
            std::iter::from_fn(|| retry.pause_after(&absent)).map(|pause| pause.0).collect();
        assert_eq!(pauses, [20, 40, 80, 160, 320, 640, 1_280, 2_000, 2_000, 2_000]);
        assert_eq!(retry.pause_after(&absent), None);
    }

    #[test]
    fn answer_or_lasting_refusal_is_final() {
        let fenced = ErrorCode::FencedStateEpoch;
        for response in [
            ShareStateResponse::Done(Ok(())),
            refused(fenced),
            ShareStateResponse::Read(Err(fenced.into())),
            ShareStateResponse::Summary(Err(ErrorCode::UnknownServerError.into())),
        ] {
            assert_eq!(ShareStateRetry::default().pause_after(&response), None, "{response:?}");
        }
        let moved = ShareStateResponse::Read(Err(ErrorCode::NotCoordinator.into()));
        assert_eq!(ShareStateRetry::default().pause_after(&moved), Some(FIRST_PAUSE));
    }
}
