//! Which flags go together.

use super::*;
use crate::groups::actions;

fn checked(words: &str) -> Result<(), String> {
    actions::tests::checked(flags(), &ACTIONS, |matches, action| TOOL.check(matches, action), words)
}

#[test]
fn flags_that_do_not_go_together_are_refused() {
    for (words, refusal) in [
        ("--list --describe", "give exactly one of"),
        ("--describe", "--describe needs --group or --all-groups"),
        ("--delete-offsets --group g", "--delete-offsets needs --topic"),
        ("--reset-offsets --group g --group h --to-latest --topic t", "--reset-offsets needs one --group"),
        (
            "--reset-offsets --group g --to-latest",
            "--reset-offsets needs --all-topics, --topic or --from-file",
        ),
        ("--describe --group g --members --offsets", "--members cannot be used together with --offsets"),
        ("--list --topic t", "--topic goes with reset-offsets, delete-offsets, not with list"),
    ] {
        let refused = checked(words).expect_err(words);
        assert!(refused.starts_with(refusal), "{words}: {refused}");
    }
    // These are for consumers.
    for flag in ["--shift-by 3", "--by-duration PT1M"] {
        let refused = checked(&format!("--reset-offsets --group g --topic t {flag}")).expect_err(flag);
        assert!(refused.contains("unexpected argument"), "{refused}");
    }
    checked("--reset-offsets --group g --topic t --to-earliest --execute").expect("taken");
}
