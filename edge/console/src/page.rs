//! The console's page: plain ES modules, as they are in `edge/console/page`, compressed once at the start. No build
//! step.
//!
//! What a record contains never becomes HTML: the page draws text nodes, the Content-Security-Policy forbids inline
//! scripts, `eval` and every other host, and Trusted Types forbid HTML from text.

use crate::http::body::Outgoing;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use std::io::Write;
use std::sync::OnceLock;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";

macro_rules! files {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_bytes!(concat!("../page/", $path)))),*]
    };
}

const FILES: &[(&str, &[u8])] = files![
    "index.html",
    "style.css",
    "icon.svg",
    "app.js",
    "base.js",
    "api.js",
    "change.js",
    "decode.js",
    "format.js",
    "views/overview.js",
    "views/topics.js",
    "views/records.js",
    "views/tail.js",
    "views/changes.js",
    "views/groups.js",
    "views/quorum.js",
    "vendor/preact.mjs",
    "vendor/htm.mjs",
];

/// A file, ready to be sent.
#[derive(Debug)]
struct Packed {
    path: &'static str,
    kind: &'static str,
    tag: String,
    gzip: Bytes,
    plain: &'static [u8],
}

/// The answer to a path of the page; `None`: it is none.
pub fn answer(path: &str, headers: &HeaderMap) -> Option<Response<Outgoing>> {
    let name = if path == "/" { "index.html" } else { path.strip_prefix('/')? };
    let file = packed().iter().find(|file| file.path == name)?;
    let has = |name: HeaderName, words: &str| {
        headers.get(name).and_then(|value| value.to_str().ok()).is_some_and(|value| value.contains(words))
    };
    let is_known = has(header::IF_NONE_MATCH, &file.tag);
    let takes_gzip = has(header::ACCEPT_ENCODING, "gzip");
    let body = match (is_known, takes_gzip) {
        (true, _) => None,
        (false, true) => Some(file.gzip.clone()),
        (false, false) => Some(Bytes::from_static(file.plain)),
    };
    let is_packed = body.is_some() && takes_gzip;
    let mut response = Response::new(Outgoing::Whole(body));
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let given = response.headers_mut();
    given.insert(header::CONTENT_TYPE, HeaderValue::from_static(file.kind));
    given.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    // Asked again each time, and answered without the body: a new version is seen at once.
    given.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    given.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if let Ok(tag) = HeaderValue::from_str(&file.tag) {
        given.insert(header::ETAG, tag);
    }
    if is_packed {
        given.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    Some(response)
}

fn packed() -> &'static [Packed] {
    static PACKED: OnceLock<Vec<Packed>> = OnceLock::new();
    PACKED.get_or_init(|| FILES.iter().map(|(path, plain)| pack(path, plain)).collect())
}

fn pack(path: &'static str, plain: &'static [u8]) -> Packed {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let packed = encoder.write_all(plain).and_then(|()| encoder.finish());
    let gzip = packed.expect("invariant: a vector takes every byte");
    let sum = barnabas_wire::records::crc32c(plain);
    let tag = format!("\"{sum:08x}{:x}\"", plain.len());
    Packed { path, kind: kind(path), tag, gzip: Bytes::from(gzip), plain }
}

fn kind(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "text/javascript; charset=utf-8",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const README: &str = include_str!("../page/vendor/README.md");

    #[test]
    fn page_is_small() {
        let gzip: usize = packed().iter().map(|file| file.gzip.len()).sum();
        let plain: usize = FILES.iter().map(|file| file.1.len()).sum();
        assert!(gzip < 60 * 1024 && plain < 1024 * 1024, "{gzip} of {plain}");
    }

    #[test]
    fn every_file_of_the_page_is_served() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("page");
        for folder in ["", "views", "vendor"] {
            for entry in std::fs::read_dir(root.join(folder)).expect("a folder") {
                let path = entry.expect("an entry").path();
                let own = path.strip_prefix(&root).expect("below it").to_string_lossy().into_owned();
                let is_text = own.ends_with(".md") || own.ends_with(".LICENSE");
                assert!(path.is_dir() || is_text || FILES.iter().any(|file| file.0 == own), "{own}");
            }
        }
    }

    #[test]
    fn modules_of_others_are_as_published() {
        for (path, bytes) in FILES.iter().filter(|file| file.0.starts_with("vendor/")) {
            let sum: String = sha256(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
            assert!(README.contains(&sum), "{path} has the SHA-256 {sum}");
        }
    }

    fn sha256(bytes: &[u8]) -> Vec<u8> {
        use sha2::Digest;
        sha2::Sha256::digest(bytes).to_vec()
    }

    #[test]
    fn no_script_makes_html_or_asks_another_host() {
        for (path, bytes) in FILES.iter().filter(|file| !file.0.starts_with("vendor/")) {
            let text = std::str::from_utf8(bytes).expect("text");
            for word in ["innerHTML", "dangerously", "document.write", "eval(", "https://", "style="] {
                assert!(!text.contains(word), "{path} contains {word}");
            }
        }
    }

    #[test]
    fn known_files_are_not_sent_again() {
        let first = answer("/", &HeaderMap::new()).expect("the page");
        assert_eq!(first.status(), StatusCode::OK);
        let mut headers = HeaderMap::new();
        headers.insert(header::IF_NONE_MATCH, first.headers()[header::ETAG].clone());
        assert_eq!(answer("/", &headers).expect("the page").status(), StatusCode::NOT_MODIFIED);
        assert!(
            answer("/vendor/README.md", &headers).is_none() && answer("/../Cargo.toml", &headers).is_none()
        );
    }
}
