//! A node's standing in its cluster: what it does after each answer of the active controller, and when it registers
//! again.
//!
//! Neighbour: shell/broker/src/server/lifecycle.rs, which asks and waits.
//!
//! Source: KIP-631, KIP-858, KIP-919; Kafka `BrokerLifecycleManager`, `BrokerRegistrationTracker`.

use barnabas_base::{BrokerId, DurationMs, ErrorCode, Uuid};
use barnabas_metadata::{Image, MetadataVersion};
use barnabas_wire::messages::{BrokerHeartbeatResponse, ControllerRegistrationRequest};

/// A process of a broker.
#[derive(Debug, Clone, Copy)]
pub struct Life {
    pub broker: BrokerId,
    pub incarnation: Uuid,
}

impl Life {
    /// The broker is known under this process, and clients may be sent to it.
    pub fn is_unfenced(&self, image: &Image) -> bool {
        self.registered(image).is_some_and(|broker| !broker.fenced)
    }

    /// The cluster's level, if it is one at which directories are known and this process registered at one at which
    /// they were not: its directories could fail unheard.
    pub fn level_without_directories(&self, image: &Image) -> Option<MetadataVersion> {
        let level = image.metadata_version();
        (level.has_directories() && self.registered(image)?.log_dirs.is_empty()).then_some(level)
    }

    fn registered<'a>(&self, image: &'a Image) -> Option<&'a barnabas_metadata::Broker> {
        let mine = image.cluster.broker(self.broker).map(|broker| &**broker);
        mine.filter(|broker| broker.incarnation == self.incarnation)
    }
}

/// Whether the cluster keeps registrations of controllers and has none of this process.
pub fn must_register(image: &Image, registration: &ControllerRegistrationRequest) -> bool {
    let known = image.cluster.controller(BrokerId(registration.controller_id));
    let is_known = known.is_some_and(|known| known.incarnation == registration.incarnation_id);
    !is_known && image.metadata_version().has_controller_registration()
}

/// What a broker does after a heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterHeartbeat {
    /// The controller does not know its epoch.
    RegisterAgain,
    /// It was refused, with this code.
    Refused(i16),
    /// The controller lets it stop.
    Stop,
    /// It asks again at once: it waits to be unfenced, or to stop.
    AskSoon,
    /// It asks again after its interval.
    Wait,
    /// No controller has answered.
    Unheard,
}

/// `wants_fence`: the broker does not serve yet.
pub fn after_heartbeat(
    answer: Option<&BrokerHeartbeatResponse>,
    wants_fence: bool,
    shutdown_requested: bool,
) -> AfterHeartbeat {
    match answer {
        None => AfterHeartbeat::Unheard,
        Some(response) if response.error_code == ErrorCode::StaleBrokerEpoch.code() => {
            AfterHeartbeat::RegisterAgain
        }
        Some(response) if response.error_code != 0 => AfterHeartbeat::Refused(response.error_code),
        Some(response) if shutdown_requested && response.should_shut_down => AfterHeartbeat::Stop,
        Some(response) if shutdown_requested || response.is_fenced && !wants_fence => AfterHeartbeat::AskSoon,
        Some(_) => AfterHeartbeat::Wait,
    }
}

/// What becomes of a broker that was not registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unregistered {
    /// Waiting does not help: why.
    Refused(String),
    /// It has asked for as long as it may.
    TooLate,
    /// Another process with its id has a live session.
    Double,
    /// No controller takes it, and a cluster that works would have by now.
    Untaken,
    /// It asks again.
    Wait,
}

/// `asked_for`: since it first asked. `timeout`: `initial.broker.registration.timeout.ms`.
pub fn after_registration(
    code: ErrorCode,
    cluster_id: &str,
    asked_for: DurationMs,
    timeout: DurationMs,
) -> Unregistered {
    if let Some(why) = refusal(code, cluster_id) {
        return Unregistered::Refused(why);
    }
    let is_untaken = matches!(code, ErrorCode::NotController | ErrorCode::RequestTimedOut);
    if asked_for >= timeout {
        Unregistered::TooLate
    } else if code == ErrorCode::DuplicateBrokerRegistration {
        Unregistered::Double
    } else if is_untaken && asked_for.0 >= timeout.0 / 4 {
        Unregistered::Untaken
    } else {
        Unregistered::Wait
    }
}

/// What waiting does not cure.
fn refusal(code: ErrorCode, cluster_id: &str) -> Option<String> {
    match code {
        ErrorCode::InconsistentClusterId => Some(format!(
            "this node is of cluster {cluster_id} and the controller of another one. Check controller.quorum.voters, \
             controller.quorum.bootstrap.servers and the cluster.id in meta.properties of both"
        )),
        ErrorCode::UnsupportedVersion => {
            Some("the cluster is at a level of a feature that this version does not support".to_owned())
        }
        ErrorCode::InvalidRegistration => Some(
            "its registration is invalid: is a log directory's id (directory.id in meta.properties) that of another broker? A \
             directory must not be copied from node to node"
                .to_owned(),
        ),
        _ => None,
    }
}

/// Why a broker is not registered yet, for the log. Said long before the start is given up.
pub fn untaken_text(leader: BrokerId) -> String {
    match leader {
        BrokerId::NONE => {
            "the metadata quorum has no leader, or its leader is unreachable. More than half of the \
             voters must run; check controller.quorum.voters and controller.quorum.bootstrap.servers"
                .to_owned()
        }
        leader => format!(
            "the active controller {leader} is unreachable, or another process answers at its address. Check that \
             controller.quorum.voters gives each controller its own address"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_metadata::Delta;
    use barnabas_wire::MetadataRecord;
    use barnabas_wire::messages::{FeatureLevelRecord, RegisterBrokerRecord, RegisterControllerRecord};

    /// Broker 1 and controller 2, as they registered.
    fn image(level: i16, log_dirs: Vec<Uuid>, fenced: bool) -> Image {
        let name = "metadata.version".into();
        let broker = RegisterBrokerRecord {
            broker_id: 1,
            incarnation_id: Uuid([5; 16]),
            log_dirs,
            fenced,
            ..Default::default()
        };
        let controller = RegisterControllerRecord {
            controller_id: 2,
            incarnation_id: Uuid([6; 16]),
            ..Default::default()
        };
        let level = FeatureLevelRecord { name, feature_level: level, ..Default::default() };
        let records: [MetadataRecord; 3] = [level.into(), broker.into(), controller.into()];
        let mut delta = Delta::new(Image::default());
        records.iter().for_each(|record| delta.replay(record).expect("a good record"));
        delta.apply().0
    }

    #[test]
    fn life_is_that_of_one_process() {
        let of =
            |broker, incarnation| Life { broker: BrokerId(broker), incarnation: Uuid([incarnation; 16]) };
        let unfenced = |life: Life, fenced| life.is_unfenced(&image(25, Vec::new(), fenced));
        assert!(unfenced(of(1, 5), false) && !unfenced(of(1, 5), true));
        assert!(!unfenced(of(1, 4), false), "another process");
        assert!(!unfenced(of(3, 5), false), "not registered");
        let level = |life: Life, level, dirs: &[Uuid]| {
            life.level_without_directories(&image(level, dirs.to_vec(), false))
        };
        assert!(level(of(1, 5), 17, &[]).is_some(), "it registered below that level");
        assert_eq!(level(of(1, 5), 16, &[]), None);
        assert_eq!(level(of(1, 5), 17, &[Uuid([7; 16])]), None);
        assert_eq!(level(of(1, 4), 17, &[]), None);
    }

    #[test]
    fn controller_registers_where_the_cluster_keeps_that_and_has_it_not() {
        let must = |level, id, incarnation| {
            let registration = ControllerRegistrationRequest {
                controller_id: id,
                incarnation_id: Uuid([incarnation; 16]),
                ..Default::default()
            };
            must_register(&image(level, Vec::new(), false), &registration)
        };
        assert!(!must(25, 2, 6));
        assert!(must(25, 2, 7), "of another process");
        assert!(must(25, 3, 6), "of another node");
        assert!(!must(14, 3, 6), "the level knows no registrations of controllers");
    }

    #[test]
    fn each_answer_to_a_heartbeat_has_its_next_step() {
        let answer = |error_code, is_fenced, should_shut_down| BrokerHeartbeatResponse {
            error_code,
            is_fenced,
            should_shut_down,
            ..BrokerHeartbeatResponse::default()
        };
        let stale = ErrorCode::StaleBrokerEpoch.code();
        for (answer, wants_fence, stops, expected) in [
            (None, false, false, AfterHeartbeat::Unheard),
            (Some(answer(stale, false, false)), false, true, AfterHeartbeat::RegisterAgain),
            (Some(answer(3, false, true)), false, true, AfterHeartbeat::Refused(3)),
            (Some(answer(0, false, true)), false, true, AfterHeartbeat::Stop),
            (Some(answer(0, false, false)), false, true, AfterHeartbeat::AskSoon),
            (Some(answer(0, false, true)), false, false, AfterHeartbeat::Wait),
            (Some(answer(0, true, false)), false, false, AfterHeartbeat::AskSoon),
            (Some(answer(0, true, false)), true, false, AfterHeartbeat::Wait),
        ] {
            let next = after_heartbeat(answer.as_ref(), wants_fence, stops);
            assert_eq!(next, expected, "{answer:?} {wants_fence} {stops}");
        }
    }

    #[test]
    fn broker_that_is_not_registered_waits_for_what_can_still_come() {
        let of = |code, s: i64| after_registration(code, "c", DurationMs(s * 1000), DurationMs(60_000));
        assert!(
            matches!(of(ErrorCode::InconsistentClusterId, 0), Unregistered::Refused(why) if why.contains("cluster c "))
        );
        assert!(
            matches!(of(ErrorCode::InvalidRegistration, 99), Unregistered::Refused(_)),
            "before the time"
        );
        assert_eq!(of(ErrorCode::DuplicateBrokerRegistration, 60), Unregistered::TooLate);
        assert_eq!(of(ErrorCode::DuplicateBrokerRegistration, 59), Unregistered::Double);
        let untaken = [0, 14, 15, 59, 60].map(|s| of(ErrorCode::NotController, s));
        use Unregistered::{TooLate, Untaken, Wait};
        assert_eq!(untaken, [Wait, Wait, Untaken, Untaken, TooLate]);
        assert_eq!(of(ErrorCode::UnknownServerError, 30), Wait);
    }
}
