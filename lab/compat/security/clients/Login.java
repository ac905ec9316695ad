// Logs in once for each line of standard input and writes one record: `mechanism TAB user TAB password TAB port` in, a line of what came of it out.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.errors.SaslAuthenticationException;
import org.apache.kafka.common.errors.UnsupportedSaslMechanismException;
import org.apache.kafka.common.serialization.StringSerializer;

public class Login {
    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = lines.readLine()) != null;) {
            String[] asked = line.split("\t", -1);
            System.out.println(attempt(asked[0], asked[1], asked[2], asked[3]));
            System.out.flush();
        }
    }

    static String attempt(String mechanism, String user, String password, String port) {
        String module = mechanism.equals("PLAIN") ? "plain.PlainLoginModule" : "scram.ScramLoginModule";
        Properties properties = new Properties();
        properties.putAll(Map.of("bootstrap.servers", "127.0.0.1:" + port, "security.protocol", "SASL_PLAINTEXT", "sasl.mechanism", mechanism,
            "max.block.ms", "20000", "delivery.timeout.ms", "20000", "request.timeout.ms", "10000", "linger.ms", "0"));
        properties.put("sasl.jaas.config",
            "org.apache.kafka.common.security." + module + " required username=\"" + user + "\" password=\"" + password + "\";");
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer())) {
            producer.send(new ProducerRecord<>("logins", user)).get();
            return "ok";
        } catch (ExecutionException e) {
            return refusal(e.getCause());
        } catch (Exception e) {
            return refusal(e);
        }
    }

    static String refusal(Throwable why) {
        if (why instanceof UnsupportedSaslMechanismException) return "mechanism refused";
        return why instanceof SaslAuthenticationException ? "login refused: " + why.getMessage() : "other: " + why;
    }
}
