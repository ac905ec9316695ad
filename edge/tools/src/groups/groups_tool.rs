//! `groups`, as Kafka's `kafka-groups`: lists groups of every kind.
//!
//! Source: Kafka 4.3 `GroupsCommand`.

use super::listing::{Kind, Listed, list};
use crate::command_line::args::{excludes, switch, text, value};
use crate::command_line::connection::{bootstrap_server, cluster_config, command_config};
use crate::output::table::{Layout, Table, output};
use crate::{ToolError, block_on};
use barnabas_client::Cluster;
use clap::{Arg, ArgMatches};

const KINDS: [&str; 3] = ["consumer", "share", "streams"];

pub fn flags() -> Vec<Arg> {
    vec![
        bootstrap_server().required(true),
        command_config(),
        switch("list", "List the groups").required(true),
        value("group-type", "type", "Only groups of this type: classic, consumer, share or streams"),
        value("protocol", "protocol", "Only groups of this protocol"),
        switch("consumer", "Only groups of consumers, of the classic type too"),
        switch("share", "Only share groups"),
        switch("streams", "Only streams groups"),
        output(),
    ]
}

pub fn run(matches: &ArgMatches) -> Result<(), ToolError> {
    for kind in KINDS {
        let others: Vec<&str> = KINDS.into_iter().filter(|other| *other != kind).collect();
        excludes(matches, kind, &[&others[..], &["group-type", "protocol"]].concat())?;
    }
    let kind = text(matches, "group-type").map(|word| {
        Kind::parse(word).ok_or_else(|| {
            ToolError::Usage(format!(
                "--group-type must be a valid group type: classic, consumer, share or streams, not '{word}'"
            ))
        })
    });
    let kind = kind.transpose()?;
    let mut cluster = Cluster::new(cluster_config(matches, "barnabas-groups")?);
    let groups = block_on(async { Ok(list(&mut cluster, &[], &[]).await?) })?;
    let mut table = Table::new(Layout::EqualBlanks).text("GROUP", 20).text("TYPE", 20).text("PROTOCOL", 20);
    for row in groups.into_iter().filter(|row| is_wanted(row, matches, kind)) {
        table.row([row.group, row.kind.map_or("", Kind::name).to_owned(), row.protocol]);
    }
    table.print(matches)
}

fn is_wanted(row: &Listed, matches: &ArgMatches, kind: Option<Kind>) -> bool {
    let is_of = |kind| row.kind == Some(kind);
    let has_protocol = text(matches, "protocol").is_none_or(|wanted| wanted == row.protocol);
    match kind {
        Some(kind) => is_of(kind) && has_protocol,
        None if matches.get_flag("consumer") => {
            matches!(row.protocol.as_str(), "" | "consumer") || is_of(Kind::Consumer)
        }
        None if matches.get_flag("share") => is_of(Kind::Share),
        None if matches.get_flag("streams") => is_of(Kind::Streams),
        None => has_protocol,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_chosen_by_type_and_protocol() {
        let row = |kind, protocol: &str| Listed {
            group: String::new(),
            kind: Some(kind),
            state: String::new(),
            protocol: protocol.to_owned(),
        };
        let all = [
            row(Kind::Classic, "consumer"),
            row(Kind::Classic, ""),
            row(Kind::Classic, "connect"),
            row(Kind::Consumer, "consumer"),
            row(Kind::Share, "share"),
            row(Kind::Streams, "streams"),
        ];
        let shown = |words: &str, kind| {
            let words =
                ["groups", "--bootstrap-server", "h:1", "--list"].into_iter().chain(words.split_whitespace());
            let matches =
                clap::Command::new("groups").args(flags()).try_get_matches_from(words).expect("flags");
            let is_shown = |(_, row): &(usize, &Listed)| is_wanted(row, &matches, kind);
            all.iter().enumerate().filter(is_shown).map(|(at, _)| at).collect::<Vec<_>>()
        };
        assert_eq!(shown("", None), [0, 1, 2, 3, 4, 5]);
        assert_eq!(shown("--consumer", None), [0, 1, 3]);
        assert_eq!(shown("--share", None), [4]);
        assert_eq!(shown("--streams", None), [5]);
        assert_eq!(shown("--protocol connect", None), [2]);
        assert_eq!(shown("--group-type classic", Some(Kind::Classic)), [0, 1, 2]);
        assert_eq!(shown("--group-type classic --protocol consumer", Some(Kind::Classic)), [0]);
    }
}
