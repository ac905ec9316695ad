//! The server: [`Received::new`] → look the user up → [`Received::challenge`] → [`Challenged::finish`].

use barnabas_base::TimestampMs;
use subtle::ConstantTimeEq as _;

use super::credential::{Decoy, ScramCredential};
use super::mechanism::{Mechanism, xor};
use super::message::{ClientFinal, ClientFirst, to_base64};
use crate::{Login, Refusal};

/// The key under which the credential is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identity<'a> {
    /// A user's credential, UserScramCredentialRecord.
    User(&'a str),
    /// A delegation token's (`tokenauth=true`): the name is the token's id, the principal will be the owner.
    Token(&'a str),
}

/// The client's first message has been read.
#[derive(Debug)]
pub struct Received {
    mechanism: Mechanism,
    first: ClientFirst,
}

/// The server's first message has been sent.
#[derive(Debug)]
pub struct Challenged {
    mechanism: Mechanism,
    credential: ScramCredential,
    is_real: bool,
    login: Login,
    gs2_header: String,
    nonce: String,
    /// `client-first-bare,server-first`: the beginning of what both sides sign.
    said: String,
}

impl Received {
    /// # Errors
    /// - [`Refusal::Hidden`]: not a client-first message.
    /// - [`Refusal::Told`]: an authzid that is not the user. Checked before the lookup, so that the answer is
    ///   the same for existing and unknown users.
    pub fn new(mechanism: Mechanism, message: &[u8]) -> Result<Self, Refusal> {
        let first = ClientFirst::parse(message)?;
        if first.authzid.as_ref().is_some_and(|authzid| *authzid != first.user) {
            return Err(Refusal::told(
                "Authentication failed: Client requested an authorization id that is different from username",
            ));
        }
        Ok(Self { mechanism, first })
    }

    /// Whom to look up.
    pub fn identity(&self) -> Identity<'_> {
        if self.first.token_auth {
            Identity::Token(&self.first.user)
        } else {
            Identity::User(&self.first.user)
        }
    }

    /// The challenge for a user. `found` is the user's credential for this mechanism, if there is one; `nonce`
    /// is fresh,
    /// random and printable, without commas.
    pub fn challenge(
        self,
        found: Option<&ScramCredential>,
        decoy: &Decoy,
        nonce: &str,
    ) -> (Vec<u8>, Challenged) {
        let login = Login::of(self.first.user.clone());
        self.begin(found, decoy, nonce, login)
    }

    /// The challenge for a delegation token. `found` is the token's credential, its owner's name and its expiry.
    pub fn challenge_token(
        self,
        found: Option<(&ScramCredential, &str, TimestampMs)>,
        decoy: &Decoy,
        nonce: &str,
    ) -> (Vec<u8>, Challenged) {
        let (owner, expires) =
            found.map_or((String::new(), None), |(_, owner, at)| (owner.to_owned(), Some(at)));
        let login = Login { name: owner, expires, token: Some(self.first.user.clone()) };
        self.begin(found.map(|(credential, ..)| credential), decoy, nonce, login)
    }

    fn begin(
        self,
        found: Option<&ScramCredential>,
        decoy: &Decoy,
        nonce: &str,
        login: Login,
    ) -> (Vec<u8>, Challenged) {
        let is_printable =
            !nonce.is_empty() && nonce.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',');
        assert!(is_printable, "a server nonce is printable and has no comma");
        let (credential, is_real) = decoy.choose(self.mechanism, &self.first.user, found);
        let nonce = format!("{}{nonce}", self.first.nonce);
        let message = format!("r={nonce},s={},i={}", to_base64(credential.salt()), credential.iterations());
        let challenged = Challenged {
            mechanism: self.mechanism,
            credential,
            is_real: bool::from(is_real),
            login,
            gs2_header: self.first.gs2_header,
            nonce,
            said: format!("{},{message}", self.first.bare),
        };
        (message.into_bytes(), challenged)
    }
}

impl Challenged {
    /// Judges the client's proof. Gives the server's final message, which proves the server to the client.
    ///
    /// # Errors
    /// [`Refusal::Hidden`] for everything: malformed, another nonce (CVE-2024-56128), another channel binding, a wrong
    /// proof, an unknown user. The last two take the same time.
    pub fn finish(self, message: &[u8]) -> Result<(Vec<u8>, Login), Refusal> {
        let last = ClientFinal::parse(message)?;
        if last.nonce != self.nonce {
            return Err(Refusal::hidden("Invalid client nonce in the final client message."));
        }
        // RFC 5802 §6. Kafka does not look at it.
        if last.channel != self.gs2_header.as_bytes() {
            return Err(Refusal::hidden("Invalid channel binding in the final client message."));
        }
        if last.proof.len() != self.mechanism.key_len() {
            return Err(Refusal::hidden(
                "Invalid SCRAM client final message format: the proof has another length",
            ));
        }
        let signed = format!("{},{}", self.said, last.without_proof);
        let stored_key = self.credential.stored_key();
        let signature = self.mechanism.hmac(stored_key, signed.as_bytes());
        let computed = self.mechanism.hash(xor(&signature, &last.proof).bytes());
        let is_proved = bool::from(computed.bytes().ct_eq(stored_key.bytes()));
        if !(is_proved & self.is_real) {
            return Err(Refusal::hidden("Invalid client credentials"));
        }
        let server_signature = self.mechanism.hmac(self.credential.server_key(), signed.as_bytes());
        Ok((format!("v={}", to_base64(server_signature.bytes())).into_bytes(), self.login))
    }
}
