//! Which groups there are: each broker lists those that it coordinates.

use crate::ToolError;
use barnabas_base::ErrorCode;
use barnabas_client::{ClientError, Cluster};
use barnabas_wire::messages::{ListGroupsRequest, ListGroupsResponse};

/// Versions from which a broker filters by state and by type, and answers with both.
const STATES_SINCE: i16 = 4;
const TYPES_SINCE: i16 = 5;

/// A kind of group, as Kafka's tools write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Classic,
    Consumer,
    Share,
    Streams,
}

impl Kind {
    pub const ALL: [Self; 4] = [Self::Classic, Self::Consumer, Self::Share, Self::Streams];

    pub fn name(self) -> &'static str {
        match self {
            Self::Classic => "Classic",
            Self::Consumer => "Consumer",
            Self::Share => "Share",
            Self::Streams => "Streams",
        }
    }

    /// The kind of this name, in any case.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name().eq_ignore_ascii_case(word.trim()))
    }
}

/// A group as its coordinator lists it. An old broker's answer has neither kind nor state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub group: String,
    pub kind: Option<Kind>,
    pub state: String,
    pub protocol: String,
}

impl Listed {
    /// Whether Kafka's `consumer-groups` shows it.
    pub fn is_for_consumers(&self) -> bool {
        let is_of_kind = matches!(self.kind, None | Some(Kind::Classic | Kind::Consumer));
        is_of_kind && matches!(self.protocol.as_str(), "" | "consumer")
    }
}

/// All groups of these states and kinds, by name; where a list is empty, of any.
///
/// # Errors
/// A broker does not answer, or refuses.
pub async fn list(
    cluster: &mut Cluster,
    states: &[&str],
    kinds: &[Kind],
) -> Result<Vec<Listed>, ClientError> {
    let mut found = Vec::new();
    let types: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
    for broker in cluster.nodes().await? {
        let request = |version: i16| ListGroupsRequest {
            states_filter: if version >= STATES_SINCE { words(states) } else { Vec::new() },
            types_filter: if version >= TYPES_SINCE { words(&types) } else { Vec::new() },
            ..Default::default()
        };
        let what = format!("listing the groups of broker {broker}");
        let code = |answer: &ListGroupsResponse| answer.error_code;
        let answer = cluster.ask_until_answered(broker, &what, request, code).await?;
        found.extend(answer.groups.iter().map(|row| Listed {
            group: row.group_id.to_string(),
            kind: Kind::parse(&row.group_type),
            state: if row.group_state.is_empty() {
                "Unknown".to_owned()
            } else {
                row.group_state.to_string()
            },
            protocol: row.protocol_type.to_string(),
        }));
    }
    found.retain(|row| kinds.is_empty() || row.kind.is_some_and(|kind| kinds.contains(&kind)));
    found.retain(|row| states.is_empty() || states.iter().any(|state| row.state.eq_ignore_ascii_case(state)));
    found.sort_by(|one, other| one.group.cmp(&other.group));
    Ok(found)
}

fn words(list: &[&str]) -> Vec<barnabas_wire::Str> {
    list.iter().map(|word| (*word).into()).collect()
}

/// The states of `valid` that `list` names, with commas between and in any case.
///
/// # Errors
/// A word is none of them.
pub fn states<'a>(list: &str, valid: &[&'a str]) -> Result<Vec<&'a str>, ToolError> {
    let state = |word: &str| valid.iter().copied().find(|state| state.eq_ignore_ascii_case(word.trim()));
    let states: Option<Vec<&str>> = list.split(',').map(state).collect();
    states.ok_or_else(|| {
        let valid = valid.join(", ");
        ToolError::Usage(format!("Invalid state list '{list}'. Valid states are: {valid}"))
    })
}

/// Whether a group is not there, as opposed to one that cannot be asked.
pub fn is_missing(error: &ClientError) -> bool {
    error.code() == Some(ErrorCode::GroupIdNotFound)
}
