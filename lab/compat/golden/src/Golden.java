import com.fasterxml.jackson.databind.JsonNode;
import java.io.BufferedInputStream;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Random;
import java.util.TreeSet;
import java.util.zip.CRC32C;
import java.util.zip.GZIPInputStream;
import java.util.zip.GZIPOutputStream;

/**
 * Asks Apache's own generated classes what a message's bytes are, in every version, and whether bytes of ours are what
 * Apache would have written.
 *
 *   write SEED FILE      random messages of every kind in every version: bytes, how the value reads, and what becomes of
 *                        it in every other version
 *   check FILE           bytes that our codec wrote: Apache reads them and must write the same again
 *   show SEED NAME VERSION CASE   one case of `write` in full
 *
 * Versions that Kafka 4 still has are 4.4's, the older ones 3.9's. `core/messages/tests/golden.rs` is the other side;
 * `core/messages/tests/vectors/mod.rs` says how the file is laid out.
 */
public final class Golden {
    private static final int CASES = 5;

    public static void main(String[] args) throws Exception {
        Release now = new Release(Path.of(System.getProperty("jars"), "new"));
        Release old = new Release(Path.of(System.getProperty("jars"), "old"));
        Pair pair = new Pair(now, old);
        switch (args[0]) {
            case "write" -> write(pair, Long.parseLong(args[1]), Path.of(args[2]));
            case "check" -> check(pair, Path.of(args[1]));
            case "show" -> show(pair, Long.parseLong(args[1]), args[2], Short.parseShort(args[3]), Integer.parseInt(args[4]));
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    private static Random randomFor(long seed, String name, int version, int number) {
        return new Random(seed * 1_000_003 + name.hashCode() * 31L + version * 131L + number);
    }

    private static Object fill(Pair pair, Release release, long seed, String name, short version, int number)
            throws Exception {
        Object message = release.newMessage(name);
        new Filler(release, randomFor(seed, name, version, number), version, number)
                .fill(message, release.spec(name), pair.flexible(release, name, version));
        return message;
    }

    private static void write(Pair pair, long seed, Path file) throws Exception {
        int cases = 0;
        try (DataOutputStream out = new DataOutputStream(new GZIPOutputStream(Files.newOutputStream(file), 1 << 16))) {
            for (String name : new TreeSet<>(pair.now.names())) {
                if (!pair.isOurs(name)) {
                    continue;
                }
                for (short version = pair.lowest(name); version <= pair.highest(name); version++) {
                    for (int number = 0; number < CASES; number++) {
                        writeCase(pair, seed, name, version, number, out);
                        cases++;
                    }
                }
            }
        }
        System.out.println(cases + " messages written");
    }

    private static void writeCase(Pair pair, long seed, String name, short version, int number, DataOutputStream out)
            throws Exception {
        Release release = pair.releaseFor(name, version);
        byte[] bytes = release.write(fill(pair, release, seed, name, version, number), version);
        Object message = release.read(name, bytes, version);
        byte[] shown = new Dumper(pair, release).dump(name, message).getBytes(StandardCharsets.UTF_8);
        out.writeUTF(name);
        out.writeShort(version);
        out.writeByte(number);
        out.writeInt(shown.length);
        out.writeInt(crc(shown));
        out.writeInt(bytes.length);
        out.write(bytes);
        short first = release == pair.now ? release.lowest(name) : pair.lowest(name);
        short last = release == pair.now ? release.highest(name) : (short) (pair.now.lowest(name) - 1);
        out.writeByte(last - first);
        for (short other = first; other <= last; other++) {
            if (other == version) {
                continue;
            }
            byte[] there = null;
            try {
                there = release.write(message, other);
            } catch (RuntimeException refused) {
                // What the other version cannot carry: ours must refuse it too.
            }
            out.writeShort(other);
            out.writeInt(there == null ? -1 : there.length);
            out.writeInt(there == null ? 0 : crc(there));
        }
    }

    private static void check(Pair pair, Path file) throws Exception {
        int checked = 0;
        int wrong = 0;
        try (DataInputStream in = new DataInputStream(new BufferedInputStream(Files.newInputStream(file), 1 << 16))) {
            while (true) {
                String name;
                try {
                    name = in.readUTF();
                } catch (EOFException end) {
                    break;
                }
                short version = in.readShort();
                byte[] ours = in.readNBytes(in.readInt());
                String trouble = null;
                try {
                    Release release = pair.releaseFor(name, version);
                    byte[] theirs = release.write(release.read(name, ours, version), version);
                    if (!Arrays.equals(ours, theirs)) {
                        trouble = "Apache writes other bytes";
                    }
                } catch (RuntimeException refused) {
                    trouble = refused.toString();
                }
                if (trouble != null && wrong++ < 20) {
                    System.out.println(name + " v" + version + ": " + trouble);
                }
                checked++;
            }
        }
        System.out.println(checked + " messages of ours read and written by Apache, " + wrong + " differ");
        if (wrong > 0 || checked == 0) {
            System.exit(1);
        }
    }

    private static void show(Pair pair, long seed, String name, short version, int number) throws Exception {
        Release release = pair.releaseFor(name, version);
        byte[] bytes = release.write(fill(pair, release, seed, name, version, number), version);
        System.out.println(new Dumper(pair, release).dump(name, release.read(name, bytes, version)));
    }

    private static int crc(byte[] bytes) {
        CRC32C crc = new CRC32C();
        crc.update(bytes, 0, bytes.length);
        return (int) crc.getValue();
    }
}
