//! Finds the coordinator of a group or of a transactional id, and asks it until it answers.

use super::Cluster;
use crate::ClientError;
use crate::error::check;
use barnabas_base::{BrokerId, ErrorCode};
use barnabas_wire::Request;
use barnabas_wire::messages::FindCoordinatorRequest;

/// What a coordinator is asked about.
#[derive(Debug, Clone, Copy)]
pub enum Coordinated<'a> {
    Group(&'a str),
    Transaction(&'a str),
}

impl Coordinated<'_> {
    /// FindCoordinator's type of key, and the key.
    fn key(&self) -> (i8, &str) {
        match self {
            Self::Group(group) => (0, group),
            Self::Transaction(id) => (1, id),
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Group(group) => format!("finding the coordinator of group {group}"),
            Self::Transaction(id) => format!("finding the coordinator of transactional id {id}"),
        }
    }
}

impl Cluster {
    /// The node that coordinates a group, from a new FindCoordinator request.
    ///
    /// # Errors
    /// `COORDINATOR_NOT_AVAILABLE` while there is none.
    pub async fn group_coordinator(&mut self, group: &str) -> Result<BrokerId, ClientError> {
        self.coordinator(Coordinated::Group(group)).await
    }

    /// The node that coordinates `of`, from a new FindCoordinator request.
    ///
    /// # Errors
    /// `COORDINATOR_NOT_AVAILABLE` while there is none.
    pub async fn coordinator(&mut self, of: Coordinated<'_>) -> Result<BrokerId, ClientError> {
        // Up to version 3 the request has one key and the answer has the fields at the top level; from
        // version 4 on both have lists.
        let (key_type, key) = of.key();
        let request = |version: i16| match version {
            ..=3 => FindCoordinatorRequest { key: key.into(), key_type, ..Default::default() },
            _ => {
                FindCoordinatorRequest { coordinator_keys: vec![key.into()], key_type, ..Default::default() }
            }
        };
        let answer = self.ask_any_with(request).await?;
        let (code, message, node, host, port) = match answer.coordinators.first() {
            Some(found) => {
                (found.error_code, found.error_message.as_deref(), found.node_id, &found.host, found.port)
            }
            None => (
                answer.error_code,
                answer.error_message.as_deref(),
                answer.node_id,
                &answer.host,
                answer.port,
            ),
        };
        check(of.words(), code, message)?;
        self.addresses.insert(BrokerId(node), format!("{}:{port}", &**host));
        Ok(BrokerId(node))
    }

    /// Sends `request` to the coordinator of `of`. It finds the coordinator and sends again while the answer's code, as
    /// `code` reads it, says that the coordinator moved or still loads. Returns the coordinator and its answer.
    ///
    /// # Errors
    /// The coordinator was not found, or did not answer, until the deadline.
    pub async fn ask_coordinator<R: Request + Clone>(
        &mut self,
        of: Coordinated<'_>,
        request: &R,
        code: impl Fn(&R::Response) -> i16,
    ) -> Result<(BrokerId, R::Response), ClientError> {
        self.ask_coordinator_up_to(of, i16::MAX, |_| request.clone(), code).await
    }

    /// [`Self::ask_coordinator`] for a request that looks different from version to version, in none above `newest`.
    ///
    /// # Errors
    /// As [`Self::ask_coordinator`].
    pub async fn ask_coordinator_up_to<R: Request>(
        &mut self,
        of: Coordinated<'_>,
        newest: i16,
        make: impl Fn(i16) -> R,
        code: impl Fn(&R::Response) -> i16,
    ) -> Result<(BrokerId, R::Response), ClientError> {
        let tries = self.tries(of.words());
        loop {
            let error = match self.coordinator(of).await {
                Ok(node) => match self.ask_up_to(node, newest, &make).await {
                    Ok(answer) => {
                        let code = code(&answer);
                        if !is_of_the_lookup(code) {
                            return Ok((node, answer));
                        }
                        ClientError::refused(of.words(), code, None)
                    }
                    Err(error) => error,
                },
                Err(error) => error,
            };
            tries.after(error).await?;
        }
    }

    /// Asks `node` in the newest version that both sides speak, but in none above `newest`.
    pub(crate) async fn ask_up_to<R: Request>(
        &mut self,
        node: BrokerId,
        newest: i16,
        make: impl Fn(i16) -> R,
    ) -> Result<R::Response, ClientError> {
        let address = self.address(node)?.to_owned();
        let connection = self.connection(&address).await?;
        let version = connection.version_for::<R>()?.min(newest);
        let answer = connection.call_at(&make(version), version).await;
        if matches!(answer, Err(ClientError::Lost { .. } | ClientError::Garbled { .. })) {
            self.connections.remove(&address);
        }
        answer
    }
}

/// Whether the coordinator moved, or still loads.
fn is_of_the_lookup(code: i16) -> bool {
    matches!(
        ErrorCode::from_code(code),
        ErrorCode::CoordinatorLoadInProgress
            | ErrorCode::CoordinatorNotAvailable
            | ErrorCode::NotCoordinator
            | ErrorCode::ConcurrentTransactions
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ClusterConfig;
    use crate::fake_broker::{fake_broker, nodes};
    use barnabas_wire::messages::delete_groups_response::DeletableGroupResult;
    use barnabas_wire::messages::find_coordinator_response::Coordinator;
    use barnabas_wire::messages::{
        DeleteGroupsRequest, DeleteGroupsResponse, FindCoordinatorResponse, ListGroupsRequest,
        ListGroupsResponse,
    };
    use barnabas_wire::{RequestBody, ResponseBody};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, OnceLock};

    fn deleted(code: ErrorCode) -> ResponseBody {
        let row = DeletableGroupResult { error_code: code.code(), ..Default::default() };
        DeleteGroupsResponse { results: vec![row], ..Default::default() }.into()
    }

    /// A node that answers the first of these requests with the first of `codes`, and so on. Counts its lookups.
    async fn cluster(codes: &'static [ErrorCode]) -> (Cluster, Arc<AtomicUsize>) {
        let (address, lookups) = (Arc::new(OnceLock::<String>::new()), Arc::new(AtomicUsize::new(0)));
        let (known, counted, asked) = (address.clone(), lookups.clone(), AtomicUsize::new(0));
        let says = move |request| {
            let address = known.get().expect("known");
            let next = || codes[asked.fetch_add(1, Ordering::Relaxed)];
            match request {
                RequestBody::Metadata(_) => Some(nodes(&[(1, address)]).into()),
                RequestBody::FindCoordinator(_) => {
                    counted.fetch_add(1, Ordering::Relaxed);
                    let (host, port) = address.rsplit_once(':').expect("host:port");
                    let port = port.parse().expect("a port");
                    let found = Coordinator { node_id: 1, host: host.into(), port, ..Default::default() };
                    Some(FindCoordinatorResponse { coordinators: vec![found], ..Default::default() }.into())
                }
                RequestBody::DeleteGroups(_) => Some(deleted(next())),
                RequestBody::ListGroups(_) => {
                    Some(ListGroupsResponse { error_code: next().code(), ..Default::default() }.into())
                }
                other => panic!("{other:?}"),
            }
        };
        address.set(fake_broker(&[(3, 12), (10, 4), (16, 4), (42, 2)], says).await).expect("once");
        (Cluster::new(ClusterConfig::new(address.get().expect("set"), "test")), lookups)
    }

    #[tokio::test]
    async fn moved_coordinator_is_looked_up_again() {
        let codes =
            &[ErrorCode::NotCoordinator, ErrorCode::CoordinatorLoadInProgress, ErrorCode::NonEmptyGroup];
        let (mut cluster, lookups) = cluster(codes).await;
        let code = |answer: &DeleteGroupsResponse| answer.results[0].error_code;
        let request = DeleteGroupsRequest::default();
        let asked = cluster.ask_coordinator(Coordinated::Group("g"), &request, code).await;
        let (node, answer) = asked.expect("an answer");
        assert_eq!((node, code(&answer)), (BrokerId(1), ErrorCode::NonEmptyGroup.code()));
        assert_eq!(lookups.load(Ordering::Relaxed), 3);
    }

    #[tokio::test]
    async fn node_is_asked_again_while_its_code_may_pass() {
        let codes = &[
            ErrorCode::CoordinatorNotAvailable,
            ErrorCode::None,
            ErrorCode::CoordinatorLoadInProgress,
            ErrorCode::ClusterAuthorizationFailed,
        ];
        let (mut cluster, _) = cluster(codes).await;
        let node = cluster.nodes().await.expect("nodes")[0];
        let code = |answer: &ListGroupsResponse| answer.error_code;
        let request = |_| ListGroupsRequest::default();
        cluster.ask_until_answered(node, "listing", request, code).await.expect("the second answer");
        let refused = cluster.ask_until_answered(node, "listing", request, code).await.expect_err("refused");
        assert_eq!(refused.to_string(), "listing: CLUSTER_AUTHORIZATION_FAILED");
    }
}
