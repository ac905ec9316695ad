import com.fasterxml.jackson.databind.JsonNode;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.util.Collection;
import java.util.List;

/**
 * How a message reads, in the words in which Rust's `{:?}` would print the same value: every field by name, those too that
 * its version does not have.
 */
final class Dumper {
    private final Pair pair;
    private final Release release;
    private String message;

    Dumper(Pair pair, Release release) {
        this.pair = pair;
        this.release = release;
    }

    String dump(String name, Object value) throws Exception {
        message = name;
        StringBuilder out = new StringBuilder();
        JsonNode old = pair.old.spec(name);
        part(out, name, value, pair.now.spec(name).get("fields"), old == null ? null : old.get("fields"), null, null);
        return out.toString();
    }

    static Field field(Object part, JsonNode field) throws Exception {
        String name = field.get("name").asText();
        Field found = part.getClass().getDeclaredField(Character.toLowerCase(name.charAt(0)) + name.substring(1));
        found.setAccessible(true);
        return found;
    }

    /** `nowPart`, `oldPart`: what the struct is called in either release; null for the message itself. */
    private void part(StringBuilder out, String shownAs, Object value, JsonNode nowFields, JsonNode oldFields,
            String nowPart, String oldPart) throws Exception {
        out.append(shownAs).append(" { ");
        for (Pair.Field field : pair.merged(message, nowFields, oldFields)) {
            JsonNode here = release == pair.now ? field.now() : field.old();
            Object holder = value;
            if (here == null) {
                // A field that only the other release has is at its default there.
                Release other = release == pair.now ? pair.old : pair.now;
                here = field.any();
                String part = release == pair.now ? oldPart : nowPart;
                holder = part == null ? other.newMessage(message) : other.newPart(message, part);
            }
            out.append(snake(field.name())).append(": ");
            value(out, field(holder, here).get(holder), field, here);
            out.append(", ");
        }
        out.append("unknown_tagged_fields: [");
        String comma = "";
        for (Object unknown : Filler.unknownTaggedFields(value)) {
            out.append(comma).append("UnknownTaggedField { tag: ").append(unknown.getClass().getMethod("tag").invoke(unknown));
            out.append(", data: ");
            bytes(out, (byte[]) unknown.getClass().getMethod("data").invoke(unknown));
            out.append(" }");
            comma = ", ";
        }
        out.append("] }");
    }

    private static boolean neverNull(JsonNode field) {
        return field == null || field.path("nullableVersions").asText("none").equals("none");
    }

    private void value(StringBuilder out, Object value, Pair.Field field, JsonNode here) throws Exception {
        String type = here.get("type").asText();
        boolean option = !neverNull(field.now()) || !neverNull(field.old()) || type.equals("records");
        if (value == null) {
            out.append("None");
            return;
        }
        if (option) {
            out.append("Some(");
        }
        if (type.startsWith("[]")) {
            out.append('[');
            String comma = "";
            for (Object element : (Collection<?>) value) {
                out.append(comma);
                single(out, element, field);
                comma = ", ";
            }
            out.append(']');
        } else {
            single(out, value, field);
        }
        if (option) {
            out.append(')');
        }
    }

    private void single(StringBuilder out, Object value, Pair.Field field) throws Exception {
        if (value instanceof String text) {
            out.append('"').append(text).append('"');
        } else if (value instanceof byte[] raw) {
            bytes(out, raw);
        } else if (value instanceof ByteBuffer buffer) {
            bytes(out, rest(buffer));
        } else if (value instanceof Number || value instanceof Boolean || value.getClass().getSimpleName().equals("Uuid")) {
            out.append(value);
        } else if (value.getClass().getSimpleName().equals("MemoryRecords")) {
            bytes(out, rest((ByteBuffer) value.getClass().getMethod("buffer").invoke(value)));
        } else {
            JsonNode nowFields = Pair.partFields(pair.now.spec(message), field.now());
            JsonNode oldFields = Pair.partFields(pair.old.spec(message), field.old());
            String nowPart = field.now() == null ? null : Pair.partName(field.now());
            String oldPart = field.old() == null ? null : Pair.partName(field.old());
            part(out, nowPart == null ? oldPart : nowPart, value, nowFields, oldFields, nowPart, oldPart);
        }
    }

    private static byte[] rest(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return bytes;
    }

    private static void bytes(StringBuilder out, byte[] bytes) {
        out.append("b\"");
        for (byte one : bytes) {
            switch (one) {
                case '\n' -> out.append("\\n");
                case '\r' -> out.append("\\r");
                case '\t' -> out.append("\\t");
                case '\\' -> out.append("\\\\");
                case '"' -> out.append("\\\"");
                case 0 -> out.append("\\0");
                default -> {
                    if (one >= 0x20 && one < 0x7f) {
                        out.append((char) one);
                    } else {
                        out.append(String.format("\\x%02x", one & 0xff));
                    }
                }
            }
        }
        out.append('"');
    }

    static String snake(String name) {
        String text = name.replace("KRaft", "Kraft");
        StringBuilder out = new StringBuilder();
        for (int index = 0; index < text.length(); index++) {
            char letter = text.charAt(index);
            boolean afterLower = index > 0 && !Character.isUpperCase(text.charAt(index - 1));
            boolean beforeLower = index + 1 < text.length() && Character.isLowerCase(text.charAt(index + 1));
            if (Character.isUpperCase(letter) && index > 0 && (afterLower || beforeLower)) {
                out.append('_');
            }
            out.append(Character.toLowerCase(letter));
        }
        return out.toString();
    }
}
