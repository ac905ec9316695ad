//! Figures and commands as the findings print them.

use crate::facts::Facts;

/// A command line of Barnabas's tool, which the same flags reach.
pub fn tool(facts: &Facts, tool: &str, rest: &str) -> String {
    format!("barnabas {tool} {} {rest}", facts.connect)
}

/// Changes settings of a topic.
pub fn alter_topic(facts: &Facts, topic: &str, change: &str) -> String {
    tool(facts, "configs", &format!("--alter --entity-type topics --entity-name {topic} {change}"))
}

/// A reassignment as a shell runs it, with the plan of each partition on standard input.
pub fn reassign(facts: &Facts, plan: &[(String, i32, Vec<i32>)]) -> String {
    let rows = plan.iter().map(|(topic, partition, replicas)| {
        let replicas: Vec<String> = replicas.iter().map(ToString::to_string).collect();
        format!(r#"{{"topic":"{topic}","partition":{partition},"replicas":[{}]}}"#, replicas.join(","))
    });
    let rows: Vec<String> = rows.collect();
    let line =
        tool(facts, "reassign-partitions", "--execute --additional --reassignment-json-file /dev/stdin");
    format!(r#"echo '{{"version":1,"partitions":[{}]}}' | {line}"#, rows.join(","))
}

/// A word as a shell takes it whole.
pub fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-/:@%+,".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// `3 h 12 min`, `45 s`, `2.5 ms`.
pub fn span(ms: f64) -> String {
    let seconds = ms / 1000.0;
    match seconds {
        ..1.0 => format!("{ms:.1} ms"),
        ..120.0 => format!("{seconds:.0} s"),
        ..7200.0 => format!("{:.0} min", seconds / 60.0),
        ..172_800.0 => {
            let minutes = (seconds / 60.0) as i64;
            format!("{} h {} min", minutes / 60, minutes % 60)
        }
        _ => format!("{:.0} d", seconds / 86_400.0),
    }
}

/// `512 KiB`, `1.5 GiB`.
pub fn bytes(count: f64) -> String {
    let mut count = count;
    for unit in ["B", "KiB", "MiB", "GiB", "TiB"] {
        if count < 1024.0 || unit == "TiB" {
            let digits = if count < 10.0 && unit != "B" { 1 } else { 0 };
            return format!("{count:.digits$} {unit}");
        }
        count /= 1024.0;
    }
    unreachable!("the last unit returns");
}

pub fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// `orders-0, orders-1 and 7 more`.
pub fn several(names: &[String]) -> String {
    const SHOWN: usize = 3;
    let shown = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// `1 partition`, `2 partitions`.
pub fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}
