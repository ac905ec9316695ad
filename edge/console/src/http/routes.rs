//! Which route a method and a path name.

use super::call::{Answer, Call};
use super::percent;
use super::problem::Problem;
use super::shape::Doc;
use hyper::StatusCode;
use std::pin::Pin;

pub type Running<'a> = Pin<Box<dyn Future<Output = Result<Answer, Problem>> + Send + 'a>>;

pub type Handler = for<'a> fn(&'a mut Call) -> Running<'a>;

/// How a route is answered.
#[derive(Clone, Copy)]
pub enum Run {
    /// Body in, document out.
    Whole(Handler),
    /// Records in and reports out, for as long as the client sends.
    Records,
    /// Events out, for as long as the client reads.
    Tail,
    /// Events out, until all is searched.
    Search,
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Whole(_) => "Whole",
            Self::Records => "Records",
            Self::Tail => "Tail",
            Self::Search => "Search",
        })
    }
}

/// One operation: `GET /v3/clusters/{cluster_id}`.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    pub method: &'static str,
    pub pattern: &'static str,
    pub run: Run,
    pub doc: &'static Doc,
}

/// A row of a table of routes for each `METHOD "pattern" handler, what the API describes of it`.
macro_rules! routes {
    (@doc) => { &$crate::http::shape::Doc::ELSEWHERE };
    (@doc $doc:path) => { &$doc };
    ($($method:ident $pattern:literal $handler:path $(, $doc:path)?;)*) => {
        &[$($crate::http::routes::Route {
            method: stringify!($method),
            pattern: $pattern,
            run: $crate::http::routes::Run::Whole(|call| Box::pin($handler(call))),
            doc: $crate::http::routes::routes!(@doc $($doc)?),
        }),*]
    };
}
pub(crate) use routes;

/// A route and the names in the path.
#[derive(Debug)]
pub struct Found {
    pub route: Route,
    pub params: Vec<(&'static str, String)>,
}

/// The route of `method` and `path`. HEAD is GET without the body.
///
/// # Errors
/// 404: no route has this path; 405: one has, with other methods. 400: the path is no UTF-8.
pub fn find<'a>(
    tables: impl IntoIterator<Item = &'a [Route]>,
    method: &str,
    path: &str,
) -> Result<Found, Problem> {
    let method = if method == "HEAD" { "GET" } else { method };
    let decoded: Option<Vec<String>> =
        path.split('/').skip(1).map(|segment| percent::decode(segment, false)).collect();
    let segments = decoded.ok_or_else(|| Problem::bad("the path is not UTF-8"))?;
    let mut others = Vec::new();
    for route in tables.into_iter().flatten() {
        let Some(params) = matched(route.pattern, &segments) else { continue };
        if route.method == method {
            return Ok(Found { route: *route, params });
        }
        others.push(route.method);
    }
    if others.is_empty() {
        return Err(Problem::not_found("no route has this path; docs/CONSOLE.md lists them"));
    }
    let detail = format!("this path takes {}", others.join(", "));
    Err(Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail))
}

fn matched(pattern: &'static str, segments: &[String]) -> Option<Vec<(&'static str, String)>> {
    let wanted: Vec<&'static str> = pattern.split('/').skip(1).collect();
    if wanted.len() != segments.len() {
        return None;
    }
    let mut params = Vec::new();
    for (wanted, given) in wanted.into_iter().zip(segments) {
        match wanted.strip_prefix('{').and_then(|wanted| wanted.strip_suffix('}')) {
            Some(_) if given.is_empty() => return None,
            Some(name) => params.push((name, given.clone())),
            None if wanted == given => {}
            None => return None,
        }
    }
    Some(params)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn route(method: &'static str, pattern: &'static str) -> Route {
        Route { method, pattern, run: Run::Records, doc: &Doc::ELSEWHERE }
    }

    const TABLE: &[Route] = &[route("GET", "/a/-/b"), route("GET", "/a/{x}/b"), route("PUT", "/a/{x}/b")];

    #[test]
    fn first_route_that_matches_is_found() {
        let found = |method: &str, path: &str| find([TABLE], method, path);
        assert_eq!(found("GET", "/a/-/b").expect("found").route.pattern, "/a/-/b");
        let named = found("HEAD", "/a/x%2Fy/b").expect("found");
        assert_eq!(named.params, [("x", "x/y".to_owned())]);
        let refused = |method: &str, path: &str| found(method, path).expect_err("refused").status.as_u16();
        assert_eq!(refused("DELETE", "/a/x/b"), 405);
        assert_eq!([refused("GET", "/a//b"), refused("GET", "/a/x/b/"), refused("GET", "/")], [404; 3]);
        assert_eq!(refused("GET", "/a/%ff/b"), 400);
    }
}
