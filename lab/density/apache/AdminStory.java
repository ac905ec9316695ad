// The Java admin client, as it comes, against topics of very many partitions: one request each.
// Arguments: bootstrap, partitions. Prints "what | time" lines and ends in "all is well", or with an exception.

import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Callable;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class AdminStory {
    static final String TOPIC = "java";

    public static void main(String[] words) throws Exception {
        Properties config = new Properties();
        config.put(AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, words[0]);
        int count = Integer.parseInt(words[1]);
        try (Admin admin = Admin.create(config)) {
            timed("createTopics, " + count + " partitions", () -> admin.createTopics(List.of(new NewTopic(TOPIC, count, (short) 1))).all().get());
            int more = count + 1000;
            timed("createPartitions, to " + more, () -> admin.createPartitions(Map.of(TOPIC, NewPartitions.increaseTo(more))).all().get());
            TopicDescription described = timed("describeTopics", () -> admin.describeTopics(List.of(TOPIC)).allTopicNames().get().get(TOPIC));
            must(described.partitions().size() == more, "partitions described: " + described.partitions().size());
            must(described.partitions().stream().allMatch(partition -> partition.leader() != null), "a partition has no leader");
            int broker = described.partitions().get(0).leader().id();
            long held = timed("describeLogDirs", () -> admin.describeLogDirs(List.of(broker)).allDescriptions().get().get(broker).values().stream()
                .flatMap(directory -> directory.replicaInfos().keySet().stream()).filter(partition -> partition.topic().equals(TOPIC)).count());
            must(held == more, "partitions in log directories: " + held);
            use(words[0], new int[] {0, count / 2, count - 1, count, more - 1});
            timed("listTopics", () -> admin.listTopics().names().get());
            timed("deleteTopics", () -> admin.deleteTopics(List.of(TOPIC)).all().get());
        }
        System.out.println("all is well");
    }

    /** A record through a producer and a consumer that know all partitions. */
    static void use(String bootstrap, int[] partitions) throws Exception {
        Map<String, Object> config = Map.of("bootstrap.servers", bootstrap, "auto.offset.reset", "earliest");
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(config, new StringSerializer(), new StringSerializer())) {
            for (int partition : partitions) {
                producer.send(new ProducerRecord<>(TOPIC, partition, "key", "value " + partition)).get();
            }
        }
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
            for (int partition : partitions) {
                TopicPartition one = new TopicPartition(TOPIC, partition);
                consumer.assign(List.of(one));
                consumer.seekToBeginning(List.of(one));
                var records = consumer.poll(java.time.Duration.ofSeconds(10)).records(one);
                must(records.size() == 1 && records.get(0).value().equals("value " + partition), "partition " + partition + " holds " + records);
            }
        }
    }

    static <T> T timed(String what, Callable<T> work) throws Exception {
        long begun = System.nanoTime();
        T done = work.call();
        System.out.printf("%s | %d ms%n", what, (System.nanoTime() - begun) / 1_000_000);
        return done;
    }

    static void must(boolean holds, String otherwise) {
        if (!holds) {
            throw new IllegalStateException(otherwise);
        }
    }
}
