// Random lives of one partition in Apache Kafka's UnifiedLog: what producers send, in and out of order, in and out of
// transactions, and what the log makes of it.
//
//   java -cp <kafka-clients, -storage, -storage-api, -server-common 4.4.0 and what they need> LogLives.java [SEED] > lives.txt
//
// A life begins with `life`. Then each line is an operation, ` -> ` and its outcome (`write <base>`, `again <base>` for a retry,
// `refused <code>`, `ok`), and ` | ` and the state after it: log start, last stable offset, high watermark, log end, each
// producer as `<id>:<epoch>:<last sequence>:<coordinator epoch>:<open transaction's first offset>:<time>`, and what the transaction
// index holds, as `<id>[<first>,<last>]<last stable>`.

import java.io.File;
import java.lang.reflect.Proxy;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Properties;
import java.util.Random;
import java.util.TreeSet;
import java.util.concurrent.ScheduledFuture;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.message.AbortedTxn;
import org.apache.kafka.common.message.DescribeProducersResponseData.ProducerState;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogAppendInfo;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.LogStartOffsetIncrementReason;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

public class LogLives {
    static final int EXPIRATION = 100;
    static Random random = new Random(7);
    static final BrokerTopicStats stats = new BrokerTopicStats(false);
    static long now;
    static final Time TIME = (Time) Proxy.newProxyInstance(Time.class.getClassLoader(), new Class<?>[] {Time.class},
        (self, method, args) -> method.getName().equals("milliseconds") ? now : 0L);
    static final ScheduledFuture<?> NEVER = (ScheduledFuture<?>) Proxy.newProxyInstance(LogLives.class.getClassLoader(),
        new Class<?>[] {ScheduledFuture.class}, (self, method, args) -> method.getReturnType() == boolean.class ? false : null);
    static final Scheduler SCHEDULER = (Scheduler) Proxy.newProxyInstance(Scheduler.class.getClassLoader(),
        new Class<?>[] {Scheduler.class}, (self, method, args) -> method.getReturnType() == ScheduledFuture.class ? NEVER : null);

    static UnifiedLog log;
    static File dir;
    // What each producer would send next: epoch, sequence, open transaction.
    static short[] epochs;
    static int[] sequences;
    static boolean[] open;
    static List<int[]> sent;
    static boolean expired;

    public static void main(String[] args) throws Exception {
        if (args.length > 0) random = new Random(Long.parseLong(args[0]));
        for (int life = 0; life < 40; life++) {
            dir = new File(Files.createTempDirectory("life").toFile(), "t-0");
            dir.mkdirs();
            now = 1000;
            log = open(0, 0, true);
            epochs = new short[4];
            sequences = new int[4];
            open = new boolean[4];
            sent = new ArrayList<>();
            expired = false;
            if (random.nextInt(3) == 0) sequences[1] = Integer.MAX_VALUE - 5;
            System.out.println("life");
            for (int i = 0; i < 60; i++) step();
            log.close();
        }
        System.exit(0);
    }

    static UnifiedLog open(long start, long recovery, boolean clean) throws Exception {
        Properties p = new Properties();
        p.put("message.timestamp.after.max.ms", String.valueOf(Long.MAX_VALUE));
        return UnifiedLog.create(dir, new LogConfig(p), start, recovery, SCHEDULER, stats, TIME, 60_000,
            new ProducerStateManagerConfig(EXPIRATION, false), 60_000, new LogDirFailureChannel(1), clean, Optional.empty());
    }

    static void step() throws Exception {
        now += random.nextInt(5);
        int dice = random.nextInt(100);
        if (dice < 55) produce();
        else if (dice < 75) marker();
        else if (dice < 88) {
            long to = log.highWatermark() + random.nextInt((int) (log.logEndOffset() - log.highWatermark()) + 1);
            log.updateHighWatermark(to);
            say("hw to=" + to, "ok");
        } else if (dice < 92) delete();
        else if (dice < 95) {
            now += random.nextInt(EXPIRATION);
            expired = true;
            log.removeExpiredProducers(now);
            say("expire now=" + now + " silent=" + EXPIRATION, "ok");
        } else restart();
    }

    static void produce() throws Exception {
        int p = random.nextInt(4);
        boolean coordinator = p == 3;
        boolean txn = open[p] || random.nextInt(4) == 0;
        int records = 1 + random.nextInt(3);
        int seq = sequences[p];
        short epoch = epochs[p];
        int dice = random.nextInt(100);
        if (dice < 15 && !sent.isEmpty()) {
            // Again what was sent, however long ago.
            int[] old = sent.get(Math.max(0, sent.size() - 1 - random.nextInt(12)));
            p = old[0];
            epoch = (short) old[1];
            seq = old[2];
            records = old[3];
            txn = old[4] == 1;
            coordinator = p == 3;
        } else if (dice < 22) seq = plus(seq, 1 + random.nextInt(2));
        else if (dice < 26) seq = Math.max(0, seq - 1);
        else if (dice < 31) {
            epoch++;
            seq = random.nextInt(4) == 0 ? 1 : 0;
            txn = random.nextBoolean();
        } else if (dice < 34) epoch = (short) Math.max(0, epoch - 1);
        else if (dice < 37) txn = !txn;
        if (coordinator) {
            txn = true;
            seq = -1;
        }
        MemoryRecordsBuilder b = MemoryRecords.builder(java.nio.ByteBuffer.allocate(256), (byte) 2, Compression.NONE,
            TimestampType.CREATE_TIME, 0L, -1L, p, epoch, Math.max(seq, 0), txn, -1);
        for (int i = 0; i < records; i++) b.append(now, "k".getBytes(), "v".getBytes());
        java.nio.ByteBuffer bytes = b.build().buffer();
        if (seq < 0) {
            // The builder refuses what the group coordinator's own builder writes: a producer without a sequence.
            bytes.putInt(53, -1);
            java.util.zip.CRC32C crc = new java.util.zip.CRC32C();
            java.nio.ByteBuffer rest = bytes.duplicate();
            rest.position(21);
            crc.update(rest);
            bytes.putInt(17, (int) crc.getValue());
        }
        String said = "produce p=" + p + " e=" + epoch + " seq=" + seq + " records=" + records + " time=" + now
            + (txn ? " txn verified" : "") + (coordinator ? " coordinator" : "");
        if (append(said, MemoryRecords.readableRecords(bytes), coordinator ? AppendOrigin.COORDINATOR : AppendOrigin.CLIENT, (short) 0)) {
            sequences[p] = plus(seq, records);
            epochs[p] = epoch;
            open[p] = txn;
            sent.add(new int[] {p, epoch, seq, records, txn ? 1 : 0});
        }
    }

    static void marker() throws Exception {
        int p = random.nextInt(4);
        boolean commit = random.nextBoolean();
        short tv = (short) (random.nextInt(3) == 0 ? 2 : 0);
        short epoch = (short) (epochs[p] + (random.nextInt(10) < 3 ? 1 : 0) - (random.nextInt(10) == 0 ? 1 : 0));
        if (epoch < 0) epoch = 0;
        int coordinator = random.nextInt(10) == 0 ? 4 : 5 + random.nextInt(2) / 2 + sent.size() / 20;
        String said = (commit ? "commit" : "abort") + " p=" + p + " e=" + epoch + " coordinator=" + coordinator + " tv=" + tv
            + " time=" + now;
        MemoryRecords records = MemoryRecords.withEndTransactionMarker(now, p, epoch,
            new EndTransactionMarker(commit ? ControlRecordType.COMMIT : ControlRecordType.ABORT, coordinator));
        if (append(said, records, AppendOrigin.COORDINATOR, tv)) {
            if (epoch != epochs[p]) sequences[p] = 0;
            epochs[p] = epoch;
            open[p] = false;
        }
    }

    static boolean append(String said, MemoryRecords records, AppendOrigin origin, short tv) throws Exception {
        long end = log.logEndOffset();
        boolean written = false;
        String outcome;
        try {
            LogAppendInfo info = log.appendAsLeader(records, 0, origin, RequestLocal.noCaching(), VerificationGuard.SENTINEL, tv);
            written = info.firstOffset() >= end;
            outcome = (written ? "write " : "again ") + info.firstOffset();
        } catch (RuntimeException e) {
            outcome = "refused " + Errors.forException(e);
        }
        say(said, outcome);
        return written;
    }

    static void delete() throws Exception {
        long to = log.logStartOffset() + random.nextInt((int) (log.logEndOffset() - log.logStartOffset()) + 1);
        String outcome = "ok";
        try {
            log.maybeIncrementLogStartOffset(to, LogStartOffsetIncrementReason.ClientRecordDeletion);
        } catch (RuntimeException e) {
            outcome = "refused " + Errors.forException(e);
        }
        say("delete to=" + to, outcome);
    }

    static void restart() throws Exception {
        // Once records are deleted or producers have expired, what recovery sees depends on which snapshot files are left: not
        // the partition's matter.
        if (log.logStartOffset() == log.logEndOffset()) return;
        boolean clean = random.nextBoolean() || log.logStartOffset() > 0 || expired;
        long start = log.logStartOffset();
        long hw = log.highWatermark();
        long end = log.logEndOffset();
        if (clean) log.close();
        else log.flush(false);
        log = open(start, clean ? end : 0, clean);
        log.updateHighWatermark(hw);
        say("restart " + (clean ? "clean" : "unclean") + " now=" + now + " silent=" + EXPIRATION, "ok");
    }

    static void say(String said, String outcome) throws Exception {
        StringBuilder state = new StringBuilder();
        state.append(log.logStartOffset()).append(' ').append(log.lastStableOffset()).append(' ').append(log.highWatermark())
            .append(' ').append(log.logEndOffset());
        TreeSet<String> producers = new TreeSet<>();
        for (ProducerState s : log.activeProducers())
            producers.add(s.producerId() + ":" + s.producerEpoch() + ":" + s.lastSequence() + ":" + s.coordinatorEpoch() + ":"
                + s.currentTxnStartOffset() + ":" + s.lastTimestamp());
        for (String s : producers) state.append(' ').append(s);
        for (LogSegment segment : log.logSegments())
            for (AbortedTxn t : segment.txnIndex().allAbortedTxns())
                state.append(' ').append(t.producerId()).append('[').append(t.firstOffset()).append(',').append(t.lastOffset())
                    .append(']').append(t.lastStableOffset());
        System.out.println(said + " -> " + outcome + " | " + state);
    }

    static int plus(int sequence, int by) {
        return sequence > Integer.MAX_VALUE - by ? by - (Integer.MAX_VALUE - sequence) - 1 : sequence + by;
    }
}
