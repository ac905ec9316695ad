use super::*;
use crate::testing::{carried, versions};
use barnabas_base::ErrorCode;
use barnabas_wire::messages::update_features_request::FeatureUpdateKey;

fn request(allow_downgrade: bool) -> UpdateFeaturesRequest {
    let update =
        FeatureUpdateKey { feature: "group.version".into(), allow_downgrade, ..FeatureUpdateKey::default() };
    UpdateFeaturesRequest { feature_updates: vec![update], ..UpdateFeaturesRequest::default() }
}

#[test]
fn version_0_says_downgrade_by_a_flag() {
    assert_eq!(plan(request(false), 0).request.feature_updates[0].upgrade_type, 1);
    assert_eq!(plan(request(true), 0).request.feature_updates[0].upgrade_type, 2);
}

#[test]
fn the_controller_is_asked_in_a_version_that_carries_the_request() {
    for version in versions::<UpdateFeaturesResponse>() {
        let work = plan(request(version == 0), version);
        assert_eq!(work.request.feature_updates[0].upgrade_type, if version == 0 { 2 } else { 1 });
        carried(work.request, work.version);
    }
}

#[test]
fn results_are_named_one_by_one_before_version_2() {
    for version in versions::<UpdateFeaturesResponse>() {
        let response = plan(request(false), version).pending.respond(Ok(UpdateFeaturesResponse::default()));
        assert_eq!(carried(response, version).results.len(), usize::from(version < 2));
        let refusal = Refusal::new(ErrorCode::FeatureUpdateFailed, "no");
        let response = carried(plan(request(false), version).pending.respond(Err(refusal)), version);
        assert_eq!((response.error_code, response.results.len()), (96, 0));
    }
}
