//! What is sent goes through Kafka's messages and their bytes, in whatever version the two nodes share.

use barnabas_base::{ErrorCode, Text};
use barnabas_wire::{Message, Reader, Writer};

use super::plan::Plan;
use crate::raft::message::{Request, Response};
use crate::raft::requests::*;

/// The versions that a cluster speaks.
#[derive(Debug, Clone, Copy)]
pub struct Versions {
    pub vote: i16,
    pub epoch: i16,
    pub fetch: i16,
    pub snapshot: i16,
}

impl Versions {
    pub fn of(plan: &Plan, draw: u64) -> Self {
        if plan.dynamic || plan.raises {
            // Directory ids are needed: who does not speak of them does not support `kraft.version` 1, and it is not
            // raised.
            let (vote, fetch) = (1 + (draw % 4).min(1) as i16, 17 + (draw % 2) as i16);
            return Self { vote, epoch: 1, fetch, snapshot: 1 };
        }
        let (vote, fetch) = ((draw % 3) as i16, 12 + (draw % 7) as i16);
        Self { vote, epoch: (draw % 2) as i16, fetch, snapshot: (draw % 2) as i16 }
    }
}

pub fn here() -> Here {
    Here { cluster_id: Text::from("simulated"), listener: Text::from("CONTROLLER") }
}

fn through<M: Message>(message: &M, version: i16) -> M {
    let mut w = Writer::new();
    message.encode(&mut w, version).unwrap();
    M::decode(&mut Reader::new(w.finish().into_bytes()), version).unwrap()
}

/// The request as it arrives; `None`: the version cannot carry it.
pub fn request(request: Request, versions: Versions) -> Option<Request> {
    let here = &here();
    Some(match request {
        Request::Vote(vote) => {
            k52_vote::plan(&through(&k52_vote::ask(&vote, here, versions.vote)?, versions.vote), here)
                .unwrap()
        }
        Request::BeginEpoch(begin) => {
            let asked = k53_begin_quorum_epoch::ask(&begin, here, versions.epoch)?;
            k53_begin_quorum_epoch::plan(&through(&asked, versions.epoch), here).unwrap()
        }
        Request::EndEpoch(end) => {
            let asked = k54_end_quorum_epoch::ask(&end, here, versions.epoch)?;
            k54_end_quorum_epoch::plan(&through(&asked, versions.epoch), here).unwrap()
        }
        Request::Fetch(fetch) => {
            let asked = k01_fetch::ask(&fetch, here, versions.fetch)?;
            k01_fetch::plan(&through(&asked, versions.fetch), here, versions.fetch).unwrap()
        }
        Request::FetchSnapshot(fetch) => {
            let asked = k59_fetch_snapshot::ask(&fetch, here, versions.snapshot)?;
            k59_fetch_snapshot::plan(&through(&asked, versions.snapshot), here).unwrap()
        }
        Request::AddVoter(add) => {
            k80_add_raft_voter::plan(&through(&k80_add_raft_voter::ask(&add, here, 1)?, 1), here, 1).unwrap()
        }
        Request::RemoveVoter(remove) => {
            k81_remove_raft_voter::plan(&through(&k81_remove_raft_voter::ask(&remove, here), 0), here)
                .unwrap()
        }
        Request::UpdateVoter(update) => {
            k82_update_raft_voter::plan(&through(&k82_update_raft_voter::ask(&update, here), 0), here)
                .unwrap()
        }
        Request::ApiVersions => Request::ApiVersions,
    })
}

/// The answer as it arrives.
pub fn response(response: Response, versions: Versions) -> Response {
    let here = &here();
    match &response {
        Response::Vote { .. } => {
            let said = k52_vote::respond(&response, here, versions.vote);
            k52_vote::read(&through(&said, versions.vote), here)
        }
        Response::BeginEpoch(_) => {
            let said = k53_begin_quorum_epoch::respond(&response, here, versions.epoch);
            k53_begin_quorum_epoch::read(&through(&said, versions.epoch), here)
        }
        Response::EndEpoch(_) => {
            let said = k54_end_quorum_epoch::respond(&response, here, versions.epoch);
            k54_end_quorum_epoch::read(&through(&said, versions.epoch), here)
        }
        Response::Fetch(_) => k01_fetch::read(
            &through(&k01_fetch::respond(response, here, versions.fetch), versions.fetch),
            here,
        ),
        Response::FetchSnapshot(_) => {
            let said = k59_fetch_snapshot::respond(response, here, versions.snapshot);
            k59_fetch_snapshot::read(&through(&said, versions.snapshot), here)
        }
        Response::AddVoter { .. } => {
            k80_add_raft_voter::read(&through(&k80_add_raft_voter::respond(&response), 1))
        }
        Response::RemoveVoter { .. } => {
            k81_remove_raft_voter::read(&through(&k81_remove_raft_voter::respond(&response), 0))
        }
        Response::UpdateVoter(_) => {
            k82_update_raft_voter::read(&through(&k82_update_raft_voter::respond(&response, here), 0), here)
        }
        Response::ApiVersions { .. } | Response::Refused(_) => response,
    }
}

/// What the shell says where the versions have no word for a request.
pub fn no_word() -> Response {
    Response::Refused(ErrorCode::UnsupportedVersion)
}
