//! Which settings of SASL start a node, and what the others are told.

use super::*;
use crate::{NodeConfig, Settings, check_values};

const PLAIN: &str = "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"n\" password=\"s3cret\" \
                     user_alice=\"t0psecret\";";
const SCRAM: &str =
    "org.apache.kafka.common.security.scram.ScramLoginModule required username=\"n\" password=\"s3cret\";";

fn read_with(pairs: &[(&str, &str)], file: &str) -> Result<SaslConfig, ConfigError> {
    let mut settings = Settings::default();
    for (key, value) in [
        ("process.roles", "broker,controller"),
        ("node.id", "1"),
        ("listeners", "IN://:9092,OUT://:9094,CONTROLLER://:9093"),
        ("controller.listener.names", "CONTROLLER"),
        ("inter.broker.listener.name", "IN"),
        ("listener.security.protocol.map", "IN:PLAINTEXT,OUT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT"),
    ] {
        settings.replace(key, value.to_owned());
    }
    pairs.iter().for_each(|(key, value)| settings.replace(key, (*value).to_owned()));
    let node = NodeConfig::read(settings)?;
    let (config, _) = check_values(&node.settings).expect("each value is sound");
    let file = jaas::parse_file(file).expect("a file");
    read(&config, &node.listeners, &given(&file, None))
}

/// krb5.conf of EXAMPLE.COM, and a keytab that has every key.
fn given<'a>(file: &'a [Section], jvm_options: Option<&'a str>) -> Given<'a> {
    let krb5_conf = Some(
        "[libdefaults]\n default_realm = EXAMPLE.COM\n[realms]\n EXAMPLE.COM = {\n  kdc = kdc.example.com\n }\n",
    );
    Given { file, jvm_options, check_stores: &|_| Ok(()), krb5_conf, check_keytab: &|_| Ok(()) }
}

fn refused(pairs: &[(&str, &str)]) -> String {
    let said = read_with(pairs, "").expect_err("refused").to_string();
    assert!(!said.contains("s3cret") && !said.contains("t0psecret"), "{said}");
    said
}

const OUT_PLAIN: &str = "listener.name.out.plain.sasl.jaas.config";

#[test]
fn listeners_have_their_own_mechanisms_and_sessions() {
    let read = read_with(
        &[
            ("sasl.enabled.mechanisms", "GSSAPI"),
            ("listener.name.out.sasl.enabled.mechanisms", "PLAIN, SCRAM-SHA-512,PLAIN"),
            (OUT_PLAIN, PLAIN),
            ("connections.max.reauth.ms", "5000"),
            ("listener.name.out.plain.connections.max.reauth.ms", "7000"),
        ],
        "",
    );
    let read = read.expect("sound");
    let shape: Vec<bool> = read.listeners.iter().map(Option::is_some).collect();
    assert_eq!(shape, [false, true, false]);
    let out = read.listeners[1].as_ref().expect("SASL");
    let offers: Vec<_> =
        out.offers.iter().map(|offer| (offer.mechanism.name(), offer.session_max_ms)).collect();
    assert_eq!(offers, [("PLAIN", 7000), ("SCRAM-SHA-512", 5000)]);
    assert_eq!((out.receive_bytes_max, out.failure_delay.as_millis()), (512 * 1024, 100));
    assert!(out.plain.knows("alice") && !out.plain.knows("n"));
    assert!(read.to_brokers.is_none() && read.to_controllers.is_none());
}

#[test]
fn missing_and_foreign_things_stop_the_start_with_an_example() {
    let said = refused(&[]);
    assert!(
        said.starts_with("listener.name.out.gssapi.sasl.jaas.config: is not set"),
        "GSSAPI is the default: {said}"
    );
    assert!(said.contains("Krb5LoginModule required useKeyTab=true"), "{said}");
    let plain = ("sasl.enabled.mechanisms", "PLAIN");
    let said = refused(&[plain]);
    assert!(said.starts_with(&format!("{OUT_PLAIN}: is not set")) && said.contains("user_alice"), "{said}");
    let said = refused(&[plain, (OUT_PLAIN, SCRAM)]);
    assert!(said.contains("is not one of PLAIN"), "{said}");
    let said = refused(&[plain, (OUT_PLAIN, "org.example.Ldap required password=\"s3cret\";")]);
    assert!(said.contains("org.example.Ldap") && said.contains("cannot run here"), "{said}");
    let key = "listener.name.out.plain.sasl.server.callback.handler.class";
    let said = refused(&[plain, (OUT_PLAIN, PLAIN), (key, "org.example.Check")]);
    assert!(said.starts_with(key) && said.contains("org.example.Check"), "{said}");
    assert!(refused(&[("sasl.enabled.mechanisms", "")]).contains("names no mechanism"));
    assert!(refused(&[("sasl.enabled.mechanisms", "DIGEST-MD5")]).contains("is no SASL mechanism"));
}

#[test]
fn node_logs_in_with_the_module_of_its_own_listener() {
    let sasl =
        ("listener.security.protocol.map", "IN:SASL_PLAINTEXT,OUT:PLAINTEXT,CONTROLLER:SASL_PLAINTEXT");
    let common = [
        sasl,
        ("sasl.enabled.mechanisms", "SCRAM-SHA-256,PLAIN"),
        ("sasl.mechanism.inter.broker.protocol", "SCRAM-SHA-256"),
        ("sasl.mechanism.controller.protocol", "PLAIN"),
        ("listener.name.in.plain.sasl.jaas.config", PLAIN),
        ("listener.name.controller.plain.sasl.jaas.config", PLAIN),
    ];
    let with = |more: &[(&'static str, &'static str)]| [&common[..], more].concat();
    let said = refused(&with(&[]));
    assert!(said.starts_with("listener.name.in.scram-sha-256.sasl.jaas.config: has no username"), "{said}");
    let read = read_with(&with(&[("listener.name.in.scram-sha-256.sasl.jaas.config", SCRAM)]), "");
    let read = read.expect("sound");
    let mechanism = |login: Option<OwnLogin>| match login {
        Some(OwnLogin::Fixed(login)) => login.mechanism(),
        other => panic!("{other:?}"),
    };
    assert_eq!(mechanism(read.to_brokers), "SCRAM-SHA-256");
    assert_eq!(mechanism(read.to_controllers), "PLAIN");
    let said = refused(&with(&[("sasl.mechanism.inter.broker.protocol", "SCRAM-SHA-512")]));
    assert!(said.contains("is not in it"), "{said}");
}

#[test]
fn jaas_file_has_a_section_for_the_listener_or_for_all() {
    let pairs = [("sasl.enabled.mechanisms", "PLAIN")];
    let knows = |file: &str, user: &str| {
        let read = read_with(&pairs, file).expect("sound");
        read.listeners[1].as_ref().expect("SASL").plain.knows(user)
    };
    let all = format!("KafkaServer {{ {SCRAM} {PLAIN} }};");
    assert!(knows(&all, "alice"));
    let own = format!("{all} out.KafkaServer {{ {} }};", PLAIN.replace("user_alice", "user_bob"));
    assert!(knows(&own, "bob") && !knows(&own, "alice"));
    assert!(read_with(&pairs, &format!("KafkaServer {{ {SCRAM} }};")).is_err());
}

#[test]
fn options_of_the_jvm_are_read() {
    let of = |options| jvm_property(options, JAAS_FILE);
    assert_eq!(
        of("-Xmx1G -Djava.security.auth.login.config=/etc/jaas.conf -Dx=y").as_deref(),
        Some("/etc/jaas.conf")
    );
    assert_eq!(of("-Djava.security.auth.login.configuration=/x"), None);
    assert_eq!(of("-Djava.security.auth.login.config="), None);
}

const HANDLER: &str = "listener.name.out.oauthbearer.sasl.server.callback.handler.class";
const SIGNED: &str = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler";
const URL: &str = "https://id.example.com/keys";

#[test]
fn oauthbearer_needs_its_class_audience_issuer_and_allowed_url() {
    let mut pairs = vec![("sasl.enabled.mechanisms", "OAUTHBEARER")];
    for (key, value, missing) in [
        (HANDLER, SIGNED, HANDLER),
        (
            "listener.name.out.oauthbearer.sasl.oauthbearer.jwks.endpoint.url",
            URL,
            "listener.name.out.oauthbearer.sasl.oauthbearer.jwks.endpoint.url",
        ),
        (Allowed::URLS, URL, Allowed::URLS),
        (
            "sasl.oauthbearer.expected.audience",
            "kafka",
            "listener.name.out.oauthbearer.sasl.oauthbearer.expected.audience",
        ),
        (
            "listener.name.out.sasl.oauthbearer.expected.issuer",
            "https://id.example.com",
            "listener.name.out.oauthbearer.sasl.oauthbearer.expected.issuer",
        ),
    ] {
        let said = refused(&pairs);
        assert!(said.starts_with(missing) && said.contains(&format!("{missing}=")), "{said}");
        pairs.push((key, value));
    }
    let read = read_with(&pairs, "").expect("sound");
    let out = read.listeners[1].as_ref().expect("SASL");
    assert!(matches!(&out.tokens, Some(Validator::Signed { keys, .. }) if keys.text == URL));
}

#[test]
fn unsigned_tokens_are_taken_on_loopback_alone() {
    let unsecured = "org.apache.kafka.common.security.oauthbearer.internals.unsecured.\
                     OAuthBearerUnsecuredValidatorCallbackHandler";
    let pairs = [("sasl.enabled.mechanisms", "OAUTHBEARER"), (HANDLER, unsecured)];
    assert!(refused(&pairs).contains("is not bound to loopback"));
    let local = ("listeners", "IN://:9092,OUT://127.0.0.1:9094,CONTROLLER://:9093");
    let read = read_with(&[&pairs[..], &[local]].concat(), "").expect("asked for");
    assert!(matches!(read.listeners[1].as_ref().expect("SASL").tokens, Some(Validator::Unsecured(_))));
}

#[test]
fn node_logs_in_with_tokens_of_a_file() {
    let handler = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler";
    let module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;";
    let mut pairs = vec![
        ("listener.security.protocol.map", "IN:SASL_PLAINTEXT,OUT:PLAINTEXT,CONTROLLER:PLAINTEXT"),
        ("sasl.enabled.mechanisms", "OAUTHBEARER"),
        ("sasl.mechanism.inter.broker.protocol", "OAUTHBEARER"),
        ("listener.name.in.oauthbearer.sasl.server.callback.handler.class", SIGNED),
        ("sasl.oauthbearer.jwks.endpoint.url", URL),
        ("sasl.oauthbearer.expected.audience", "kafka"),
        ("sasl.oauthbearer.expected.issuer", "https://id.example.com"),
        (Allowed::URLS, "https://id.example.com/keys, file:/run/token"),
    ];
    let key = "listener.name.in.oauthbearer.sasl.jaas.config";
    let said = refused(&pairs);
    assert!(said.starts_with(key) && said.contains("OAuthBearerLoginModule required;"), "{said}");
    pairs.push((key, module));
    let key = "listener.name.in.oauthbearer.sasl.oauthbearer.token.endpoint.url";
    assert!(refused(&pairs).starts_with(key));
    pairs.push((key, "file:/run/token"));
    pairs.push(("listener.name.in.oauthbearer.sasl.login.callback.handler.class", handler));
    let read = read_with(&pairs, "").expect("sound");
    assert!(matches!(read.to_brokers, Some(OwnLogin::Tokens(_))));
}

const OUT_GSSAPI: &str = "listener.name.out.gssapi.sasl.jaas.config";
const SERVICE: (&str, &str) = ("sasl.kerberos.service.name", "kafka");

fn krb5(options: &str) -> String {
    format!("com.sun.security.auth.module.Krb5LoginModule required {options};")
}

#[test]
fn gssapi_needs_a_keytab_a_principal_and_a_service_name() {
    let keytab = "useKeyTab=true keyTab=\"/k\" storeKey=true";
    let whole = format!("{keytab} principal=\"kafka/b\"");
    for (options, problem) in [
        ("useTicketCache=true", "which a ticket cache does not have. Set useKeyTab=true"),
        ("principal=\"kafka/b\"", "useKeyTab is not true"),
        ("useKeyTab=true keyTab=\"/k\" principal=\"kafka/b\"", "storeKey is not true"),
        (keytab, "names no principal"),
        (&format!("{keytab} principal=\"*\""), "names no principal"),
        (&format!("{keytab} principal=\"a/b/c\""), "is no name of the form service/host@REALM"),
    ] {
        let said = refused(&[SERVICE, (OUT_GSSAPI, &krb5(options))]);
        assert!(said.starts_with(OUT_GSSAPI) && said.contains(problem), "{options}: {said}");
        assert!(said.contains("principal=\"kafka/broker1.example.com@EXAMPLE.COM\""), "{said}");
    }
    let said = refused(&[(OUT_GSSAPI, &krb5(&whole))]);
    assert!(said.contains("No serviceName defined in either JAAS or Kafka config"), "{said}");
    let said = refused(&[SERVICE, (OUT_GSSAPI, &krb5(&format!("{whole} serviceName=\"other\"")))]);
    assert!(said.contains("Conflicting serviceName values"), "{said}");
    let rules = ("sasl.kerberos.principal.to.local.rules", "nonsense");
    let said = refused(&[SERVICE, rules, (OUT_GSSAPI, &krb5(&whole))]);
    assert!(said.starts_with(rules.0) && said.contains("Invalid rule: nonsense"), "{said}");

    let read = read_with(&[SERVICE, (OUT_GSSAPI, &krb5(&whole))], "").expect("sound");
    let out = read.listeners[1].as_ref().expect("SASL").kerberos.as_ref().expect("GSSAPI");
    assert_eq!((out.service.to_string().as_str(), out.keytab.to_str()), ("kafka/b@EXAMPLE.COM", Some("/k")));
    let file = format!("KafkaServer {{ {SCRAM} {} }};", krb5(&format!("{whole} serviceName=\"kafka\"")));
    assert!(read_with(&[], &file).expect("sound").listeners[1].as_ref().expect("SASL").kerberos.is_some());
}

#[test]
fn keytab_without_a_key_of_the_service_is_refused() {
    let whole = "useKeyTab=true keyTab=\"/k\" storeKey=true principal=\"kafka/b\"";
    let read = read_with(&[SERVICE, (OUT_GSSAPI, &krb5(whole))], "").expect("sound");
    let out = read.listeners[1].as_ref().expect("SASL").kerberos.clone().expect("GSSAPI");
    let said = out.acceptor(&[5, 2]).expect_err("refused");
    assert!(said.starts_with("/k has no key of kafka/b@EXAMPLE.COM"), "{said}");
    assert!(out.acceptor(b"no keytab").expect_err("refused").contains("its first bytes are not 05 02"));
}

#[test]
fn node_logs_in_with_tickets_of_its_own_listener() {
    let keytab = "useKeyTab=true keyTab=\"/k\" storeKey=true principal=\"kafka/b\"";
    let key = "listener.name.in.gssapi.sasl.jaas.config";
    let pairs =
        [("listener.security.protocol.map", "IN:SASL_PLAINTEXT,OUT:PLAINTEXT,CONTROLLER:PLAINTEXT"), SERVICE];
    let module = krb5(keytab);
    let read =
        read_with(&[&pairs[..], &[(key, module.as_str())]].concat(), "").expect("GSSAPI is the default");
    let Some(OwnLogin::Tickets(settings)) = read.to_brokers else { panic!("{:?}", read.to_brokers) };
    assert_eq!(settings.who(), "kafka/b@EXAMPLE.COM");
    assert_eq!(settings.service("a", "EXAMPLE.COM").to_string(), "kafka/a@EXAMPLE.COM");
    let module = krb5(&keytab.replace("kafka/b", "kafka/b@OTHER.COM"));
    let said = refused(&[&pairs[..], &[(key, module.as_str())]].concat());
    assert!(
        said.starts_with(key) && said.contains("krb5.conf names no kdc of the realm OTHER.COM"),
        "{said}"
    );
}
