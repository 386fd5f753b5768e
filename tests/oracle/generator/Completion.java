import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.util.Collection;
import java.util.Iterator;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.Type;

/**
 * Adds to Kafka's JSON what its converters leave out: tagged fields that hold their default (they are not on the wire
 * either), tagged fields that Kafka does not know, and the bytes of records.
 */
final class Completion {
    private static final JsonNodeFactory NODES = JsonNodeFactory.instance;

    private Completion() {}

    static void complete(ObjectNode node, Message structure, Schema schema) throws ReflectiveOperationException {
        complete(node, structure, schema, false);
    }

    /** With {@code absent} the whole structure is missing in Kafka's JSON, otherwise only tagged fields may be. */
    private static void complete(ObjectNode node, Message structure, Schema schema, boolean absent)
            throws ReflectiveOperationException {
        for (Members.Member member : Members.of(structure.getClass(), schema)) {
            Object value = member.get(structure);
            if (!node.has(member.name())) {
                if (member.tag() == null && !absent) {
                    throw new IllegalStateException("Kafka's JSON has no " + member.name());
                }
                node.set(member.name(), node(value, member.type()));
            } else if (isRecords(member.type()) && value != null) {
                node.set(member.name(), node(value, member.type()));
            } else if (value instanceof Collection<?> structures
                    && member.type().arrayElementType().get() instanceof Schema entry) {
                Iterator<JsonNode> entries = node.get(member.name()).elements();
                for (Object each : structures) {
                    complete((ObjectNode) entries.next(), (Message) each, entry, absent);
                }
            } else if (value instanceof Message && member.type() instanceof Schema inner) {
                complete((ObjectNode) node.get(member.name()), (Message) value, inner, absent);
            }
        }
        for (RawTaggedField unknown : structure.unknownTaggedFields()) {
            node.withObject("/_tagged_fields").put(String.valueOf(unknown.tag()), unknown.data());
        }
    }

    private static boolean isRecords(Type type) {
        return type.toString().endsWith("RECORDS");
    }

    private static JsonNode node(Object value, Type type) throws ReflectiveOperationException {
        if (value == null) {
            return NODES.nullNode();
        }
        if (value instanceof Message structure) {
            ObjectNode made = NODES.objectNode();
            complete(made, structure, (Schema) type, true);
            return made;
        }
        if (value instanceof Collection<?> entries) {
            ArrayNode made = NODES.arrayNode();
            for (Object entry : entries) {
                made.add(node(entry, type.arrayElementType().get()));
            }
            return made;
        }
        if (isRecords(type)) {
            return node(value.getClass().getMethod("buffer").invoke(value), Type.BYTES);
        }
        if (value instanceof ByteBuffer buffer) {
            byte[] bytes = new byte[buffer.remaining()];
            buffer.duplicate().get(bytes);
            return NODES.binaryNode(bytes);
        }
        if (value instanceof byte[] bytes) {
            return NODES.binaryNode(bytes);
        }
        if (value instanceof Boolean truth) {
            return NODES.booleanNode(truth);
        }
        if (value instanceof Number number && !(value instanceof Double)) {
            return NODES.numberNode(number.longValue());
        }
        if (value instanceof String || value instanceof Uuid) {
            return NODES.textNode(value.toString());
        }
        throw new IllegalStateException("no JSON for " + value.getClass());
    }
}
