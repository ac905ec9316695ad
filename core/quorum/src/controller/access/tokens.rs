//! Delegation tokens: CreateDelegationToken, RenewDelegationToken, ExpireDelegationToken, and the removal of those that
//! have expired.
//!
//! A token's secret follows from its id and `delegation.token.secret.key`; the log has neither. A client names a token
//! by its secret, so that the controller keeps an index of the secrets' fingerprints, brought up to the working image
//! before it is asked.
//!
//! Different from Kafka: a token that was made or ended counts at once, not with the next publication. The number of
//! tokens, in all and of one owner, and the length of their names are bounded.
//!
//! Source: KIP-48, KIP-373; Kafka `DelegationTokenControlManager`.

use barnabas_base::{DurationMs, ErrorCode, Map, MonotonicMs, Text, TimestampMs, Uuid};
use barnabas_metadata::Image;
use barnabas_metadata::access::{DelegationToken, DelegationTokens, token_ids_changed};
use barnabas_metadata::config::BrokerConfig;
use barnabas_metadata::snapshot::token_record;
use barnabas_sasl::scram::{Fingerprint, TokenKey};
use barnabas_wire::messages::{
    CreateDelegationTokenRequest, CreateDelegationTokenResponse, ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse, RemoveDelegationTokenRecord, RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
};
use barnabas_wire::{MetadataRecord, Str};
use bytes::Bytes;

use super::{RECORDS_MAX, check_entries, check_names, too_large};
use crate::controller::{Case, Outcome, Refusal};
use crate::now::Now;

const SECRET_KEY: &str = "delegation.token.secret.key";
const LIFETIME: &str = "delegation.token.max.lifetime.ms";
const RENEWAL: &str = "delegation.token.expiry.time.ms";
const SWEEP: &str = "delegation.token.expiry.check.interval.ms";
const OWNER_MAX: &str = "delegation.token.owner.max";

/// The only type of principals that may renew a token.
const USER: &str = "User";
/// Who may renew one token: far more than anybody names.
const RENEWERS_MAX: usize = 1000;

/// The key, and the index by secret. See the file's header.
#[derive(Debug)]
pub(crate) struct Tokens {
    key: Option<TokenKey>,
    /// What `ids` was made of.
    indexed: DelegationTokens,
    ids: Map<Fingerprint, Text>,
    /// How many each owner has, expired ones included until they are removed.
    owned: Map<Text, usize>,
    sweep_at: MonotonicMs,
}

impl Tokens {
    pub fn new(config: &BrokerConfig, now: MonotonicMs) -> Self {
        let key = config.value(SECRET_KEY).and_then(TokenKey::new);
        let sweep_at = now.plus(DurationMs(config.long(SWEEP)));
        Self {
            key,
            indexed: DelegationTokens::default(),
            ids: Map::default(),
            owned: Map::default(),
            sweep_at,
        }
    }

    /// When there may be something for [`Tokens::sweep`].
    pub fn next_sweep(&self) -> Option<MonotonicMs> {
        self.key.as_ref().map(|_| self.sweep_at)
    }

    /// Removes tokens that have expired, `delegation.token.expiry.check.interval.ms` after the last time.
    pub fn sweep(&mut self, image: &Image, config: &BrokerConfig, now: Now) -> Vec<MetadataRecord> {
        if self.next_sweep().is_none_or(|at| now.monotonic < at) {
            return Vec::new();
        }
        let expired = image.tokens.iter().filter(|(_, token)| is_expired(token, now.wall));
        let records: Vec<MetadataRecord> = expired.take(RECORDS_MAX).map(|(id, _)| removal(id)).collect();
        let is_done = records.len() < RECORDS_MAX;
        let pause = if is_done { DurationMs(config.long(SWEEP)) } else { DurationMs(0) };
        self.sweep_at = now.monotonic.plus(pause);
        records
    }

    pub fn create(
        &mut self,
        case: &mut Case<'_>,
        request: &CreateDelegationTokenRequest,
        now: TimestampMs,
    ) -> Outcome {
        let requester = requester(case);
        let owner = match request.owner_principal_name.as_ref().filter(|name| !name.is_empty()) {
            Some(name) => {
                let kind = request.owner_principal_type.as_ref().map_or(USER, Str::as_str);
                Text::from(format!("{kind}:{name}"))
            }
            None => requester.clone(),
        };
        let ((kind, name), (of_type, of_name)) = (split(&owner), split(&requester));
        let response = CreateDelegationTokenResponse {
            principal_type: kind,
            principal_name: name,
            token_requester_principal_type: of_type,
            token_requester_principal_name: of_name,
            ..CreateDelegationTokenResponse::default()
        };
        let refused = move |code: ErrorCode| CreateDelegationTokenResponse {
            error_code: code.code(),
            ..response.clone()
        };
        match self.issue(case, request, (owner, requester), now) {
            Err(refusal) => Outcome::new(Vec::new(), refused(refusal.code)),
            Ok((id, token, hmac)) => {
                let response = CreateDelegationTokenResponse {
                    issue_timestamp_ms: token.issued.0,
                    expiry_timestamp_ms: token.expires.0,
                    max_timestamp_ms: token.expires_at_the_latest.0,
                    token_id: Str::from(&id),
                    hmac,
                    ..refused(ErrorCode::None)
                };
                let record = token_record(&id, &token);
                Outcome::atomic(vec![record], response, move |_| refused(ErrorCode::PolicyViolation).into())
            }
        }
    }

    /// A new token: id, facts, secret.
    fn issue(
        &mut self,
        case: &mut Case<'_>,
        request: &CreateDelegationTokenRequest,
        (owner, requester): (Text, Text),
        now: TimestampMs,
    ) -> Result<(Text, DelegationToken, Bytes), Refusal> {
        self.key_for(case.image)?;
        let renewer =
            |renewer: &barnabas_wire::messages::create_delegation_token_request::CreatableRenewers| {
                let is_user = renewer.principal_type == USER;
                is_user.then(|| Text::from(format!("{USER}:{}", renewer.principal_name)))
            };
        let renewers: Option<Vec<Text>> = request.renewers.iter().map(renewer).collect();
        let renewers = renewers.ok_or_else(|| no(ErrorCode::InvalidPrincipalType))?;
        if renewers.len() > RENEWERS_MAX {
            return Err(too_large());
        }
        check_names([&owner, &requester].into_iter().chain(&renewers).map(Text::as_str))?;
        let count = case.image.tokens.len();
        check_entries(case.config, count, count + 1, "delegation tokens")?;
        self.check_owner(case, &owner)?;
        let key = self.key_for(case.image)?;
        let expires_at_the_latest = now.plus(within(case.config.long(LIFETIME), request.max_lifetime_ms));
        let expires = now.plus(DurationMs(case.config.long(RENEWAL))).min(expires_at_the_latest);
        let id = Text::from(Uuid::from_random((case.random)()).to_string());
        let hmac = Bytes::copy_from_slice(key.hmac(&id).bytes());
        let token =
            DelegationToken { owner, requester, renewers, issued: now, expires, expires_at_the_latest };
        Ok((id, token, hmac))
    }

    pub fn renew(
        &mut self,
        case: &Case<'_>,
        request: &RenewDelegationTokenRequest,
        now: TimestampMs,
    ) -> Outcome {
        let answer = |code: ErrorCode, expires: TimestampMs| RenewDelegationTokenResponse {
            error_code: code.code(),
            expiry_timestamp_ms: expires.0,
            ..RenewDelegationTokenResponse::default()
        };
        let renewed = self.find(case.image, &request.hmac).and_then(|(id, token)| {
            check_alive(&token, now)?;
            check_renewer(case, &token)?;
            let period = within(case.config.long(RENEWAL), request.renew_period_ms);
            Ok((id, until(token, now.plus(period))))
        });
        match renewed {
            Err(refusal) => Outcome::new(Vec::new(), answer(refusal.code, TimestampMs(0))),
            Ok((id, token)) => {
                Outcome::new(vec![token_record(&id, &token)], answer(ErrorCode::None, token.expires))
            }
        }
    }

    pub fn expire(
        &mut self,
        case: &Case<'_>,
        request: &ExpireDelegationTokenRequest,
        now: TimestampMs,
    ) -> Outcome {
        let answer = |code: ErrorCode, expires: TimestampMs| ExpireDelegationTokenResponse {
            error_code: code.code(),
            expiry_timestamp_ms: expires.0,
            ..ExpireDelegationTokenResponse::default()
        };
        let ended = self.find(case.image, &request.hmac).and_then(|(id, token)| {
            check_renewer(case, &token)?;
            if request.expiry_time_period_ms < 0 {
                return Ok((removal(&id), now));
            }
            check_alive(&token, now)?;
            let token = until(token, now.plus(DurationMs(request.expiry_time_period_ms)));
            Ok((token_record(&id, &token), token.expires))
        });
        match ended {
            Err(refusal) => Outcome::new(Vec::new(), answer(refusal.code, TimestampMs(0))),
            Ok((record, expires)) => Outcome::new(vec![record], answer(ErrorCode::None, expires)),
        }
    }

    /// The token whose secret a client shows.
    fn find(&mut self, image: &Image, hmac: &[u8]) -> Result<(Text, DelegationToken), Refusal> {
        self.key_for(image)?;
        self.index(&image.tokens);
        let id =
            self.ids.get(&Fingerprint::of(hmac)).ok_or_else(|| no(ErrorCode::DelegationTokenNotFound))?;
        let token = image.tokens.get(id).ok_or_else(|| no(ErrorCode::DelegationTokenNotFound))?;
        Ok((id.clone(), token.clone()))
    }

    /// One owner cannot use up what the cluster may have. Kafka has no such bound.
    fn check_owner(&mut self, case: &Case<'_>, owner: &Text) -> Result<(), Refusal> {
        self.index(&case.image.tokens);
        let have = self.owned.get(owner).copied().unwrap_or(0);
        if (have as i64) < case.config.long(OWNER_MAX) { Ok(()) } else { Err(no(ErrorCode::PolicyViolation)) }
    }

    /// Looks at those that are new or gone alone.
    fn index(&mut self, tokens: &DelegationTokens) {
        let Some(key) = &self.key else { return };
        let fingerprint = |id: &Text| Fingerprint::of(key.hmac(id).bytes());
        for (id, is_new) in token_ids_changed(&self.indexed, tokens) {
            if is_new {
                self.ids.insert(fingerprint(id), id.clone());
                if let Some(token) = tokens.get(id) {
                    *self.owned.entry(token.owner.clone()).or_default() += 1;
                }
            } else {
                self.ids.remove(&fingerprint(id));
                if let Some(token) = self.indexed.get(id) {
                    count_down(&mut self.owned, &token.owner);
                }
            }
        }
        self.indexed = tokens.clone();
    }

    fn key_for(&self, image: &Image) -> Result<&TokenKey, Refusal> {
        let key = self.key.as_ref().ok_or_else(|| no(ErrorCode::DelegationTokenAuthDisabled))?;
        match image.metadata_version().has_delegation_tokens() {
            true => Ok(key),
            false => Err(no(ErrorCode::UnsupportedVersion)),
        }
    }
}

/// Owners without tokens are forgotten.
fn count_down(owned: &mut Map<Text, usize>, owner: &Text) {
    if let Some(count) = owned.get_mut(owner) {
        *count = count.saturating_sub(1);
        if *count == 0 {
            owned.remove(owner);
        }
    }
}

/// These answers carry no sentence.
fn no(code: ErrorCode) -> Refusal {
    Refusal::new(code, "")
}

/// Only this node itself asks without a client, and it asks for no tokens.
fn requester(case: &Case<'_>) -> Text {
    case.asked.client.as_ref().map_or_else(|| Text::from("User:ANONYMOUS"), |client| client.principal.clone())
}

fn split(principal: &str) -> (Str, Str) {
    let (kind, name) = principal.split_once(':').unwrap_or((USER, principal));
    (Str::from(kind), Str::from(name))
}

/// The time that is asked for, where it is less than the most; 0 and less: the most.
fn within(most: i64, asked: i64) -> DurationMs {
    DurationMs(if asked > 0 { most.min(asked) } else { most })
}

fn is_expired(token: &DelegationToken, now: TimestampMs) -> bool {
    token.expires_at_the_latest < now || token.expires < now
}

fn check_alive(token: &DelegationToken, now: TimestampMs) -> Result<(), Refusal> {
    if is_expired(token, now) { Err(no(ErrorCode::DelegationTokenExpired)) } else { Ok(()) }
}

fn check_renewer(case: &Case<'_>, token: &DelegationToken) -> Result<(), Refusal> {
    let renewer = requester(case);
    if token.owner == renewer || token.renewers.contains(&renewer) {
        return Ok(());
    }
    Err(no(ErrorCode::DelegationTokenOwnerMismatch))
}

fn until(token: DelegationToken, expires: TimestampMs) -> DelegationToken {
    DelegationToken { expires: expires.min(token.expires_at_the_latest), ..token }
}

fn removal(id: &Text) -> MetadataRecord {
    let token_id = Str::from(id);
    RemoveDelegationTokenRecord { token_id, ..RemoveDelegationTokenRecord::default() }.into()
}
