import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Enumeration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;

/** One release of Apache Kafka behind a class loader of its own: its messages' specifications and classes. */
final class Release {
    private static final String PROTOCOL = "org.apache.kafka.common.protocol.";

    final URLClassLoader loader;
    private final Map<String, JsonNode> specs = new TreeMap<>();
    private final Map<String, String> classes = new TreeMap<>();
    private final Class<?> accessor;
    private final Class<?> cache;
    private final Class<?> readable;
    private final Class<?> writable;

    Release(Path folder) throws Exception {
        List<URL> urls = new ArrayList<>();
        ObjectMapper mapper = new ObjectMapper().enable(JsonParser.Feature.ALLOW_COMMENTS);
        try (var jars = Files.list(folder)) {
            for (Path jar : (Iterable<Path>) jars.sorted()::iterator) {
                urls.add(jar.toUri().toURL());
                scan(jar, mapper);
            }
        }
        loader = new URLClassLoader(urls.toArray(new URL[0]), Release.class.getClassLoader());
        accessor = loader.loadClass(PROTOCOL + "ByteBufferAccessor");
        cache = loader.loadClass(PROTOCOL + "ObjectSerializationCache");
        readable = loader.loadClass(PROTOCOL + "Readable");
        writable = loader.loadClass(PROTOCOL + "Writable");
    }

    private void scan(Path jar, ObjectMapper mapper) throws IOException {
        try (JarFile file = new JarFile(jar.toFile())) {
            for (Enumeration<JarEntry> entries = file.entries(); entries.hasMoreElements(); ) {
                JarEntry entry = entries.nextElement();
                String name = entry.getName();
                if (name.endsWith(".json")) {
                    try (InputStream in = file.getInputStream(entry)) {
                        JsonNode spec = mapper.readTree(in);
                        if (spec.has("validVersions") && !spec.get("validVersions").asText().equals("none")) {
                            specs.put(spec.get("name").asText(), spec);
                        }
                    }
                } else if (name.endsWith(".class") && !name.contains("$")) {
                    String path = name.substring(0, name.length() - ".class".length()).replace('/', '.');
                    if (path.contains(".message.") || path.contains(".generated.") || path.contains(".metadata.")) {
                        classes.putIfAbsent(path.substring(path.lastIndexOf('.') + 1), path);
                    }
                }
            }
        }
    }

    Set<String> names() {
        return specs.keySet();
    }

    JsonNode spec(String name) {
        return specs.get(name);
    }

    private short edge(String name, boolean highest) {
        String[] edges = spec(name).get("validVersions").asText().split("-");
        return Short.parseShort(edges[highest ? edges.length - 1 : 0]);
    }

    short lowest(String name) {
        return edge(name, false);
    }

    short highest(String name) {
        return edge(name, true);
    }

    /** The class of a message, whose name has "Data" behind it for what goes over the wire. */
    String className(String name) {
        String type = spec(name).get("type").asText();
        boolean wire = type.equals("request") || type.equals("response") || type.equals("header");
        return classes.get(wire ? name + "Data" : name);
    }

    Object newMessage(String name) throws Exception {
        return newObject(loader.loadClass(className(name)));
    }

    Object newPart(String message, String part) throws Exception {
        return newObject(loader.loadClass(className(message) + "$" + part));
    }

    static Object newObject(Class<?> kind) throws Exception {
        return kind.getConstructor().newInstance();
    }

    byte[] write(Object message, short version) {
        try {
            Object sizes = newObject(cache);
            Method size = message.getClass().getMethod("size", cache, short.class);
            int length = (int) size.invoke(message, sizes, version);
            ByteBuffer buffer = ByteBuffer.allocate(length);
            Object out = accessor.getConstructor(ByteBuffer.class).newInstance(buffer);
            message.getClass().getMethod("write", writable, cache, short.class).invoke(message, out, sizes, version);
            if (buffer.hasRemaining()) {
                throw new IllegalStateException("announced " + length + ", left " + buffer.remaining());
            }
            return buffer.array();
        } catch (InvocationTargetException error) {
            throw new IllegalArgumentException(error.getCause().toString());
        } catch (IllegalStateException error) {
            throw error;
        } catch (Exception error) {
            throw new AssertionError(error);
        }
    }

    Object read(String name, byte[] bytes, short version) throws Exception {
        Object message = newMessage(name);
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        Object in = accessor.getConstructor(ByteBuffer.class).newInstance(buffer);
        try {
            message.getClass().getMethod("read", readable, short.class).invoke(message, in, version);
        } catch (InvocationTargetException error) {
            throw new IllegalArgumentException(error.getCause().toString());
        }
        if (buffer.hasRemaining()) {
            throw new IllegalArgumentException(buffer.remaining() + " bytes left over");
        }
        return message;
    }

    Object uuid(long high, long low) throws Exception {
        return loader.loadClass("org.apache.kafka.common.Uuid").getConstructor(long.class, long.class).newInstance(high, low);
    }

    Object taggedField(int tag, byte[] data) throws Exception {
        return loader.loadClass(PROTOCOL + "types.RawTaggedField").getConstructor(int.class, byte[].class).newInstance(tag, data);
    }

    /** Bytes as the record set that a message holds; its package moved between the releases. */
    Object records(byte[] bytes) throws Exception {
        Class<?> kind = readable.getMethod("readRecords", int.class).getReturnType();
        return kind.getMethod("readableRecords", ByteBuffer.class).invoke(null, ByteBuffer.wrap(bytes));
    }
}
