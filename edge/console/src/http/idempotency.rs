//! `Idempotency-Key`: a change that is sent again with its key is answered as the first time, and not made again.
//!
//! | bound | value |
//! |---|---|
//! | keys | [`KEYS_MAX`], each for [`KEPT_FOR`]; the oldest go first |
//! | answers, as text | [`BYTES_MAX`] together |
//!
//! An answer of 500 and more is not kept: whether the change was made is not known then, and the next request with the
//! key tries again. Neither are 401 and 429. Keys are this listener's: another node knows nothing of them.
//!
//! Source: draft-ietf-httpapi-idempotency-key-header-07.

use super::call::Answer;
use super::problem::Problem;
use hyper::http::request::Parts;
use hyper::{HeaderMap, StatusCode};
use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const HEADER: &str = "idempotency-key";
const KEY_BYTES_MAX: usize = 255;
const KEYS_MAX: usize = 1000;
const KEPT_FOR: Duration = Duration::from_secs(24 * 3600);
const BYTES_MAX: usize = 8 * 1024 * 1024;

type Outcome = Result<Answer, Problem>;

/// Whose key, and which.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Id {
    /// `None`: anonymous.
    pub user: Option<String>,
    pub key: String,
}

/// The changes that were made with a key.
#[derive(Debug, Default)]
pub struct Changes(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    changes: HashMap<Id, Change>,
    /// Of those that are done, from the oldest on.
    done: VecDeque<(Instant, Id)>,
    bytes: usize,
}

#[derive(Debug)]
struct Change {
    print: u64,
    /// `None`: it is under way.
    outcome: Option<Outcome>,
    bytes: usize,
}

/// A key that is taken until its change is done.
#[derive(Debug)]
struct Place {
    changes: Arc<Changes>,
    id: Id,
    is_done: bool,
}

/// The key that a request brings, if any.
///
/// # Errors
/// 400: several, or one that is empty, too long or not ASCII.
pub fn key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let mut given = headers.get_all(HEADER).iter();
    let Some(first) = given.next() else { return Ok(None) };
    let text = first.to_str().unwrap_or_default().trim();
    let text = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    if given.next().is_some() || text.is_empty() || text.len() > KEY_BYTES_MAX {
        return Err(Problem::bad(format!(
            "Idempotency-Key takes one text of 1 to {KEY_BYTES_MAX} bytes of ASCII"
        )));
    }
    Ok(Some(text.to_owned()))
}

/// What tells a change from another one of the same caller.
pub fn print(request: &Parts, body: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (request.method.as_str(), request.uri.to_string(), body).hash(&mut hasher);
    hasher.finish()
}

impl Changes {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The outcome of `work`, or of the request that came first with this key. Work that has begun goes on where its
    /// client goes away: the next request with the key gets its answer.
    ///
    /// # Errors
    /// 409: the first request is under way. 422: it was for another change. What `work` ends with.
    pub async fn once(
        self: &Arc<Self>,
        id: Id,
        print: u64,
        work: impl Future<Output = Outcome> + Send + 'static,
    ) -> Outcome {
        if let Some(known) = self.begin(&id, print)? {
            return known;
        }
        let mut place = Place { changes: self.clone(), id, is_done: false };
        let working = tokio::spawn(async move {
            let outcome = work.await;
            place.finish(&outcome);
            outcome
        });
        let failed = |error| {
            Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, format!("the change ended: {error}")))
        };
        working.await.unwrap_or_else(failed)
    }

    /// What is known of the key; `None`: it is new, and taken from now on.
    fn begin(&self, id: &Id, print: u64) -> Result<Option<Outcome>, Problem> {
        let mut kept = self.kept();
        kept.forget_old(Instant::now());
        match kept.changes.get(id) {
            Some(change) if change.print != print => {
                let detail = "this Idempotency-Key was used for another change: use a new key for each";
                Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail))
            }
            Some(Change { outcome: Some(outcome), .. }) => Ok(Some(outcome.clone())),
            Some(_) => {
                let detail =
                    "the first request with this Idempotency-Key is under way: try again in some seconds";
                Err(Problem::new(StatusCode::CONFLICT, detail))
            }
            None => {
                kept.changes.insert(id.clone(), Change { print, outcome: None, bytes: 0 });
                Ok(None)
            }
        }
    }
}

impl Kept {
    fn forget_old(&mut self, now: Instant) {
        while let Some((done, _)) = self.done.front() {
            let is_old = now.saturating_duration_since(*done) >= KEPT_FOR;
            if !is_old && self.done.len() < KEYS_MAX && self.bytes <= BYTES_MAX {
                break;
            }
            let forgotten = self.done.pop_front().and_then(|(_, id)| self.changes.remove(&id));
            self.bytes -= forgotten.map_or(0, |change| change.bytes);
        }
    }

    fn keep(&mut self, id: &Id, outcome: &Outcome) {
        let Some(change) = self.changes.get_mut(id) else { return };
        let text = outcome.as_ref().ok().and_then(|answer| answer.document.as_ref());
        change.bytes = text.map_or(0, |document| document.to_string().len());
        change.outcome = Some(outcome.clone());
        self.bytes += change.bytes;
        self.done.push_back((Instant::now(), id.clone()));
        self.forget_old(Instant::now());
    }
}

impl Place {
    fn finish(&mut self, outcome: &Outcome) {
        let status = outcome.as_ref().map_or_else(|problem| problem.status, |answer| answer.status);
        let may_differ = status.is_server_error()
            || matches!(status, StatusCode::UNAUTHORIZED | StatusCode::TOO_MANY_REQUESTS);
        if !may_differ {
            self.is_done = true;
            self.changes.kept().keep(&self.id, outcome);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.is_done {
            self.changes.kept().changes.remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;
    use serde_json::json;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn id(user: &str, key: &str) -> Id {
        Id { user: Some(user.to_owned()), key: key.to_owned() }
    }

    /// Asks with this key; the answer counts how often it was worked.
    async fn ask(
        changes: &Arc<Changes>,
        worked: &Arc<AtomicUsize>,
        id: Id,
        print: u64,
        status: u16,
    ) -> Result<u64, u16> {
        let worked = worked.clone();
        let work = async move {
            let count = worked.fetch_add(1, Ordering::Relaxed) + 1;
            let status = StatusCode::from_u16(status).expect("a status");
            if status.is_success() { Ok(Answer::json(json!(count))) } else { Err(Problem::new(status, "no")) }
        };
        let outcome = changes.once(id, print, work).await;
        outcome
            .map(|answer| answer.document.and_then(|it| it.as_u64()).expect("a count"))
            .map_err(|it| it.status.as_u16())
    }

    #[tokio::test]
    async fn same_key_has_the_same_answer() {
        let (changes, worked) = (Arc::default(), Arc::default());
        for _ in 0..3 {
            assert_eq!(ask(&changes, &worked, id("a", "k"), 1, 200).await, Ok(1));
        }
        assert_eq!(ask(&changes, &worked, id("a", "k"), 2, 200).await, Err(422));
        assert_eq!(ask(&changes, &worked, id("b", "k"), 2, 200).await, Ok(2));
        assert_eq!(ask(&changes, &worked, id("a", "l"), 1, 400).await, Err(400));
        assert_eq!(ask(&changes, &worked, id("a", "l"), 1, 200).await, Err(400));
    }

    #[tokio::test]
    async fn change_whose_outcome_is_not_known_is_tried_again() {
        let (changes, worked) = (Arc::default(), Arc::default());
        for status in [503, 504, 429, 401] {
            assert_eq!(ask(&changes, &worked, id("a", "k"), 1, status).await, Err(status));
        }
        assert_eq!(ask(&changes, &worked, id("a", "k"), 1, 200).await, Ok(5));
    }

    #[tokio::test]
    async fn change_goes_on_without_its_client() {
        let changes: Arc<Changes> = Arc::default();
        let (go, wait) = tokio::sync::oneshot::channel::<()>();
        let work = async move {
            wait.await.expect("it goes on");
            Ok(Answer::json(json!(7)))
        };
        let asked = tokio::time::timeout(Duration::from_millis(20), changes.once(id("a", "k"), 1, work));
        assert!(asked.await.is_err());
        let meanwhile = changes.once(id("a", "k"), 1, async { Ok(Answer::nothing()) }).await;
        assert_eq!(meanwhile.expect_err("under way").status, 409);
        go.send(()).expect("it waits");
        let answer = loop {
            match changes.once(id("a", "k"), 1, async { Ok(Answer::nothing()) }).await {
                Err(problem) if problem.status == 409 => tokio::task::yield_now().await,
                answer => break answer,
            }
        };
        assert_eq!(answer.expect("done").document, Some(json!(7)));
    }

    #[tokio::test]
    async fn keys_and_answers_are_bounded() {
        let (changes, worked) = (Arc::default(), Arc::default());
        for at in 0..2 * KEYS_MAX {
            ask(&changes, &worked, id("a", &at.to_string()), 1, 200).await.expect("worked");
        }
        assert!(changes.kept().changes.len() <= KEYS_MAX && changes.kept().done.len() <= KEYS_MAX);
        assert_eq!(ask(&changes, &worked, id("a", "0"), 1, 200).await, Ok(2 * KEYS_MAX as u64 + 1));
        let large = || async { Ok(Answer::json(json!("x".repeat(BYTES_MAX / 3)))) };
        for at in 0..6 {
            changes.once(id("b", &at.to_string()), 1, large()).await.expect("worked");
        }
        assert!(changes.kept().bytes <= BYTES_MAX);
    }

    #[test]
    fn keys_are_read_with_and_without_quotes() {
        let read = |text: &str| {
            key(&HeaderMap::from_iter([(
                hyper::header::HeaderName::from_static(HEADER),
                HeaderValue::from_str(text).expect("a value"),
            )]))
        };
        assert_eq!(read("\"8e03\"").expect("sound").as_deref(), Some("8e03"));
        assert_eq!(read("8e03").expect("sound").as_deref(), Some("8e03"));
        assert_eq!(key(&HeaderMap::new()), Ok(None));
        for bad in ["", "\"\"", &"x".repeat(KEY_BYTES_MAX + 1)] {
            assert_eq!(read(bad).expect_err("wrong").status, 400);
        }
    }
}
