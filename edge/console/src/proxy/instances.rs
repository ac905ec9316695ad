//! The consumers that live on this listener. Each belongs to the caller that made it: no other caller finds it.
//!
//! | bound | value |
//! |---|---|
//! | consumers of one caller; of all | [`OF_ONE_MAX`]; [`ALL_MAX`]: more are 429 |
//! | without a request | `member::IDLE_FOR`, then the consumer leaves its group and is gone |

use super::instance::{Id, Instance};
use super::member;
use super::setup::Setup;
use crate::http::problem::Problem;
use barnabas_client::Cluster;
use hyper::StatusCode;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;

pub const OF_ONE_MAX: usize = 64;
pub const ALL_MAX: usize = 256;
const NOT_FOUND: u32 = 40_403;
const EXISTS: u32 = 40_902;
/// Commits that wait for a consumer's task.
const COMMITS_WAITING_MAX: usize = 8;

#[derive(Debug, Default)]
pub struct Instances(Mutex<HashMap<Id, Arc<Instance>>>);

impl Instances {
    fn all(&self) -> MutexGuard<'_, HashMap<Id, Arc<Instance>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a consumer, whose task reaches its group by `cluster`.
    ///
    /// # Errors
    /// 40902: there is one of this name; 429: there are too many.
    pub fn create(self: &Arc<Self>, id: Id, setup: Setup, cluster: Cluster) -> Result<(), Problem> {
        let (commits, waiting) = mpsc::channel(COMMITS_WAITING_MAX);
        let instance = self.insert(Instance::new(id, setup, commits))?;
        let own = Arc::downgrade(self);
        let remove = move |instance: &Arc<Instance>| own.upgrade().is_some_and(|all| all.remove(instance));
        tokio::spawn(member::keep(instance, remove, cluster, waiting));
        Ok(())
    }

    fn insert(&self, instance: Instance) -> Result<Arc<Instance>, Problem> {
        let mut all = self.all();
        let id = &instance.id;
        if all.contains_key(id) {
            let detail = format!("Consumer {} already exists in group {}", id.name, id.group);
            return Err(Problem::coded(EXISTS, detail));
        }
        let own = all.keys().filter(|other| other.user == id.user).count();
        if all.len() >= ALL_MAX || own >= OF_ONE_MAX {
            let detail = format!(
                "{OF_ONE_MAX} consumers of one caller live here, and {ALL_MAX} of all: delete those that are not used"
            );
            return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, detail));
        }
        let instance = Arc::new(instance);
        all.insert(instance.id.clone(), instance.clone());
        Ok(instance)
    }

    /// # Errors
    /// 40403: the caller has no such consumer here.
    pub fn find(&self, id: &Id) -> Result<Arc<Instance>, Problem> {
        let missing = || {
            let detail = format!(
                "Consumer {} of group {} not found on this node: it lives at its base_uri, for five minutes after its last request",
                id.name.escape_debug(),
                id.group.escape_debug()
            );
            Problem::coded(NOT_FOUND, detail)
        };
        self.all().get(id).cloned().ok_or_else(missing)
    }

    /// Takes it out, so that its name is free. `false`: another request has.
    pub fn remove(&self, instance: &Arc<Instance>) -> bool {
        let mut all = self.all();
        let is_there = all.get(&instance.id).is_some_and(|there| Arc::ptr_eq(there, instance));
        is_there && all.remove(&instance.id).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(user: &str, name: &str) -> Instance {
        let id = Id { user: Some(user.to_owned()), group: "g".to_owned(), name: name.to_owned() };
        Instance::new(id, Setup::default(), mpsc::channel(1).0)
    }

    #[test]
    fn consumer_is_its_makers_alone() {
        let instances = Instances::default();
        let anna = instances.insert(new("anna", "c")).expect("made");
        let code = |id: &Id| instances.find(id).map_err(|problem| problem.confluent_code()).map(drop);
        assert_eq!(code(&anna.id), Ok(()));
        for other in [
            Id { user: Some("ben".to_owned()), ..anna.id.clone() },
            Id { user: None, ..anna.id.clone() },
            Id { group: "h".to_owned(), ..anna.id.clone() },
        ] {
            assert_eq!(code(&other), Err(NOT_FOUND));
        }
        assert_eq!(instances.insert(new("anna", "c")).expect_err("there").confluent_code(), EXISTS);
        let ben = instances.insert(new("ben", "c")).expect("another's may have the name");
        assert!(instances.remove(&anna) && !instances.remove(&anna) && instances.find(&ben.id).is_ok());
        instances.insert(new("anna", "c")).expect("its name is free");
    }

    #[test]
    fn consumers_are_bounded() {
        let instances = Instances::default();
        let made =
            |user: &str| (0..).map_while(|at| instances.insert(new(user, &at.to_string())).ok()).count();
        let each: Vec<usize> = ["a", "b", "c", "d", "e"].into_iter().map(made).collect();
        assert_eq!(each, [OF_ONE_MAX, OF_ONE_MAX, OF_ONE_MAX, OF_ONE_MAX, 0]);
        assert_eq!(instances.insert(new("e", "x")).expect_err("full").status, 429);
    }
}
