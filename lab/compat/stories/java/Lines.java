// What a topic shows up to its end now, for ../story.py.
//
// `Lines BOOTSTRAP TOPIC FILE long|string [read_uncommitted]`: a line for each record, `partition offset key value` (value as the type says).

import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.StringDeserializer;

public class Lines {
    public static void main(String[] args) throws Exception {
        Deserializer<?> values = args[3].equals("long") ? new LongDeserializer() : new StringDeserializer();
        Properties settings = new Properties();
        settings.putAll(Map.of("bootstrap.servers", args[0], "isolation.level", args.length > 4 ? args[4] : "read_committed", "enable.auto.commit", "false"));
        try (KafkaConsumer<String, ?> consumer = new KafkaConsumer<>(settings, new StringDeserializer(), values);
             PrintStream out = new PrintStream(Files.newOutputStream(Path.of(args[2])), false, StandardCharsets.UTF_8)) {
            List<TopicPartition> all = new ArrayList<>();
            consumer.partitionsFor(args[1]).forEach(one -> all.add(new TopicPartition(args[1], one.partition())));
            consumer.assign(all);
            consumer.seekToBeginning(all);
            Map<TopicPartition, Long> ends = consumer.endOffsets(all);
            while (!ends.entrySet().stream().allMatch(end -> consumer.position(end.getKey()) >= end.getValue()))
                for (ConsumerRecord<String, ?> record : consumer.poll(Duration.ofMillis(200)))
                    out.println(record.partition() + " " + record.offset() + " " + record.key() + " " + record.value());
        }
    }
}
