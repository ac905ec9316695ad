//! Why a token is refused.

/// Most bytes of a token. Issuers' tokens have one to four thousand.
pub const TOKEN_BYTES_MAX: usize = 16 * 1024;

/// Why a token is refused. For the log: holds values of claims, never the token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("the token has {0} bytes, more than {TOKEN_BYTES_MAX}")]
    TooLong(usize),
    #[error("the token is no signed JWT: {0}")]
    Malformed(&'static str),
    #[error("the token is not signed (alg none). Expected one of RS256 … ES512")]
    Unsigned,
    #[error(
        "the token's algorithm {0} is not taken: expected RS256, RS384, RS512, PS256 … or ES256, ES384, ES512"
    )]
    Algorithm(String),
    #[error("no key of the issuer for alg={algorithm} kid={key_id}")]
    UnknownKey { algorithm: &'static str, key_id: String },
    #[error("the issuer's keys are not here yet: they could not be fetched")]
    NoKeys,
    #[error("the signature is wrong (alg={algorithm} kid={key_id})")]
    Signature { algorithm: &'static str, key_id: String },
    #[error("the claim {0} is missing")]
    Missing(String),
    #[error("the claim {claim} is not {expected}")]
    WrongType { claim: String, expected: &'static str },
    #[error("the claim {0} is empty")]
    Empty(String),
    #[error("the claim {claim} has {value} twice")]
    Twice { claim: String, value: String },
    #[error("the token ended at exp={expires_ms} ms, now={now_ms} ms")]
    Expired { expires_ms: i64, now_ms: i64 },
    #[error("the token begins at nbf={begins_ms} ms, now={now_ms} ms")]
    NotYet { begins_ms: i64, now_ms: i64 },
    #[error("the token was made at iat={made_ms} ms, now={now_ms} ms")]
    FromTheFuture { made_ms: i64, now_ms: i64 },
    #[error("the token ends at exp={expires_ms} ms, before it was made at iat={made_ms} ms")]
    EndsBeforeItBegins { expires_ms: i64, made_ms: i64 },
    #[error("the claim aud is {found}, expected {expected}")]
    Audience { found: String, expected: String },
    #[error("the claim iss is {found}, expected {expected}")]
    Issuer { found: String, expected: String },
    #[error("the scope {0} is missing")]
    Scope(String),
}
