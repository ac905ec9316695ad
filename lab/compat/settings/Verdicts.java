import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.config.ConfigDef;

/** Prints, for each key of a broker, which of some values Apache Kafka starts with and which it refuses: key, the values that it takes, those that it refuses. */
public class Verdicts {
    private static final List<String> NUMBERS = List.of("-5", "-2", "-1", "0", "1", "2", "10", "1000", "30000", "2147483647", "soon");
    private static final List<String> TEXTS = List.of("", "nonsense", "a,,b", ",");

    public static void main(String[] words) {
        for (ConfigDef.ConfigKey key : new TreeMap<>(KafkaConfig.configDef().configKeys()).values()) {
            List<String> taken = new ArrayList<>();
            List<String> refused = new ArrayList<>();
            for (String value : values(key.type)) {
                Boolean isTaken = verdict(key.name, value);
                if (isTaken != null) (isTaken ? taken : refused).add("'" + value + "'");
            }
            if (!taken.isEmpty() || !refused.isEmpty()) System.out.println(key.name + "\t" + String.join(" ", taken) + "\t" + String.join(" ", refused));
        }
    }

    private static List<String> values(ConfigDef.Type type) {
        return switch (type) {
            case INT, LONG, SHORT, DOUBLE -> NUMBERS;
            case BOOLEAN -> List.of("true", "FALSE", "yes", "");
            // A class that Apache Kafka does not find says nothing about the key.
            case CLASS -> List.of();
            default -> TEXTS;
        };
    }

    /** Null where a Java class is missed. */
    private static Boolean verdict(String key, String value) {
        Map<String, String> node = new HashMap<>();
        node.put("node.id", "1");
        node.put("process.roles", "broker,controller");
        node.put("controller.quorum.voters", "1@localhost:9093");
        node.put("listeners", "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093");
        node.put("controller.listener.names", "CONTROLLER");
        node.put("log.dirs", "/nowhere");
        node.put(key, value);
        try {
            new KafkaConfig(node, false);
            return true;
        } catch (RuntimeException refused) {
            return String.valueOf(refused.getMessage()).startsWith("Class ") ? null : false;
        }
    }
}
