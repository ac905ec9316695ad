//! Lists of revoked certificates: on either side, in whichever form, and while they change.

use super::*;
use rcgen::{
    CertificateRevocationListParams, KeyIdMethod, RevocationReason, RevokedCertParams, SerialNumber,
    date_time_ymd,
};
use std::path::PathBuf;

/// A list of `serials`, with the next update on the first day of the year.
fn list(issuer: &Issuer, serials: &[u64], next: i32) -> rcgen::CertificateRevocationList {
    let revoked = |serial: &u64| RevokedCertParams {
        serial_number: SerialNumber::from(*serial),
        revocation_time: date_time_ymd(2021, 1, 1),
        reason_code: Some(RevocationReason::KeyCompromise),
        invalidity_date: None,
    };
    let params = CertificateRevocationListParams {
        this_update: date_time_ymd(2020, 1, 1),
        next_update: date_time_ymd(next, 1, 1),
        crl_number: SerialNumber::from(1u64),
        issuing_distribution_point: None,
        revoked_certs: serials.iter().map(revoked).collect(),
        key_identifier_method: KeyIdMethod::Sha256,
    };
    params.signed_by(issuer).expect("signed")
}

/// Key and certificate with this serial number.
fn numbered(issuer: &Issuer, serial: u64) -> Settings {
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).expect("sound");
    params.distinguished_name = name("numbered");
    params.serial_number = Some(SerialNumber::from(serial));
    let key = KeyPair::generate().expect("a key");
    let certificate = params.signed_by(&key, issuer).expect("signed");
    HashMap::from([
        ("ssl.keystore.key", key.serialize_pem()),
        ("ssl.keystore.certificate.chain", certificate.pem()),
    ])
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("barnabas-tls-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).expect("writes");
        path.to_string_lossy().into_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).expect("removes");
    }
}

/// A server that wants client certificates and looks into the list at `location`.
fn looking(issuer: &Issuer, location: &str, more: &[(&'static str, &str)]) -> Settings {
    let mut settings = trusting(numbered(issuer, 1), issuer);
    settings.insert("ssl.client.auth", "required".to_owned());
    settings.insert("ssl.crl.location", location.to_owned());
    settings.extend(more.iter().map(|(key, value)| (*key, (*value).to_owned())));
    settings
}

/// Why a client with this certificate is refused.
fn refused(issuer: &Issuer, serial: u64, server: &ServerTls) -> Option<String> {
    let client = client(&trusting(numbered(issuer, serial), issuer));
    meet(&client, server).err().map(|error| error.to_string())
}

#[test]
fn revoked_clients_are_refused_and_others_are_not() {
    let (ca, folder) = (authority("ca"), Folder::new("revoked"));
    let of = list(&ca, &[7], 2100);
    for bytes in [of.pem().expect("PEM").into_bytes(), of.der().to_vec()] {
        let server = server(&looking(&ca, &folder.write("list", bytes), &[]));
        assert_eq!(refused(&ca, 8, &server), None);
        let before = crate::refused_by_lists();
        let why = refused(&ca, 7, &server).expect("refused");
        assert!(why.contains("is revoked, by a list of ssl.crl.location"), "{why}");
        assert!(crate::refused_by_lists() > before);
        assert_eq!(server.expiring().iter().filter(|end| end.store == crate::REVOCATION_LISTS).count(), 1);
    }
}

#[test]
fn revoked_certificate_of_a_server_is_refused() {
    let (ca, folder) = (authority("ca"), Folder::new("server"));
    let location = folder.write("list", list(&ca, &[7], 2100).pem().expect("PEM"));
    let mut dialling = trusting(Settings::new(), &ca);
    dialling.insert("ssl.crl.location", location);
    dialling.insert("ssl.endpoint.identification.algorithm", String::new());
    let dialling = client(&dialling);
    meet(&dialling, &server(&numbered(&ca, 8))).expect("meet");
    let why = meet(&dialling, &server(&numbered(&ca, 7))).expect_err("refused").to_string();
    assert!(why.contains("is revoked"), "{why}");
}

#[test]
fn missing_and_old_lists_refuse_or_accept_as_set() {
    let (ca, other, folder) = (authority("ca"), authority("other"), Folder::new("unknown"));
    let (foreign, old) = (list(&other, &[], 2100), list(&ca, &[7], 2021));
    let foreign = folder.write("foreign", foreign.pem().expect("PEM"));
    let old = folder.write("old", old.pem().expect("PEM"));
    let why = |location: &str, more: &[(&'static str, &str)], serial| {
        refused(&ca, serial, &server(&looking(&ca, location, more))).unwrap_or_default()
    };
    assert!(why(&foreign, &[], 8).contains("ssl.crl.missing=accept"));
    assert_eq!(why(&foreign, &[("ssl.crl.missing", "accept")], 8), "");
    assert!(why(&old, &[], 8).contains("ssl.crl.expired=accept"));
    assert_eq!(why(&old, &[("ssl.crl.expired", "accept")], 8), "");
    assert!(why(&old, &[("ssl.crl.expired", "accept")], 7).contains("is revoked"));
    let both = format!("{foreign},{old}");
    assert!(why(&both, &[("ssl.crl.missing", "accept")], 8).contains("ssl.crl.expired=accept"));
}

#[test]
fn revoked_certificate_in_the_trust_store_is_refused() {
    let (ca, folder) = (authority("ca"), Folder::new("pinned"));
    let location = folder.write("list", list(&ca, &[7], 2100).pem().expect("PEM"));
    let own = numbered(&ca, 7);
    let mut settings = looking(&ca, &location, &[]);
    let trusted = format!("{}{}", ca.pem(), own["ssl.keystore.certificate.chain"]);
    settings.insert("ssl.truststore.certificates", trusted);
    let why = meet(&client(&trusting(own, &ca)), &server(&settings)).expect_err("refused").to_string();
    assert!(why.contains("is revoked"), "{why}");
}

#[test]
fn list_is_read_again_and_ends_sessions_that_could_be_resumed() {
    let (ca, folder) = (authority("ca"), Folder::new("reload"));
    let location = folder.write("list", list(&ca, &[], 2100).pem().expect("PEM"));
    let server = ServerTls::load(read(&looking(&ca, &location, &[])), true).expect("loads");
    let dialling = client(&trusting(numbered(&ca, 7), &ca));
    meet(&dialling, &server).expect("meet");
    assert!(meet(&dialling, &server).expect("meet").1.is_resumed());
    assert_eq!(server.reload(NOW_S), Reload::Unchanged);
    folder.write("list", "no list");
    assert!(matches!(server.reload(NOW_S), Reload::Kept(_)));
    // The node's own certificate, 1, is in it too: the list is taken all the same.
    folder.write("list", list(&ca, &[1, 7], 2100).pem().expect("PEM"));
    assert_eq!(server.reload(NOW_S), Reload::Loaded);
    assert!(meet(&dialling, &server).expect_err("refused").to_string().contains("is revoked"));
}

#[test]
fn end_of_a_list_ends_sessions_that_could_be_resumed() {
    let (ca, folder) = (authority("ca"), Folder::new("lapse"));
    let location = folder.write("list", list(&ca, &[], 2100).pem().expect("PEM"));
    let server = server(&looking(&ca, &location, &[]));
    let dialling = client(&trusting(numbered(&ca, 7), &ca));
    assert_eq!(server.reload(NOW_S), Reload::Unchanged);
    meet(&dialling, &server).expect("meet");
    // A clock that stands past the next update: only what was resumed is looked at here.
    assert_eq!(server.reload(NOW_S + 80 * 366 * 86_400), Reload::Loaded);
    assert!(!meet(&dialling, &server).expect("by this machine's clock it is valid").1.is_resumed());
}

#[test]
fn missing_or_empty_list_stops_the_start() {
    let (ca, folder) = (authority("ca"), Folder::new("start"));
    let error =
        |location: &str| ServerTls::load(read(&looking(&ca, location, &[])), false).expect_err("none");
    assert_eq!(error("/nowhere/list.pem").key, "ssl.crl.location");
    assert!(error(&folder.write("empty", ca.pem())).to_string().contains("no block X509 CRL"));
    assert!(error(&folder.write("damaged", [0x30, 0x82, 0, 1])).to_string().contains("is damaged"));
    let old = error(&folder.write("old", without_version(list(&ca, &[7], 2100).der(), &[2, 1, 1])));
    assert_eq!(old.key, "ssl.crl.location");
    assert!(old.to_string().contains("is of version 1"), "{old}");
}
