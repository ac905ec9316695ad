//! Which flags go together.

use super::*;
use crate::groups::actions;

fn checked(words: &str) -> Result<(), String> {
    actions::tests::checked(flags(), &ACTIONS, check, words)
}

#[test]
fn flags_that_do_not_go_together_are_refused() {
    for (words, refusal) in [
        ("--list --describe", "give exactly one of"),
        ("--describe", "--describe needs --group or --all-groups"),
        ("--delete-offsets --group g", "--delete-offsets needs --input-topic"),
        ("--delete --group g --input-topic t", "--input-topic goes with reset-offsets, delete-offsets"),
        ("--reset-offsets --group g --to-latest --execute", "--reset-offsets needs --all-input-topics"),
        (
            "--reset-offsets --group g --to-latest --input-topic t",
            "--reset-offsets needs --execute or --dry-run",
        ),
        (
            "--reset-offsets --group g --to-latest --input-topic t --dry-run --delete-all-internal-topics",
            "--delete-all-internal-topics goes with --delete, and with --reset-offsets --execute",
        ),
        (
            "--delete --group g --delete-internal-topic t",
            "--delete-internal-topic goes with --reset-offsets --execute",
        ),
        ("--describe --group g --state Stable", "--state takes no value with --describe"),
        ("--list --topology", "--topology goes with describe"),
        ("--describe --group g --topology --output json", "--topology is shown as text"),
    ] {
        let refused = checked(words).expect_err(words);
        assert!(refused.starts_with(refusal), "{words}: {refused}");
    }
    for words in [
        "--delete --all-groups --delete-all-internal-topics",
        "--describe --all-groups --topology",
        "--delete-offsets --group g --all-input-topics",
        "--reset-offsets --group g --all-input-topics --to-earliest --execute --delete-internal-topic a",
    ] {
        checked(words).expect(words);
    }
    for other in ["--members", "--offsets", "--state"] {
        checked(&format!("--describe --group g --topology {other}")).expect_err(other);
    }
}
