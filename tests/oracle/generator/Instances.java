import java.lang.reflect.Modifier;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.LinkedList;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Random;
import java.util.Set;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.Type;

/**
 * Instances of one version of a message in which, between them, every field has every value that is worth a try.
 *
 * <p>A field has a queue of choices by its type; whenever a value is needed the next choice not yet made is taken, and
 * once all are made any of them. Instances are made for as long as they bring choices that were not made before, and a
 * few more.
 */
final class Instances {
    /** Instances in a row that bring nothing new, after which no field has a choice left that can be reached. */
    private static final int PATIENCE = 60;

    /** Instances that bring nothing new but are kept. */
    private static final int MORE = 4;

    /** Entries of an array whose count needs two bytes as UNSIGNED_VARINT. */
    private static final int WIDE = 130;

    /** Lengths that take two bytes as UNSIGNED_VARINT of length + 1, and the first that takes three. */
    private static final int[] TWO_BYTES = {127, 128, 129};
    private static final int THREE_BYTES = 16383;

    private static final int LONGEST_STRING = Short.MAX_VALUE;

    /** Record batches as kafka-clients 3.9.1 makes them with {@code MemoryRecords.withRecords}. */
    private static final String BATCH =
            "000000000000000000000040ffffffff02c65781af00000000000000000174876e800000000174876e8000ffffffffffffffffffff"
                    + "ffffffff000000011c000000066b65790a76616c756500";

    private static final String BATCH_OF_TWO =
            "000000000000000000000047ffffffff023262b12f00000000000100000174876e800000000174876e8001ffffffffffffffffffff"
                    + "ffffffff000000021c000000066b65790a76616c7565000c000202010100";

    private final Schema schema;
    private final boolean outermost;
    private final Random random = new Random(0);
    private final Map<String, Queue<String>> pending = new HashMap<>();
    private final Set<String> large = new HashSet<>();
    /** Whether a choice was made for the first time. */
    private boolean fresh;
    /** Whether to make entries that are there only to be many. */
    private boolean plain;

    /** With {@code outermost} there are long strings and wide arrays as well, which would be too much everywhere. */
    Instances(Schema schema, boolean outermost) {
        this.schema = schema;
        this.outermost = outermost;
    }

    /** Whether a message can be written as it is: some fields default to null where older versions need a value. */
    boolean isWritable(Message message, Schema schema) throws ReflectiveOperationException {
        for (Members.Member member : Members.of(message.getClass(), schema)) {
            Object value = member.get(message);
            // The schemas of 4.0 and before do not say that a structure may be null, but then it is null at first.
            if (value == null && !member.type().isNullable() && !(member.type() instanceof Schema)) {
                return false;
            }
            if (value instanceof Message inner && !isWritable(inner, (Schema) member.type())) {
                return false;
            }
        }
        return true;
    }

    List<ApiMessage> varied(Class<?> type) throws ReflectiveOperationException {
        List<ApiMessage> kept = new ArrayList<>();
        int more = 0;
        for (int stale = 0; stale < PATIENCE; stale++) {
            fresh = false;
            ApiMessage message = (ApiMessage) structure(type, schema, "", 0);
            if (fresh) {
                stale = -1;
            }
            if (fresh || more++ < MORE) {
                kept.add(message);
            }
        }
        return kept;
    }

    private Message structure(Class<?> type, Schema schema, String path, int depth)
            throws ReflectiveOperationException {
        Message made = (Message) type.getDeclaredConstructor().newInstance();
        for (Members.Member member : Members.of(type, schema)) {
            String place = path + "/" + member.name();
            // A tagged field that holds its default is not written.
            if (member.tag() == null || !choose(place + "?", "present", "absent").equals("absent")) {
                member.set(made, value(member, made, place, depth));
            }
        }
        if (Members.isFlexible(schema)) {
            unknownTags(made, path);
        }
        return made;
    }

    private void unknownTags(Message structure, String path) {
        List<RawTaggedField> unknown = structure.unknownTaggedFields();
        switch (choose(path + "/*", "none", "one", "two", "none", "none")) {
            case "one" -> unknown.add(new RawTaggedField(100, new byte[0]));
            case "two" -> {
                unknown.add(new RawTaggedField(127, bytes(3)));
                unknown.add(new RawTaggedField(1 << 14, bytes(128)));
            }
            default -> { }
        }
    }

    private Object value(Members.Member member, Message holder, String place, int depth)
            throws ReflectiveOperationException {
        Type type = member.type();
        if (type.isArray()) {
            return array(member, place, depth);
        }
        if (type instanceof Schema inner) {
            boolean nullable = type.isNullable() || member.get(holder) == null;
            boolean isNull = nullable && choose(place, "some", "null").equals("null");
            return isNull ? null : structure(member.variable().getType(), inner, place, depth);
        }
        return leaf(type, member.variable().getType(), place);
    }

    private Object array(Members.Member member, String place, int depth) throws ReflectiveOperationException {
        Type entry = member.type().arrayElementType().get();
        List<String> offered = new ArrayList<>(List.of("many", "one", "empty"));
        if (member.type().isNullable()) {
            offered.add("null");
        }
        String choice = choose(place, offered);
        if (choice.equals("null")) {
            return null;
        }
        int count = switch (choice) {
            case "empty" -> 0;
            case "one" -> 1;
            default -> depth == 0 ? 3 : 2;
        };
        boolean wide = count > 1 && once(entry instanceof Schema ? "wide array of structures" : "wide array");
        Collection<Object> made = collection(member.variable().getType());
        for (int at = 0; at < (wide ? WIDE : count); at++) {
            plain = at >= count;
            made.add(entry instanceof Schema inner
                    ? structure(member.entryClass(), inner, place, depth + 1)
                    : leaf(entry, member.entryClass(), place + "[]"));
        }
        plain = false;
        return made;
    }

    @SuppressWarnings("unchecked")
    private static Collection<Object> collection(Class<?> type) throws ReflectiveOperationException {
        boolean isList = Modifier.isAbstract(type.getModifiers());
        return isList ? new ArrayList<>() : (Collection<Object>) type.getDeclaredConstructor().newInstance();
    }

    private Object leaf(Type type, Class<?> variable, String place) {
        String name = type.toString();
        if (name.endsWith("STRING")) {
            return string(name, type.isNullable(), place);
        }
        if (name.endsWith("RECORDS")) {
            // The schemas of 4.0 and before call all records nullable.
            boolean nullable = type.isNullable() && !place.endsWith("/unalignedRecords");
            List<String> some = List.of("two", "one", "none");
            return records(choose(place, nullable ? List.of("two", "one", "none", "null") : some));
        }
        if (name.endsWith("BYTES")) {
            byte[] made = bytes(name, type.isNullable(), place);
            return made == null || variable == byte[].class ? made : ByteBuffer.wrap(made);
        }
        return switch (name) {
            case "BOOLEAN" -> choose(place, "true", "false").equals("true");
            case "INT8" -> (byte) integer(place, Byte.MIN_VALUE, Byte.MAX_VALUE, -1);
            case "INT16" -> (short) integer(place, Short.MIN_VALUE, Short.MAX_VALUE, -1);
            case "UINT16" -> (int) integer(place, 0, 65535, 32768);
            case "INT32" -> (int) integer(place, Integer.MIN_VALUE, Integer.MAX_VALUE, -1);
            case "UNSIGNED_INT32", "UINT32" -> integer(place, 0, 4294967295L, 2147483648L);
            case "INT64" -> integer(place, Long.MIN_VALUE, Long.MAX_VALUE, -1);
            case "FLOAT64" -> Double.parseDouble(
                    choose(place, "0.1", "-0.0", "NaN", "Infinity", "-Infinity", "4.9e-324", "1.7976931348623157e308"));
            case "UUID" -> switch (choose(place, "some", "zero", "one", "most")) {
                case "zero" -> Uuid.ZERO_UUID;
                case "one" -> new Uuid(0, 1);
                case "most" -> new Uuid(-1, -1);
                default -> new Uuid(ordinary(place, Long.MAX_VALUE), place.length());
            };
            default -> throw new IllegalStateException("a type not known: " + name);
        };
    }

    private long integer(String place, long least, long most, long other) {
        return switch (choose(place, "ordinary", "least", "most", "other", "zero")) {
            case "least" -> least;
            case "most" -> most;
            case "other" -> other;
            case "zero" -> 0;
            default -> ordinary(place, most);
        };
    }

    /** A value that another field is not likely to have, so that fields cannot be taken for each other. */
    private static long ordinary(String place, long most) {
        return (place.hashCode() * 0x9e3779b97f4a7c15L >>> 1) % most;
    }

    private String string(String type, boolean nullable, String place) {
        if (once(type)) {
            return "z".repeat(type.startsWith("COMPACT") ? THREE_BYTES : LONGEST_STRING);
        }
        return switch (choose(place, sized(nullable))) {
            case "null" -> null;
            case "empty" -> "";
            case "long" -> "y".repeat(TWO_BYTES[random.nextInt(TWO_BYTES.length)]);
            case "other" -> "Grüße, 世界 \uD83E\uDD86\u0000";
            default -> place.substring(place.lastIndexOf('/') + 1);
        };
    }

    private byte[] bytes(String type, boolean nullable, String place) {
        if (once(type)) {
            return bytes(THREE_BYTES);
        }
        return switch (choose(place, sized(nullable))) {
            case "null" -> null;
            case "empty" -> new byte[0];
            case "long" -> bytes(TWO_BYTES[random.nextInt(TWO_BYTES.length)]);
            case "other" -> new byte[] {(byte) 0xff, 0, (byte) 0x80};
            default -> place.getBytes(StandardCharsets.UTF_8);
        };
    }

    private static List<String> sized(boolean nullable) {
        return nullable ? List.of("some", "null", "empty", "long", "other") : List.of("some", "empty", "long", "other");
    }

    private static byte[] bytes(int size) {
        byte[] made = new byte[size];
        Arrays.fill(made, (byte) 0x5a);
        return made;
    }

    /** Records as a message holds them; their class is not named because it does not stay in one package. */
    private static Object records(String choice) {
        if (choice.equals("null")) {
            return null;
        }
        byte[] batches = HexFormat.of().parseHex(switch (choice) {
            case "none" -> "";
            case "one" -> BATCH;
            default -> BATCH + BATCH_OF_TWO;
        });
        return new ByteBufferAccessor(ByteBuffer.wrap(batches)).readRecords(batches.length);
    }

    private String choose(String place, String... offered) {
        return choose(place, List.of(offered));
    }

    private String choose(String place, List<String> offered) {
        if (plain) {
            return offered.contains("empty") ? "empty" : offered.get(0);
        }
        Queue<String> left = pending.computeIfAbsent(place, unused -> new LinkedList<>(offered));
        if (left.isEmpty()) {
            return offered.get(random.nextInt(offered.size()));
        }
        fresh = true;
        return left.remove();
    }

    /** Whether to make something large now, which is done once and only where large things are wanted. */
    private boolean once(String what) {
        boolean now = outermost && !plain && large.add(what);
        fresh |= now;
        return now;
    }
}
