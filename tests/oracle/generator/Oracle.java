import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import java.util.TreeSet;
import java.util.jar.JarFile;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.MessageSizeAccumulator;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.Schema;

/**
 * Prints what Kafka itself makes of its messages: for every generated message class of the given jars, at every
 * version, one line of JSON with a handful of instances, each as Kafka's bytes and as Kafka's JSON.
 *
 * <p>Arguments: the release, then the jars to search.
 */
public final class Oracle {
    private static final String CONVERTER = "JsonConverter";
    private static final ObjectMapper MAPPER = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String jar : Arrays.copyOfRange(arguments, 1, arguments.length)) {
            for (String name : messages(jar)) {
                Class<?> type = Class.forName(name);
                Schema[] schemas = (Schema[]) type.getField("SCHEMAS").get(null);
                for (short version = 0; version < schemas.length; version++) {
                    if (schemas[version] != null) {
                        ObjectNode line = line(type, schemas[version], version);
                        line.put("release", arguments[0]);
                        out.println(MAPPER.writeValueAsString(line));
                    }
                }
            }
        }
        out.flush();
    }

    /** The generated classes of a jar: those that have a converter to JSON beside them. */
    private static TreeSet<String> messages(String jar) throws Exception {
        TreeSet<String> names = new TreeSet<>();
        try (JarFile file = new JarFile(jar)) {
            file.stream()
                    .map(entry -> entry.getName())
                    .filter(entry -> entry.endsWith(CONVERTER + ".class") && !entry.contains("$"))
                    .map(entry -> entry.substring(0, entry.length() - (CONVERTER + ".class").length()))
                    .forEach(entry -> names.add(entry.replace('/', '.')));
        }
        return names;
    }

    private static ObjectNode line(Class<?> type, Schema schema, short version) throws Exception {
        ObjectNode line = MAPPER.createObjectNode();
        ApiMessage empty = (ApiMessage) type.getDeclaredConstructor().newInstance();
        line.put("message", type.getSimpleName());
        line.put("version", version);
        String name = type.getSimpleName();
        if (name.endsWith("RequestData")) {
            line.put("api_key", empty.apiKey());
            line.put("header_version", ApiMessageType.fromApiKey(empty.apiKey()).requestHeaderVersion(version));
        } else if (name.endsWith("ResponseData")) {
            line.put("api_key", empty.apiKey());
            line.put("header_version", ApiMessageType.fromApiKey(empty.apiKey()).responseHeaderVersion(version));
        }
        ArrayNode vectors = line.putArray("vectors");
        Set<ByteBuffer> seen = new HashSet<>();
        boolean outermost = version == empty.lowestSupportedVersion() || version == empty.highestSupportedVersion();
        Instances instances = new Instances(schema, outermost);
        if (instances.isWritable(empty, schema)) {
            add(vectors, seen, empty, schema, version);
        }
        for (ApiMessage message : instances.varied(type)) {
            add(vectors, seen, message, schema, version);
        }
        return line;
    }

    private static void add(
            ArrayNode vectors, Set<ByteBuffer> seen, ApiMessage message, Schema schema, short version)
            throws Exception {
        byte[] bytes = bytes(message, version);
        if (!seen.add(ByteBuffer.wrap(bytes))) {
            return;
        }
        ApiMessage again = message.getClass().getDeclaredConstructor().newInstance();
        again.read(new ByteBufferAccessor(ByteBuffer.wrap(bytes)), version);
        if (!Arrays.equals(bytes, bytes(again, version))) {
            throw new IllegalStateException("Kafka does not read back " + message + " at version " + version);
        }
        ObjectNode json = json(message, version);
        Completion.complete(json, message, schema);
        vectors.addObject().put("bytes", bytes).set("json", json);
    }

    private static byte[] bytes(ApiMessage message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        MessageSizeAccumulator size = new MessageSizeAccumulator();
        message.addSize(size, cache, version);
        ByteBuffer buffer = ByteBuffer.allocate(size.totalSize());
        message.write(new ByteBufferAccessor(buffer), cache, version);
        if (buffer.hasRemaining()) {
            throw new IllegalStateException("Kafka counts more bytes than it writes");
        }
        return buffer.array();
    }

    private static ObjectNode json(ApiMessage message, short version) throws Exception {
        try {
            return (ObjectNode) Class.forName(message.getClass().getName() + CONVERTER)
                    .getMethod("write", message.getClass(), short.class, boolean.class)
                    .invoke(null, message, version, true);
        } catch (InvocationTargetException error) {
            throw new IllegalStateException("no JSON for " + message + " at version " + version, error.getCause());
        }
    }
}
