// Random logs, and what Apache Kafka's Cleaner makes of them.
//
//   java -cp <kafka-clients, -storage, -storage-api, -server-common 4.4.0 and what they need> CleanedLogs.java [SEED [LOGS]] > cleaned.txt
//
// A log begins with `log <segment.bytes> <index.interval.bytes>`. Each cleaning is one line
// `clean dirty=<first dirty> stable=<last stable> end=<log end> until=<first uncleanable> now=<ms> map=<bytes> retention=<delete.retention.ms>`,
// then `last <producer> <last data offset or -> <epoch>` per producer; `before <file> <modified ms> <hex>` for every file of the
// log but the active segment's indexes; `after <file> <hex>` for every file that is not the active segment's; and `done <clean up to>`.

import java.io.File;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Random;
import java.util.concurrent.ScheduledFuture;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.CleanerStats;
import org.apache.kafka.storage.internals.log.LastRecord;
import org.apache.kafka.storage.internals.log.LogCleanerManager;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

public class CleanedLogs {
    static final int RETENTION = 1000;
    static Random random = new Random(11);
    static final BrokerTopicStats stats = new BrokerTopicStats(false);
    static long now;
    static final Time TIME = (Time) Proxy.newProxyInstance(Time.class.getClassLoader(), new Class<?>[] {Time.class},
        (self, method, args) -> method.getName().equals("milliseconds") ? now : 0L);
    static final ScheduledFuture<?> NEVER = (ScheduledFuture<?>) Proxy.newProxyInstance(CleanedLogs.class.getClassLoader(),
        new Class<?>[] {ScheduledFuture.class}, (self, method, args) -> method.getReturnType() == boolean.class ? false : null);
    static final Scheduler SCHEDULER = (Scheduler) Proxy.newProxyInstance(Scheduler.class.getClassLoader(),
        new Class<?>[] {Scheduler.class}, (self, method, args) -> method.getReturnType() == ScheduledFuture.class ? NEVER : null);

    static UnifiedLog log;
    static File dir;
    static int keys;
    static short[] epochs;
    static int[] sequences;
    static boolean[] open;

    public static void main(String[] args) throws Exception {
        if (args.length > 0) random = new Random(Long.parseLong(args[0]));
        int logs = args.length > 1 ? Integer.parseInt(args[1]) : 12;
        for (int i = 0; i < logs; i++) one(i);
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    static void one(int number) throws Exception {
        File root = Files.createTempDirectory("cleaned").toFile();
        dir = new File(root, "t-0");
        dir.mkdirs();
        now = 1_000_000;
        keys = 1 + random.nextInt(25);
        epochs = new short[4];
        sequences = new int[4];
        open = new boolean[4];
        int segmentBytes = 300 + random.nextInt(2500);
        int interval = random.nextInt(400);
        if (random.nextInt(5) == 0) old(random.nextInt(2));
        Properties p = new Properties();
        p.put("message.timestamp.after.max.ms", String.valueOf(Long.MAX_VALUE));
        p.put("internal.segment.bytes", String.valueOf(segmentBytes));
        p.put("index.interval.bytes", String.valueOf(interval));
        p.put("delete.retention.ms", String.valueOf(RETENTION));
        if (random.nextInt(4) == 0) p.put("message.timestamp.type", "LogAppendTime");
        log = UnifiedLog.create(dir, new LogConfig(p), 0, 0, SCHEDULER, stats, TIME, 60_000,
            new ProducerStateManagerConfig(3000, false), 60_000, new LogDirFailureChannel(1), false, Optional.empty());
        System.out.println("log " + segmentBytes + " " + interval);
        long dirty = 0;
        int rounds = 1 + random.nextInt(4);
        for (int round = 0; round < rounds; round++) {
            int steps = 5 + random.nextInt(40);
            for (int i = 0; i < steps; i++) step();
            if (random.nextInt(4) != 0) log.roll();
            now += random.nextInt(3) == 0 ? RETENTION + random.nextInt(1000) : random.nextInt(200);
            log.removeExpiredProducers(now);
            dirty = clean(dirty);
        }
        log.close();
        for (File file : dir.listFiles()) file.delete();
        dir.delete();
        root.delete();
    }

    // A segment of the old formats, as brokers before 0.11 left them.
    static void old(int magic) throws Exception {
        ByteBuffer bytes = ByteBuffer.allocate(1 << 16);
        long offset = 0;
        for (int i = 0; i < 3 + random.nextInt(8); i++) {
            CompressionType[] types = {CompressionType.NONE, CompressionType.GZIP, CompressionType.SNAPPY};
            TimestampType type = magic == 1 && random.nextInt(4) == 0 ? TimestampType.LOG_APPEND_TIME : TimestampType.CREATE_TIME;
            if (magic == 0) type = TimestampType.NO_TIMESTAMP_TYPE;
            Compression compression = Compression.of(types[random.nextInt(3)]).build();
            MemoryRecordsBuilder b = MemoryRecords.builder(ByteBuffer.allocate(512), (byte) magic, compression, type, offset, now);
            int records = 1 + random.nextInt(4);
            for (int r = 0; r < records; r++) {
                b.appendWithOffset(offset, magic == 0 ? -1 : now + random.nextInt(50), key(), value());
                offset += 1 + random.nextInt(2);
            }
            bytes.put(b.build().buffer());
        }
        bytes.flip();
        byte[] all = new byte[bytes.remaining()];
        bytes.get(all);
        Files.write(new File(dir, "00000000000000000000.log").toPath(), all);
    }

    static byte[] key() {
        if (random.nextInt(30) == 0) return null;
        return ("key" + random.nextInt(keys)).getBytes();
    }

    static byte[] value() {
        if (random.nextInt(6) == 0) return null;
        byte[] value = new byte[random.nextInt(40)];
        if (random.nextBoolean()) random.nextBytes(value); else Arrays.fill(value, (byte) 'v');
        return value;
    }

    static void step() throws Exception {
        now += random.nextInt(20);
        int p = random.nextInt(4);
        if (p > 1 && open[p] && random.nextInt(3) == 0) {
            marker(p);
            return;
        }
        Compression compression = Compression.of(CompressionType.values()[random.nextInt(5)]).build();
        int records = 1 + random.nextInt(5);
        boolean txn = p > 1;
        MemoryRecordsBuilder b = p == 0
            ? MemoryRecords.builder(ByteBuffer.allocate(2048), (byte) 2, compression, TimestampType.CREATE_TIME, 0L)
            : MemoryRecords.builder(ByteBuffer.allocate(2048), (byte) 2, compression, TimestampType.CREATE_TIME, 0L, -1L, p,
                epochs[p], sequences[p], txn, -1);
        for (int i = 0; i < records; i++) {
            Header[] headers = new Header[random.nextInt(4) == 0 ? 1 + random.nextInt(2) : 0];
            for (int h = 0; h < headers.length; h++) headers[h] = new RecordHeader("h" + h, random.nextBoolean() ? null : new byte[] {1});
            byte[] key = key();
            byte[] value = value();
            b.append(now + random.nextInt(100) - 50, key, value, headers);
        }
        log.appendAsLeader(b.build(), random.nextInt(3) == 0 ? 1 : 0, AppendOrigin.CLIENT, RequestLocal.noCaching(), VerificationGuard.SENTINEL, (short) 0);
        sequences[p] += records;
        open[p] = txn;
        log.updateHighWatermark(log.logEndOffset());
    }

    static void marker(int p) throws Exception {
        boolean commit = random.nextBoolean();
        if (random.nextInt(4) == 0) {
            epochs[p]++;
            sequences[p] = 0;
        }
        MemoryRecords records = MemoryRecords.withEndTransactionMarker(now, p, epochs[p],
            new EndTransactionMarker(commit ? ControlRecordType.COMMIT : ControlRecordType.ABORT, 3));
        log.appendAsLeader(records, 0, AppendOrigin.COORDINATOR, RequestLocal.noCaching(), VerificationGuard.SENTINEL, (short) 0);
        open[p] = false;
        log.updateHighWatermark(log.logEndOffset());
    }

    static long clean(long dirty) throws Exception {
        Method cleanable = LogCleanerManager.class.getDeclaredMethod("cleanableOffsets", UnifiedLog.class, Optional.class, long.class);
        cleanable.setAccessible(true);
        Object offsets = cleanable.invoke(null, log, Optional.of(dirty), now);
        Method first = offsets.getClass().getDeclaredMethod("firstDirtyOffset");
        Method until = offsets.getClass().getDeclaredMethod("firstUncleanableDirtyOffset");
        first.setAccessible(true);
        until.setAccessible(true);
        LogToClean toClean = new LogToClean(log, (long) first.invoke(offsets), (long) until.invoke(offsets), false);
        if (toClean.cleanableBytes() == 0) return dirty;
        // Small maps are full before the log's end; too small a map would not hold one batch.
        int map = random.nextInt(3) == 0 ? 24 * (20 + random.nextInt(30)) : 1 << 14;
        log.flush(true);
        System.out.println("clean dirty=" + toClean.firstDirtyOffset() + " stable=" + log.lastStableOffset() + " end=" + log.logEndOffset()
            + " until=" + toClean.firstUncleanableOffset() + " bytes=" + toClean.cleanBytes() + "," + toClean.cleanableBytes()
            + " now=" + now + " map=" + map + " retention=" + RETENTION);
        for (Map.Entry<Long, LastRecord> last : log.lastRecordsOfActiveProducers().entrySet()) {
            String offset = last.getValue().lastDataOffset().isPresent() ? "" + last.getValue().lastDataOffset().getAsLong() : "-";
            System.out.println("last " + last.getKey() + " " + offset + " " + last.getValue().producerEpoch());
        }
        File[] before = dir.listFiles();
        Arrays.sort(before);
        for (File file : before)
            if (file.getName().matches("\\d+\\.(log|txnindex|index|timeindex)") && !isActiveIndex(file))
                System.out.println("before " + file.getName() + " " + file.lastModified() + " " + hex(file));
        Cleaner cleaner = new Cleaner(0, new SkimpyOffsetMap(map), 4096, 1 << 20, 0.9,
            new Throttler(Double.MAX_VALUE, 300, "cleaner-io", "bytes", Time.SYSTEM), TIME, partition -> { });
        Map.Entry<Long, CleanerStats> done = cleaner.doClean(toClean, now);
        for (LogSegment segment : log.logSegments()) {
            if (segment == log.activeSegment()) continue;
            System.out.println("after " + segment.log().file().getName() + " " + hex(segment.log().file()));
            File txn = segment.txnIndex().file();
            if (txn.exists() && txn.length() > 0) System.out.println("after " + txn.getName() + " " + hex(txn));
        }
        System.out.println("done " + done.getKey());
        for (File file : dir.listFiles()) if (file.getName().endsWith(".deleted")) file.delete();
        return done.getKey();
    }

    // Set aside in full length and written in part.
    static boolean isActiveIndex(File file) throws Exception {
        return file.getName().matches(".*\\.(index|timeindex)") && file.getName().startsWith(String.format("%020d", log.activeSegment().baseOffset()));
    }

    static String hex(File file) throws Exception {
        byte[] bytes = Files.readAllBytes(file.toPath());
        return bytes.length == 0 ? "-" : HexFormat.of().formatHex(bytes);
    }
}
