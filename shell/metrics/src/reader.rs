//! The thread that collects the metrics, for the endpoint and for `barnabas hotspots`: of low priority, one question at
//! a time, so that no number of curious clients takes a worker's time.

use barnabas_base::Text;
use barnabas_exposition::text::Form;
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use tokio::sync::{mpsc, oneshot};

/// Questions that wait; more are told to come back.
const ASKS_MAX: usize = 16;

/// What is wanted beside the metrics that everybody gets.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Detail {
    /// Histograms with all their buckets, for `barnabas hotspots`.
    pub is_fine: bool,
    /// How it is written, and which part.
    pub form: Form,
    /// The sizes of this topic's logs.
    pub topic: Option<Text>,
    /// This group's lag, partition by partition.
    pub group: Option<Text>,
}

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

/// Starts the thread: `collect` writes the page.
///
/// # Errors
/// The system gives no thread.
pub fn start(
    handle: &Handle,
    mut collect: impl FnMut(&Detail) -> String + Send + 'static,
) -> std::io::Result<JoinHandle<()>> {
    let (sender, mut asks) = mpsc::channel(ASKS_MAX);
    *handle.sender.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
    std::thread::Builder::new().name("metrics".to_owned()).spawn(move || {
        if let Err(error) = rustix::process::setpriority_process(None, 10) {
            tracing::debug!(%error, "the metrics' thread keeps its priority");
        }
        while let Some(Ask { detail, reply }) = asks.blocking_recv() {
            // The reader may have left.
            if !reply.is_closed() {
                let _ = reply.send(collect(&detail));
            }
        }
    })
}
