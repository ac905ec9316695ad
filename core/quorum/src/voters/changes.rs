//! What the log says of who votes in the metadata quorum: one line at INFO for each change, on each node that learns of
//! it.
//!
//! A set of voters counts from the moment that it stands in a node's log, committed or not; one that is cut off again
//! is another change.
//!
//! The quorum worker writes the line.
//!
//! Source: KIP-853.

use barnabas_base::DirectoryId;

use super::{Voter, Voters};

/// The voters that were said last.
#[derive(Debug)]
pub struct KnownVoters(Voters);

impl KnownVoters {
    /// Those that a node starts with are not said.
    pub fn new(voters: &Voters) -> Self {
        Self(voters.clone())
    }

    /// What has changed, if anything has.
    pub fn look(&mut self, voters: &Voters) -> Option<String> {
        if *voters == self.0 {
            return None;
        }
        let before = std::mem::replace(&mut self.0, voters.clone());
        Some(words(&before, voters))
    }
}

fn words(before: &Voters, after: &Voters) -> String {
    let mut changes = Vec::new();
    for voter in after.iter() {
        match before.get(voter.id) {
            None => changes.push(format!("added {}", named(voter))),
            Some(old) if old == voter => {}
            Some(old) if old.directory != voter.directory => {
                changes.push(format!("changed {}, which had {}", named(voter), directory(old.directory)));
            }
            Some(old) if old.endpoints != voter.endpoints => {
                changes.push(format!("changed {}, which listens at {}", named(voter), places(voter)));
            }
            Some(_) => changes.push(format!("changed {}, in the levels that it knows", named(voter))),
        }
    }
    let gone = before.iter().filter(|voter| after.get(voter.id).is_none());
    changes.extend(gone.map(|voter| format!("removed {}", named(voter))));
    let now: Vec<String> = after.iter().map(named).collect();
    format!("voters of the metadata quorum: {}; they are {} now", changes.join("; "), now.join(", "))
}

fn named(voter: &Voter) -> String {
    format!("{} ({})", voter.id, directory(voter.directory))
}

fn directory(id: DirectoryId) -> String {
    if id.is_zero() { "no directory id".to_owned() } else { format!("directory id {id}") }
}

fn places(voter: &Voter) -> String {
    let place = voter.endpoints.iter().map(|at| format!("{}://{}:{}", at.listener, at.host, at.port));
    place.collect::<Vec<String>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::VoterEndpoint;
    use barnabas_base::{BrokerId, Text, Uuid};

    fn voter(id: i32, directory: u8, port: u16) -> Voter {
        let endpoint = VoterEndpoint { listener: Text::from("C"), host: Text::from("h"), port };
        Voter {
            id: BrokerId(id),
            directory: Uuid([directory; 16]),
            endpoints: vec![endpoint],
            kraft_min: 0,
            kraft_max: 1,
        }
    }

    #[test]
    fn each_change_is_named_with_the_set_that_it_leads_to() {
        let said = |before: &[Voter], after: &[Voter]| {
            words(&Voters::new(before.to_vec()), &Voters::new(after.to_vec()))
        };
        let (one, two, ids) = (voter(1, 1, 1), voter(2, 2, 1), [Uuid([1; 16]), Uuid([2; 16]), Uuid([9; 16])]);
        let [first, second, ninth] = ids;
        let both = format!("they are 1 (directory id {first}), 2 (directory id {second}) now");
        assert_eq!(
            said(std::slice::from_ref(&one), &[one.clone(), two.clone()]),
            format!("voters of the metadata quorum: added 2 (directory id {second}); {both}")
        );
        assert_eq!(
            said(&[one.clone(), two.clone()], std::slice::from_ref(&two)),
            format!(
                "voters of the metadata quorum: removed 1 (directory id {first}); they are 2 (directory id {second}) now"
            )
        );
        assert_eq!(
            said(&[voter(1, 0, 1), two.clone()], &[one.clone(), two.clone()]),
            format!(
                "voters of the metadata quorum: changed 1 (directory id {first}), which had no directory id; {both}"
            )
        );
        assert_eq!(
            said(&[one.clone(), voter(2, 9, 1)], &[one.clone(), two.clone()]),
            format!(
                "voters of the metadata quorum: changed 2 (directory id {second}), which had directory id {ninth}; {both}"
            )
        );
        assert_eq!(
            said(&[one.clone(), voter(2, 2, 7)], &[one.clone(), two.clone()]),
            format!(
                "voters of the metadata quorum: changed 2 (directory id {second}), which listens at C://h:1; {both}"
            )
        );
        let narrow = Voter { kraft_max: 0, ..two.clone() };
        assert_eq!(
            said(&[one.clone(), narrow], &[one, two]),
            format!(
                "voters of the metadata quorum: changed 2 (directory id {second}), in the levels that it knows; {both}"
            )
        );
    }
}
