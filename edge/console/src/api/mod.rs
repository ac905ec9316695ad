//! `/api/v1`: what the console's page shows, as documents. It only reads; changes go through `/v3`.
//!
//! | file | paths |
//! |---|---|
//! | `overview` | `/overview`, `/quorum` |
//! | `topics` | `/topics`, `/topics/{}` |
//! | `records` | `/topics/{}/records` |
//! | `groups` | `/groups`, `/groups/{}` |
//!
//! A part of a document that the caller may not see is `null`, and `refused` names the part and Kafka's error.

mod groups;
mod overview;
mod records;
mod topics;

use crate::http::problem::Problem;
use crate::http::routes::{Route, routes};
use serde_json::{Map, Value};

pub const ROUTES: &[Route] = routes! {
    GET "/api/v1/overview" overview::overview;
    GET "/api/v1/quorum" overview::quorum;
    GET "/api/v1/topics" topics::list;
    GET "/api/v1/topics/{topic}" topics::get;
    GET "/api/v1/topics/{topic}/records" records::list;
    GET "/api/v1/groups" groups::list;
    GET "/api/v1/groups/{group}" groups::get;
};

/// Parts that the broker refused, by name.
#[derive(Debug, Default)]
struct Refused(Map<String, Value>);

impl Refused {
    /// What was asked for, if it may be seen.
    fn part<T>(
        &mut self,
        name: &str,
        asked: Result<T, barnabas_client::ClientError>,
    ) -> Result<Option<T>, Problem> {
        match asked.map_err(Problem::from) {
            Ok(part) => Ok(Some(part)),
            Err(problem) if problem.status == hyper::StatusCode::FORBIDDEN => {
                let error = problem.kafka.map_or("", |code| code.name());
                self.0.insert(name.to_owned(), error.into());
                Ok(None)
            }
            Err(problem) => Err(problem),
        }
    }
}
