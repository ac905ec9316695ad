//! Dynamic nodes.
use crate::open::{Opening, Served};
use barnabas_client::ClientError;

pub async fn serve(_opening: Opening, _receives: bool) -> Served {
    Err(ClientError::Invalid("dynamic nodes are not there".to_owned()))
}
