import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Apache's producer, acks=all, without linger: {@code ADDRESS TOPIC SIZE PER_SECOND}. */
public final class KafkaPut {
  public static void main(String[] words) throws Exception {
    KafkaProducer<byte[], byte[]> producer =
        new KafkaProducer<>(Map.<String, Object>of("bootstrap.servers", words[0], "acks", "all", "linger.ms", 0), new ByteArraySerializer(), new ByteArraySerializer());
    producer.partitionsFor(words[1]);
    new Pace(Integer.parseInt(words[3]), 1, Integer.parseInt(words[2]))
        .run(
            () ->
                new Pace.Sender() {
                  @Override
                  public void send(byte[] payload, boolean commits) {
                    // One that fails is missed at the other end, where all are counted.
                    producer.send(new ProducerRecord<>(words[1], payload.clone()));
                  }

                  @Override
                  public void end() {
                    producer.flush();
                  }
                },
            1);
  }
}
