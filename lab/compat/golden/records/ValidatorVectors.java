// What Apache Kafka's LogValidator makes of random batches and old message sets: taken (and as what), or refused (with which
// code, naming which records).
//
//   java -cp <kafka-clients, kafka-storage, kafka-server-common 4.4.0 and the compression jars> ValidatorVectors.java [SEED] > verdicts.txt
//
// Each case is a line `case <rules as key=value> <hex>`, then `refused <code> <indexes>` or `taken <header>` and a line per record
// as in RecordVectors.java. Rules: `type` and `target` are the topic's timestamp type and compression, `before` and `after`
// its timestamp limits, `record` its max.decompressed.message.bytes.

import java.io.ByteArrayOutputStream;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import java.util.stream.Collectors;
import java.util.zip.CRC32;
import java.util.zip.CRC32C;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.internals.BufferSupplier;
import org.apache.kafka.common.utils.internals.PrimitiveRef;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogValidator;
import org.apache.kafka.storage.internals.log.RecordValidationException;

public class ValidatorVectors {
    static final long NOW = 1_700_000_000_000L;
    static Random random = new Random(44);
    // Coordinators do not lie about what they built; clients may.
    static AppendOrigin origin;
    static final Time TIME = (Time) Proxy.newProxyInstance(Time.class.getClassLoader(), new Class<?>[] {Time.class},
        (self, method, args) -> method.getName().equals("milliseconds") ? NOW : 0L);

    public static void main(String[] args) throws Exception {
        if (args.length > 0) random = new Random(Long.parseLong(args[0]));
        for (int i = 0; i < 600; i++) one();
    }

    static <T> T pick(T[] of) {
        return of[random.nextInt(of.length)];
    }

    static boolean chance(int percent) {
        return random.nextInt(100) < percent;
    }

    static byte[] input() throws Exception {
        byte magic = (byte) (chance(60) ? 2 : random.nextInt(2));
        byte[] first = batch(magic);
        if (!chance(12)) return first;
        byte[] second = batch((byte) (chance(70) ? magic : random.nextInt(3)));
        ByteArrayOutputStream both = new ByteArrayOutputStream();
        both.write(first);
        both.write(second);
        return both.toByteArray();
    }

    static byte[] batch(byte magic) {
        if (magic == 2 && chance(6)) {
            ByteBuffer buffer = ByteBuffer.allocate(256);
            MemoryRecords.writeEndTransactionalMarker(buffer, 0L, NOW, 9, 4711L, (short) 5,
                new EndTransactionMarker(ControlRecordType.COMMIT, 13));
            buffer.flip();
            return bytes(buffer);
        }
        CompressionType codec = pick(CompressionType.values());
        if (magic < 2 && codec == CompressionType.ZSTD) codec = CompressionType.NONE;
        TimestampType type = magic > 0 && chance(8) ? TimestampType.LOG_APPEND_TIME : TimestampType.CREATE_TIME;
        boolean producer = magic == 2 && chance(30);
        MemoryRecordsBuilder b = MemoryRecords.builder(ByteBuffer.allocate(512), magic, Compression.of(codec).build(), type, 0L,
            chance(50) ? -1L : NOW, producer ? 9 : -1, (short) (producer ? 3 : -1), producer ? 17 : -1, producer && chance(50), -1);
        int count = 1 + random.nextInt(4);
        for (int i = 0; i < count; i++) {
            byte[] key = chance(15) ? null : ("k" + random.nextInt(100)).getBytes();
            byte[] value = chance(10) ? null : new byte[random.nextInt(60)];
            long[] dates = {NOW, NOW, NOW, NOW - 10, NOW + 10, NOW + 101, NOW - 101, -1};
            long date = dates[random.nextInt(dates.length)];
            Header[] headers = magic == 2 && chance(20) ? new Header[] {new RecordHeader("h", "x".getBytes())} : new Header[0];
            b.append(date, key, value, headers);
        }
        byte[] bytes = bytes(b.build().buffer());
        return magic == 2 && origin == AppendOrigin.CLIENT && chance(30) ? lie(bytes) : bytes;
    }

    // Says something else in the header than what is so.
    static byte[] lie(byte[] bytes) {
        ByteBuffer b = ByteBuffer.wrap(bytes);
        switch (random.nextInt(6)) {
            case 0 -> b.putInt(23, b.getInt(23) + random.nextInt(3) - 1);
            case 1 -> b.putInt(57, b.getInt(57) + random.nextInt(3) - 1);
            case 2 -> {
                int by = random.nextInt(3) - 1;
                b.putInt(23, b.getInt(23) + by);
                b.putInt(57, b.getInt(57) + by);
            }
            case 3 -> b.putShort(21, (short) (b.getShort(21) ^ (chance(50) ? 0x08 : 0x20)));
            case 4 -> b.putInt(53, -1);
            default -> b.putLong(35, chance(50) ? -1 : NOW + 1_000_000);
        }
        CRC32C crc = new CRC32C();
        crc.update(bytes, 21, bytes.length - 21);
        b.putInt(17, (int) crc.getValue());
        return bytes;
    }

    static void one() throws Exception {
        origin = chance(85) ? AppendOrigin.CLIENT : AppendOrigin.COORDINATOR;
        byte[] input = input();
        CompressionType source = CompressionType.NONE;
        try {
            for (MutableRecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(input)).batches())
                if (batch.compressionType() != CompressionType.NONE) source = batch.compressionType();
        } catch (RuntimeException e) {
            return;
        }
        boolean producers = chance(60);
        CompressionType target = producers ? source : pick(CompressionType.values());
        boolean compacted = chance(25);
        TimestampType type = chance(75) ? TimestampType.CREATE_TIME : TimestampType.LOG_APPEND_TIME;
        long before = chance(60) ? Long.MAX_VALUE : 100;
        long after = chance(60) ? 3_600_000 : 100;
        int recordMax = chance(85) ? Integer.MAX_VALUE - 8 : 30;
        System.out.println("case origin=" + origin.name().toLowerCase() + " type="
            + (type == TimestampType.CREATE_TIME ? "create" : "append") + " target=" + (producers ? "producer" : target.name)
            + " compacted=" + compacted + " before=" + before + " after=" + after + " record=" + recordMax + " "
            + HexFormat.of().formatHex(input));
        LogValidator.MetricsRecorder metrics = (LogValidator.MetricsRecorder) Proxy.newProxyInstance(
            LogValidator.class.getClassLoader(), new Class<?>[] {LogValidator.MetricsRecorder.class}, (s, m, a) -> null);
        try {
            LogValidator validator = new LogValidator(MemoryRecords.readableRecords(ByteBuffer.wrap(input)),
                new TopicPartition("t", 0), TIME, source, Compression.of(target).build(), compacted, (byte) 2, type, before,
                after, 9, origin, recordMax);
            LogValidator.ValidationResult result = validator.validateMessagesAndAssignOffsets(
                PrimitiveRef.ofLong(0), metrics, BufferSupplier.NO_CACHING);
            for (MutableRecordBatch batch : result.validatedRecords().batches()) {
                System.out.println("taken codec=" + batch.compressionType().name + " type="
                    + (batch.timestampType() == TimestampType.CREATE_TIME ? "create" : "append") + " max=" + batch.maxTimestamp()
                    + " p=" + batch.producerId() + " e=" + batch.producerEpoch() + " seq=" + batch.baseSequence() + " txn="
                    + batch.isTransactional() + " control=" + batch.isControlBatch() + " offsets=" + (batch.lastOffset() + 1));
                for (Record r : batch) {
                    List<String> headers = new ArrayList<>();
                    for (Header h : r.headers()) headers.add(h.key() + "=" + field(ByteBuffer.wrap(h.value())));
                    System.out.println("record " + r.offset() + " " + r.timestamp() + " " + field(r.key()) + " " + field(r.value())
                        + " " + String.join(",", headers));
                }
            }
        } catch (RecordValidationException e) {
            System.out.println("refused " + Errors.forException(e.invalidException()) + " " + e.recordErrors().stream()
                .map(error -> String.valueOf(error.batchIndex)).collect(Collectors.joining(",")));
        } catch (RuntimeException e) {
            System.out.println("refused " + Errors.forException(e) + " ");
            if (Errors.forException(e) == Errors.UNKNOWN_SERVER_ERROR) System.err.println(e);
        }
    }

    static byte[] bytes(ByteBuffer buffer) {
        byte[] raw = new byte[buffer.remaining()];
        buffer.duplicate().get(raw);
        return raw;
    }

    static String field(ByteBuffer bytes) {
        if (bytes == null) return "-";
        CRC32 crc = new CRC32();
        crc.update(bytes.duplicate());
        return bytes.remaining() + "/" + String.format("%08x", crc.getValue());
    }
}
