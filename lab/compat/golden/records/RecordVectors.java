// Record batches and old message sets made by Apache Kafka's own classes, with what those classes read out of them.
//
//   java -cp <kafka-clients 3.9.2 and its compression jars> RecordVectors.java write > vectors.txt
//   java -cp <the same>                                     RecordVectors.java read < batches.txt
//
// 3.9 is the last Kafka that writes all three formats. A case is one line `case <name> <hex>` and then one line per record:
// `record <offset> <timestamp> <key> <value> <headers>`, where a field is `-` for null or `<length>/<CRC-32 in hex>`, and
// headers are `<key>=<field>`, separated by commas, or nothing. `read` takes `case` lines and prints them with their records.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.zip.CRC32;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.message.LeaderChangeMessage;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.ControlRecordType;
import org.apache.kafka.common.record.EndTransactionMarker;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.MutableRecordBatch;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.utils.Time;

public class RecordVectors {
    static final long NOW = 1_700_000_000_000L;

    public static void main(String[] args) throws Exception {
        if (args.length == 1 && args[0].equals("read")) {
            BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                String[] words = line.split(" ");
                if (words[0].equals("case")) print(words[1], ByteBuffer.wrap(HexFormat.of().parseHex(words[2])));
            }
            return;
        }
        for (byte magic = 0; magic <= 2; magic++) {
            for (CompressionType codec : CompressionType.values()) {
                if (magic < 2 && codec == CompressionType.ZSTD) continue;
                for (TimestampType type : new TimestampType[] {TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME}) {
                    if (magic == 0 && type == TimestampType.LOG_APPEND_TIME) continue;
                    String name = "v" + magic + "-" + codec.name + "-" + (type == TimestampType.CREATE_TIME ? "create" : "append");
                    print(name, small(magic, codec, type));
                }
                if (codec != CompressionType.NONE) print("v" + magic + "-" + codec.name + "-large", large(magic, codec));
            }
        }
        print("v2-idempotent", idempotent(false));
        print("v2-transactional", idempotent(true));
        print("v2-commit", marker(ControlRecordType.COMMIT));
        print("v2-abort", marker(ControlRecordType.ABORT));
        print("v2-leader-change", MemoryRecords.withLeaderChangeMessage(7, NOW, 3, ByteBuffer.allocate(256),
            new LeaderChangeMessage().setVersion((short) 0).setLeaderId(1)).buffer());
        // What 3.9 makes of stored batches for Fetch 0-1 (format 0) and 2-3 (format 1), from offset 41 on.
        for (CompressionType codec : new CompressionType[] {CompressionType.NONE, CompressionType.GZIP, CompressionType.LZ4}) {
            for (byte magic = 0; magic <= 1; magic++) {
                MemoryRecords stored = MemoryRecords.readableRecords(small((byte) 2, codec, TimestampType.CREATE_TIME));
                MemoryRecords down = stored.downConvert(magic, 41, Time.SYSTEM).records();
                print("down-v" + magic + "-" + codec.name, down.buffer());
            }
        }
    }

    static MemoryRecordsBuilder builder(byte magic, CompressionType codec, TimestampType type, boolean txn, long pid) {
        return MemoryRecords.builder(ByteBuffer.allocate(1024), magic, Compression.of(codec).build(), type, 40L, NOW,
            pid, (short) (pid < 0 ? -1 : 5), pid < 0 ? -1 : Integer.MAX_VALUE - 1, txn, 9);
    }

    static ByteBuffer small(byte magic, CompressionType codec, TimestampType type) {
        MemoryRecordsBuilder b = builder(magic, codec, type, false, -1);
        Header[] none = new Header[0];
        Header[] two = {new RecordHeader("trace", "id".getBytes()), new RecordHeader("", null)};
        b.append(NOW - 3, "k1".getBytes(), "value one".getBytes(), magic == 2 ? two : none);
        b.append(NOW + 5000, null, new byte[0], none);
        b.append(NOW - 70_000, new byte[0], null, none);
        b.append(-1L, "é".getBytes(StandardCharsets.UTF_8), "vier".getBytes(), none);
        return b.build().buffer();
    }

    static ByteBuffer large(byte magic, CompressionType codec) {
        MemoryRecordsBuilder b = builder(magic, codec, TimestampType.CREATE_TIME, false, -1);
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < 30_000; i++) text.append(i % 97).append(';');
        for (int i = 0; i < 3; i++) b.append(NOW + i, ("key" + i).getBytes(), text.substring(i).getBytes());
        return b.build().buffer();
    }

    static ByteBuffer idempotent(boolean txn) {
        MemoryRecordsBuilder b = builder((byte) 2, CompressionType.NONE, TimestampType.CREATE_TIME, txn, 4711);
        for (int i = 0; i < 4; i++) b.append(NOW + i, null, ("r" + i).getBytes());
        return b.build().buffer();
    }

    static ByteBuffer marker(ControlRecordType type) {
        ByteBuffer buffer = ByteBuffer.allocate(256);
        MemoryRecords.writeEndTransactionalMarker(buffer, 40L, NOW, 9, 4711L, (short) 5, new EndTransactionMarker(type, 13));
        buffer.flip();
        return buffer;
    }

    static void print(String name, ByteBuffer bytes) {
        byte[] raw = new byte[bytes.remaining()];
        bytes.duplicate().get(raw);
        System.out.println("case " + name + " " + HexFormat.of().formatHex(raw));
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(raw)).batches()) {
            batch.ensureValid();
            for (Record r : batch) {
                StringBuilder headers = new StringBuilder();
                for (Header h : r.headers()) {
                    if (headers.length() > 0) headers.append(',');
                    headers.append(h.key()).append('=').append(field(h.value() == null ? null : ByteBuffer.wrap(h.value())));
                }
                System.out.println("record " + r.offset() + " " + r.timestamp() + " " + field(r.key()) + " " + field(r.value())
                    + " " + headers);
            }
        }
    }

    static String field(ByteBuffer bytes) {
        if (bytes == null) return "-";
        CRC32 crc = new CRC32();
        crc.update(bytes.duplicate());
        return bytes.remaining() + "/" + String.format("%08x", crc.getValue());
    }
}
