//! A few small producers that never stop, and the longest that one of them had to wait: what others feel of a large
//! request.
//!
//! Eight connections, each with a partition of its own, so that every worker of the node has some of them. Each sends
//! one record, waits for its answer (`acks=all`) and sends the next after a millisecond.

use crate::asks;
use crate::node::Failure;
use barnabas_base::TopicId;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const LANES: i32 = 8;
const PAUSE: Duration = Duration::from_millis(1);

#[derive(Debug, Default)]
struct Shared {
    longest_us: AtomicU64,
    count: AtomicU64,
    ended: AtomicBool,
    failed: AtomicBool,
}

/// The producers, on a thread of their own.
#[derive(Debug)]
pub struct Pulse {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// For one record.
const PATIENCE: Duration = Duration::from_secs(10);

impl Pulse {
    /// Makes the topic `name` and starts to write to it.
    ///
    /// # Errors
    /// The topic cannot be made.
    pub async fn start(address: &str, name: &'static str) -> Result<Self, Failure> {
        let mut connection = asks::connect(address, Duration::from_secs(10)).await?;
        let ids = asks::create(&mut connection, &[name.to_owned()], LANES).await?;
        let id = ids.first().copied().ok_or("no topic was made")?;
        let shared = Arc::new(Shared::default());
        let (told, address) = (shared.clone(), address.to_owned());
        let thread = std::thread::Builder::new().name("pulse".to_owned());
        let thread = thread.spawn(move || beat_all(&told, &address, (name, id)))?;
        let pulse = Self { shared, thread: Some(thread) };
        tokio::time::sleep(Duration::from_millis(300)).await;
        pulse.longest()?;
        Ok(pulse)
    }

    /// The longest wait since this was last asked; at least one record must have gone through.
    ///
    /// # Errors
    /// A producer was refused something.
    pub fn longest(&self) -> Result<Duration, Failure> {
        if self.shared.failed.load(Ordering::Relaxed) {
            return Err("a small producer was refused".into());
        }
        // What went on may have taken less than a record does.
        let asked = Instant::now();
        while self.shared.count.load(Ordering::Relaxed) == 0 {
            if asked.elapsed() > PATIENCE {
                return Err("the small producers did not get a record through".into());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        self.shared.count.store(0, Ordering::Relaxed);
        let longest = self.shared.longest_us.swap(0, Ordering::Relaxed);
        Ok(Duration::from_micros(longest))
    }

    /// Ends the producers.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.shared.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It has nothing to say but what `failed` says.
            let _ = thread.join();
        }
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        self.end();
    }
}

fn beat_all(shared: &Arc<Shared>, address: &str, topic: (&'static str, TopicId)) {
    let beat_all = async {
        let local = tokio::task::LocalSet::new();
        for lane in 0..LANES {
            let (shared, address) = (shared.clone(), address.to_owned());
            local.spawn_local(async move {
                if beat(&shared, &address, topic, lane).await.is_err()
                    && !shared.ended.load(Ordering::Relaxed)
                {
                    shared.failed.store(true, Ordering::Relaxed);
                }
            });
        }
        local.await;
    };
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(beat_all),
        Err(_) => shared.failed.store(true, Ordering::Relaxed),
    }
}

async fn beat(shared: &Shared, address: &str, topic: (&str, TopicId), lane: i32) -> Result<(), Failure> {
    let batch = asks::one_record()?;
    let mut connection = asks::connect(address, Duration::from_secs(10)).await?;
    while !shared.ended.load(Ordering::Relaxed) {
        let begun = Instant::now();
        asks::produce(&mut connection, topic, lane..lane + 1, &batch).await?;
        shared.longest_us.fetch_max(begun.elapsed().as_micros() as u64, Ordering::Relaxed);
        shared.count.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}
