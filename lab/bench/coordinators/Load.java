// Transactions, read-process-write, share groups and a member that is watched: load from Apache's Java client, as its users have it.
//
// `fill BOOTSTRAP TOPIC RECORDS BYTES`
// `transactions BOOTSTRAP TOPIC PRODUCERS RECORDS PARTITIONS SECONDS WARM_UP`: each producer a thread; RECORDS of 100 bytes over PARTITIONS in each transaction.
// `process BOOTSTRAP IN OUT GROUP SECONDS WARM_UP RATE`: read, send on, commit both in one transaction, from as many records as a poll brings (500).
//     RATE 0: IN is full and is read again and again, as fast as it goes. Else so many records a second of 1,000 bytes are sent to IN, and the latency
//     is that from send to a read_committed consumer of OUT.
// `share BOOTSTRAP TOPIC GROUP CONSUMERS RECORDS`: share consumers, a thread each, until all records were acknowledged, each delivered once.
// `watch BOOTSTRAP TOPIC GROUP`: one member of a KIP-848 group and a record each 5 ms for it, until standard input ends.
//
// A transaction is flushed before it is committed, as Kafka Streams does: the client looks whether batches are under way before it takes the next
// request from its queue, and where a thread rests between the two, EndTxn overtakes what was sent before it (client 4.4.0; INVALID_TXN_STATE).
//
// Each prints one line of JSON. What is counted lies between the end of the warm-up and the end; transactions count when commitTransaction has returned.

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class Load {
    static final long SECOND = 1_000_000_000L;

    public static void main(String[] a) throws Exception {
        // What goes wrong in one thread ends all of them.
        Thread.setDefaultUncaughtExceptionHandler((thread, error) -> {
            error.printStackTrace();
            Runtime.getRuntime().halt(1);
        });
        String told;
        switch (a[0]) {
            case "fill": told = fill(a[1], a[2], number(a[3]), number(a[4])); break;
            case "transactions": told = transactions(a[1], a[2], number(a[3]), number(a[4]), number(a[5]), seconds(a[6]), seconds(a[7])); break;
            case "process": told = process(a[1], a[2], a[3], a[4], seconds(a[5]), seconds(a[6]), number(a[7])); break;
            case "share": told = share(a[1], a[2], a[3], number(a[4]), number(a[5])); break;
            case "watch": told = watch(a[1], a[2], a[3]); break;
            default: throw new IllegalArgumentException(a[0]);
        }
        System.out.println(told);
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    static int number(String word) { return Integer.parseInt(word); }
    static long seconds(String word) { return (long) (Double.parseDouble(word) * SECOND); }

    static KafkaProducer<byte[], byte[]> producer(String bootstrap, String... more) {
        return new KafkaProducer<>(settings(bootstrap, more), new ByteArraySerializer(), new ByteArraySerializer());
    }

    static KafkaConsumer<byte[], byte[]> consumer(String bootstrap, String... more) {
        return new KafkaConsumer<>(settings(bootstrap, more), new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    static Properties settings(String bootstrap, String... more) {
        Properties found = new Properties();
        found.put("bootstrap.servers", bootstrap);
        for (int i = 0; i < more.length; i += 2) found.put(more[i], more[i + 1]);
        return found;
    }

    /** What is measured: from the end of the warm-up, which begins with the first work that is done. */
    static class Span {
        final long warmUp, length, latest = System.nanoTime() + 60 * SECOND;
        volatile long from = Long.MAX_VALUE, until = Long.MAX_VALUE;

        Span(long warmUp, long length) {
            this.warmUp = warmUp;
            this.length = length;
        }

        synchronized void begin() {
            if (from != Long.MAX_VALUE) return;
            from = System.nanoTime() + warmUp;
            until = from + length;
        }

        boolean isOpen(long now) {
            if (until == Long.MAX_VALUE && now - latest > 0) throw new IllegalStateException("nothing was done within a minute");
            return until == Long.MAX_VALUE || now < until;
        }

        boolean counts(long now) { return from != Long.MAX_VALUE && now >= from && now < until; }
        double seconds() { return length / (double) SECOND; }
    }

    /** Latencies of one thread, ns, of what ended in the span. */
    static class Window {
        final Span span;
        long[] took = new long[1024];
        int count;

        Window(Span span) { this.span = span; }

        void ended(long begun, long now) {
            if (!span.counts(now)) return;
            if (count == took.length) took = Arrays.copyOf(took, 2 * count);
            took[count++] = now - begun;
        }
    }

    static String tails(List<Window> windows) {
        long[] all = windows.stream().flatMapToLong(one -> Arrays.stream(one.took, 0, one.count)).sorted().toArray();
        if (all.length == 0) return "\"p50_ms\": null";
        return String.format(Locale.ROOT, "\"p50_ms\": %.3f, \"p99_ms\": %.3f, \"p999_ms\": %.3f, \"max_ms\": %.3f", at(all, 0.5), at(all, 0.99), at(all, 0.999), all[all.length - 1] / 1e6);
    }

    static double at(long[] sorted, double share) { return sorted[Math.min((int) (sorted.length * share), sorted.length - 1)] / 1e6; }

    static <T> List<T> together(List<Callable<T>> tasks) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(tasks.size());
        List<Future<T>> begun = new ArrayList<>();
        for (Callable<T> task : tasks) begun.add(threads.submit(task));
        List<T> found = new ArrayList<>();
        for (Future<T> one : begun) found.add(one.get());
        threads.shutdown();
        return found;
    }

    static String fill(String bootstrap, String topic, int records, int bytes) throws Exception {
        try (KafkaProducer<byte[], byte[]> producer = producer(bootstrap, "acks", "all", "batch.size", "65536")) {
            byte[] value = new byte[bytes];
            new java.util.Random(1).nextBytes(value);
            for (int i = 0; i < records; i++) producer.send(new ProducerRecord<>(topic, value));
            producer.flush();
        }
        return "{\"records\": " + records + "}";
    }

    static String transactions(String bootstrap, String topic, int producers, int records, int partitions, long length, long warmUp) throws Exception {
        List<KafkaProducer<byte[], byte[]>> made = new ArrayList<>();
        for (int i = 0; i < producers; i++) made.add(producer(bootstrap, "transactional.id", topic + "-" + i));
        for (KafkaProducer<byte[], byte[]> one : made) one.initTransactions();
        Span span = new Span(warmUp, length);
        span.begin();
        List<Callable<Window>> tasks = new ArrayList<>();
        for (KafkaProducer<byte[], byte[]> producer : made) tasks.add(() -> {
            Window window = new Window(span);
            byte[] value = new byte[100];
            for (long begun = System.nanoTime(); span.isOpen(begun); begun = System.nanoTime()) {
                producer.beginTransaction();
                for (int i = 0; i < records; i++) producer.send(new ProducerRecord<>(topic, i % partitions, null, value));
                producer.flush();
                producer.commitTransaction();
                window.ended(begun, System.nanoTime());
            }
            return window;
        });
        List<Window> windows = together(tasks);
        long count = windows.stream().mapToLong(one -> one.count).sum();
        return String.format(Locale.ROOT, "{\"transactions\": %d, \"transactions_per_s\": %.1f, %s}", count, count / span.seconds(), tails(windows));
    }

    /** Reads, sends on and commits both, until the span is over; how many records were committed within it, and how many at all. */
    static long[] copy(String bootstrap, String in, String out, String group, Window window, boolean again) {
        long inWindow = 0, all = 0;
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(bootstrap, "group.id", group, "isolation.level", "read_committed", "enable.auto.commit", "false", "auto.offset.reset", "earliest");
             KafkaProducer<byte[], byte[]> producer = producer(bootstrap, "transactional.id", group)) {
            producer.initTransactions();
            consumer.subscribe(List.of(in));
            Map<TopicPartition, Long> ends = Map.of();
            while (window.span.isOpen(System.nanoTime())) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(100));
                if (again && ends.isEmpty() && !consumer.assignment().isEmpty()) ends = consumer.endOffsets(consumer.assignment());
                if (!records.isEmpty()) {
                    long begun = System.nanoTime();
                    producer.beginTransaction();
                    Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                    for (TopicPartition partition : records.partitions()) {
                        for (ConsumerRecord<byte[], byte[]> record : records.records(partition))
                            producer.send(new ProducerRecord<>(out, partition.partition(), null, record.value()));
                        offsets.put(partition, new OffsetAndMetadata(consumer.position(partition)));
                    }
                    producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
                    producer.flush();
                    producer.commitTransaction();
                    long now = System.nanoTime();
                    window.span.begin();
                    window.ended(begun, now);
                    all += records.count();
                    if (window.span.counts(now)) inWindow += records.count();
                }
                for (TopicPartition partition : again ? consumer.assignment() : Set.<TopicPartition>of())
                    if (ends.containsKey(partition) && consumer.position(partition) >= ends.get(partition)) consumer.seek(partition, 0);
            }
        }
        return new long[] {inWindow, all};
    }

    static String process(String bootstrap, String in, String out, String group, long length, long warmUp, int rate) throws Exception {
        Span span = new Span(warmUp, length);
        if (rate == 0) {
            Window window = new Window(span);
            long[] records = copy(bootstrap, in, out, group, window, true);
            return String.format(Locale.ROOT, "{\"records\": %d, \"records_per_s\": %.1f, \"transactions\": %d, %s}", records[1], records[0] / span.seconds(), window.count, tails(List.of(window)));
        }
        Window seen = new Window(span);
        AtomicLong sent = new AtomicLong(), received = new AtomicLong();
        List<Callable<Object>> tasks = new ArrayList<>();
        tasks.add(() -> { generate(bootstrap, in, span, rate, sent); return null; });
        tasks.add(() -> copy(bootstrap, in, out, group, new Window(span), false));
        tasks.add(() -> { receive(bootstrap, out, seen, received); return null; });
        together(tasks);
        return String.format(Locale.ROOT, "{\"records\": %d, \"records_per_s\": %.1f, \"sent\": %d, %s}", received.get(), seen.count / span.seconds(), sent.get(), tails(List.of(seen)));
    }

    static void generate(String bootstrap, String topic, Span span, int rate, AtomicLong sent) {
        try (KafkaProducer<byte[], byte[]> producer = producer(bootstrap, "acks", "all", "linger.ms", "0")) {
            long begun = System.nanoTime();
            for (long i = 0; span.isOpen(System.nanoTime()); i++) {
                for (long wait; (wait = begun + i * SECOND / rate - System.nanoTime()) > 0;) LockSupport.parkNanos(wait);
                producer.send(new ProducerRecord<>(topic, (int) (i % 4), null, ByteBuffer.allocate(1000).putLong(System.nanoTime()).array()));
                sent.incrementAndGet();
            }
        }
    }

    static void receive(String bootstrap, String topic, Window window, AtomicLong received) {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(bootstrap, "isolation.level", "read_committed", "auto.offset.reset", "earliest", "group.id", "unused", "enable.auto.commit", "false")) {
            List<TopicPartition> all = new ArrayList<>();
            for (int i = 0; i < 4; i++) all.add(new TopicPartition(topic, i));
            consumer.assign(all);
            consumer.seekToEnd(all);
            while (window.span.isOpen(System.nanoTime()))
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(50))) {
                    window.ended(ByteBuffer.wrap(record.value()).getLong(), System.nanoTime());
                    received.incrementAndGet();
                }
        }
    }

    static String share(String bootstrap, String topic, String group, int consumers, int records) throws Exception {
        try (Admin admin = Admin.create(settings(bootstrap))) {
            AlterConfigOp earliest = new AlterConfigOp(new ConfigEntry("share.auto.offset.reset", "earliest"), AlterConfigOp.OpType.SET);
            admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.GROUP, group), List.of(earliest))).all().get();
        }
        AtomicLong got = new AtomicLong(), first = new AtomicLong(), again = new AtomicLong();
        AtomicIntegerArray seen = new AtomicIntegerArray(records);
        List<Callable<Long>> tasks = new ArrayList<>();
        long deadline = System.nanoTime() + 120 * SECOND;
        for (int i = 0; i < consumers; i++) tasks.add(() -> {
            long last = 0;
            try (KafkaShareConsumer<byte[], byte[]> consumer = new KafkaShareConsumer<>(settings(bootstrap, "group.id", group), new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
                consumer.subscribe(List.of(topic));
                while (got.get() < records && System.nanoTime() < deadline) {
                    // What the poll before brought is accepted by this one.
                    int count = 0;
                    for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100)))
                        if (seen.compareAndSet((int) record.offset(), 0, 1)) count++; else again.incrementAndGet();
                    if (count > 0) {
                        last = System.nanoTime();
                        first.compareAndSet(0, last);
                        got.addAndGet(count);
                    }
                }
                // Else the consumer's end would release what it has polled last, and another one would get that once more.
                consumer.commitSync();
            }
            return last;
        });
        long last = together(tasks).stream().mapToLong(Long::longValue).max().orElse(0);
        if (got.get() < records) throw new IllegalStateException(got.get() + " of " + records + " records in two minutes");
        if (again.get() > 0) throw new IllegalStateException(again.get() + " records were delivered twice, though nobody failed");
        return String.format(Locale.ROOT, "{\"records\": %d, \"records_per_s\": %.1f}", got.get(), got.get() * (double) SECOND / Math.max(last - first.get(), 1));
    }

    static String watch(String bootstrap, String topic, String group) throws Exception {
        AtomicLong stop = new AtomicLong(), revoked = new AtomicLong();
        Thread sender = new Thread(() -> {
            try (KafkaProducer<byte[], byte[]> producer = producer(bootstrap, "acks", "all", "linger.ms", "0")) {
                while (true) {
                    producer.send(new ProducerRecord<>(topic, new byte[100]));
                    LockSupport.parkNanos(5_000_000);
                }
            }
        });
        sender.setDaemon(true);
        sender.start();
        AtomicLong over = new AtomicLong();
        Thread ended = new Thread(() -> {
            try {
                while (System.in.read() >= 0);
            } catch (java.io.IOException ignored) {
                // The rig is gone: the end as well.
            }
            over.set(1);
        });
        ended.setDaemon(true);
        ended.start();
        long longest = 0, before = 0, begun = 0, records = 0;
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(bootstrap, "group.id", group, "group.protocol", "consumer", "enable.auto.commit", "true", "auto.offset.reset", "latest")) {
            consumer.subscribe(List.of(topic), new ConsumerRebalanceListener() {
                public void onPartitionsRevoked(Collection<TopicPartition> lost) { if (!lost.isEmpty()) revoked.set(System.nanoTime()); }
                public void onPartitionsLost(Collection<TopicPartition> lost) { onPartitionsRevoked(lost); }
                public void onPartitionsAssigned(Collection<TopicPartition> given) {
                    long from = revoked.getAndSet(0);
                    if (from != 0) stop.accumulateAndGet(System.nanoTime() - from, Math::max);
                }
            });
            while (over.get() == 0) {
                int count = consumer.poll(Duration.ofMillis(100)).count();
                long now = System.nanoTime();
                if (count == 0) continue;
                if (begun == 0) {
                    begun = now;
                } else if (now - begun > 2 * SECOND) {
                    // The first two seconds are its compiler's.
                    if (records == 0) System.out.println("{\"watching\": true}");
                    if (records > 0) longest = Math.max(longest, now - before);
                    records += count;
                }
                before = now;
            }
            long from = revoked.get();
            if (from != 0) stop.accumulateAndGet(System.nanoTime() - from, Math::max);
        }
        return String.format(Locale.ROOT, "{\"stop_ms\": %.3f, \"gap_ms\": %.1f, \"watched_records\": %d}", stop.get() / 1e6, longest / 1e6, records);
    }
}
