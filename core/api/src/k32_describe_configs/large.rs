//! The configuration of many resources, described and written piece by piece.
//!
//! A broker's description is 35 kB and a request names it in 5 bytes, as often as it likes. Kafka answers each time,
//! and so does this. A resource that is named again is not described again while its bytes are remembered.
//!
//! Always true:
//! 1. the pieces in their order are the bytes that the encoder makes of [`super::answer`]'s, up to the limit
//! 2. the answer is at most `bytes_max`, and a refusal for each resource beyond that

use std::sync::Arc;

use barnabas_base::{ErrorCode, Map};
use barnabas_wire::messages::describe_configs_request::{DescribeConfigsRequest, DescribeConfigsResource};
use barnabas_wire::messages::describe_configs_response::{DescribeConfigsResponse, DescribeConfigsResult};
use barnabas_wire::{EncodeError, Message, Str, Struct, Writer};
use bytes::Bytes;

use super::{Shape, describe};
use crate::pieces::{InPieces, PIECE_BYTES, around};
use crate::{Context, TooLarge};

/// Up to so many resources are described at once, in less than a millisecond.
const RESOURCES_AT_ONCE: usize = 4;
/// Descriptions that are remembered for resources that are named again, in bytes and in number.
const REMEMBERED_BYTES_MAX: usize = 512 * 1024;
const REMEMBERED_MAX: usize = 1024;

#[derive(Debug)]
struct Asked {
    resources: Vec<DescribeConfigsResource>,
    shape: Shape,
    bytes_max: usize,
    /// What stands before the first result, the count included; and after the last.
    head: Bytes,
    tail: Bytes,
}

/// A long answer while it is written.
#[derive(Debug)]
pub struct Large {
    asked: Arc<Asked>,
    next: usize,
    has_begun: bool,
    written: usize,
    has_refused: bool,
    remembered: Map<(i8, Str), (usize, Bytes)>,
    remembered_bytes: usize,
}

/// The request as a long answer of at most `bytes_max` bytes.
///
/// # Errors
/// `Ok(Err(request))`: the answer is short, and [`super::answer`] makes it. An encoding error is a bug.
pub fn large(
    request: DescribeConfigsRequest,
    version: i16,
    bytes_max: usize,
) -> Result<Result<Large, DescribeConfigsRequest>, EncodeError> {
    if request.resources.len() <= RESOURCES_AT_ONCE {
        return Ok(Err(request));
    }
    let mut w = Writer::new();
    DescribeConfigsResponse::default().write(&mut w, version)?;
    let is_flexible = DescribeConfigsResponse::is_flexible(version);
    let (head, tail) = around(&w.into_bytes(), 0, request.resources.len(), is_flexible);
    let shape = Shape::of(&request, version);
    let asked = Asked { resources: request.resources, shape, bytes_max, head, tail };
    Ok(Ok(Large::new(Arc::new(asked))))
}

impl Large {
    fn new(asked: Arc<Asked>) -> Self {
        Self {
            asked,
            next: 0,
            has_begun: false,
            written: 0,
            has_refused: false,
            remembered: Map::default(),
            remembered_bytes: 0,
        }
    }

    fn describe(&mut self, at: usize, ctx: &Context<'_>) -> Result<Bytes, EncodeError> {
        let asked = Arc::clone(&self.asked);
        let resource = &asked.resources[at];
        if self.written >= asked.bytes_max {
            // The sentence once: ten thousand of them would be an answer of their own.
            let says_why = !std::mem::replace(&mut self.has_refused, true);
            return written(&refused(resource, says_why.then_some(asked.bytes_max)), asked.shape);
        }
        let name = (resource.resource_type, resource.resource_name.clone());
        if let Some((first, bytes)) = self.remembered.get(&name)
            && asked.resources[*first].configuration_keys == resource.configuration_keys
        {
            return Ok(bytes.clone());
        }
        let bytes = written(&describe(resource, asked.shape, ctx), asked.shape)?;
        let all = self.remembered_bytes + bytes.len();
        if all <= REMEMBERED_BYTES_MAX && self.remembered.len() < REMEMBERED_MAX {
            let before = self.remembered.insert(name, (at, bytes.clone()));
            self.remembered_bytes = all - before.map_or(0, |(_, bytes)| bytes.len());
        }
        Ok(bytes)
    }
}

fn written(result: &DescribeConfigsResult, shape: Shape) -> Result<Bytes, EncodeError> {
    let mut w = Writer::new();
    result.write(&mut w, shape.version)?;
    Ok(w.into_bytes())
}

/// `bytes_max`: the limit, where the refusal is to name it.
fn refused(resource: &DescribeConfigsResource, bytes_max: Option<usize>) -> DescribeConfigsResult {
    let refusal = bytes_max.map(|max| TooLarge::Answer(max as u64).refusal(ErrorCode::InvalidRequest));
    DescribeConfigsResult {
        error_code: ErrorCode::InvalidRequest.code(),
        error_message: refusal.and_then(|refusal| refusal.text()),
        resource_type: resource.resource_type,
        resource_name: resource.resource_name.clone(),
        ..DescribeConfigsResult::default()
    }
}

impl InPieces for Large {
    fn piece(&mut self, ctx: &Context<'_>) -> Result<Option<Bytes>, EncodeError> {
        let asked = Arc::clone(&self.asked);
        if self.next > asked.resources.len() {
            return Ok(None);
        }
        let mut w = Writer::with_capacity(PIECE_BYTES + PIECE_BYTES / 4);
        if !std::mem::replace(&mut self.has_begun, true) {
            w.raw_slice(&asked.head);
        }
        while w.len() < PIECE_BYTES && self.next < asked.resources.len() {
            let bytes = self.describe(self.next, ctx)?;
            self.next += 1;
            self.written += bytes.len();
            w.raw_slice(&bytes);
        }
        if self.next == asked.resources.len() {
            self.next += 1;
            w.raw_slice(&asked.tail);
        }
        Ok(Some(w.into_bytes()))
    }

    fn rewound(&self) -> Box<dyn InPieces> {
        Box::new(Self::new(Arc::clone(&self.asked)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::k32_describe_configs::answer;
    use crate::testing::{Fixture, versions};

    fn named(kind: i8, name: &str) -> DescribeConfigsResource {
        DescribeConfigsResource {
            resource_type: kind,
            resource_name: Str::from(name),
            configuration_keys: None,
            ..DescribeConfigsResource::default()
        }
    }

    fn request(resources: Vec<DescribeConfigsResource>, version: i16) -> DescribeConfigsRequest {
        DescribeConfigsRequest {
            resources,
            include_synonyms: version >= 1,
            include_documentation: version >= 3,
            ..DescribeConfigsRequest::default()
        }
    }

    fn pieces(request: DescribeConfigsRequest, version: i16, bytes_max: usize) -> (Vec<u8>, usize) {
        let fixture = Fixture::new();
        let mut large = large(request, version, bytes_max).unwrap().expect("many resources");
        let (mut all, mut largest) = (Vec::new(), 0);
        while let Some(piece) = large.piece(&fixture.ctx()).unwrap() {
            largest = largest.max(piece.len());
            all.extend_from_slice(&piece);
        }
        let (mut again, mut length) = (large.rewound(), 0);
        while let Some(piece) = again.piece(&fixture.ctx()).unwrap() {
            length += piece.len();
        }
        assert_eq!(length, all.len(), "both passes have the same length");
        (all, largest)
    }

    #[test]
    fn pieces_of_any_version_equal_the_whole_answer() {
        for version in versions::<DescribeConfigsResponse>() {
            let mut one_key = named(4, "1");
            one_key.configuration_keys = Some(vec!["log.dirs".into()]);
            let mixed = [named(4, "1"), one_key, named(2, "orders"), named(2, "nothing"), named(32, "g")];
            let resources: Vec<_> = mixed.into_iter().cycle().take(60).collect();
            let fixture = Fixture::new();
            let whole = answer(&request(resources.clone(), version), version, &fixture.ctx());
            let mut w = Writer::new();
            whole.encode(&mut w, version).unwrap();
            let (all, largest) = pieces(request(resources, version), version, usize::MAX);
            assert!(all == w.into_bytes(), "version {version}");
            assert!(largest < 2 * PIECE_BYTES, "{largest}");
        }
    }

    #[test]
    fn one_resource_named_again_and_again_stays_within_the_limit() {
        let resources = vec![named(4, "1"); 20_000];
        let (all, largest) = pieces(request(resources, 4), 4, 1 << 20);
        assert!(all.len() < (1 << 20) + 20_000 * 10 + 64 * 1024, "{} bytes", all.len());
        assert!(largest < 2 * PIECE_BYTES, "{largest}");
        let mut r = barnabas_wire::Reader::new(Bytes::from(all));
        let response = DescribeConfigsResponse::decode(&mut r, 4).unwrap();
        assert_eq!(response.results.len(), 20_000);
        assert_eq!(response.results[0].error_code, 0);
        let refused: Vec<_> = response.results.iter().filter(|result| result.error_code != 0).collect();
        assert!(refused.iter().all(|each| each.error_code == ErrorCode::InvalidRequest.code()));
        assert!(refused.iter().all(|each| each.configs.is_empty()));
        let why = refused[0].error_message.as_ref().unwrap();
        assert!(why.contains("answer.bytes.max=1048576"), "{why}");
    }
}
