//! TLS to a peer, and logins by certificate.

use super::peer::{Peer, listen};
use crate::BridgeError;
use crate::config::Config;
use crate::session::Session;
use barnabas_net::{ConnectionLimits, Entrance, Gate};
use barnabas_tls::{ServerTls, TlsSettings};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tokio::net::TcpListener;

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Authority {
    let mut params = CertificateParams::new(Vec::new()).expect("sound");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("signed")
}

/// Key and certificate for `name`, in one line each, as properties take them.
fn identity(ca: &Authority, name: &str) -> (String, String) {
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::new(vec![name.to_owned()]).expect("sound");
    params.distinguished_name.push(DnType::CommonName, name);
    let chain = params.signed_by(&key, ca).expect("signed").pem();
    (key.serialize_pem(), chain)
}

fn in_properties(pem: &str) -> String {
    pem.replace("\r\n", "\n").replace('\n', "\\n")
}

/// A peer's TLS that asks for a certificate of `ca`.
fn server(ca: &Authority) -> ServerTls {
    let ((key, chain), trusted) = (identity(ca, "localhost"), ca.pem());
    let settings = TlsSettings::read(move |name| match name {
        "ssl.keystore.key" => Some(key.clone()),
        "ssl.keystore.certificate.chain" => Some(chain.clone()),
        "ssl.truststore.certificates" => Some(trusted.clone()),
        "ssl.client.auth" => Some("required".to_owned()),
        _ => None,
    });
    ServerTls::load(settings.expect("sound"), false).expect("loads")
}

fn config(port: u16, trusted: &Authority, of: &Authority) -> Config {
    let (key, chain) = identity(of, "bridge");
    let text = format!(
        "name=n\nconnector.class=source\ntopic=t\nbootstrap.servers=b:1\namqp.url=amqps://localhost:{port}\n\
         mq.queue=q\namqp.sasl.mechanism=EXTERNAL\namqp.ssl.keystore.key={}\n\
         amqp.ssl.keystore.certificate.chain={}\namqp.ssl.truststore.certificates={}\n",
        in_properties(&key),
        in_properties(&chain),
        in_properties(&trusted.pem()),
    );
    Config::parse(&text).expect("a connector")
}

/// The handshake: the peer, and whose certificate it was shown.
async fn accept(listener: &TcpListener, tls: &ServerTls) -> Option<(Peer, Option<String>)> {
    let (tcp, _) = listener.accept().await.expect("accepts");
    let entrance = Entrance { listener: 0, is_reserved: false };
    let slot =
        Gate::new(ConnectionLimits::default()).enter([127, 0, 0, 1].into(), entrance).expect("a place");
    let tcp = tcp.into_std().expect("a socket");
    let accepted = barnabas_net::accept(tcp, tls, &slot.first_request(), 0).await.ok()?;
    Some((Peer::new(accepted.stream.attach().expect("a socket")), accepted.principal))
}

#[tokio::test]
async fn certificate_logs_in_by_external() {
    let (ca, (listener, port)) = (authority(), listen().await);
    let (tls, config) = (server(&ca), config(port, &ca, &ca));
    let playing = async {
        let (mut peer, principal) = accept(&listener, &tls).await.expect("a handshake");
        let login = peer.log_in(&["PLAIN", "EXTERNAL"]).await;
        peer.open().await;
        (peer, principal, login)
    };
    let (connected, (_peer, principal, (mechanism, response))) =
        tokio::join!(Session::connect(&config.peer, "c"), playing);
    let (_session, said) = connected.expect("connects");
    assert_eq!(said.container_id, "peer");
    assert_eq!((principal.as_deref(), &*mechanism, response.len()), (Some("CN=bridge"), "EXTERNAL", 0));
}

#[tokio::test]
async fn certificate_of_a_stranger_is_refused() {
    let (ca, stranger, (listener, port)) = (authority(), authority(), listen().await);
    let (tls, config) = (server(&ca), config(port, &stranger, &ca));
    let (connected, accepted) = tokio::join!(Session::connect(&config.peer, "c"), accept(&listener, &tls));
    assert!(matches!(connected, Err(BridgeError::Tls { .. })), "{connected:?}");
    assert!(accepted.is_none());
}

#[tokio::test]
async fn peer_without_external_refuses_the_login() {
    let (ca, (listener, port)) = (authority(), listen().await);
    let (tls, config) = (server(&ca), config(port, &ca, &ca));
    let playing = async {
        let (mut peer, _) = accept(&listener, &tls).await.expect("a handshake");
        peer.offer(&["PLAIN"]).await;
        peer
    };
    let (connected, _peer) = tokio::join!(Session::connect(&config.peer, "c"), playing);
    let error = connected.expect_err("no mechanism").to_string();
    assert!(error.contains("offers the SASL mechanisms PLAIN; EXTERNAL was asked for"), "{error}");
}
