//! A new image of the cluster, as workers get it.

use barnabas_metadata::{Changes, Image};
use std::sync::Arc;

/// One step from image to image.
#[derive(Debug)]
pub struct ImageChange {
    pub before: Arc<Image>,
    pub image: Arc<Image>,
    pub changes: Box<Changes>,
}
