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
    async fn ask_up_to<R: Request>(
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
