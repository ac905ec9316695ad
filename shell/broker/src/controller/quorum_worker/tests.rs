//! Requests while the metadata log has no room.

use std::sync::Arc;

#[tokio::test]
async fn create_topics_is_refused_while_the_metadata_log_has_no_room() {
    use crate::node::peers::controller::{ActiveController, ControllerHandle, NotTaken};
    use barnabas_base::{Text, Uuid};
    use barnabas_net::links::LinkThread;
    use barnabas_quorum::controller::Asked;
    use barnabas_quorum::raft::requests::Here;
    use barnabas_wire::messages::CreateTopicsRequest;
    use std::sync::atomic::Ordering;
    let (links, thread) = LinkThread::start().expect("a thread");
    let here = Arc::new(Here { cluster_id: Text::from("c"), listener: Text::from("CONTROLLER") });
    let (handle, requests) = ControllerHandle::new(Uuid([7; 16]), 1, (links.clone(), None), here);
    handle.led_by(ActiveController { is_here: true, ..ActiveController::default() });
    let ask = || handle.ask(CreateTopicsRequest::default(), Asked { version: 7, ..Asked::default() });
    // The quorum's thread has the request, and no room for what comes of it.
    handle.shared.waits_for_room.store(true, Ordering::Relaxed);
    assert_eq!(ask().await.err(), Some(NotTaken::NoRoom));
    // From then on it is known beforehand.
    handle.shared.is_full.store(true, Ordering::Relaxed);
    assert_eq!(ask().await.err(), Some(NotTaken::DiskFull));
    drop(requests);
    links.stop();
    thread.join().expect("it ends");
}
