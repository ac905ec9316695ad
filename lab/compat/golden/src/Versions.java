import com.fasterxml.jackson.databind.JsonNode;

/** A range of versions as the specifications write it: "2+", "0-3", "4", "none". */
record Versions(int min, int max) {
    static Versions parse(String text) {
        if (text.equals("none")) {
            return new Versions(1, 0);
        }
        if (text.endsWith("+")) {
            return new Versions(Integer.parseInt(text.substring(0, text.length() - 1)), Short.MAX_VALUE);
        }
        String[] edges = text.split("-");
        return new Versions(Integer.parseInt(edges[0]), Integer.parseInt(edges[edges.length - 1]));
    }

    /** Where a field is there; a field that is only ever tagged may say just where it is tagged. */
    static Versions of(JsonNode field) {
        return parse(field.path("versions").asText(field.path("taggedVersions").asText("none")));
    }

    boolean contains(int version) {
        return min <= version && version <= max;
    }

    boolean meets(Versions other) {
        return Math.max(min, other.min) <= Math.min(max, other.max);
    }
}
