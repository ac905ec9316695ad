//! The resources of a large cluster, listed and written piece by piece.
//!
//! Always true: the pieces in their order are the bytes that the encoder makes of [`super::answer`]'s.

use std::sync::Arc;

use barnabas_base::Text;
use barnabas_metadata::ResourceType;
use barnabas_wire::messages::list_config_resources_request::ListConfigResourcesRequest;
use barnabas_wire::messages::list_config_resources_response::ListConfigResourcesResponse;
use barnabas_wire::{EncodeError, Struct, Writer};
use bytes::Bytes;

use super::{count, entry, names, wanted};
use crate::Context;
use crate::pieces::{InPieces, LARGE_MIN, PIECE_BYTES, around};

#[derive(Debug)]
struct Asked {
    kinds: Vec<ResourceType>,
    version: i16,
    /// What stands before the first resource, the count included; and after the last.
    head: Bytes,
    tail: Bytes,
}

/// A long list while it is written.
#[derive(Debug)]
pub struct Large {
    asked: Arc<Asked>,
    has_begun: bool,
    /// The kind that is being listed, by its place among those that are wanted, and the last of its names that was
    /// written.
    kind: usize,
    last: Option<Text>,
}

/// The request as a long answer; `None` where [`super::answer`] is right because it is short, or refuses.
///
/// # Errors
/// A bug: the head has fixed fields alone.
pub fn large(
    request: &ListConfigResourcesRequest,
    version: i16,
    ctx: &Context<'_>,
) -> Result<Option<Large>, EncodeError> {
    let Some(kinds) = wanted(request, version) else { return Ok(None) };
    let count = kinds.iter().map(|&kind| count(kind, ctx)).sum();
    if count < LARGE_MIN {
        return Ok(None);
    }
    let mut w = Writer::new();
    ListConfigResourcesResponse::default().write(&mut w, version)?;
    let (head, tail) = around(&w.into_bytes(), 0, count, true);
    Ok(Some(Large::new(Arc::new(Asked { kinds, version, head, tail }))))
}

impl Large {
    fn new(asked: Arc<Asked>) -> Self {
        Self { asked, has_begun: false, kind: 0, last: None }
    }
}

impl InPieces for Large {
    fn piece(&mut self, ctx: &Context<'_>) -> Result<Option<Bytes>, EncodeError> {
        let asked = Arc::clone(&self.asked);
        if self.kind > asked.kinds.len() {
            return Ok(None);
        }
        let mut w = Writer::with_capacity(PIECE_BYTES + PIECE_BYTES / 8);
        if !std::mem::replace(&mut self.has_begun, true) {
            w.raw_slice(&asked.head);
        }
        while let Some(&kind) = asked.kinds.get(self.kind) {
            for name in names(kind, self.last.take().as_ref(), ctx) {
                entry(kind, &name, asked.version).write(&mut w, asked.version)?;
                if w.len() >= PIECE_BYTES {
                    self.last = Some(name);
                    return Ok(Some(w.into_bytes()));
                }
            }
            self.kind += 1;
        }
        self.kind += 1;
        w.raw_slice(&asked.tail);
        Ok(Some(w.into_bytes()))
    }

    fn rewound(&self) -> Box<dyn InPieces> {
        Box::new(Self::new(Arc::clone(&self.asked)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::k74_list_config_resources::answer;
    use crate::testing::{Fixture, config, topic, versions};
    use barnabas_base::Uuid;
    use barnabas_wire::Message;

    fn crowd() -> Fixture {
        let mut records = Vec::new();
        for number in 0..20_000_u16 {
            let mut id = [1; 16];
            id[..2].copy_from_slice(&number.to_be_bytes());
            let name = format!("{}-{number}", "n".repeat(usize::from(number % 200)));
            records.push(topic(&name, Uuid(id)));
            records.push(config(32, &name, "share.session.timeout.ms", "1"));
            records.push(config(16, &name, "interval.ms", "1"));
        }
        let mut fixture = Fixture::new();
        fixture.add(&records);
        fixture
    }

    #[test]
    fn pieces_of_any_version_equal_the_whole_answer() {
        let fixture = crowd();
        let ctx = fixture.ctx();
        for version in versions::<ListConfigResourcesResponse>() {
            for types in [vec![], vec![2], vec![16, 4]] {
                let resource_types = if version == 0 { Vec::new() } else { types };
                let request = ListConfigResourcesRequest { resource_types, ..Default::default() };
                let mut w = Writer::new();
                answer(&request, version, &ctx).encode(&mut w, version).unwrap();
                let whole = w.into_bytes();
                let mut large = large(&request, version, &ctx).unwrap().expect("large enough");
                let (mut all, mut pieces) = (Vec::new(), 0);
                while let Some(piece) = large.piece(&ctx).unwrap() {
                    assert!(piece.len() < PIECE_BYTES + 1024, "{}", piece.len());
                    all.extend_from_slice(&piece);
                    pieces += 1;
                }
                assert!(all == whole && pieces > 5, "version {version}: {pieces} pieces");
                assert!(large.rewound().piece(&ctx).unwrap().is_some_and(|first| whole.starts_with(&first)));
            }
        }
    }

    #[test]
    fn short_list_and_refusal_go_the_usual_way() {
        let asked = |fixture: &Fixture, types: &[i8]| {
            let request = ListConfigResourcesRequest { resource_types: types.to_vec(), ..Default::default() };
            large(&request, 1, &fixture.ctx()).unwrap().is_some()
        };
        let fixture = crowd();
        assert!(!asked(&Fixture::new(), &[]) && !asked(&fixture, &[4]) && !asked(&fixture, &[2, 3]));
        assert!(asked(&fixture, &[2]));
    }
}
