import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Scanner;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.QuorumInfo;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * The client of a mixed cluster: a line on stdin is a command, a line on stdout its answer, `ok …` or `failed …`.
 *
 * A load writes to every partition of a topic the numbers 0, 1, 2 …, each partition its own, and remembers what was acknowledged and where.
 * `verify` reads everything: each acknowledged number must be there once, in order, at the offset that its producer was told; a number that
 * failed may be there or not, and nothing else may be.
 */
public class Mixed {
    private static String servers;
    private static Admin admin;
    private static final Map<String, Load> loads = new HashMap<>();

    public static void main(String[] args) {
        // What the client's log says goes elsewhere than its answers.
        java.io.PrintStream answers = System.out;
        System.setOut(System.err);
        servers = args[0];
        admin = Admin.create(properties());
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            String[] words = lines.nextLine().trim().split(" ");
            String answer;
            try {
                answer = "ok " + obey(words);
            } catch (Exception error) {
                Throwable cause = error.getCause() == null ? error : error.getCause();
                answer = "failed " + (cause.getClass().getSimpleName() + ": " + cause.getMessage()).replace('\n', ' ');
            }
            answers.println(answer);
            answers.flush();
        }
        System.exit(0);
    }

    private static String obey(String[] words) throws Exception {
        switch (words[0]) {
            case "create": return create(words);
            case "delete": admin.deleteTopics(List.of(words[1])).all().get(60, TimeUnit.SECONDS); return "";
            case "begin": {
                boolean transactions = words.length > 3 && words[3].equals("transactions");
                Load load = transactions ? new Transactions(words[1], Integer.parseInt(words[2])) : new Load(words[1], Integer.parseInt(words[2]));
                loads.put(words[1], load);
                load.start();
                return "";
            }
            case "pulse": return loads.get(words[1]).pulse();
            case "end": return loads.get(words[1]).end();
            case "verify": return loads.get(words[1]).verify();
            case "partitions": return partitions(words[1]);
            case "quorum": return quorum();
            case "brokers": return admin.describeCluster().nodes().get(10, TimeUnit.SECONDS).stream().map(Node::idString).sorted().collect(Collectors.joining(","));
            case "group": return group(words[1], words[2]);
            case "positions": return new TreeMap<>(admin.listConsumerGroupOffsets(words[1]).partitionsToOffsetAndMetadata().get(30, TimeUnit.SECONDS)
                .entrySet().stream().collect(Collectors.toMap(e -> e.getKey().toString(), e -> e.getValue().offset()))).toString().replace(" ", "");
            default: throw new IllegalArgumentException("nobody knows " + words[0]);
        }
    }

    private static Properties properties() {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", servers);
        properties.put("reconnect.backoff.max.ms", "300");
        properties.put("request.timeout.ms", "5000");
        properties.put("metadata.max.age.ms", "5000");
        return properties;
    }

    private static String create(String[] words) throws Exception {
        Map<String, String> configs = Arrays.stream(words).skip(4).map(word -> word.split("=", 2)).collect(Collectors.toMap(pair -> pair[0], pair -> pair[1]));
        NewTopic topic = words[3].contains("/") || words[3].contains("@")
            ? new NewTopic(words[1], assignment(Integer.parseInt(words[2]), words[3].substring(1)))
            : new NewTopic(words[1], Optional.of(Integer.parseInt(words[2])), Optional.of(Short.parseShort(words[3])));
        try {
            admin.createTopics(List.of(topic.configs(configs))).all().get(60, TimeUnit.SECONDS);
        } catch (java.util.concurrent.ExecutionException error) {
            // A creation whose answer was lost has come about, and the client asked again.
            if (!(error.getCause() instanceof TopicExistsException)) {
                throw error;
            }
        }
        long until = System.nanoTime() + 60_000_000_000L;
        while (System.nanoTime() < until) {
            try {
                var found = admin.describeTopics(List.of(words[1])).allTopicNames().get(10, TimeUnit.SECONDS).get(words[1]).partitions();
                if (found.size() == Integer.parseInt(words[2]) && found.stream().allMatch(one -> one.leader() != null && !one.leader().isEmpty())) {
                    return "";
                }
            } catch (java.util.concurrent.ExecutionException error) {
                // This broker does not know it yet.
            }
            Thread.sleep(50);
        }
        throw new IllegalStateException(words[1] + " has no leaders");
    }

    /** How many partitions a topic has; the broker that is asked may not know it yet. */
    private static int count(String topic) throws Exception {
        for (int tries = 0; ; tries++) {
            try {
                return admin.describeTopics(List.of(topic)).allTopicNames().get(30, TimeUnit.SECONDS).get(topic).partitions().size();
            } catch (java.util.concurrent.ExecutionException error) {
                if (tries == 100) {
                    throw error;
                }
                Thread.sleep(100);
            }
        }
    }

    /** `@1,2`: every partition on these. */
    private static Map<Integer, List<Integer>> assignment(int partitions, String brokers) {
        List<Integer> replicas = Arrays.stream(brokers.split(",")).map(Integer::valueOf).toList();
        return IntStream.range(0, partitions).boxed().collect(Collectors.toMap(one -> one, one -> replicas));
    }

    private static String partitions(String topic) throws Exception {
        var found = admin.describeTopics(List.of(topic)).allTopicNames().get(30, TimeUnit.SECONDS).get(topic).partitions();
        return found.stream().map(Mixed::show).collect(Collectors.joining(" "));
    }

    /** partition:leader:replicas:isr */
    private static String show(TopicPartitionInfo one) {
        String leader = one.leader() == null || one.leader().isEmpty() ? "-1" : one.leader().idString();
        return one.partition() + ":" + leader + ":" + ids(one.replicas()) + ":" + ids(one.isr());
    }

    private static String ids(Collection<Node> nodes) {
        return nodes.stream().map(Node::idString).collect(Collectors.joining(","));
    }

    private static String quorum() throws Exception {
        QuorumInfo info = admin.describeMetadataQuorum().quorumInfo().get(20, TimeUnit.SECONDS);
        return "leader=" + info.leaderId() + " epoch=" + info.leaderEpoch() + " voters=" + states(info.voters()) + " observers=" + states(info.observers());
    }

    /** id@directory:end */
    private static String states(List<QuorumInfo.ReplicaState> states) {
        return states.stream().sorted((a, b) -> a.replicaId() - b.replicaId())
            .map(state -> state.replicaId() + "@" + state.replicaDirectoryId() + ":" + state.logEndOffset()).collect(Collectors.joining(","));
    }

    /** Reads a topic to its end as a member of a group, and commits. */
    private static String group(String topic, String group) {
        Properties properties = properties();
        properties.put("group.id", group);
        properties.put("auto.offset.reset", "earliest");
        properties.put("enable.auto.commit", "false");
        long count = 0;
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(properties, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic));
            long until = System.nanoTime() + 120_000_000_000L;
            // The end as it is when the group has settled: the load goes on.
            Map<TopicPartition, Long> ends = Map.of();
            while (System.nanoTime() < until) {
                count += consumer.poll(Duration.ofMillis(200)).count();
                if (ends.isEmpty() && !consumer.assignment().isEmpty()) {
                    ends = consumer.endOffsets(consumer.assignment());
                }
                if (!ends.isEmpty() && ends.entrySet().stream().allMatch(end -> consumer.position(end.getKey()) >= end.getValue())) {
                    consumer.commitSync();
                    return String.valueOf(count);
                }
            }
        }
        throw new IllegalStateException("the group did not come to the end");
    }

    /** What one partition was written. */
    private static final class Written {
        int sent;
        /** By number: the offset, or −1. */
        final ArrayList<Long> offsets = new ArrayList<>();
        final BitSet failed = new BitSet();
        long lastAck = System.nanoTime();
        long longestGap;
    }

    private static class Load extends Thread {
        final String topic;
        final int rate;
        final List<Written> written = new ArrayList<>();
        volatile boolean ending;
        volatile long acked;
        volatile String trouble;

        Load(String topic, int rate) throws Exception {
            this.topic = topic;
            this.rate = rate;
            setDaemon(true);
            int count = count(topic);
            IntStream.range(0, count).forEach(one -> written.add(new Written()));
        }

        Properties producer() {
            Properties properties = properties();
            properties.put("acks", "all");
            properties.put("linger.ms", "5");
            properties.put("delivery.timeout.ms", "180000");
            properties.put("request.timeout.ms", "5000");
            properties.put("retry.backoff.max.ms", "200");
            // With more, a batch that a former leader answers late comes back when its successor has forgotten it: brokers know a producer's last five
            // batches, the client bounds what is under way by connection, and is told OUT_OF_ORDER_SEQUENCE_NUMBER until it gives up.
            properties.put("max.in.flight.requests.per.connection", "1");
            return properties;
        }

        @Override
        public void run() {
            try (KafkaProducer<String, String> producer = new KafkaProducer<>(producer(), new StringSerializer(), new StringSerializer())) {
                long begun = System.nanoTime();
                long total = 0;
                while (!ending) {
                    int partition = (int) (total % written.size());
                    send(producer, partition);
                    total++;
                    long due = begun + total * 1_000_000_000L / rate;
                    long left = due - System.nanoTime();
                    if (left > 0) {
                        Thread.sleep(left / 1_000_000, (int) (left % 1_000_000));
                    }
                }
                producer.flush();
            } catch (Exception error) {
                trouble = error.toString();
            }
        }

        private void send(KafkaProducer<String, String> producer, int partition) {
            Written of = written.get(partition);
            int number;
            synchronized (of) {
                number = of.sent++;
                of.offsets.add(-1L);
            }
            String value = String.format("%d %0100d", number, 0);
            producer.send(new ProducerRecord<>(topic, partition, null, value), (metadata, error) -> {
                synchronized (of) {
                    if (error != null) {
                        of.failed.set(number);
                        trouble = error.toString();
                        return;
                    }
                    of.offsets.set(number, metadata.offset());
                    long now = System.nanoTime();
                    of.longestGap = Math.max(of.longestGap, now - of.lastAck);
                    of.lastAck = now;
                }
                acked++;
            });
        }

        /** How much is acknowledged, and the longest time that a partition waited for an acknowledgement since the last pulse. */
        String pulse() {
            long longest = 0;
            for (Written of : written) {
                synchronized (of) {
                    longest = Math.max(longest, Math.max(of.longestGap, System.nanoTime() - of.lastAck));
                    of.longestGap = 0;
                }
            }
            return "acked=" + acked + " gap-ms=" + longest / 1_000_000;
        }

        String end() throws Exception {
            ending = true;
            join(200_000);
            if (isAlive()) {
                throw new IllegalStateException("the producer does not end: " + trouble);
            }
            int sent = written.stream().mapToInt(of -> of.sent).sum();
            int failed = written.stream().mapToInt(of -> of.failed.cardinality()).sum();
            return "sent=" + sent + " acked=" + acked + " failed=" + failed + (trouble == null ? "" : " trouble=" + trouble.replace(' ', '_'));
        }

        /** (partition, records) as they lie there, whole. */
        List<List<ConsumerRecord<String, String>>> read(String isolation) {
            Properties properties = properties();
            properties.put("isolation.level", isolation);
            List<List<ConsumerRecord<String, String>>> found = new ArrayList<>();
            written.forEach(of -> found.add(new ArrayList<>()));
            try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(properties, new StringDeserializer(), new StringDeserializer())) {
                var all = IntStream.range(0, written.size()).mapToObj(one -> new TopicPartition(topic, one)).toList();
                consumer.assign(all);
                consumer.seekToBeginning(all);
                var ends = consumer.endOffsets(all, Duration.ofSeconds(60));
                long until = System.nanoTime() + 180_000_000_000L;
                while (!all.stream().allMatch(one -> consumer.position(one) >= ends.get(one))) {
                    consumer.poll(Duration.ofMillis(200)).forEach(record -> found.get(record.partition()).add(record));
                    if (System.nanoTime() > until) {
                        throw new IllegalStateException("reading " + topic + " does not come to the end");
                    }
                }
            }
            return found;
        }

        String verify() throws Exception {
            long count = 0;
            int uncertain = 0;
            var found = read("read_uncommitted");
            for (int partition = 0; partition < written.size(); partition++) {
                Written of = written.get(partition);
                int next = 0;
                for (ConsumerRecord<String, String> record : found.get(partition)) {
                    int number = Integer.parseInt(record.value().substring(0, record.value().indexOf(' ')));
                    if (number < next || number >= of.sent) {
                        throw new IllegalStateException(topic + "-" + partition + " at " + record.offset() + ": " + number + " after " + (next - 1));
                    }
                    for (int missing = next; missing < number; missing++) {
                        absent(of, partition, missing);
                    }
                    long told = of.offsets.get(number);
                    if (told >= 0 && told != record.offset()) {
                        throw new IllegalStateException(topic + "-" + partition + ": " + number + " was acknowledged at " + told + " and lies at " + record.offset());
                    }
                    uncertain += told < 0 ? 1 : 0;
                    next = number + 1;
                    count++;
                }
                for (int missing = next; missing < of.sent; missing++) {
                    absent(of, partition, missing);
                }
            }
            return "records=" + count + " acked=" + acked + (uncertain > 0 ? " uncertain=" + uncertain : "");
        }

        private void absent(Written of, int partition, int number) {
            if (of.offsets.get(number) >= 0) {
                throw new IllegalStateException(topic + "-" + partition + ": " + number + " was acknowledged at " + of.offsets.get(number) + " and is not there");
            }
        }
    }

    /** Transactions of a few records, each fourth of them aborted: read_committed shows the others, whole and in order. */
    private static final class Transactions extends Load {
        private final List<Integer> committed = new ArrayList<>();
        private final List<Integer> inDoubt = new ArrayList<>();

        Transactions(String topic, int rate) throws Exception {
            super(topic, rate);
        }

        @Override
        public void run() {
            int number = 0;
            while (!ending) {
                Properties properties = producer();
                properties.put("transactional.id", "of-" + topic);
                properties.put("transaction.timeout.ms", "30000");
                properties.put("delivery.timeout.ms", "20000");
                properties.put("max.block.ms", "20000");
                try (KafkaProducer<String, String> producer = new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer())) {
                    patiently(producer::initTransactions);
                    while (!ending) {
                        number++;
                        attempt(producer, number);
                        Thread.sleep(1000 / rate);
                    }
                } catch (Exception error) {
                    trouble = error.toString();
                }
            }
        }

        private void attempt(KafkaProducer<String, String> producer, int number) throws Exception {
            producer.beginTransaction();
            try {
                for (int partition = 0; partition < written.size(); partition++) {
                    producer.send(new ProducerRecord<>(topic, partition, null, number + " "));
                }
                producer.flush();
                if (number % 4 == 0) {
                    patiently(producer::abortTransaction);
                    return;
                }
            } catch (KafkaException error) {
                patiently(producer::abortTransaction);
                return;
            }
            inDoubt.add(number);
            patiently(producer::commitTransaction);
            inDoubt.remove(Integer.valueOf(number));
            committed.add(number);
            acked++;
        }

        private static void patiently(Runnable step) {
            for (int tries = 0; ; tries++) {
                try {
                    step.run();
                    return;
                } catch (TimeoutException error) {
                    if (tries == 8) {
                        throw error;
                    }
                }
            }
        }

        @Override
        String pulse() {
            return "acked=" + acked;
        }

        @Override
        String end() throws Exception {
            ending = true;
            join(200_000);
            return "committed=" + committed.size() + " in-doubt=" + inDoubt.size() + (trouble == null ? "" : " trouble=" + trouble.replace(' ', '_'));
        }

        @Override
        String verify() {
            var found = read("read_committed");
            List<List<Integer>> numbers = found.stream()
                .map(records -> records.stream().map(record -> Integer.valueOf(record.value().trim())).toList()).toList();
            for (int partition = 0; partition < numbers.size(); partition++) {
                List<Integer> sure = numbers.get(partition).stream().filter(number -> !inDoubt.contains(number)).toList();
                if (!sure.equals(committed)) {
                    throw new IllegalStateException(topic + "-" + partition + " shows " + sure.size() + " transactions, not the " + committed.size() + " that were committed");
                }
                if (!numbers.get(partition).equals(numbers.get(0))) {
                    throw new IllegalStateException(topic + "-" + partition + " shows a transaction that partition 0 does not");
                }
            }
            return "transactions=" + committed.size();
        }
    }
}
