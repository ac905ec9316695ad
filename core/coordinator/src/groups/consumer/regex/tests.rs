//! How many expressions a group may have.

use super::*;

#[test]
fn a_group_has_no_more_expressions_than_it_may() {
    let mut group = ConsumerGroup::new("g".into());
    let with = |id: String, pattern: String| {
        let mut member = ConsumerMember::new(id.into());
        member.own.regex = Some(pattern.into());
        member
    };
    for number in 0..EXPRESSIONS_MAX {
        let member = with(format!("m{number}"), format!("t{number}"));
        check(&group, &member).expect("there is room");
        group.put(member);
    }
    let refused = check(&group, &with("more".into(), "more".into())).expect_err("there is none");
    assert_eq!(refused.code, ErrorCode::InvalidRegularExpression);
    check(&group, &with("same".into(), "t7".into())).expect("the same as another member's");
}
