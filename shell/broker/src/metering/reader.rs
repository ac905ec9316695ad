//! The thread that collects the metrics, for the endpoint and for `barnabas hotspots`: of low priority, one question at a time, so that no
//! number of curious clients takes a worker's time.

use super::collect::{Collector, Detail};
use crate::node::Node;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use tokio::sync::{mpsc, oneshot};

/// Questions that wait; more are told to come back.
const ASKS_MAX: usize = 16;

#[derive(Debug)]
struct Ask {
    detail: Detail,
    reply: oneshot::Sender<String>,
}

/// Where to ask.
#[derive(Debug, Default)]
pub struct Handle {
    sender: Mutex<Option<mpsc::Sender<Ask>>>,
}

impl Handle {
    /// The metrics as text. `None`: too many ask, or the node is stopping.
    pub async fn ask(&self, detail: Detail) -> Option<String> {
        let (reply, answer) = oneshot::channel();
        let sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner).clone();
        sender?.try_send(Ask { detail, reply }).ok()?;
        answer.await.ok()
    }

    /// Lets the thread end once it has answered.
    pub fn stop(&self) {
        *self.sender.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// # Errors
/// The system gives no thread.
pub fn start(node: Arc<Node>) -> std::io::Result<JoinHandle<()>> {
    let (sender, mut asks) = mpsc::channel(ASKS_MAX);
    let mut collector = Collector::new()?;
    *node.metering.reader.sender.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
    std::thread::Builder::new().name("metrics".to_owned()).spawn(move || {
        if let Err(error) = rustix::process::setpriority_process(None, 10) {
            tracing::debug!(%error, "the metrics' thread keeps its priority");
        }
        while let Some(Ask { detail, reply }) = asks.blocking_recv() {
            // Whoever asked may be gone.
            if !reply.is_closed() {
                let _ = reply.send(collector.collect(&node, &detail));
            }
        }
    })
}
