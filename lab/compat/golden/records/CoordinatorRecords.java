// Reads the records that core/coordinator's golden tests write with Apache Kafka's own serdes, writes them again, and compares the bytes.
//
// java CoordinatorRecords.java FILE…: lines of key and value in hex, `-` for a tombstone. Says how many of which kind were the same.

import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecordSerde;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.coordinator.share.ShareCoordinatorRecordSerde;
import org.apache.kafka.coordinator.transaction.generated.TransactionLogKey;
import org.apache.kafka.coordinator.transaction.generated.TransactionLogValue;

public class CoordinatorRecords {
    static final HexFormat HEX = HexFormat.of();

    public static void main(String[] files) throws Exception {
        boolean same = true;
        for (String file : files) {
            Map<Short, Integer> kinds = new TreeMap<>();
            int number = 0;
            for (String line : Files.readAllLines(Path.of(file))) {
                number++;
                String[] words = line.split(" ");
                byte[] key = HEX.parseHex(words[0]);
                byte[] value = words[1].equals("-") ? null : HEX.parseHex(words[1]);
                byte[][] again = again(Path.of(file).getFileName().toString(), key, value);
                kinds.merge(ByteBuffer.wrap(key).getShort(), 1, Integer::sum);
                if (!Arrays.equals(key, again[0]) || !Arrays.equals(value, again[1])) {
                    same = false;
                    System.out.println(file + ":" + number + ": Kafka writes " + told(again[0]) + " " + told(again[1]));
                }
            }
            System.out.println(file + ": " + number + " records; by type " + kinds);
        }
        if (!same) System.exit(1);
    }

    static String told(byte[] bytes) {
        return bytes == null ? "-" : HEX.formatHex(bytes);
    }

    /** Key and value as Kafka writes what it has read. */
    static byte[][] again(String file, byte[] key, byte[] value) {
        if (file.startsWith("transactions")) return transaction(key, value);
        CoordinatorRecordSerde serde = file.startsWith("share_state") ? new ShareCoordinatorRecordSerde() : new GroupCoordinatorRecordSerde();
        CoordinatorRecord record = serde.deserialize(ByteBuffer.wrap(key), value == null ? null : ByteBuffer.wrap(value));
        return new byte[][] {serde.serializeKey(record), serde.serializeValue(record)};
    }

    static byte[][] transaction(byte[] key, byte[] value) {
        ByteBuffer in = ByteBuffer.wrap(key);
        short version = in.getShort();
        byte[] keyAgain = MessageUtil.toVersionPrefixedBytes(version, new TransactionLogKey(new ByteBufferAccessor(in), version));
        if (value == null) return new byte[][] {keyAgain, null};
        in = ByteBuffer.wrap(value);
        version = in.getShort();
        return new byte[][] {keyAgain, MessageUtil.toVersionPrefixedBytes(version, new TransactionLogValue(new ByteBufferAccessor(in), version))};
    }
}
