//! Two metrics pages of a node, as figures; and its clock beside this machine's.

use super::ask::Asker;
use crate::{NoPage, Scrape, metrics_page};
use barnabas_base::BrokerId;
use barnabas_findings::{Figures, Seen, Unseen, figures_between};
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

const CLOCK: &str = "barnabas_clock_seconds";

/// A page, and how far the node's clock was ahead of this machine's when it came.
#[derive(Debug, Clone)]
pub struct PageThen {
    scrape: Scrape,
    /// In milliseconds, with half of the time that the answer took.
    ahead_ms: Seen<(f64, f64)>,
}

/// The pages of all nodes, by node.
pub type Pages = BTreeMap<i32, Seen<PageThen>>;

pub async fn pages(asker: &mut Asker, nodes: &[i32]) -> Pages {
    let mut pages = Pages::new();
    for node in nodes {
        pages.insert(*node, page(asker, *node).await);
    }
    pages
}

async fn page(asker: &mut Asker, node: i32) -> Seen<PageThen> {
    asker.check(node)?;
    let asked = now_ms();
    match metrics_page(&mut asker.cluster, BrokerId(node)).await {
        Ok(scrape) => {
            let ahead_ms = ahead(node, &scrape, asked, now_ms());
            Ok(PageThen { scrape, ahead_ms })
        }
        Err(NoPage::Client(error)) => Err(asker.unseen(node, &error)),
        Err(other) => Err(Unseen(other.to_string())),
    }
}

fn now_ms() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64() * 1000.0)
}

/// The page was written between the question and the answer.
fn ahead(node: i32, scrape: &Scrape, asked: f64, answered: f64) -> Seen<(f64, f64)> {
    if !scrape.has(CLOCK, &[]) {
        return Err(Unseen(format!("node {node} does not show {CLOCK}")));
    }
    let (middle, uncertain) = ((asked + answered) / 2.0, (answered - asked).abs() / 2.0);
    Ok((scrape.sum(CLOCK, &[]) * 1000.0 - middle, uncertain))
}

/// What happened between two pages of `node`.
pub fn between(node: i32, before: &Pages, after: &Pages) -> Seen<Figures> {
    let missing = || Err(Unseen(format!("node {node} was not asked for its metrics")));
    let before = before.get(&node).cloned().unwrap_or_else(missing)?;
    let after = after.get(&node).cloned().unwrap_or_else(missing)?;
    let mut figures = figures_between(node, &before.scrape, &after.scrape)?;
    figures.machine.clock_ahead_ms = after.ahead_ms;
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_a_restarted_node_are_not_compared() {
        let page = |uptime: u32| {
            let scrape = Scrape::parse(&format!("barnabas_uptime_seconds {uptime}\n"));
            Pages::from([(1, Ok(PageThen { scrape, ahead_ms: Ok((1.0, 0.0)) }))])
        };
        let figures = between(1, &page(10), &page(20)).expect("two pages");
        assert_eq!(figures.machine.clock_ahead_ms, Ok((1.0, 0.0)));
        assert!(between(1, &page(20), &page(10)).is_err());
        assert!(between(2, &page(10), &page(20)).is_err());
    }

    #[test]
    fn clock_is_compared_with_the_middle_of_the_question() {
        let scrape = Scrape::parse("barnabas_clock_seconds 12\n");
        assert_eq!(ahead(1, &scrape, 10_000.0, 10_200.0), Ok((1900.0, 100.0)));
        assert!(ahead(1, &Scrape::default(), 0.0, 1.0).is_err());
    }
}
