//! What a route's handler gets, and what it gives.

use super::percent;
use super::problem::Problem;
use crate::http::callers::Lease;
use crate::schemas::Schemas;
use bytes::Bytes;
use hyper::http::Extensions;
use hyper::{HeaderMap, StatusCode};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A request whose route is known and whose caller is logged in.
#[derive(Debug)]
pub struct Call {
    /// The connection to the cluster, as the caller.
    pub cluster: Lease,
    pub at: Place,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// What requests of one API share, by its type.
    pub shared: Extensions,
}

/// Where a request went: the names in its path, its query, and how this listener is called from outside.
#[derive(Debug, Clone, Default)]
pub struct Place {
    pub params: Vec<(&'static str, String)>,
    pub query: Vec<(String, String)>,
    /// `http://127.0.0.1:8080/v3`
    pub base: String,
    /// How this listener alone is reached, also behind a balancer: `http://127.0.0.1:8080`
    pub own: String,
    /// Whether this listener refuses changes.
    pub is_read_only: bool,
    /// What the ids of schemas stand for, where the console can know it.
    pub schemas: Option<Arc<Schemas>>,
}

impl Place {
    /// A name in the path: the route has it.
    pub fn param(&self, name: &str) -> &str {
        let found = self.params.iter().find(|pair| pair.0 == name);
        &found.expect("invariant: a handler asks for names of its own pattern").1
    }

    /// # Errors
    /// The name in the path is no number.
    pub fn number(&self, name: &str) -> Result<i32, Problem> {
        let word = self.param(name);
        let wrong = || Problem::not_found(format!("{name} takes a number, not '{}'", word.escape_debug()));
        word.parse().ok().filter(|number| *number >= 0).ok_or_else(wrong)
    }

    /// A value of the query that is not empty.
    pub fn query(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|pair| pair.0 == name).map(|pair| pair.1.as_str());
        found.filter(|value| !value.is_empty())
    }

    /// `…/v3/clusters/{id}` and the segments behind it, each escaped.
    pub fn url(&self, cluster: &str, segments: &[&str]) -> String {
        let mut url = format!("{}/clusters/{}", self.base, percent::encode(cluster));
        for segment in segments {
            url.push('/');
            url.push_str(&percent::encode(segment));
        }
        url
    }

    /// The pairs of a query, in order.
    ///
    /// # Errors
    /// An escape that is none.
    pub fn read_query(query: Option<&str>) -> Result<Vec<(String, String)>, Problem> {
        let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        let read = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((percent::decode(name, true)?, percent::decode(value, true)?))
        };
        pairs.map(|pair| read(pair).ok_or_else(|| Problem::bad("the query is not UTF-8"))).collect()
    }
}

impl Call {
    /// The body as a JSON object. Values stay as they were written.
    ///
    /// # Errors
    /// It is none.
    pub fn fields(&self) -> Result<Fields, Problem> {
        Fields::read(&self.body)
    }

    /// What a link to another resource looks like.
    pub fn related(&self, segments: &[&str]) -> Value {
        json!({ "related": self.at.url(self.cluster.id(), segments) })
    }

    /// [`Self::fields`], of these names alone.
    ///
    /// # Errors
    /// 400: the body is no JSON object, or has another field.
    pub fn fields_of(&self, known: &[&str]) -> Result<Fields, Problem> {
        let fields = self.fields()?;
        fields.only(known).map(|()| fields)
    }

    /// [`Self::fields_of`] of REST v2.
    ///
    /// # Errors
    /// 400: the body is no JSON object. 422: it has another field.
    pub fn fields_of_v2(&self, known: &[&str]) -> Result<Fields, Problem> {
        let fields = self.fields()?;
        fields.only_v2(known).map(|()| fields)
    }

    /// `metadata` of a resource: its own address, and its name.
    pub fn metadata(&self, segments: &[&str], name: &str) -> Value {
        let id = self.cluster.id();
        let crn =
            if name.is_empty() { format!("crn:///kafka={id}") } else { format!("crn:///kafka={id}/{name}") };
        json!({ "self": self.at.url(id, segments), "resource_name": crn })
    }

    /// A list as Confluent's API gives it, whole.
    pub fn list(&self, kind: &str, segments: &[&str], data: Vec<Value>) -> Answer {
        let own = json!({ "self": self.at.url(self.cluster.id(), segments), "next": null });
        Answer::json(json!({ "kind": kind, "metadata": own, "data": data }))
    }
}

/// The fields of a JSON object, each as it was written.
#[derive(Debug, Default)]
pub struct Fields(BTreeMap<String, Box<RawValue>>);

impl Fields {
    /// # Errors
    /// `text` is no JSON object.
    pub fn read(text: &[u8]) -> Result<Self, Problem> {
        let read: Result<BTreeMap<String, Box<RawValue>>, _> = serde_json::from_slice(text);
        read.map(Self).map_err(|error| Problem::bad(format!("the body is not a JSON object: {error}")))
    }

    /// Whether the field is there, null or not.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// # Errors
    /// There is a field of another name than these.
    pub fn only(&self, known: &[&str]) -> Result<(), Problem> {
        match self.0.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) => {
                let (name, known) = (name.escape_debug(), known.join(", "));
                Err(Problem::bad(format!("unknown field '{name}'; this body takes: {known}")))
            }
        }
    }

    /// [`Self::only`] in REST v2: Confluent's proxy answers 422 there (confluentinc/kafka-rest#669).
    ///
    /// # Errors
    /// There is a field of another name than these.
    pub fn only_v2(&self, known: &[&str]) -> Result<(), Problem> {
        self.only(known).map_err(|problem| Problem { status: StatusCode::UNPROCESSABLE_ENTITY, ..problem })
    }

    /// All fields, by name, each as it was written.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.get()))
    }

    /// The text of a field that is there and not null.
    pub fn raw(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|value| value.get()).filter(|text| *text != "null")
    }

    /// # Errors
    /// The field is of another type.
    pub fn text(&self, name: &str) -> Result<Option<String>, Problem> {
        let read = |text: &str| {
            serde_json::from_str(text).map_err(|_| Problem::bad(format!("{name} takes a text, not {text}")))
        };
        self.raw(name).map(read).transpose()
    }

    /// # Errors
    /// The field is missing, or of another type.
    pub fn needed_text(&self, name: &str) -> Result<String, Problem> {
        self.text(name)?.ok_or_else(|| Problem::bad(format!("{name} is missing")))
    }

    /// # Errors
    /// The field is no integer of this type.
    pub fn number<T: TryFrom<i64>>(&self, name: &str) -> Result<Option<T>, Problem> {
        let read = |text: &str| {
            let number = text.parse::<i64>().ok().and_then(|number| T::try_from(number).ok());
            number.ok_or_else(|| Problem::bad(format!("{name} takes a number, not {text}")))
        };
        self.raw(name).map(read).transpose()
    }

    /// # Errors
    /// The field is neither true nor false.
    pub fn is_true(&self, name: &str) -> Result<bool, Problem> {
        match self.raw(name) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(text) => Err(Problem::bad(format!("{name} takes true or false, not {text}"))),
        }
    }

    /// The objects of a list; none where it is absent.
    ///
    /// # Errors
    /// The field is no list of objects.
    pub fn objects(&self, name: &str) -> Result<Vec<Self>, Problem> {
        let wrong = |text: &str| Problem::bad(format!("{name} takes a list of objects, not {text}"));
        let Some(text) = self.raw(name) else { return Ok(Vec::new()) };
        let rows: Result<Vec<BTreeMap<String, Box<RawValue>>>, _> = serde_json::from_str(text);
        Ok(rows.map_err(|_| wrong(text))?.into_iter().map(Self).collect())
    }

    /// The values of an object whose names are data, each as `read` takes it; none where the field is absent.
    ///
    /// # Errors
    /// The field is no object, or `read` does not take a value. `of` says what it takes.
    pub fn map<T>(
        &self,
        name: &str,
        of: &str,
        read: impl Fn(&Value) -> Option<T>,
    ) -> Result<BTreeMap<String, T>, Problem> {
        let wrong = || Problem::bad(format!("{name} takes an object of {of}"));
        let Some(text) = self.raw(name) else { return Ok(BTreeMap::new()) };
        let values: BTreeMap<String, Value> = serde_json::from_str(text).map_err(|_| wrong())?;
        let row = |(key, value): (String, Value)| Some((key, read(&value)?));
        values.into_iter().map(row).collect::<Option<_>>().ok_or_else(wrong)
    }

    /// # Errors
    /// The field is no list of integers.
    pub fn numbers(&self, name: &str) -> Result<Vec<i32>, Problem> {
        let wrong = |text: &str| Problem::bad(format!("{name} takes a list of numbers, not {text}"));
        let Some(text) = self.raw(name) else { return Ok(Vec::new()) };
        serde_json::from_str(text).map_err(|_| wrong(text))
    }
}

/// What a handler gives.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: StatusCode,
    pub document: Option<Value>,
    pub location: Option<String>,
    /// Instead of `document`: a body that is written already, and its media type. It has no tag.
    pub written: Option<(Bytes, &'static str)>,
}

impl Answer {
    pub fn json(document: Value) -> Self {
        Self { document: Some(document), ..Self::of(StatusCode::OK) }
    }

    pub fn created(location: String, document: Option<Value>) -> Self {
        Self { document, location: Some(location), ..Self::of(StatusCode::CREATED) }
    }

    pub fn nothing() -> Self {
        Self::of(StatusCode::NO_CONTENT)
    }

    /// Without a body.
    pub fn of(status: StatusCode) -> Self {
        Self { status, document: None, location: None, written: None }
    }

    /// As it is, without a tag: for what is not asked for twice.
    pub fn written(text: Bytes, kind: &'static str) -> Self {
        Self { written: Some((text, kind)), ..Self::of(StatusCode::OK) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_stay_as_written() {
        let read = Fields::read(br#"{"a":1e400,"b":"\u00e9","c":null,"d":true,"n":9223372036854775807}"#)
            .expect("sound");
        assert_eq!(read.raw("a"), Some("1e400"));
        assert_eq!(read.text("b").expect("a text").as_deref(), Some("é"));
        assert_eq!(read.raw("c"), None);
        assert!(read.is_true("d").expect("a bool"));
        assert_eq!(read.number::<i64>("n").expect("a number"), Some(i64::MAX));
        assert!(read.number::<i32>("n").is_err() && read.text("a").is_err() && read.is_true("b").is_err());
        let map = Fields::read(br#"{"m":{"a":1},"n":{"a":"x"}}"#).expect("sound");
        assert_eq!(map.map("m", "numbers", Value::as_i64).expect("a map")["a"], 1);
        assert!(map.map("n", "numbers", Value::as_i64).is_err() && map.map("o", "", Value::as_i64).is_ok());
        assert!(map.only(&["n", "m"]).is_ok());
        let unknown = map.only(&["m"]).expect_err("n is none of them");
        assert_eq!(unknown.detail, "unknown field 'n'; this body takes: m");
        let of = |problem: Problem| problem.status.as_u16();
        assert_eq!((of(unknown), map.only_v2(&["m"]).map_err(of)), (400, Err(422)));
        assert!(Fields::read(b"[]").is_err() && Fields::read(b"").is_err());
    }

    #[test]
    fn queries_are_read() {
        let pairs = Place::read_query(Some("a=b%20c&d&e=1=2")).expect("sound");
        let expected = [("a", "b c"), ("d", ""), ("e", "1=2")];
        assert!(pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).eq(expected));
        assert!(Place::read_query(Some("a=%ff")).is_err());
    }
}
