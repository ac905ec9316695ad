//! What members of share groups say beside what every member does.

use std::sync::Arc;

use barnabas_base::Text;

use super::Share;
use crate::groups::reconciled::Member;

pub(crate) type ShareMember = Member<Share>;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Own {
    /// Topics subscribed to: sorted, none twice.
    pub names: Arc<Vec<Text>>,
}

impl Member<Share> {
    /// What it said of itself, in bytes.
    pub fn said_bytes(&self) -> usize {
        let names = self.own.names.iter().map(|name| name.len() + 2).sum::<usize>();
        let who = self.id.len() + self.client_id.len() + self.client_host.len();
        who + self.rack.as_ref().map_or(0, |rack| rack.len()) + names
    }

    pub fn subscribes(&self, topic: &str) -> bool {
        self.own.names.binary_search_by(|name| name.as_str().cmp(topic)).is_ok()
    }
}
