//! Two metrics pages of a node, as figures.

use super::ask::Asker;
use crate::{NoPage, Scrape, metrics_page};
use barnabas_base::BrokerId;
use barnabas_findings::{Figures, Seen, Unseen, figures_between};
use std::collections::BTreeMap;

/// The pages of all nodes, by node.
pub type Pages = BTreeMap<i32, Seen<Scrape>>;

pub async fn pages(asker: &mut Asker, nodes: &[i32]) -> Pages {
    let mut pages = Pages::new();
    for node in nodes {
        pages.insert(*node, page(asker, *node).await);
    }
    pages
}

async fn page(asker: &mut Asker, node: i32) -> Seen<Scrape> {
    asker.check(node)?;
    match metrics_page(&mut asker.cluster, BrokerId(node)).await {
        Ok(page) => Ok(page),
        Err(NoPage::Client(error)) => Err(asker.unseen(node, &error)),
        Err(other) => Err(Unseen(other.to_string())),
    }
}

/// What happened between two pages of `node`.
pub fn between(node: i32, before: &Pages, after: &Pages) -> Seen<Figures> {
    let missing = || Err(Unseen(format!("node {node} was not asked for its metrics")));
    let before = before.get(&node).cloned().unwrap_or_else(missing)?;
    let after = after.get(&node).cloned().unwrap_or_else(missing)?;
    figures_between(node, &before, &after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_a_restarted_node_are_not_compared() {
        let page = |uptime: u32| {
            Pages::from([(1, Ok(Scrape::parse(&format!("barnabas_uptime_seconds {uptime}\n"))))])
        };
        assert!(between(1, &page(10), &page(20)).is_ok());
        assert!(between(1, &page(20), &page(10)).is_err());
        assert!(between(2, &page(10), &page(20)).is_err());
    }
}
