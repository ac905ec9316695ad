// What Java's Admin and producer make of delegation tokens: `action TAB field…` in, a line of what came of it out.
//
//   create  USER PASSWORD PORT LIFETIME RENEWER OWNER     ok TOKEN-ID HMAC, with `-` for: the default, no renewer, the user
//   renew   USER PASSWORD PORT HMAC PERIOD
//   expire  USER PASSWORD PORT HMAC PERIOD
//   list    USER PASSWORD PORT                            the owners of the tokens that the user sees, sorted
//   login   MECHANISM TOKEN-ID HMAC PORT                  writes a record
//   again   MECHANISM TOKEN-ID HMAC PORT                  asks for a token in the name of a token

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.CreateDelegationTokenOptions;
import org.apache.kafka.clients.admin.ExpireDelegationTokenOptions;
import org.apache.kafka.clients.admin.RenewDelegationTokenOptions;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.errors.SaslAuthenticationException;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.token.delegation.DelegationToken;
import org.apache.kafka.common.serialization.StringSerializer;

public class TokenLogin {
    static final String MODULES = "org.apache.kafka.common.security.";

    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = lines.readLine()) != null;) {
            String answer;
            try {
                answer = act(line.split("\t", -1));
            } catch (ExecutionException e) {
                answer = refusal(e.getCause());
            } catch (Exception e) {
                answer = refusal(e);
            }
            System.out.println(answer);
            System.out.flush();
        }
    }

    static String act(String[] asked) throws Exception {
        return switch (asked[0]) {
            case "login" -> login(token(asked));
            case "again" -> create(token(asked), "-", "-", "-");
            case "create" -> create(user(asked), asked[4], asked[5], asked[6]);
            case "renew" -> renew(user(asked), hmac(asked[4]), Long.parseLong(asked[5]));
            case "expire" -> expire(user(asked), hmac(asked[4]), Long.parseLong(asked[5]));
            default -> list(user(asked));
        };
    }

    static byte[] hmac(String text) {
        return Base64.getDecoder().decode(text);
    }

    static Properties user(String[] asked) {
        return properties("PLAIN", "plain.PlainLoginModule required username=\"" + asked[1] + "\" password=\"" + asked[2] + "\";", asked[3]);
    }

    static Properties token(String[] asked) {
        return properties(asked[1], "scram.ScramLoginModule required username=\"" + asked[2] + "\" password=\"" + asked[3] + "\" tokenauth=true;", asked[4]);
    }

    static Properties properties(String mechanism, String module, String port) {
        Properties properties = new Properties();
        properties.putAll(Map.of("bootstrap.servers", "127.0.0.1:" + port, "security.protocol", "SASL_PLAINTEXT", "sasl.mechanism", mechanism,
            "sasl.jaas.config", MODULES + module, "request.timeout.ms", "10000", "default.api.timeout.ms", "20000"));
        return properties;
    }

    static String create(Properties as, String lifetime, String renewer, String owner) throws Exception {
        CreateDelegationTokenOptions options = new CreateDelegationTokenOptions();
        if (!lifetime.equals("-")) options.maxLifetimeMs(Long.parseLong(lifetime));
        if (!renewer.equals("-")) options.renewers(List.of(principal(renewer)));
        if (!owner.equals("-")) options.owner(principal(owner));
        try (Admin admin = Admin.create(as)) {
            DelegationToken token = admin.createDelegationToken(options).delegationToken().get();
            return "ok\t" + token.tokenInfo().tokenId() + "\t" + token.hmacAsBase64String() + "\t" + token.tokenInfo().owner() + " by "
                + token.tokenInfo().tokenRequester() + " for " + (token.tokenInfo().maxTimestamp() - token.tokenInfo().issueTimestamp());
        }
    }

    static KafkaPrincipal principal(String text) {
        String[] parts = text.split(":", 2);
        return new KafkaPrincipal(parts[0], parts[1]);
    }

    static String renew(Properties as, byte[] hmac, long period) throws Exception {
        try (Admin admin = Admin.create(as)) {
            admin.renewDelegationToken(hmac, new RenewDelegationTokenOptions().renewTimePeriodMs(period)).expiryTimestamp().get();
            return "ok";
        }
    }

    static String expire(Properties as, byte[] hmac, long period) throws Exception {
        try (Admin admin = Admin.create(as)) {
            admin.expireDelegationToken(hmac, new ExpireDelegationTokenOptions().expiryTimePeriodMs(period)).expiryTimestamp().get();
            return "ok";
        }
    }

    static String list(Properties as) throws Exception {
        try (Admin admin = Admin.create(as)) {
            List<String> owners = admin.describeDelegationToken().delegationTokens().get().stream().map(token -> token.tokenInfo().owner().toString()).sorted().toList();
            return "ok " + owners;
        }
    }

    static String login(Properties as) throws Exception {
        as.putAll(Map.of("max.block.ms", "20000", "delivery.timeout.ms", "20000", "linger.ms", "0"));
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(as, new StringSerializer(), new StringSerializer())) {
            producer.send(new ProducerRecord<>("tokens", "by token")).get();
            return "ok";
        }
    }

    static String refusal(Throwable why) {
        return why instanceof SaslAuthenticationException ? "login refused: " + why.getMessage() : why.getClass().getSimpleName();
    }
}
