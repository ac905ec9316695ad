//! One word to all connectors: stop.

use tokio::sync::watch;

/// What a connector waits for beside its work.
#[derive(Debug, Clone)]
pub struct Stop(watch::Receiver<bool>);

impl Stop {
    /// The word, and those who wait for it.
    pub fn new() -> (watch::Sender<bool>, Self) {
        let (sender, receiver) = watch::channel(false);
        (sender, Self(receiver))
    }

    pub fn is_due(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns once it is to stop. Where the sender is gone, that is a stop too.
    pub async fn wait(&mut self) {
        let _ = self.0.wait_for(|is_due| *is_due).await;
    }
}
