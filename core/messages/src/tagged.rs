//! Tagged fields that this build does not know: kept as they came, written as they were (KIP-482).

use bytes::Bytes;

/// One tagged field that no schema of ours names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownTaggedField {
    pub tag: u32,
    pub data: Bytes,
}

/// The unknown tagged fields of one struct, by rising tag. Eight bytes when there are none, which is nearly always.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct TaggedFields {
    // Boxed twice so that the common case, nothing, costs a null pointer in each of a message's structs.
    #[allow(clippy::box_collection)]
    fields: Option<Box<Vec<UnknownTaggedField>>>,
}

impl TaggedFields {
    pub fn is_empty(&self) -> bool {
        self.as_slice().is_empty()
    }

    pub fn as_slice(&self) -> &[UnknownTaggedField] {
        self.fields.as_deref().map_or(&[], Vec::as_slice)
    }

    /// Appends a field; the caller keeps to rising tags, or encoding refuses.
    pub fn push(&mut self, tag: u32, data: Bytes) {
        self.fields.get_or_insert_default().push(UnknownTaggedField { tag, data });
    }
}

impl std::fmt::Debug for TaggedFields {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}
