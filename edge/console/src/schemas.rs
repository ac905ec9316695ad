//! Schemas by their ids: from a directory, or from a registry that speaks Confluent's API. Each is read once.
//!
//! | bound | value |
//! |---|---|
//! | schemas kept | [`KEPT_MAX`]; the one that was read first goes |
//! | what is refused | is asked for again after [`REFUSED_FOR`] |
//! | ids of one request | [`IDS_MAX`] |
//! | a schema's text | [`TEXT_BYTES_MAX`], with [`REFERENCES_MAX`] that it refers to |
//! | lookups at a time | [`LOOKUPS_MAX`]; a request waits [`WITHIN`] for them |
//!
//! The id comes from a record, so that any number may be asked for: the host and the paths are the operator's alone.
//! A user who may read a topic sees its records decoded; the registry is asked as the console, not as the caller.

use barnabas_decoders::Schema;
use barnabas_oauth::http::{self, Limits, Method};
use barnabas_sasl::oauth::settings::{HttpUrl, Url};
use barnabas_tls::{ClientTls, TlsSettings};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

const KEPT_MAX: usize = 128;
const REFUSED_FOR: Duration = Duration::from_secs(30);
pub const IDS_MAX: usize = 16;
const TEXT_BYTES_MAX: usize = 512 * 1024;
const REFERENCES_MAX: usize = 32;
const FILES_MAX: usize = 10_000;
const LOOKUPS_MAX: usize = 2;
static LOOKUPS: Semaphore = Semaphore::const_new(LOOKUPS_MAX);
const WITHIN: Duration = Duration::from_secs(6);
const LIMITS: Limits =
    Limits { connect: Duration::from_secs(2), read: Duration::from_secs(3), body_bytes_max: TEXT_BYTES_MAX };
/// The endings of files, and the kinds of schema that they hold, as a registry calls them.
const ENDINGS: &[(&str, &str)] = &[("avsc", "AVRO"), ("json", "JSON")];

/// Where schemas are had from.
#[derive(Debug, Default)]
pub struct Places {
    /// Files `ID.avsc`, `ID.json`, or `NAME-ID.avsc` …
    pub directory: Option<PathBuf>,
    pub registry: Option<Registry>,
}

/// A registry, and how the console logs in there.
pub struct Registry {
    url: HttpUrl,
    tls: Option<TlsSettings>,
    /// `Basic …`
    login: Option<String>,
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Registry {
    /// `login`: user and password, with a colon between; `of`: the values of `ssl.*`.
    ///
    /// # Errors
    /// What is wrong with the URL, or with a key of TLS.
    pub fn new(url: &str, login: Option<&str>, of: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let Url::Http(mut url) = Url::parse(url).map_err(|why| format!("the URL {why}"))? else {
            return Err("the URL is no http or https".to_owned());
        };
        url.path.truncate(url.path.trim_end_matches('/').len());
        let tls = if url.has_tls {
            let settings = TlsSettings::read(of).map_err(|error| error.to_string())?;
            ClientTls::load(settings.clone()).map_err(|error| error.to_string())?;
            Some(settings)
        } else {
            None
        };
        let login = login.map(|login| format!("Basic {}", STANDARD.encode(login)));
        Ok(Self { url, tls, login })
    }

    fn get(&self, tls: Option<&ClientTls>, path: &str) -> Result<Value, String> {
        let url = HttpUrl { path: format!("{}{path}", self.url.path), ..self.url.clone() };
        let headers: Vec<(&str, &str)> =
            self.login.iter().map(|login| ("Authorization", login.as_str())).collect();
        let answer = http::send(&url, tls, (&Method::Get, &headers), LIMITS);
        let answer = answer.map_err(|error| format!("the schema registry does not answer: {error}"))?;
        match answer.status {
            200 => serde_json::from_slice(&answer.body)
                .map_err(|_| "the schema registry's answer is no JSON".to_owned()),
            404 => Err("the schema registry does not have it".to_owned()),
            status => Err(format!("the schema registry answers with status {status}")),
        }
    }

    fn schema(&self, id: u32) -> Result<Schema, String> {
        // Its stores may have been replaced since.
        let tls = self.tls.clone().map(ClientTls::load).transpose().map_err(|error| error.to_string())?;
        let answer = self.get(tls.as_ref(), &format!("/schemas/ids/{id}"))?;
        let mut texts = Vec::new();
        self.references(tls.as_ref(), &answer, &mut BTreeSet::new(), &mut texts)?;
        let kind = answer["schemaType"].as_str().unwrap_or("AVRO");
        Schema::parse(kind, &texts, text_of(&answer)?)
    }

    /// The schemas that one refers to, each behind those that it refers to itself.
    fn references(
        &self,
        tls: Option<&ClientTls>,
        answer: &Value,
        seen: &mut BTreeSet<(String, i64)>,
        texts: &mut Vec<String>,
    ) -> Result<(), String> {
        for row in answer["references"].as_array().into_iter().flatten() {
            let (Some(subject), Some(version)) = (row["subject"].as_str(), row["version"].as_i64()) else {
                return Err("the schema has a reference without subject and version".to_owned());
            };
            if !seen.insert((subject.to_owned(), version)) {
                continue;
            }
            if seen.len() > REFERENCES_MAX {
                return Err(format!("the schema refers to more than {REFERENCES_MAX} others"));
            }
            let inner = self.get(tls, &format!("/subjects/{}/versions/{version}", encoded(subject)))?;
            self.references(tls, &inner, seen, texts)?;
            texts.push(text_of(&inner)?.to_owned());
        }
        Ok(())
    }
}

fn text_of(answer: &Value) -> Result<&str, String> {
    answer["schema"].as_str().ok_or_else(|| "the schema registry's answer has no schema".to_owned())
}

fn encoded(segment: &str) -> String {
    let letter = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    segment.bytes().map(letter).collect()
}

impl Places {
    fn find(&self, id: u32) -> Result<Schema, String> {
        if let Some(found) = self.directory.as_deref().and_then(|directory| file(directory, id).transpose()) {
            return found;
        }
        match &self.registry {
            Some(registry) => registry.schema(id),
            None => Err("console.schemas.dir has no such file".to_owned()),
        }
    }
}

/// The schema of a file whose name ends in the id; `Ok(None)`: there is none.
fn file(directory: &Path, id: u32) -> Result<Option<Schema>, String> {
    let shown = directory.display();
    let listed = std::fs::read_dir(directory).map_err(|error| format!("{shown}: {error}"))?;
    for entry in listed.take(FILES_MAX).flatten() {
        let path = entry.path();
        let (Some(stem), Some(ending)) = (path.file_stem(), path.extension()) else { continue };
        let stem = stem.to_string_lossy();
        let number = stem.rsplit('-').next().unwrap_or_default();
        let kind = ENDINGS.iter().find(|(known, _)| ending == *known).map(|(_, kind)| *kind);
        let Some(kind) = kind.filter(|_| number.parse() == Ok(id)) else { continue };
        let mut text = String::new();
        let opened = std::fs::File::open(&path);
        let read = opened.and_then(|file| file.take(TEXT_BYTES_MAX as u64 + 1).read_to_string(&mut text));
        read.map_err(|error| format!("{}: {error}", path.display()))?;
        if text.len() > TEXT_BYTES_MAX {
            return Err(format!("{} has more than {TEXT_BYTES_MAX} bytes", path.display()));
        }
        return Schema::parse(kind, &[], &text).map(Some);
    }
    Ok(None)
}

/// What an id stands for, or why that is not known.
pub type Known = Result<Arc<Schema>, String>;

/// See the file's header.
pub struct Schemas {
    places: Places,
    known: Mutex<BTreeMap<u32, (Instant, Known)>>,
}

impl std::fmt::Debug for Schemas {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Schemas").field("directory", &self.places.directory).finish_non_exhaustive()
    }
}

impl Schemas {
    /// `None`: there is no place to have schemas from.
    pub fn new(places: Places) -> Option<Arc<Self>> {
        let has_one = places.directory.is_some() || places.registry.is_some();
        has_one.then(|| Arc::new(Self { places, known: Mutex::default() }))
    }

    /// What is known already; `None`: nothing.
    pub fn get(&self, id: u32) -> Option<Known> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, found) = known.get(&id)?;
        (found.is_ok() || since.elapsed() < REFUSED_FOR).then(|| found.clone())
    }

    fn keep(&self, id: u32, found: Known) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(id, (Instant::now(), found));
        if known.len() > KEPT_MAX {
            let oldest = known.iter().min_by_key(|(_, (since, _))| *since).map(|(id, _)| *id);
            if let Some(oldest) = oldest {
                known.remove(&oldest);
            }
        }
    }

    /// Has schemas read that are not known yet. Where that takes too long, it goes on behind, and they are known later.
    pub async fn prepare(self: &Arc<Self>, ids: BTreeSet<u32>) {
        let wanted: Vec<u32> = ids.into_iter().filter(|id| self.get(*id).is_none()).collect();
        if wanted.is_empty() {
            return;
        }
        let schemas = self.clone();
        let lookup = async {
            let Ok(place) = LOOKUPS.acquire().await else { return };
            let work = move || {
                let _place = place;
                for id in wanted {
                    if schemas.get(id).is_none() {
                        schemas.keep(id, schemas.places.find(id).map(Arc::new));
                    }
                }
            };
            // A panic there is reported by its own thread, and the schema stays unknown.
            let _ = tokio::task::spawn_blocking(work).await;
        };
        // What is late is shown without its schema.
        let _ = tokio::time::timeout(WITHIN, lookup).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;

    /// A registry that gives these answers, by path, and then what it was asked.
    fn registry(
        answers: &'static [(&str, u16, &str)],
        asks: usize,
    ) -> (String, std::thread::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/base/", listener.local_addr().expect("an address"));
        let work = move || {
            let mut asked = Vec::new();
            for _ in 0..asks {
                let (mut stream, _) = listener.accept().expect("a connection");
                let lines = BufReader::new(stream.try_clone().expect("a stream")).lines();
                let head: Vec<String> =
                    lines.map(|line| line.expect("text")).take_while(|line| !line.is_empty()).collect();
                let path = head[0].split(' ').nth(1).expect("a path").to_owned();
                let login = head.iter().find_map(|line| line.strip_prefix("Authorization: "));
                let known = answers.iter().find(|answer| answer.0 == path);
                let (status, body) = known.map_or((404, "{}"), |answer| (answer.1, answer.2));
                write!(stream, "HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n{body}", body.len())
                    .expect("sent");
                asked.push(format!("{path} {}", login.unwrap_or_default()));
            }
            asked
        };
        (url, std::thread::spawn(work))
    }

    fn prepared(schemas: &Arc<Schemas>, ids: &[u32]) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(schemas.prepare(ids.iter().copied().collect()));
    }

    fn of(registry: Registry) -> Arc<Schemas> {
        Schemas::new(Places { directory: None, registry: Some(registry) }).expect("a place")
    }

    #[test]
    fn registry_is_asked_once_for_an_id_and_for_its_references() {
        let (url, asked) = registry(
            &[
                (
                    "/base/schemas/ids/7",
                    200,
                    r#"{"schema":"{\"type\":\"array\",\"items\":\"a.B\"}","references":[{"name":"a.B","subject":"a/B","version":3}]}"#,
                ),
                (
                    "/base/subjects/a%2FB/versions/3",
                    200,
                    r#"{"schema":"{\"type\":\"enum\",\"name\":\"a.B\",\"symbols\":[\"X\"]}"}"#,
                ),
                ("/base/schemas/ids/8", 200, r#"{"schemaType":"JSON","schema":"{}"}"#),
                ("/base/schemas/ids/10", 200, r#"{"schemaType":"PROTOBUF","schema":"x"}"#),
            ],
            5,
        );
        let schemas = of(Registry::new(&url, Some("me:secret"), |_| None).expect("a URL"));
        assert_eq!(schemas.get(7), None);
        prepared(&schemas, &[7, 8, 9, 10]);
        prepared(&schemas, &[7, 8, 9, 10]);
        let avro = schemas.get(7).expect("known").expect("a schema");
        assert_eq!(avro.decode(&[2, 0, 0], 100).as_deref(), Ok(r#"["X"]"#));
        assert_eq!(*schemas.get(8).expect("known").expect("a schema"), Schema::Json);
        assert_eq!(schemas.get(9), Some(Err("the schema registry does not have it".to_owned())));
        assert_eq!(schemas.get(10), Some(Err("schemas of the kind PROTOBUF are not decoded".to_owned())));
        let asked = asked.join().expect("it ended");
        assert_eq!(asked.len(), 5, "{asked:?}");
        assert!(asked.iter().all(|line| line.ends_with(" Basic bWU6c2VjcmV0")), "{asked:?}");
    }

    #[test]
    fn registry_that_does_not_answer_is_named() {
        let closed = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
        let schemas = of(Registry::new(&format!("http://{closed}"), None, |_| None).expect("a URL"));
        prepared(&schemas, &[7]);
        let why = schemas.get(7).expect("known").expect_err("refused");
        assert!(why.starts_with("the schema registry does not answer: "), "{why}");
        for bad in ["registry:8081", "file:///etc/passwd", "http://"] {
            Registry::new(bad, None, |_| None).expect_err(bad);
        }
    }

    #[test]
    fn references_in_a_circle_end() {
        let (url, asked) = registry(
            &[
                (
                    "/base/schemas/ids/7",
                    200,
                    r#"{"schema":"\"int\"","references":[{"subject":"a","version":1}]}"#,
                ),
                (
                    "/base/subjects/a/versions/1",
                    200,
                    r#"{"schema":"\"int\"","references":[{"subject":"a","version":1}]}"#,
                ),
            ],
            2,
        );
        let schemas = of(Registry::new(&url, None, |_| None).expect("a URL"));
        prepared(&schemas, &[7]);
        assert!(schemas.get(7).expect("known").is_ok());
        asked.join().expect("it ended");
    }

    #[test]
    fn files_are_found_by_the_id_in_their_names() {
        let directory = std::env::temp_dir().join(format!("barnabas-schemas-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        for (name, text) in
            [("7.avsc", r#""long""#), ("orders-value-8.json", "{}"), ("9.txt", ""), ("10.avsc", "{")]
        {
            std::fs::write(directory.join(name), text).expect("written");
        }
        let schemas =
            Schemas::new(Places { directory: Some(directory.clone()), registry: None }).expect("a place");
        prepared(&schemas, &[7, 8, 9, 10]);
        assert_eq!(schemas.get(7).expect("known").expect("a schema").format(), "avro");
        assert_eq!(schemas.get(8).expect("known").expect("a schema").format(), "json-schema");
        assert_eq!(schemas.get(9), Some(Err("console.schemas.dir has no such file".to_owned())));
        assert!(schemas.get(10).expect("known").expect_err("no schema").starts_with("the schema is no JSON"));
        std::fs::remove_dir_all(&directory).expect("removed");
    }

    #[test]
    fn schemas_that_are_kept_are_bounded() {
        let schemas = Schemas::new(Places { directory: Some(PathBuf::from("/nowhere")), registry: None })
            .expect("a place");
        (0..1000).for_each(|id| schemas.keep(id, Err(String::new())));
        assert_eq!(schemas.known.lock().expect("no panic").len(), KEPT_MAX);
        assert!(schemas.get(999).is_some() && schemas.get(0).is_none());
    }
}
