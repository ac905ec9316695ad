import java.util.Properties;
import java.util.TreeSet;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.server.config.DynamicBrokerConfig;

/** Prints each broker key of Apache Kafka, when it may change, and whether only for a listener: core/metadata/src/config/dynamic_keys.tsv. */
public class DynamicKeys {
    public static void main(String[] arguments) {
        ConfigDef keys = AbstractKafkaConfig.CONFIG_DEF;
        for (String name : new TreeSet<>(keys.names())) {
            String mode = DynamicBrokerConfig.dynamicConfigUpdateModes().getOrDefault(name, "read-only");
            System.out.println(name + "\t" + mode + "\t" + (isOfAListener(keys.configKeys().get(name)) ? "listener" : "-"));
        }
    }

    private static boolean isOfAListener(ConfigDef.ConfigKey key) {
        Properties one = new Properties();
        one.setProperty(key.name, key.defaultValue == null ? "1" : String.valueOf(key.defaultValue));
        return !DynamicBrokerConfig.securityConfigsWithoutListenerPrefix(one).isEmpty();
    }
}
