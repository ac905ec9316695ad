//! `/api/v1/openapi.json`, and `/openapi` as Strimzi's bridge has it: every route of this listener as an OpenAPI 3.1
//! document, made from the tables of routes.
//!
//! Routes of `/api/v1` have the schema of what they take and give. Those of `/v3` and of API v2 are named with their
//! paths; their documents are those of Confluent's public references.

use crate::http::call::{Answer, Call};
use crate::http::problem::Problem;
use crate::http::routes::Route;
use crate::http::shape::{Content, Doc, Param, Shape};
use serde_json::{Map, Value, json};
use std::sync::OnceLock;

pub const GET: Doc = Doc::get("This document", &[], Shape::Map(&Shape::Any));

const PROBLEM: Shape = Shape::Object(&[
    ("type", Shape::Text),
    ("title", Shape::Text),
    ("status", Shape::Int),
    ("detail", Shape::Text),
    ("kafka_error?", Shape::Text),
    ("error_code?", Shape::Int),
    ("message?", Shape::Text),
]);

pub async fn get(_: &mut Call) -> Result<Answer, Problem> {
    static DOCUMENT: OnceLock<Value> = OnceLock::new();
    Ok(Answer::json(DOCUMENT.get_or_init(document).clone()))
}

/// Every table that the listener looks in.
fn routes() -> impl Iterator<Item = &'static Route> {
    super::tables().into_iter().flatten()
}

fn document() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for route in routes() {
        paths.entry(route.pattern).or_insert_with(|| json!({}))[route.method.to_lowercase()] =
            operation(route);
    }
    json!({
        "openapi": "3.1.0",
        "info": { "title": "Barnabas", "version": env!("CARGO_PKG_VERSION") },
        "servers": [{ "url": "/" }],
        "security": [{ "basic": [] }, {}],
        "paths": paths,
        "components": {
            "securitySchemes": { "basic": { "type": "http", "scheme": "basic" } },
            "schemas": { "Problem": PROBLEM.schema() },
        },
    })
}

fn operation(route: &Route) -> Value {
    let doc = route.doc;
    let names = route.pattern.split('/').filter_map(name);
    let mut parameters: Vec<Value> = names.map(path_parameter).collect();
    parameters.extend(doc.query.iter().map(query_parameter));
    if route.pattern.starts_with("/api/") && route.method != "GET" {
        parameters.push(idempotency_key());
    }
    let is_confluent = !route.pattern.starts_with("/api/");
    let kind = match (route.pattern.starts_with("/v3/"), is_confluent) {
        (true, _) => "application/json",
        (false, true) => "application/vnd.kafka.v2+json",
        (false, false) => "application/problem+json",
    };
    let problem = json!({ "$ref": "#/components/schemas/Problem" });
    let mut responses = json!({
        "default": { "description": "An error", "content": { kind: { "schema": problem } } },
    });
    // Confluent's documents and statuses are not given here.
    let status = if is_confluent { "2XX".to_owned() } else { doc.status.to_string() };
    responses[status] = json!({ "description": doc.summary, "content": content(doc.content) });
    let mut operation = json!({
        "operationId": operation_id(route),
        "summary": doc.summary,
        "parameters": parameters,
        "responses": responses,
    });
    if let Some(body) = doc.body {
        let content = json!({ "application/json": { "schema": body.schema() } });
        operation["requestBody"] = json!({ "required": true, "content": content });
    }
    operation
}

fn content(content: Content) -> Value {
    match content {
        Content::Json(shape) => json!({ "application/json": { "schema": shape.schema() } }),
        Content::Events => json!({ "text/event-stream": { "schema": Shape::Text.schema() } }),
    }
}

/// The name in a segment `{name}`.
fn name(segment: &'static str) -> Option<&'static str> {
    segment.strip_prefix('{')?.strip_suffix('}')
}

fn path_parameter(name: &str) -> Value {
    let shape = if matches!(name, "partition" | "broker") { Shape::Int } else { Shape::Text };
    json!({ "name": name, "in": "path", "required": true, "schema": shape.schema() })
}

fn idempotency_key() -> Value {
    json!({
        "name": "Idempotency-Key",
        "in": "header",
        "description": "The change is made once; a request that repeats it with the same key gets the same answer",
        "schema": Shape::Text.schema(),
    })
}

fn query_parameter(param: &Param) -> Value {
    json!({ "name": param.name, "in": "query", "description": param.about, "schema": param.shape.schema() })
}

/// `get_api_v1_topics_topic`.
fn operation_id(route: &Route) -> String {
    let words =
        route.pattern.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|it| !it.is_empty());
    let words = words.map(|word| format!("_{word}")).collect::<String>();
    // `…/topics/-/configs` is another route than `…/topics/{topic}/configs`.
    let all = if route.pattern.contains("/-/") { "_of_all" } else { "" };
    format!("{}{words}{all}", route.method.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_route_is_in_the_document() {
        let document = document();
        let mut ids = BTreeSet::new();
        for route in routes() {
            let operation = &document["paths"][route.pattern][route.method.to_lowercase()];
            let id = operation["operationId"].as_str().expect(route.pattern);
            assert!(ids.insert(id.to_owned()), "{id} names two routes");
            let named = operation["parameters"].as_array().expect("a list").iter();
            let named: Vec<&str> = named
                .filter(|parameter| parameter["in"] == "path")
                .filter_map(|parameter| parameter["name"].as_str())
                .collect();
            let wanted: Vec<&str> = route.pattern.split('/').filter_map(name).collect();
            assert_eq!(named, wanted, "{}", route.pattern);
        }
        let operations = document["paths"].as_object().expect("an object").values();
        let told: usize = operations.map(|path| path.as_object().expect("an object").len()).sum();
        assert_eq!(told, routes().count());
    }

    #[test]
    fn own_routes_describe_their_answers() {
        for route in [crate::api::ROUTES, crate::api::STREAMS].into_iter().flatten() {
            let is_described = !matches!(route.doc.content, Content::Json(Shape::Any));
            assert!(is_described && route.doc.summary != Doc::ELSEWHERE.summary, "{}", route.pattern);
        }
    }
}
