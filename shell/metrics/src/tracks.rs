//! The times of one connection's requests, in the order of their frames: noted as they go by, counted once their
//! answers are with the socket.
//!
//! Kept beside the connection's queue and not in it: what is queued is moved about with its answer, and this stays
//! where it is.
//!
//! Always true:
//! 1. behind the first `leaving` entries, there is one for each request of the connection's queue, in its order
//! 2. what was started is ended once, also where the connection is lost in between

use crate::recorder::Recorder;
use crate::requests::{Passed, Track};
use crate::spans::Asker;
use barnabas_clock::Stamp;
use std::collections::VecDeque;
use std::rc::Rc;

/// See the file's header.
#[derive(Debug)]
pub struct Tracks {
    recorder: Rc<Recorder>,
    tracks: VecDeque<Track>,
    /// So many of the first are on their way to the socket.
    leaving: usize,
}

impl Tracks {
    pub fn new(recorder: Rc<Recorder>) -> Self {
        Self { recorder, tracks: VecDeque::new(), leaving: 0 }
    }

    /// The queue's newest request.
    pub fn started(&mut self, track: Track) {
        self.recorder.cells().started.add(1);
        self.tracks.push_back(track);
    }

    /// The answer of the queue's request at `place` is there.
    pub fn ready(&mut self, place: usize, at: Stamp, passed: Passed) {
        if let Some(track) = self.tracks.get_mut(self.leaving + place) {
            (track.ready, track.passed) = (at, passed);
        }
    }

    /// So many bytes of the first answer of the queue go to the socket.
    pub fn wrote(&mut self, bytes: usize) {
        if let Some(track) = self.tracks.get_mut(self.leaving) {
            track.bytes_out += bytes as u64;
        }
    }

    /// The first answer left the queue; all of it goes to the socket now.
    pub fn leaves(&mut self) {
        self.leaving += 1;
    }

    /// The answer of the queue's request at `place` has this error code first; 0: none.
    pub fn failed(&mut self, place: usize, error: i16) {
        if let Some(track) = self.tracks.get_mut(self.leaving + place) {
            track.error = Some(error);
        }
    }

    /// What was on its way is with the socket. Returns when that was. `asker`: whose the connection is.
    pub fn written(&mut self, asker: &dyn Fn() -> Asker) -> Stamp {
        let now = Stamp::now();
        for track in self.tracks.drain(..self.leaving) {
            self.recorder.answered(&track, now);
            if let Some(sampler) = self.recorder.sampler() {
                sampler.answered(&track, now, asker);
            }
        }
        self.recorder.cells().ended.add(self.leaving as u64);
        self.leaving = 0;
        now
    }
}

impl Drop for Tracks {
    fn drop(&mut self) {
        self.recorder.cells().ended.add(self.tracks.len() as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Metering;
    use crate::spans::{Samples, Sampling};
    use barnabas_wire::ApiKey;

    fn track(api: ApiKey) -> Track {
        let read = Stamp::now();
        Track {
            api,
            version: 0,
            correlation_id: 0,
            error: None,
            is_follower: false,
            client: 0,
            bytes: 10,
            bytes_out: 0,
            read,
            started: read,
            ready: read,
            passed: Passed::Untold,
        }
    }

    #[test]
    fn each_request_is_counted_once_and_what_was_lost_is_not() {
        let metering = Metering::new(1, 1, None);
        let asker = || -> Asker { panic!("nothing is sampled") };
        let recorder = Rc::new(metering.recorder(0));
        let cells = || (recorder.cells().started.get(), recorder.cells().ended.get());
        let count = |api| recorder.cells().api(api).map_or(0, |cells| cells.total.counts().count());
        let mut tracks = Tracks::new(recorder.clone());
        for api in [ApiKey::Produce, ApiKey::Fetch, ApiKey::Produce] {
            tracks.started(track(api));
        }
        tracks.ready(1, Stamp::now(), Passed::Untold);
        tracks.ready(9, Stamp::now(), Passed::Untold);
        tracks.wrote(30);
        tracks.leaves();
        // One more comes while the answer is written.
        tracks.started(track(ApiKey::Produce));
        tracks.written(&asker);
        assert_eq!((cells(), count(ApiKey::Produce), count(ApiKey::Fetch)), ((4, 1), 1, 0));
        tracks.wrote(5);
        tracks.written(&asker);
        assert_eq!((cells(), count(ApiKey::Fetch)), ((4, 1), 0));
        tracks.leaves();
        tracks.written(&asker);
        assert_eq!((cells(), count(ApiKey::Fetch)), ((4, 2), 1));
        drop(tracks);
        assert_eq!((cells(), count(ApiKey::Produce)), ((4, 4), 1));
        let counts = metering.client(0);
        assert_eq!((counts.bytes_in, counts.bytes_out, counts.requests), (20, 35, [1, 1, 0]));
    }

    #[test]
    fn sampled_request_has_the_error_of_its_own_answer() {
        let samples = Samples::new(Sampling { ratio: 1.0, per_second_max: 9 });
        let metering = Metering::new(1, 1, samples);
        let mut tracks = Tracks::new(Rc::new(metering.recorder(0)));
        for api in [ApiKey::Produce, ApiKey::Fetch] {
            tracks.started(track(api));
        }
        tracks.failed(1, 6);
        tracks.leaves();
        tracks.leaves();
        let asker = || Asker { client_id: None, listener: "PLAINTEXT".into() };
        tracks.written(&asker);
        let sampled = metering.samples().expect("it is on").drain();
        let errors: Vec<_> = sampled.iter().map(|one| (one.track.api, one.track.error)).collect();
        assert_eq!(errors, [(ApiKey::Produce, None), (ApiKey::Fetch, Some(6))]);
    }
}
