//! The thread that links live on, with a runtime of its own: peers are heard though every worker is busy, and a large
//! answer to a client holds up no heartbeat.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::runtime::Handle;
use tokio::sync::Notify;

/// Where links and what belongs to them run. Cheap to clone.
#[derive(Debug, Clone)]
pub struct LinkThread {
    handle: Handle,
    stop: Arc<Notify>,
}

impl LinkThread {
    /// Starts the thread. It ends after [`LinkThread::stop`].
    ///
    /// # Errors
    /// The system gives no thread or no event queue.
    pub fn start() -> io::Result<(Self, JoinHandle<()>)> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (handle, stop) = (runtime.handle().clone(), Arc::new(Notify::new()));
        let stopped = stop.clone();
        let run = move || runtime.block_on(stopped.notified());
        let thread = std::thread::Builder::new().name("links".to_owned()).spawn(run)?;
        Ok((Self { handle, stop }, thread))
    }

    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Stops the links; pending requests fail.
    pub fn stop(&self) {
        self.stop.notify_one();
    }
}
