import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Two releases seen as one protocol: versions that the newer one dropped are the older one's. */
final class Pair {
    final Release now;
    final Release old;

    Pair(Release now, Release old) {
        this.now = now;
        this.old = old;
    }

    /** Whether the newer release still has a class for it. */
    boolean isOurs(String name) {
        return now.className(name) != null;
    }

    /** Whether the older release has versions of this message that we keep and the newer one does not. */
    private boolean hasOlder(String name) {
        JsonNode spec = now.spec(name);
        // The early-access versions of the share APIs were never promised to anyone.
        boolean share = name.startsWith("ShareGroup") || name.startsWith("ShareFetch") || name.startsWith("ShareAck");
        return !share && old.names().contains(name) && spec.has("type") && old.lowest(name) < now.lowest(name);
    }

    short lowest(String name) {
        if (name.equals("RequestHeader")) {
            return 1;
        }
        return hasOlder(name) ? old.lowest(name) : now.lowest(name);
    }

    short highest(String name) {
        return now.highest(name);
    }

    Release releaseFor(String name, short version) {
        return version >= now.lowest(name) ? now : old;
    }

    boolean flexible(Release release, String name, short version) {
        return Versions.parse(release.spec(name).path("flexibleVersions").asText("none")).contains(version);
    }

    /** A field in either release. One of the two may be missing. */
    record Field(JsonNode now, JsonNode old) {
        JsonNode any() {
            return now != null ? now : old;
        }

        String name() {
            return any().get("name").asText();
        }
    }

    /** The fields of both releases in one order: the newer one's, with what only the older one has put behind what it followed. */
    List<Field> merged(String message, JsonNode nowFields, JsonNode oldFields) {
        Map<String, JsonNode> theirs = new LinkedHashMap<>();
        Map<String, JsonNode> ours = new LinkedHashMap<>();
        if (oldFields != null && hasOlder(message)) {
            oldFields.forEach(field -> theirs.put(field.get("name").asText(), field));
        }
        if (nowFields != null) {
            nowFields.forEach(field -> ours.put(field.get("name").asText(), field));
        }
        Versions kept = new Versions(lowest(message), (short) (now.lowest(message) - 1));
        Versions here = new Versions(now.lowest(message), Short.MAX_VALUE);
        ours.values().removeIf(field -> !Versions.of(field).meets(here) && !theirs.containsKey(field.get("name").asText()));
        List<String> order = new ArrayList<>(ours.keySet());
        String before = null;
        for (Map.Entry<String, JsonNode> entry : theirs.entrySet()) {
            if (!ours.containsKey(entry.getKey())) {
                if (!Versions.of(entry.getValue()).meets(kept)) {
                    continue;
                }
                order.add(before == null ? 0 : order.indexOf(before) + 1, entry.getKey());
            }
            before = entry.getKey();
        }
        return order.stream().map(name -> new Field(ours.get(name), theirs.get(name))).toList();
    }

    static JsonNode partFields(JsonNode spec, JsonNode field) {
        if (spec == null || field == null) {
            return null;
        }
        if (field.has("fields")) {
            return field.get("fields");
        }
        String part = partName(field);
        for (JsonNode shared : spec.path("commonStructs")) {
            if (shared.get("name").asText().equals(part)) {
                return shared.get("fields");
            }
        }
        return null;
    }

    static String partName(JsonNode field) {
        return field.get("type").asText().replace("[]", "");
    }
}
