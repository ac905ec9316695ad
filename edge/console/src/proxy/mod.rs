//! Confluent's REST API v2 (the REST Proxy's): same paths, media types, documents and error codes, and what Strimzi's
//! HTTP bridge has beyond it.
//!
//! Written from the public references of both. Where they differ, Confluent's behaviour holds: docs/CONSOLE.md lists
//! it. Avro, JSON Schema and Protobuf answer as a proxy without a schema registry does.
//!
//! | file | answers |
//! |---|---|
//! | `topics` | brokers, topics, partitions, offsets; making a topic |
//! | `produce` | records in |
//! | `consumers` | consumers: made, deleted, what they read, from where, what they commit |
//! | `read` | records out |
//! | `instances` | the consumers that live here, and whose they are |
//! | `instance` | what one consumer reads, and from where |
//! | `member` | one consumer's task: stays in its group, commits, ends when it is idle |
//! | `subscription` | a consumer's topics, and which of them a pattern means |
//! | `setup` | what a consumer is made with |
//! | `media` | which media type has a body, and which does the caller take |
//! | `embed` | keys and values in a JSON document, and back |

mod consumers;
mod embed;
mod instance;
pub mod instances;
pub mod media;
mod member;
mod produce;
mod read;
mod setup;
mod subscription;
mod topics;

use crate::http::routes::{Route, routes};
use crate::http::shape::{Doc, Shape};

const DOC: Doc = Doc::get("An operation of Confluent's REST API v2", &[], Shape::Any);
const EXTRA: Doc =
    Doc { status: 201, ..Doc::get("Makes a topic, as Strimzi's HTTP bridge does", &[], Shape::Any) };

pub const ROUTES: &[Route] = routes! {
    GET "/brokers" topics::brokers, DOC;
    GET "/topics" topics::list, DOC;
    GET "/topics/{topic}" topics::get, DOC;
    POST "/topics/{topic}" produce::to_topic, DOC;
    GET "/topics/{topic}/partitions" topics::partitions, DOC;
    GET "/topics/{topic}/partitions/{partition}" topics::partition, DOC;
    POST "/topics/{topic}/partitions/{partition}" produce::to_partition, DOC;
    GET "/topics/{topic}/partitions/{partition}/offsets" topics::offsets, DOC;
    POST "/consumers/{group}" consumers::create, DOC;
    DELETE "/consumers/{group}/instances/{instance}" consumers::delete, DOC;
    GET "/consumers/{group}/instances/{instance}/subscription" consumers::subscription, DOC;
    POST "/consumers/{group}/instances/{instance}/subscription" consumers::subscribe, DOC;
    DELETE "/consumers/{group}/instances/{instance}/subscription" consumers::unsubscribe, DOC;
    GET "/consumers/{group}/instances/{instance}/assignments" consumers::assignments, DOC;
    POST "/consumers/{group}/instances/{instance}/assignments" consumers::assign, DOC;
    POST "/consumers/{group}/instances/{instance}/positions" consumers::seek, DOC;
    POST "/consumers/{group}/instances/{instance}/positions/beginning" consumers::seek_to_beginning, DOC;
    POST "/consumers/{group}/instances/{instance}/positions/end" consumers::seek_to_end, DOC;
    GET "/consumers/{group}/instances/{instance}/offsets" consumers::offsets, DOC;
    POST "/consumers/{group}/instances/{instance}/offsets" consumers::commit, DOC;
    GET "/consumers/{group}/instances/{instance}/records" read::records, DOC;
    POST "/admin/topics" topics::create, EXTRA;
};

/// Whether this is a path of API v2, whatever comes of it.
pub fn is_own(path: &str) -> bool {
    let first = path.split('/').nth(1).unwrap_or_default();
    matches!(first, "brokers" | "topics" | "consumers" | "admin" | "openapi")
}

/// Paths may end in a slash, as the REST Proxy takes them.
pub fn trimmed(path: &str) -> &str {
    path.strip_suffix('/').filter(|rest| !rest.is_empty()).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::routes::find;

    #[test]
    fn v2_has_its_21_operations() {
        let own = ROUTES.iter().filter(|route| route.doc.summary == DOC.summary).count();
        assert_eq!((own, ROUTES.len()), (21, 22));
        for route in ROUTES {
            assert!(is_own(route.pattern), "{}", route.pattern);
        }
        assert!(!is_own("/") && !is_own("/v3/clusters") && !is_own("/topicsx"));
    }

    #[test]
    fn slash_at_the_end_says_nothing() {
        for path in ["/topics/", "/topics", "/consumers/g/instances/i/records/"] {
            assert!(find([ROUTES], "GET", trimmed(path)).is_ok(), "{path}");
        }
        assert!(find([ROUTES], "GET", trimmed("/topics//")).is_err() && trimmed("/") == "/");
    }
}
