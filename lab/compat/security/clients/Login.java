// Logs in once for each line of standard input and writes one record: `mechanism TAB user TAB password TAB port TAB protocol TAB authority TAB certificate TAB key` in, a line of what came of it out.

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import javax.security.auth.callback.Callback;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.errors.SaslAuthenticationException;
import org.apache.kafka.common.errors.SslAuthenticationException;
import org.apache.kafka.common.errors.UnsupportedSaslMechanismException;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerToken;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerTokenCallback;
import org.apache.kafka.common.serialization.StringSerializer;

public class Login {
    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = lines.readLine()) != null;) {
            String[] asked = line.split("\t", -1);
            System.out.println(attempt(asked));
            System.out.flush();
        }
    }

    static void secure(Properties properties, String authority, String certificate, String key) throws Exception {
        properties.putAll(Map.of("ssl.truststore.type", "PEM", "ssl.truststore.location", authority));
        if (!key.isEmpty()) {
            properties.putAll(Map.of("ssl.keystore.type", "PEM", "ssl.keystore.key", Files.readString(Path.of(key)), "ssl.keystore.certificate.chain", Files.readString(Path.of(certificate))));
        }
    }

    static String attempt(String[] asked) throws Exception {
        String mechanism = asked[0], user = asked[1], password = asked[2], port = asked[3], protocol = asked[4];
        String module = mechanism.equals("PLAIN") ? "plain.PlainLoginModule" : "scram.ScramLoginModule";
        Properties properties = new Properties();
        properties.putAll(Map.of("bootstrap.servers", "127.0.0.1:" + port, "security.protocol", protocol,
            "max.block.ms", "20000", "delivery.timeout.ms", "20000", "request.timeout.ms", "10000", "linger.ms", "0"));
        if (protocol.endsWith("SSL")) secure(properties, asked[5], asked[6], asked[7]);
        if (!mechanism.isEmpty()) properties.put("sasl.mechanism", mechanism);
        if (mechanism.equals("OAUTHBEARER")) {
            properties.put("sasl.jaas.config", "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required file=\"" + password + "\";");
            properties.put("sasl.login.callback.handler.class", FileToken.class.getName());
            // The refreshing thread may take the next token at once: these live for seconds.
            properties.putAll(Map.of("sasl.login.refresh.min.period.seconds", "0", "sasl.login.refresh.buffer.seconds", "0"));
        } else if (mechanism.equals("GSSAPI")) {
            // The password is the path of a keytab, the authority the service's name.
            properties.put("sasl.kerberos.service.name", asked[5]);
            properties.put("sasl.jaas.config", "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true keyTab=\"" + password + "\" principal=\"" + user + "\";");
        } else if (!mechanism.isEmpty()) properties.put("sasl.jaas.config",
            "org.apache.kafka.common.security." + module + " required username=\"" + user + "\" password=\"" + password + "\";");
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer())) {
            long until = System.currentTimeMillis() + (user.equals("held") ? 8000 : 0);
            do {
                producer.send(new ProducerRecord<>("logins", user)).get();
                if (until > System.currentTimeMillis()) Thread.sleep(200);
            } while (System.currentTimeMillis() < until);
            return "ok";
        } catch (ExecutionException e) {
            return refusal(e.getCause());
        } catch (Exception e) {
            return refusal(e);
        }
    }

    // The token in the file that the login module's options name, as if it ended in four seconds: what the server finds is the server's.
    public static class FileToken implements AuthenticateCallbackHandler {
        String path;

        @Override
        public void configure(Map<String, ?> configs, String mechanism, List<AppConfigurationEntry> entries) {
            path = (String) entries.get(0).getOptions().get("file");
        }

        @Override
        public void handle(Callback[] callbacks) throws IOException {
            for (Callback callback : callbacks) {
                if (!(callback instanceof OAuthBearerTokenCallback asked)) continue;
                String token = Files.readString(Path.of(path));
                long now = System.currentTimeMillis();
                asked.token(new OAuthBearerToken() {
                    @Override public String value() { return token; }
                    @Override public Set<String> scope() { return Set.of(); }
                    @Override public long lifetimeMs() { return now + 4000; }
                    @Override public String principalName() { return "alice"; }
                    @Override public Long startTimeMs() { return now; }
                });
            }
        }

        @Override
        public void close() {}
    }

    static String refusal(Throwable why) {
        if (why instanceof UnsupportedSaslMechanismException) return "mechanism refused";
        if (why instanceof SslAuthenticationException) return "TLS refused";
        return why instanceof SaslAuthenticationException ? "login refused: " + why.getMessage() : "other: " + why;
    }
}
