//! UpdateFeatures: raising and lowering the cluster's levels.
//!
//! `kraft.version` is the quorum's: what it has against raising it comes with the case, and the outcome says that it
//! shall.
//!
//! Sources: KIP-584, KIP-778, KIP-853, KIP-1022; Kafka `FeatureControlManager`, `ControllerApis.updateFeatures`.

use barnabas_base::{ErrorCode, Map};
use barnabas_metadata::features::{Feature, name};
use barnabas_metadata::{Image, MetadataVersion, snapshot::feature_record};
use barnabas_wire::MetadataRecord;
use barnabas_wire::messages::update_features_request::FeatureUpdateKey;
use barnabas_wire::messages::update_features_response::UpdatableFeatureResult;
use barnabas_wire::messages::{UpdateFeaturesRequest, UpdateFeaturesResponse};

use super::{Case, Outcome, Refusal, configs, error_fields, limits};

/// From this version on a request fails or succeeds as a whole, and names no feature in its answer.
const ONE_RESULT_SINCE: i16 = 2;

/// What a client asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Up,
    /// Only if nothing is lost.
    SafelyDown,
    /// Whatever is lost.
    UnsafelyDown,
    Unknown,
}

pub(super) fn update(case: &Case<'_>, request: &UpdateFeaturesRequest) -> Outcome {
    let named = request.feature_updates.len();
    if named > limits::FEATURES_NAMED_MAX {
        let message = format!("{named} features are named; at most {} are taken", limits::FEATURES_NAMED_MAX);
        let refusal = Refusal::new(ErrorCode::InvalidRequest, message);
        return Outcome::new(Vec::new(), response(case, request, Some(&refusal)));
    }
    let mut proposed: Map<&str, i16> = case.image.features.all().collect();
    for update in &request.feature_updates {
        proposed.insert(&update.feature, update.max_version_level);
    }
    let turns_elr_on = !case.image.features.elr_enabled()
        && proposed.get(name::ELIGIBLE_LEADER_REPLICAS).is_some_and(|&level| level > 0);
    let mut records = if turns_elr_on { configs::for_elr(case) } else { Vec::new() };
    let mut failure = None;
    for update in &request.feature_updates {
        match update_one(case, update, &proposed) {
            Ok(record) => records.extend(record),
            Err(refusal) => {
                let first = "The update failed for all features since the following feature had an error";
                failure = Some(Refusal::new(refusal.code, format!("{first}: {}", refusal.message)));
                break;
            }
        }
    }
    if failure.is_some() || request.validate_only {
        records.clear();
    }
    let is_done = failure.is_none() && !request.validate_only;
    let mut updates = request.feature_updates.iter();
    let raised = updates
        .find(|update| update.feature == *name::KRAFT && update.max_version_level > case.kraft_version);
    let kraft_version = raised.filter(|_| is_done).map(|update| update.max_version_level);
    let response = response(case, request, failure.as_ref());
    let refused = response.clone();
    // A handful of records: they fit one batch at any level.
    Outcome { kraft_version, ..Outcome::atomic(records, response, move |_| refused.into()) }
}

fn response(
    case: &Case<'_>,
    request: &UpdateFeaturesRequest,
    failure: Option<&Refusal>,
) -> UpdateFeaturesResponse {
    let (error_code, error_message) = error_fields(failure);
    if case.asked.version >= ONE_RESULT_SINCE || failure.is_some() {
        return UpdateFeaturesResponse { error_code, error_message, ..UpdateFeaturesResponse::default() };
    }
    let result = |update: &FeatureUpdateKey| UpdatableFeatureResult {
        feature: update.feature.clone(),
        error_code: ErrorCode::None.code(),
        error_message: None,
        ..UpdatableFeatureResult::default()
    };
    let results = request.feature_updates.iter().map(result).collect();
    UpdateFeaturesResponse { results, error_message: None, ..UpdateFeaturesResponse::default() }
}

fn update_one(
    case: &Case<'_>,
    update: &FeatureUpdateKey,
    proposed: &Map<&str, i16>,
) -> Result<Option<MetadataRecord>, Refusal> {
    let (feature, level) = (&*update.feature, update.max_version_level);
    let invalid = |why: &str| {
        let message = format!("Invalid update version {level} for feature {feature}. {why}");
        Refusal::new(ErrorCode::InvalidUpdateVersion, message)
    };
    let direction = direction(case.asked.version, update);
    if direction == Direction::Unknown {
        return Err(invalid("The controller does not support the given upgrade type."));
    }
    if level < 0 {
        return Err(invalid("A feature version cannot be less than 0."));
    }
    check_supported(case.image, feature, level).map_err(|why| invalid(&why))?;
    let current =
        if feature == name::KRAFT { case.kraft_version } else { case.image.features.level(feature) };
    if level < current && direction == Direction::Up {
        let why = "Can't downgrade the version of this feature without setting the upgrade type to either safe or \
                   unsafe downgrade.";
        return Err(invalid(why));
    }
    if level > current && direction != Direction::Up {
        return Err(invalid("Can't downgrade to a newer version."));
    }
    match feature {
        name::METADATA => metadata_version(case.image, level),
        name::KRAFT if level == current => Ok(None),
        name::KRAFT if level < current => {
            Err(invalid("The voters stand in the metadata log from level 1 on, and there is no way back."))
        }
        name::KRAFT => case.kraft_kept.map_or(Ok(None), |why| Err(invalid(why))),
        _ => {
            check_dependency(feature, level, proposed).map_err(|why| invalid(&why))?;
            Ok(Some(feature_record(feature, level)))
        }
    }
}

fn direction(version: i16, update: &FeatureUpdateKey) -> Direction {
    if version == 0 {
        return if update.allow_downgrade { Direction::SafelyDown } else { Direction::Up };
    }
    match update.upgrade_type {
        1 => Direction::Up,
        2 => Direction::SafelyDown,
        3 => Direction::UnsafelyDown,
        _ => Direction::Unknown,
    }
}

/// Every node of the cluster must support the level.
fn check_supported(image: &Image, feature: &str, level: i16) -> Result<(), String> {
    let (min, max) = Feature::named(feature).map_or((0, 0), |feature| (feature.min, feature.max));
    let supports = |who: &str, min: i16, max: i16| {
        if level == 0 && feature != name::METADATA || (min..=max).contains(&level) {
            return Ok(());
        }
        if max == 0 {
            return Err(format!("{who} does not support this feature."));
        }
        Err(format!("{who} only supports versions {min}-{max}"))
    };
    supports("Local controller", min, max)?;
    for broker in image.cluster.brokers() {
        let range = broker.supports(feature).map_or((0, 0), |range| (range.min, range.max));
        supports(&format!("Broker {}", broker.id), range.0, range.1)?;
    }
    for controller in image.cluster.controllers() {
        let range = controller.features.iter().find(|range| range.name == *feature);
        let range = range.map_or((0, 0), |range| (range.min, range.max));
        supports(&format!("Controller {}", controller.id), range.0, range.1)?;
    }
    Ok(())
}

fn check_dependency(feature: &str, level: i16, proposed: &Map<&str, i16>) -> Result<(), String> {
    let Some(known) = Feature::named(feature) else { return Ok(()) };
    let needed = known.needs_metadata_version(level);
    let given = proposed.get(name::METADATA).copied().unwrap_or(0);
    if level > 0 && given < needed.level() {
        let needed = needed.level();
        return Err(format!(
            "{feature} could not be set to {level} because it depends on metadata.version level {needed}"
        ));
    }
    Ok(())
}

fn metadata_version(image: &Image, level: i16) -> Result<Option<MetadataRecord>, Refusal> {
    let refuse = |message: String| Refusal::new(ErrorCode::InvalidUpdateVersion, message);
    let wanted = MetadataVersion::from_level(level).ok_or_else(|| {
        let (min, max) = (MetadataVersion::MIN.level(), MetadataVersion::LATEST.level());
        refuse(format!("Invalid metadata.version {level}. Valid versions are from {min} to {max}."))
    })?;
    let current = image.metadata_version();
    if wanted < current && wanted.metadata_changed_between(current) {
        return Err(refuse(format!(
            "Unsupported metadata.version downgrade from {current} to {wanted}: a level between them changed what the \
             metadata log says, and going back would lose it."
        )));
    }
    // A feature that stands on the level must go down first.
    for (feature, at) in image.features.others() {
        let needed =
            Feature::named(feature).map_or(MetadataVersion::MIN, |known| known.needs_metadata_version(at));
        if at > 0 && wanted < needed {
            return Err(refuse(format!(
                "{feature} is at level {at}, which needs metadata.version {needed} or later"
            )));
        }
    }
    Ok(Some(feature_record(name::METADATA, level)))
}
