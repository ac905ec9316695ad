//! A client that authenticates, step by step, so that a test can leave the way at any of them.

use super::{Client, TestNode, free_port};
use barnabas_sasl::Secret;
use barnabas_sasl::client::{ClientExchange, ClientLogin};
use barnabas_sasl::scram::Mechanism;
use barnabas_wire::messages::{
    ResponseBody, SaslAuthenticateRequest, SaslAuthenticateResponse, SaslHandshakeRequest,
    SaslHandshakeResponse,
};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;
use bytes::Bytes;

pub fn plain(user: &str, password: &str) -> ClientLogin {
    ClientLogin::Plain { user: user.to_owned(), password: Secret::from(password) }
}

pub fn scram(mechanism: Mechanism, user: &str, password: &str) -> ClientLogin {
    let (user, password) = (user.to_owned(), Secret::from(password));
    ClientLogin::Scram { mechanism, user, password, is_token: false }
}

/// A delegation token; `hmac` is its secret.
pub fn token(mechanism: Mechanism, id: &str, hmac: &[u8]) -> ClientLogin {
    let password = Secret::from(BASE64.encode(hmac));
    ClientLogin::Scram { mechanism, user: id.to_owned(), password, is_token: true }
}

/// A node with one more listener, SASL, whose users of PLAIN are `users`.
pub fn node(mechanisms: &str, users: &[(&str, &str)], more: &[&str]) -> (TestNode, u16) {
    let mut node = TestNode::new(None, &[]);
    let sasl = free_port();
    let mut overrides = vec![
        format!(
            "listeners=PLAINTEXT://127.0.0.1:{},CONTROLLER://127.0.0.1:{},SASL://127.0.0.1:{sasl}",
            node.port, node.controller_port
        ),
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT"
            .to_owned(),
        format!("sasl.enabled.mechanisms={mechanisms}"),
    ];
    if !users.is_empty() {
        overrides.push(format!("listener.name.sasl.plain.sasl.jaas.config={}", jaas("", users)));
    }
    overrides.extend(more.iter().map(|text| (*text).to_owned()));
    node.set_overrides(&overrides.iter().map(String::as_str).collect::<Vec<_>>());
    (node, sasl)
}

/// PlainLoginModule with these users; `own` is what the node itself logs in with.
pub fn jaas(own: &str, users: &[(&str, &str)]) -> String {
    let users: String = users.iter().map(|(user, password)| format!(" user_{user}=\"{password}\"")).collect();
    format!("org.apache.kafka.common.security.plain.PlainLoginModule required{own}{users};")
}

impl Client {
    pub fn handshake(&mut self, mechanism: &str, version: i16) -> Option<SaslHandshakeResponse> {
        let request = SaslHandshakeRequest { mechanism: mechanism.into(), ..Default::default() };
        match self.try_call(request, version)? {
            ResponseBody::SaslHandshake(response) => Some(*response),
            other => panic!("{other:?}"),
        }
    }

    pub fn authenticate(&mut self, token: &[u8], version: i16) -> Option<SaslAuthenticateResponse> {
        let auth_bytes = Bytes::copy_from_slice(token);
        match self.try_call(SaslAuthenticateRequest { auth_bytes, ..Default::default() }, version)? {
            ResponseBody::SaslAuthenticate(response) => Some(*response),
            other => panic!("{other:?}"),
        }
    }

    /// The last answer of a whole exchange, after SaslHandshake. `None`: the connection was closed.
    pub fn exchange(&mut self, login: &ClientLogin) -> Option<SaslAuthenticateResponse> {
        let (mut token, mut exchange) = ClientExchange::begin(login, "fresh-nonce-of-the-test");
        loop {
            let answer = self.authenticate(&token, 2)?;
            if answer.error_code != 0 {
                return Some(answer);
            }
            match exchange.challenged(&answer.auth_bytes).expect("the server proves itself") {
                Some((next, rest)) => (token, exchange) = (next, rest),
                None => return Some(answer),
            }
        }
    }

    /// Handshake and exchange.
    pub fn log_in(&mut self, login: &ClientLogin) -> Option<SaslAuthenticateResponse> {
        let answer = self.handshake(login.mechanism(), 1)?;
        assert_eq!(answer.error_code, 0, "{answer:?}");
        self.exchange(login)
    }

    /// A connection that has logged in.
    pub fn logged_in(port: u16, login: &ClientLogin) -> Self {
        let mut client = Self::try_connect(port).expect("connects");
        let answer = client.log_in(login).expect("an answer");
        assert_eq!(answer.error_code, 0, "{answer:?}");
        client
    }

    /// A token without a header, and the answer.
    pub fn raw_token(&mut self, token: &[u8]) -> Option<Bytes> {
        self.send_raw(&[&(token.len() as u32).to_be_bytes()[..], token].concat());
        self.receive_frame()
    }
}
