import com.fasterxml.jackson.databind.JsonNode;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Random;

/**
 * Fills a message with random values that its version can carry. Case 0 is left as it is born, case 1 has everything set,
 * case 2 everything null that may be; the others mix.
 */
final class Filler {
    private static final String[] LETTERS = {"a", "b", "Z", "0", "9", ".", "_", "-", "é", "日", "🙂"};

    private final Release release;
    private final Random random;
    private final short version;
    private final int number;
    private JsonNode spec;

    Filler(Release release, Random random, short version, int number) {
        this.release = release;
        this.random = random;
        this.version = version;
        this.number = number;
    }

    void fill(Object message, JsonNode spec, boolean flexible) throws Exception {
        this.spec = spec;
        if (number > 0) {
            fillPart(message, spec.get("fields"), flexible, 0);
        }
    }

    private void fillPart(Object part, JsonNode fields, boolean flexible, int depth) throws Exception {
        for (JsonNode field : fields) {
            if (!Versions.of(field).contains(version)) {
                continue;
            }
            // A record set is born null, even where it may not be.
            boolean must = field.get("type").asText().equals("records") && !nullable(field);
            boolean keep = !must && number > 2 && random.nextInt(5) == 0;
            if (!keep) {
                Field target = Dumper.field(part, field);
                target.set(part, value(target, part, field, flexible, depth));
            }
        }
        if (flexible && number > 1 && random.nextInt(4) == 0) {
            List<Object> unknown = unknownTaggedFields(part);
            unknown.add(release.taggedField(100 + random.nextInt(100), bytes(random.nextInt(5))));
            unknown.add(release.taggedField(70_000 + random.nextInt(100), bytes(random.nextInt(200))));
        }
    }

    private boolean nullable(JsonNode field) {
        return Versions.parse(field.path("nullableVersions").asText("none")).contains(version);
    }

    @SuppressWarnings("unchecked")
    static List<Object> unknownTaggedFields(Object part) throws Exception {
        return (List<Object>) part.getClass().getMethod("unknownTaggedFields").invoke(part);
    }

    private Object value(Field target, Object part, JsonNode field, boolean flexible, int depth) throws Exception {
        if (nullable(field) && (number == 2 || number > 2 && random.nextInt(3) == 0)) {
            return null;
        }
        String type = field.get("type").asText();
        if (!type.startsWith("[]")) {
            return single(type, target.getType(), field, flexible, depth);
        }
        @SuppressWarnings("unchecked")
        Collection<Object> elements =
                target.getType() == List.class ? new ArrayList<>() : (Collection<Object>) Release.newObject(target.getType());
        int count = number == 1 ? 1 + random.nextInt(2) : random.nextInt(depth < 2 ? 4 : 3);
        for (int index = 0; index < count; index++) {
            elements.add(single(type.substring(2), null, field, flexible, depth));
        }
        return elements;
    }

    private Object single(String type, Class<?> target, JsonNode field, boolean flexible, int depth) throws Exception {
        switch (type) {
            case "bool":
                return number == 1 || random.nextBoolean();
            case "int8":
                return (byte) integer(8);
            case "int16":
                return (short) integer(16);
            case "uint16":
                return (int) integer(16) & 0xffff;
            case "int32":
                return (int) integer(32);
            case "uint32":
                return integer(32) & 0xffffffffL;
            case "int64":
                return integer(64);
            case "float64":
                return random.nextInt(4000) / 16.0 - 100;
            case "string":
                return string();
            case "uuid":
                return release.uuid(random.nextLong(), random.nextLong());
            case "bytes":
                byte[] bytes = bytes(length());
                return target == ByteBuffer.class ? ByteBuffer.wrap(bytes) : bytes;
            case "records":
                return release.records(bytes(length()));
            default:
                Object part = release.newPart(spec.get("name").asText(), type);
                fillPart(part, Pair.partFields(spec, field), flexible, depth + 1);
                return part;
        }
    }

    private long integer(int bits) {
        long all = random.nextLong() >> (64 - bits);
        return switch (random.nextInt(6)) {
            case 0 -> -1;
            case 1 -> 1;
            case 2 -> -1L << (bits - 1);
            case 3 -> ~(-1L << (bits - 1));
            case 4 -> all >> (bits / 2);
            default -> all;
        };
    }

    /** Mostly short; now and then around the lengths where a varint grows, and where our writer refers instead of copying. */
    private int length() {
        return switch (random.nextInt(24)) {
            case 0 -> 126 + random.nextInt(4);
            case 1 -> 1022 + random.nextInt(4);
            case 2 -> 0;
            default -> random.nextInt(8);
        };
    }

    private String string() {
        int length = random.nextInt(60) == 0 ? 124 + random.nextInt(5) : random.nextInt(6);
        StringBuilder text = new StringBuilder();
        while (text.length() < length) {
            text.append(LETTERS[random.nextInt(LETTERS.length)]);
        }
        return text.toString();
    }

    private byte[] bytes(int length) {
        byte[] bytes = new byte[length];
        // Few different bytes, so that the file packs well; all of them in the short ones.
        for (int index = 0; index < length; index++) {
            bytes[index] = (byte) (length < 8 ? random.nextInt() : random.nextInt(3) + 'x');
        }
        return bytes;
    }
}
