import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Apache's consumer reads a topic of one partition from its end, committed records alone: {@code ADDRESS TOPIC}. */
public final class KafkaRead {
  public static void main(String[] words) {
    Tally tally = new Tally();
    Map<String, Object> settings = Map.of("bootstrap.servers", words[0], "isolation.level", "read_committed");
    KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    TopicPartition partition = new TopicPartition(words[1], 0);
    consumer.assign(List.of(partition));
    consumer.seekToEnd(List.of(partition));
    consumer.position(partition);
    tally.ready();
    while (true) {
      for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(500))) {
        tally.read(record.value());
      }
    }
  }
}
