//! One member of a share group: what it said of itself, and where it stands. Cheap to clone.

use std::sync::Arc;

use barnabas_base::Text;

use crate::assignment::Partitions;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShareMember {
    pub id: Text,
    pub rack: Option<Text>,
    pub client_id: Text,
    pub client_host: Text,
    /// Topics subscribed to: sorted, none twice.
    pub names: Arc<Vec<Text>>,
    /// 0: about to join.
    pub epoch: i32,
    pub previous_epoch: i32,
    pub assigned: Arc<Partitions>,
}

impl ShareMember {
    pub fn new(id: Text) -> Self {
        Self {
            id,
            rack: None,
            client_id: Text::default(),
            client_host: Text::default(),
            names: Arc::default(),
            epoch: 0,
            previous_epoch: 0,
            assigned: Arc::default(),
        }
    }

    /// What it said of itself.
    pub fn said_bytes(&self) -> usize {
        let names = self.names.iter().map(|name| name.len() + 2).sum::<usize>();
        let who = self.id.len() + self.client_id.len() + self.client_host.len();
        who + self.rack.as_ref().map_or(0, |rack| rack.len()) + names
    }

    pub fn subscribes(&self, topic: &str) -> bool {
        self.names.binary_search_by(|name| name.as_str().cmp(topic)).is_ok()
    }
}
