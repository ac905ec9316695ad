//! Who waits for what a share group asks of the share coordinator.

use std::collections::BTreeSet;
use std::sync::Arc;

use barnabas_base::{Text, TopicId};
use barnabas_wire::messages::delete_groups_response::DeletableGroupResult;
use barnabas_wire::messages::{AlterShareGroupOffsetsResponse, DeleteShareGroupOffsetsResponse};

use super::member::ShareMember;
use crate::framework::Ticket;

/// A heartbeat that is answered once the topics are set up.
#[derive(Debug)]
pub(crate) struct Heartbeat {
    pub ticket: Ticket,
    pub member: Text,
    /// The answer contains the assignment even if it has not changed.
    pub shows_all: bool,
    /// The member before this heartbeat.
    pub before: Arc<ShareMember>,
}

/// Whom an order is for.
#[derive(Debug)]
pub(crate) enum Awaiting {
    SetUp {
        group: Text,
        heartbeats: Vec<Heartbeat>,
        /// Heartbeats no longer wait for it.
        is_late: bool,
    },
    Altered {
        group: Text,
        ticket: Ticket,
        response: AlterShareGroupOffsetsResponse,
    },
    OffsetsDeleted {
        group: Text,
        ticket: Ticket,
        topics: Vec<(TopicId, Text)>,
        response: DeleteShareGroupOffsetsResponse,
    },
    GroupsDeleted {
        ticket: Ticket,
        groups: BTreeSet<Text>,
        results: Vec<DeletableGroupResult>,
    },
}

impl Awaiting {
    pub fn tickets(&self) -> Vec<Ticket> {
        match self {
            Self::SetUp { heartbeats, .. } => heartbeats.iter().map(|each| each.ticket).collect(),
            Self::Altered { ticket, .. }
            | Self::OffsetsDeleted { ticket, .. }
            | Self::GroupsDeleted { ticket, .. } => vec![*ticket],
        }
    }
}
