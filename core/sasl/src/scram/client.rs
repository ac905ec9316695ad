//! The client, for links to other nodes: [`Client::new`] → [`Client::answer`] → [`ClientChallenged::verify`].

use super::mechanism::{ITERATIONS_MAX, ITERATIONS_MIN, Mechanism, xor};
use super::message::{ServerFinal, ServerFirst, escape, to_base64};
use crate::Secret;

/// The first message has been sent.
#[derive(Debug)]
pub struct Client {
    mechanism: Mechanism,
    bare: String,
    nonce: String,
}

/// The proof has been sent.
#[derive(Debug)]
pub struct ClientChallenged {
    mechanism: Mechanism,
    server_signature: Secret,
}

/// Why the client ends the exchange.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientFault {
    #[error("the server's SCRAM message cannot be read: expected r=…,s=…,i=… and then v=…")]
    Malformed,
    #[error(
        "the server's nonce does not begin with the client's: another party answered, or replayed an exchange"
    )]
    Nonce,
    #[error(
        "the server asks for {0} iterations: expected {ITERATIONS_MIN} to {ITERATIONS_MAX}. Set the user's password again \
         with iterations in these bounds"
    )]
    Iterations(u32),
    #[error("the server refused the login: {0:?}. Check the user's name and password")]
    Refused(String),
    #[error(
        "the server's signature is wrong: it does not know the user's credential. Check whom the client connects to"
    )]
    ServerSignature,
}

impl Client {
    /// The first message. `nonce` is fresh, random and printable, without commas. `is_token`: the user is a delegation
    /// token's id and the password its HMAC.
    pub fn new(mechanism: Mechanism, user: &str, is_token: bool, nonce: &str) -> (Vec<u8>, Self) {
        let extension = if is_token { ",tokenauth=true" } else { "" };
        let bare = format!("n={},r={nonce}{extension}", escape(user));
        (format!("n,,{bare}").into_bytes(), Self { mechanism, bare, nonce: nonce.to_owned() })
    }

    /// Answers the server's challenge. Costs PBKDF2 over the iterations: call it where nothing else waits.
    ///
    /// # Errors
    /// The server's message cannot be read, its nonce is not an extension of ours, or its iterations are out of bounds.
    pub fn answer(
        self,
        message: &[u8],
        password: &Secret,
    ) -> Result<(Vec<u8>, ClientChallenged), ClientFault> {
        let first = ServerFirst::parse(message).ok_or(ClientFault::Malformed)?;
        if !first.nonce.starts_with(&self.nonce) || first.nonce.len() == self.nonce.len() {
            return Err(ClientFault::Nonce);
        }
        if !(ITERATIONS_MIN..=ITERATIONS_MAX).contains(&first.iterations) {
            return Err(ClientFault::Iterations(first.iterations));
        }
        let mechanism = self.mechanism;
        let without_proof = format!("c={},r={}", to_base64(b"n,,"), first.nonce);
        let challenge = std::str::from_utf8(message).map_err(|_| ClientFault::Malformed)?;
        let signed = format!("{},{challenge},{without_proof}", self.bare);
        let salted = mechanism.salted_password(password, &first.salt, first.iterations);
        let client_key = mechanism.client_key(&salted);
        let signature = mechanism.hmac(&mechanism.hash(client_key.bytes()), signed.as_bytes());
        let proof = xor(&client_key, signature.bytes());
        let server_signature = mechanism.hmac(&mechanism.server_key(&salted), signed.as_bytes());
        let answer = format!("{without_proof},p={}", to_base64(proof.bytes()));
        Ok((answer.into_bytes(), ClientChallenged { mechanism, server_signature }))
    }
}

impl ClientChallenged {
    /// Checks that the server knows the credential too.
    ///
    /// # Errors
    /// The server refused, or its signature is wrong.
    pub fn verify(self, message: &[u8]) -> Result<(), ClientFault> {
        match ServerFinal::parse(message).ok_or(ClientFault::Malformed)? {
            ServerFinal::Error(error) => Err(ClientFault::Refused(error)),
            ServerFinal::Signature(signature) if signature.len() != self.mechanism.key_len() => {
                Err(ClientFault::Malformed)
            }
            ServerFinal::Signature(signature)
                if Secret::from(signature.as_slice()) == self.server_signature =>
            {
                Ok(())
            }
            ServerFinal::Signature(_) => Err(ClientFault::ServerSignature),
        }
    }
}
