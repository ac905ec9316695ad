//! Confluent's REST API v3, under `/v3` and `/kafka/v3`: same paths, same documents.
//!
//! Written from the public reference of the API. What is not here answers 404: schemas, links, mirror topics, share and
//! streams groups.
//!
//! | file | paths |
//! |---|---|
//! | `clusters` | `/clusters`, `/clusters/{}/brokers` and their replicas |
//! | `topics` | topics, partitions, replicas, reassignments |
//! | `configs` | configurations of topics, of a broker, of all brokers |
//! | `groups` | consumer groups, consumers, assignments |
//! | `lags` | lag of a group and of each partition |
//! | `acls` | ACLs |
//! | `records` | one record after the other, for as long as the client sends |
//! | `record` | one record, from JSON to bytes |
//! | `timestamps` | times as RFC 3339 writes them |

mod acls;
mod clusters;
mod configs;
mod groups;
mod lags;
mod record;
pub mod records;
pub mod timestamps;
mod topics;

use crate::http::call::Call;
use crate::http::problem::Problem;
use crate::http::routes::{Route, Run, routes};
use crate::http::shape::Doc;

/// Paths begin behind the prefix.
pub const ROUTES: &[Route] = routes! {
    GET "/v3/clusters" clusters::list;
    GET "/v3/clusters/{cluster}" clusters::get;
    GET "/v3/clusters/{cluster}/brokers" clusters::brokers;
    GET "/v3/clusters/{cluster}/brokers/-/configs" configs::of_every_broker;
    GET "/v3/clusters/{cluster}/brokers/{broker}" clusters::broker;
    GET "/v3/clusters/{cluster}/brokers/{broker}/partition-replicas" clusters::replicas;
    GET "/v3/clusters/{cluster}/brokers/{broker}/configs" configs::of_broker;
    POST "/v3/clusters/{cluster}/brokers/{broker}/configs:alter" configs::alter_broker;
    GET "/v3/clusters/{cluster}/brokers/{broker}/configs/{name}" configs::get_of_broker;
    PUT "/v3/clusters/{cluster}/brokers/{broker}/configs/{name}" configs::set_of_broker;
    DELETE "/v3/clusters/{cluster}/brokers/{broker}/configs/{name}" configs::reset_of_broker;
    GET "/v3/clusters/{cluster}/broker-configs" configs::of_all_brokers;
    POST "/v3/clusters/{cluster}/broker-configs:alter" configs::alter_all_brokers;
    GET "/v3/clusters/{cluster}/broker-configs/{name}" configs::get_of_all_brokers;
    PUT "/v3/clusters/{cluster}/broker-configs/{name}" configs::set_of_all_brokers;
    DELETE "/v3/clusters/{cluster}/broker-configs/{name}" configs::reset_of_all_brokers;
    GET "/v3/clusters/{cluster}/topics" topics::list;
    POST "/v3/clusters/{cluster}/topics" topics::create;
    GET "/v3/clusters/{cluster}/topics/-/configs" configs::of_every_topic;
    GET "/v3/clusters/{cluster}/topics/-/partitions/-/reassignment" topics::reassignments;
    GET "/v3/clusters/{cluster}/topics/{topic}" topics::get;
    PATCH "/v3/clusters/{cluster}/topics/{topic}" topics::enlarge;
    DELETE "/v3/clusters/{cluster}/topics/{topic}" topics::delete;
    GET "/v3/clusters/{cluster}/topics/{topic}/configs" configs::of_topic;
    POST "/v3/clusters/{cluster}/topics/{topic}/configs:alter" configs::alter_topic;
    GET "/v3/clusters/{cluster}/topics/{topic}/configs/{name}" configs::get_of_topic;
    PUT "/v3/clusters/{cluster}/topics/{topic}/configs/{name}" configs::set_of_topic;
    DELETE "/v3/clusters/{cluster}/topics/{topic}/configs/{name}" configs::reset_of_topic;
    GET "/v3/clusters/{cluster}/topics/{topic}/partitions" topics::partitions;
    GET "/v3/clusters/{cluster}/topics/{topic}/partitions/-/reassignment" topics::reassignments_of_topic;
    GET "/v3/clusters/{cluster}/topics/{topic}/partitions/{partition}" topics::partition;
    GET "/v3/clusters/{cluster}/topics/{topic}/partitions/{partition}/reassignment" topics::reassignment;
    GET "/v3/clusters/{cluster}/topics/{topic}/partitions/{partition}/replicas" topics::replicas;
    GET "/v3/clusters/{cluster}/topics/{topic}/partitions/{partition}/replicas/{broker}" topics::replica;
    GET "/v3/clusters/{cluster}/consumer-groups" groups::list;
    GET "/v3/clusters/{cluster}/consumer-groups/{group}" groups::get;
    GET "/v3/clusters/{cluster}/consumer-groups/{group}/consumers" groups::consumers;
    GET "/v3/clusters/{cluster}/consumer-groups/{group}/consumers/{consumer}" groups::consumer;
    GET "/v3/clusters/{cluster}/consumer-groups/{group}/consumers/{consumer}/assignments" groups::assignments;
    GET "/v3/clusters/{cluster}/consumer-groups/{group}/consumers/{consumer}/assignments/{topic}/partitions/{partition}"
        groups::assignment;
    GET "/v3/clusters/{cluster}/consumer-groups/{group}/lag-summary" lags::summary;
    GET "/v3/clusters/{cluster}/consumer-groups/{group}/lags" lags::list;
    GET "/v3/clusters/{cluster}/consumer-groups/{group}/lags/{topic}/partitions/{partition}" lags::get;
    GET "/v3/clusters/{cluster}/acls" acls::list;
    POST "/v3/clusters/{cluster}/acls" acls::create;
    POST "/v3/clusters/{cluster}/acls:batch" acls::create_batch;
    DELETE "/v3/clusters/{cluster}/acls" acls::delete;
    POST "/v3/clusters/{cluster}/topics/{topic}/records:batch" records::batch;
};

/// Streamed: its body is not read as a whole.
pub const STREAMS: &[Route] = &[Route {
    method: "POST",
    pattern: "/v3/clusters/{cluster}/topics/{topic}/records",
    run: Run::Records,
    doc: &Doc::ELSEWHERE,
}];

/// Each path below a cluster names it; another cluster's is not here.
fn check_cluster(call: &Call) -> Result<(), Problem> {
    known_cluster(call.cluster.id(), call.at.param("cluster"))
}

/// # Errors
/// 404: `named` is another cluster than `id`.
pub fn known_cluster(id: &str, named: &str) -> Result<(), Problem> {
    if named == id {
        return Ok(());
    }
    Err(Problem::not_found(format!("no cluster '{}' is here; this one is {id}", named.escape_debug())))
}
