//! The table of broker keys for TLS, SASL, authorization, delegation tokens.
//!
//! Sorted by name (a test holds that). What the node does with each key: [`crate::config::status`].
//! Facts: Kafka 4.4 `AbstractKafkaConfig`, update modes of `DynamicBrokerConfig`. Sentences: ours.

use crate::config::key::{
    ConfigKey, Valid, boolean, class, double, int, list, long, password, short, string,
};

#[rustfmt::skip]
pub(crate) const KEYS: &[ConfigKey] = &[
    string("authorizer.class.name", "").low()
        .doc("Java class that decides who may do what; empty means that everyone may do everything."),
    int("connection.failed.authentication.delay.ms", "100").at_least(0).low()
        .doc("How long a connection that failed to authenticate is kept before it is closed, to slow down \
              guessing."),
    long("connections.max.reauth.ms", "0")
        .doc("Longest time that a SASL session lasts before the client must authenticate again; 0 means for \
              ever."),
    long("delegation.token.expiry.check.interval.ms", "3600000").at_least(1).low()
        .doc("How often expired delegation tokens are removed."),
    long("delegation.token.expiry.time.ms", "86400000").at_least(1)
        .doc("How long a delegation token is good before it has to be renewed."),
    long("delegation.token.max.lifetime.ms", "604800000").at_least(1)
        .doc("Longest life of a delegation token, renewals included."),
    password("delegation.token.secret.key", "").null()
        .doc("Secret from which delegation tokens are made; the same on every node."),
    list("early.start.listeners", "").null().high()
        .doc("Listeners that accept connections before the authorizer is ready."),
    class("principal.builder.class", "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder").per_broker()
        .doc("Java class that turns an authenticated connection into a principal."),
    class("sasl.client.callback.handler.class", "").null()
        .doc("Java class that supplies credentials to SASL clients."),
    list("sasl.enabled.mechanisms", "GSSAPI").per_broker()
        .doc("SASL mechanisms that the node accepts."),
    password("sasl.jaas.config", "").null().per_broker()
        .doc("JAAS login context for SASL, in the form of a JAAS file."),
    string("sasl.kerberos.kinit.cmd", "/usr/bin/kinit").per_broker()
        .doc("Path of the kinit command."),
    long("sasl.kerberos.min.time.before.relogin", "60000").per_broker()
        .doc("Shortest time between two Kerberos logins."),
    list("sasl.kerberos.principal.to.local.rules", "DEFAULT").per_broker()
        .doc("Rules that shorten Kerberos principals to user names, tried in order."),
    string("sasl.kerberos.service.name", "").null().per_broker()
        .doc("Kerberos service name that brokers run under."),
    double("sasl.kerberos.ticket.renew.jitter", "0.05").per_broker()
        .doc("Random share added to the time of a ticket's renewal."),
    double("sasl.kerberos.ticket.renew.window.factor", "0.8").per_broker()
        .doc("Share of a ticket's life after which it is renewed."),
    class("sasl.login.callback.handler.class", "").null()
        .doc("Java class that supplies credentials at login."),
    class("sasl.login.class", "").null()
        .doc("Java class that performs the login."),
    int("sasl.login.connect.timeout.ms", "").null().low()
        .doc("How long connecting to the login provider may take."),
    int("sasl.login.read.timeout.ms", "").null().low()
        .doc("How long reading from the login provider may take."),
    short("sasl.login.refresh.buffer.seconds", "300").per_broker()
        .doc("Time before a credential's end by which it should have been refreshed."),
    short("sasl.login.refresh.min.period.seconds", "60").per_broker()
        .doc("Shortest time between two refreshes of a credential."),
    double("sasl.login.refresh.window.factor", "0.8").per_broker()
        .doc("Share of a credential's life after which it is refreshed."),
    double("sasl.login.refresh.window.jitter", "0.05").per_broker()
        .doc("Random share added to the time of that refresh."),
    long("sasl.login.retry.backoff.max.ms", "10000").low()
        .doc("Longest pause between attempts to log in."),
    long("sasl.login.retry.backoff.ms", "100").low()
        .doc("First pause between attempts to log in."),
    string("sasl.mechanism.controller.protocol", "GSSAPI").high()
        .doc("SASL mechanism used towards controllers."),
    string("sasl.mechanism.inter.broker.protocol", "GSSAPI").per_broker()
        .doc("SASL mechanism used between brokers."),
    boolean("sasl.oauthbearer.allow.unverified.audience", "false")
        .doc("Whether tokens are taken without an expected audience being set."),
    boolean("sasl.oauthbearer.allow.unverified.issuer", "false")
        .doc("Whether tokens are taken without an expected issuer being set."),
    string("sasl.oauthbearer.assertion.algorithm", "RS256").valid(Valid::OneOfIgnoringCase(&["ES256", "RS256"]))
        .doc("Algorithm that client assertions are signed with."),
    string("sasl.oauthbearer.assertion.claim.aud", "").null()
        .doc("Audience claim of a client assertion."),
    int("sasl.oauthbearer.assertion.claim.exp.seconds", "300").between(0, 86400).low()
        .doc("Seconds that a client assertion is good for."),
    string("sasl.oauthbearer.assertion.claim.iss", "").null()
        .doc("Issuer claim of a client assertion."),
    boolean("sasl.oauthbearer.assertion.claim.jti.include", "false")
        .doc("Whether a client assertion carries an id of its own."),
    int("sasl.oauthbearer.assertion.claim.nbf.seconds", "60").between(0, 3600).low()
        .doc("Seconds by which a client assertion is good before it was made."),
    string("sasl.oauthbearer.assertion.claim.sub", "").null()
        .doc("Subject claim of a client assertion."),
    string("sasl.oauthbearer.assertion.file", "").null()
        .doc("File that holds a ready client assertion."),
    string("sasl.oauthbearer.assertion.private.key.file", "").null()
        .doc("File that holds the key for signing client assertions."),
    password("sasl.oauthbearer.assertion.private.key.passphrase", "").null()
        .doc("Passphrase of that key."),
    string("sasl.oauthbearer.assertion.template.file", "").null()
        .doc("File that holds further headers and claims of a client assertion."),
    string("sasl.oauthbearer.client.credentials.client.id", "").null()
        .doc("Client id for the OAuth client-credentials grant."),
    password("sasl.oauthbearer.client.credentials.client.secret", "").null()
        .doc("Client secret for the OAuth client-credentials grant."),
    int("sasl.oauthbearer.clock.skew.seconds", "30").low()
        .doc("Difference of clocks that is tolerated when a token is checked."),
    list("sasl.oauthbearer.expected.audience", "").high()
        .doc("Audiences of which a token must name one."),
    string("sasl.oauthbearer.expected.issuer", "").null().high()
        .doc("Issuer that a token must come from."),
    long("sasl.oauthbearer.jwks.endpoint.refresh.ms", "3600000").low()
        .doc("How often the issuer's keys are fetched again."),
    long("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", "10000").low()
        .doc("Longest pause between attempts to fetch the issuer's keys."),
    long("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", "100").low()
        .doc("First pause between attempts to fetch the issuer's keys."),
    string("sasl.oauthbearer.jwks.endpoint.url", "").null()
        .doc("Where the issuer's keys are fetched from."),
    class("sasl.oauthbearer.jwt.retriever.class", "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever")
        .doc("Java class that fetches tokens."),
    class("sasl.oauthbearer.jwt.validator.class", "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator")
        .doc("Java class that checks tokens."),
    string("sasl.oauthbearer.scope", "").null()
        .doc("Scope asked for when a token is fetched."),
    string("sasl.oauthbearer.scope.claim.name", "scope").low()
        .doc("Name of the claim that holds the scope."),
    string("sasl.oauthbearer.sub.claim.name", "sub").low()
        .doc("Name of the claim that holds the subject."),
    string("sasl.oauthbearer.token.endpoint.url", "").null()
        .doc("Where tokens are fetched from."),
    class("sasl.server.callback.handler.class", "").null()
        .doc("Java class that checks credentials on the server side."),
    int("sasl.server.max.receive.size", "524288")
        .doc("Most bytes taken from a client before it has authenticated."),
    string("security.inter.broker.protocol", "PLAINTEXT").one_of(&["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"])
        .doc("Security protocol between brokers, where no `inter.broker.listener.name` is given."),
    string("security.providers", "").null().low()
        .doc("Java classes that provide security algorithms."),
    boolean("ssl.allow.dn.changes", "false").low()
        .doc("Whether a new certificate may carry another distinguished name."),
    boolean("ssl.allow.san.changes", "false").low()
        .doc("Whether a new certificate may lack alternative names of the old one."),
    list("ssl.cipher.suites", "").per_broker()
        .doc("Cipher suites that are allowed; empty means the library's own choice."),
    string("ssl.client.auth", "none").one_of(&["required", "requested", "none"]).per_broker()
        .doc("Whether clients must (`required`), may (`requested`) or need not (`none`) show a certificate."),
    list("ssl.enabled.protocols", "TLSv1.2,TLSv1.3").per_broker()
        .doc("TLS versions that are allowed."),
    string("ssl.endpoint.identification.algorithm", "https").low().per_broker()
        .doc("How a server's name is checked against its certificate; empty turns it off."),
    class("ssl.engine.factory.class", "").null().low().per_broker()
        .doc("Java class that makes TLS engines."),
    password("ssl.key.password", "").null().per_broker()
        .doc("Password of the private key."),
    string("ssl.keymanager.algorithm", "SunX509").per_broker()
        .doc("Name of the Java key manager algorithm."),
    password("ssl.keystore.certificate.chain", "").null().per_broker()
        .doc("The certificate chain as PEM text."),
    password("ssl.keystore.key", "").null().per_broker()
        .doc("The private key as PEM text."),
    string("ssl.keystore.location", "").null().per_broker()
        .doc("File that holds key and certificate."),
    password("ssl.keystore.password", "").null().per_broker()
        .doc("Password of that file."),
    string("ssl.keystore.type", "JKS").per_broker()
        .doc("Format of that file: JKS, PKCS12 or PEM."),
    string("ssl.principal.mapping.rules", "DEFAULT").low()
        .doc("Rules that shorten a certificate's distinguished name to a user name, tried in order."),
    string("ssl.protocol", "TLSv1.3").per_broker()
        .doc("TLS version for new contexts."),
    string("ssl.provider", "").null().per_broker()
        .doc("Name of the Java security provider for TLS."),
    string("ssl.secure.random.implementation", "").null().low().per_broker()
        .doc("Name of the Java random number generator for TLS."),
    string("ssl.trustmanager.algorithm", "PKIX").per_broker()
        .doc("Name of the Java trust manager algorithm."),
    password("ssl.truststore.certificates", "").null().per_broker()
        .doc("Trusted certificates as PEM text."),
    string("ssl.truststore.location", "").null().per_broker()
        .doc("File that holds trusted certificates."),
    password("ssl.truststore.password", "").null().per_broker()
        .doc("Password of the file that holds trusted certificates."),
    string("ssl.truststore.type", "JKS").per_broker()
        .doc("Format of the file that holds trusted certificates: JKS, PKCS12 or PEM."),
];
