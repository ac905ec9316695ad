//! A link that looks at a queue: what its receivers could still get, delivered settled and left where it is.
//!
//! It begins where the queue's share group begins, and ends at what there is: a peer that drains learns so.

use crate::address::Address;
use crate::open::{Opening, Served};
use barnabas_client::ClientError;

pub async fn serve(_opening: Opening, _address: &Address) -> Served {
    Err(ClientError::Invalid("browsing is not there".to_owned()))
}
