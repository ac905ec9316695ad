//! Which flags go together.

use super::*;
use crate::groups::actions;
use crate::groups::listing::states;

fn checked(words: &str) -> Result<(), String> {
    actions::tests::checked(flags(), &ACTIONS, check, words)
}

#[test]
fn flags_that_do_not_go_together_are_refused() {
    for (words, refusal) in [
        ("--list --describe", "give exactly one of"),
        ("--describe", "--describe needs --group or --all-groups"),
        ("--describe --group g --all-groups", "--all-groups cannot be used together with --group"),
        ("--describe --group g --members --state", "--members cannot be used together with --state"),
        ("--describe --group g --state Stable", "--state takes no value with --describe"),
        ("--list --members", "--members goes with describe, not with list"),
        ("--list --to-latest", "--to-latest goes with reset-offsets, not with list"),
        ("--delete --group g --topic t", "--topic goes with reset-offsets, delete-offsets, not with delete"),
        ("--delete-offsets --group g", "--delete-offsets needs --topic"),
        (
            "--reset-offsets --group g --to-latest",
            "--reset-offsets needs --all-topics, --topic or --from-file",
        ),
    ] {
        let refused = checked(words).expect_err(words);
        assert!(refused.starts_with(refusal), "{words}: {refused}");
    }
    for words in [
        "--list --state",
        "--list --state stable,empty --type classic",
        "--describe --all-groups --offsets --verbose",
        "--reset-offsets --group g --from-file f",
        "--delete --group g --group h",
    ] {
        checked(words).expect(words);
    }
}

#[test]
fn states_and_types_are_named_in_any_case() {
    assert_eq!(states("stable, EMPTY", &STATES).expect("two"), ["Stable", "Empty"]);
    let refused = states("fine", &STATES).expect_err("no state").to_string();
    assert!(
        refused.starts_with("Invalid state list 'fine'. Valid states are: PreparingRebalance"),
        "{refused}"
    );
    assert_eq!(kinds_of("Classic,consumer").expect("two"), [Kind::Classic, Kind::Consumer]);
    let refused = kinds_of("share").expect_err("no such type").to_string();
    assert_eq!(refused, "Invalid types list 'share'. Valid types are: Consumer, Classic");
}
