//! A client with TLS, by this program's own parts; keys of nodes, and an authority that makes more.

use barnabas_net::{Budget, FrameReader, FrameWriter, Stream};
use barnabas_sasl::client::{ClientExchange, ClientLogin};
use barnabas_tls::{ClientTls, TlsSettings};
use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use barnabas_wire::messages::{
    ProduceRequest, RequestBody, RequestHeader, ResponseBody, SaslAuthenticateRequest,
    SaslAuthenticateResponse, SaslHandshakeRequest,
};
use barnabas_wire::{decode_response, frame_request};
use bytes::Bytes;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, IsCa, KeyIdMethod,
    KeyPair, RevokedCertParams, SerialNumber,
};
use std::io::Result;
use std::path::Path;
use tokio::runtime::Runtime;

pub fn data(name: &str) -> String {
    format!("{}/../../core/certificates/testdata/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Settings of a node whose key store is keytool's JKS, and whose trust store is keytool's PKCS#12 under type JKS.
pub fn node_keys() -> Vec<String> {
    vec![
        format!("ssl.keystore.location={}", data("rsa.jks")),
        "ssl.keystore.password=storepass".to_owned(),
        "ssl.key.password=keypass1".to_owned(),
        format!("ssl.truststore.location={}", data("trust.p12")),
        "ssl.truststore.password=storepass".to_owned(),
    ]
}

/// A client with these `ssl.*` keys.
pub fn tls(pairs: &[(&str, String)]) -> ClientTls {
    let get = |key: &str| pairs.iter().find(|(known, _)| *known == key).map(|(_, value)| value.clone());
    ClientTls::load(TlsSettings::read(get).expect("sound")).expect("loads")
}

/// One connection with TLS.
pub struct TlsClient {
    runtime: Runtime,
    stream: Stream,
    reader: FrameReader,
}

impl TlsClient {
    pub fn connect(port: u16, tls: &ClientTls) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let stream = runtime.block_on(async {
            let tcp = tokio::net::TcpStream::connect(("127.0.0.1", port)).await?;
            Stream::greet(tcp, "127.0.0.1", Some(tls)).await
        })?;
        let reader = FrameReader::new(Budget::new(64 << 20).claim(None), 32 << 20);
        Ok(Self { runtime, stream, reader })
    }

    pub fn call(&mut self, body: impl Into<RequestBody>, version: i16) -> Result<ResponseBody> {
        let body = body.into();
        let key = body.key();
        let header = RequestHeader {
            request_api_key: key.number(),
            request_api_version: version,
            correlation_id: 1,
            client_id: Some("tls-test".into()),
            ..RequestHeader::default()
        };
        let frame = frame_request(&header, &body).expect("encodes");
        let Self { runtime, stream, reader } = self;
        let (mut read, write) = stream.split();
        runtime.block_on(async {
            let mut writer = FrameWriter::default();
            writer.queue(frame.segments);
            writer.flush(&write).await?;
            let answer = reader.next(&mut read).await.map_err(std::io::Error::other)?;
            let (frame, _claim) = answer.ok_or(std::io::ErrorKind::UnexpectedEof)?;
            Ok(decode_response(frame, key, version).expect("an answer").1)
        })
    }

    /// The last answer of a login.
    pub fn log_in(&mut self, login: &ClientLogin) -> Result<SaslAuthenticateResponse> {
        let request = SaslHandshakeRequest { mechanism: login.mechanism().into(), ..Default::default() };
        let ResponseBody::SaslHandshake(answer) = self.call(request, 1)? else { panic!("another answer") };
        assert_eq!(answer.error_code, 0, "{answer:?}");
        let (mut token, mut exchange) = ClientExchange::begin(login, "fresh-nonce-of-the-test");
        loop {
            let auth_bytes = Bytes::copy_from_slice(&token);
            let request = SaslAuthenticateRequest { auth_bytes, ..Default::default() };
            let ResponseBody::SaslAuthenticate(answer) = self.call(request, 2)? else { panic!("another") };
            if answer.error_code != 0 {
                return Ok(*answer);
            }
            match exchange.challenged(&answer.auth_bytes).expect("the server proves itself") {
                Some((next, rest)) => (token, exchange) = (next, rest),
                None => return Ok(*answer),
            }
        }
    }

    /// A connection that has logged in.
    pub fn logged_in(port: u16, tls: &ClientTls, login: &ClientLogin) -> Self {
        let mut client = Self::connect(port, tls).expect("connects");
        let answer = client.log_in(login).expect("an answer");
        assert_eq!(answer.error_code, 0, "{answer:?}");
        client
    }
}

/// The error code of records that are written to partition 0.
pub fn produce(client: &mut TlsClient, topic: &str, records: Bytes) -> i16 {
    let partition = PartitionProduceData { index: 0, records: Some(records), ..Default::default() };
    let topic =
        TopicProduceData { name: topic.into(), partition_data: vec![partition], ..Default::default() };
    let request =
        ProduceRequest { acks: -1, timeout_ms: 20_000, topic_data: vec![topic], ..Default::default() };
    let ResponseBody::Produce(response) = client.call(request, 9).expect("answered") else {
        panic!("another")
    };
    response.responses[0].partition_responses[0].error_code
}

/// An authority of a test.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("sound");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("signed"))
    }

    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// A key and its chain, for a host.
    pub fn issue(&self, host: &str) -> (String, String) {
        let key = KeyPair::generate().expect("a key");
        let leaf = CertificateParams::new(vec![host.to_owned()]).expect("sound");
        let chain = leaf.signed_by(&key, &self.0).expect("signed").pem();
        (key.serialize_pem(), chain)
    }

    /// The same with this serial number.
    pub fn issue_numbered(&self, host: &str, serial: u64) -> (String, String) {
        let key = KeyPair::generate().expect("a key");
        let mut leaf = CertificateParams::new(vec![host.to_owned()]).expect("sound");
        leaf.serial_number = Some(SerialNumber::from(serial));
        let chain = leaf.signed_by(&key, &self.0).expect("signed").pem();
        (key.serialize_pem(), chain)
    }

    /// Its list of revoked certificates, in PEM.
    pub fn revoke(&self, serials: &[u64]) -> String {
        let revoked = |serial: &u64| RevokedCertParams {
            serial_number: SerialNumber::from(*serial),
            revocation_time: rcgen::date_time_ymd(2021, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let list = CertificateRevocationListParams {
            this_update: rcgen::date_time_ymd(2020, 1, 1),
            next_update: rcgen::date_time_ymd(2100, 1, 1),
            crl_number: SerialNumber::from(1u64),
            issuing_distribution_point: None,
            revoked_certs: serials.iter().map(revoked).collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        list.signed_by(&self.0).expect("signed").pem().expect("PEM")
    }

    /// [`Self::issue`] in one file. Not written in one step, as people do it.
    pub fn write(&self, path: &Path, host: &str) {
        let (key, chain) = self.issue(host);
        std::fs::write(path, &key).expect("writes");
        std::fs::write(path, format!("{key}{chain}")).expect("writes");
    }
}
