//! `/api/v1`: what the console's page shows and changes, as documents.
//!
//! | file | paths |
//! |---|---|
//! | `overview` | `/overview`, `/quorum` |
//! | `topics` | `/topics`, `/topics/{}` |
//! | `records`, `tail` | `/topics/{}/records`, `/topics/{}/tail` |
//! | `search` | `/topics/{}/search`, `/topics/{}/search/stream` |
//! | `places` | where records are read from |
//! | `groups` | `/groups`, `/groups/{}` |
//! | `changes` | POST, PATCH and DELETE |
//! | `openapi` | `/openapi.json` |
//! | `listing` | filter, order and pages of the lists |
//!
//! A part of a document that the caller may not see is `null`, and `refused` names the part and Kafka's error.

mod changes;
mod groups;
mod listing;
mod openapi;
mod overview;
mod places;
mod records;
pub mod search;
pub mod tail;
mod topics;

use crate::http::problem::Problem;
use crate::http::routes::{Route, Run, routes};
use crate::http::shape::Shape;
use crate::{proxy, v3};
use serde_json::{Map, Value};

pub const ROUTES: &[Route] = routes! {
    GET "/api/v1/openapi.json" openapi::get, openapi::GET;
    GET "/openapi" openapi::get, openapi::GET;
    GET "/openapi/v3" openapi::get, openapi::GET;
    GET "/api/v1/overview" overview::overview, overview::OVERVIEW;
    GET "/api/v1/quorum" overview::quorum, overview::QUORUM;
    GET "/api/v1/topics" topics::list, topics::LIST;
    GET "/api/v1/topics/{topic}" topics::get, topics::GET;
    GET "/api/v1/topics/{topic}/records" records::list, records::LIST;
    POST "/api/v1/topics" changes::topics::create, changes::topics::CREATE;
    DELETE "/api/v1/topics/{topic}" changes::topics::delete, changes::topics::DELETE;
    PATCH "/api/v1/topics/{topic}/configs" changes::configs::alter, changes::configs::ALTER;
    POST "/api/v1/topics/{topic}/delete-records" changes::records::delete, changes::records::DELETE;
    POST "/api/v1/groups/{group}/reset-offsets" changes::offsets::reset, changes::offsets::RESET;
    GET "/api/v1/topics/{topic}/search" search::search, search::SEARCH;
    GET "/api/v1/groups" groups::list, groups::LIST;
    GET "/api/v1/groups/{group}" groups::get, groups::GET;
};

/// Answered for as long as the client reads.
pub const STREAMS: &[Route] = &[
    Route { method: "GET", pattern: "/api/v1/topics/{topic}/tail", run: Run::Tail, doc: &tail::TAIL },
    Route {
        method: "GET",
        pattern: "/api/v1/topics/{topic}/search/stream",
        run: Run::Search,
        doc: &search::stream::STREAM,
    },
];

/// Every table of routes, in the order in which they are looked in.
pub fn tables() -> [&'static [Route]; 5] {
    [v3::ROUTES, v3::STREAMS, ROUTES, STREAMS, proxy::ROUTES]
}

/// Kafka's error of each part that is not shown.
const REFUSED: Shape = Shape::Map(&Shape::Text);

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
