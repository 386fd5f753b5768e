import java.lang.reflect.Field;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;

/** The fields that a version of a structure has, by its schema, with the Java variables that hold them. */
final class Members {
    /** A field; {@code tag} is null for one that is always on the wire. */
    record Member(Field variable, org.apache.kafka.common.protocol.types.Type type, Integer tag) {
        Object get(Object structure) throws IllegalAccessException {
            return variable.get(structure);
        }

        void set(Object structure, Object value) throws IllegalAccessException {
            variable.set(structure, value);
        }

        String name() {
            return variable.getName();
        }

        /** The class of an entry of a list or of one of Kafka's linked collections. */
        Class<?> entryClass() {
            Type declared = variable.getGenericType();
            if (!(declared instanceof ParameterizedType)) {
                declared = variable.getType().getGenericSuperclass();
            }
            return (Class<?>) ((ParameterizedType) declared).getActualTypeArguments()[0];
        }
    }

    private Members() {}

    static List<Member> of(Class<?> structure, Schema schema) throws ReflectiveOperationException {
        List<Member> members = new ArrayList<>();
        for (BoundField field : schema.fields()) {
            if (field.def.type instanceof TaggedFields section) {
                tags(section).forEach((tag, known) ->
                        members.add(new Member(variable(structure, known.name), known.type, tag)));
            } else {
                members.add(new Member(variable(structure, field.def.name), field.def.type, null));
            }
        }
        return members;
    }

    /** Whether the structure ends with tagged fields, which is what flexible means. */
    static boolean isFlexible(Schema schema) {
        BoundField[] fields = schema.fields();
        return fields.length > 0 && fields[fields.length - 1].def.type instanceof TaggedFields;
    }

    @SuppressWarnings("unchecked")
    private static Map<Integer, org.apache.kafka.common.protocol.types.Field> tags(TaggedFields section)
            throws ReflectiveOperationException {
        Field fields = TaggedFields.class.getDeclaredField("fields");
        fields.setAccessible(true);
        return new TreeMap<>((Map<Integer, org.apache.kafka.common.protocol.types.Field>) fields.get(section));
    }

    /** Schemas have names_like_this, variables namesLikeThis. */
    private static Field variable(Class<?> structure, String name) {
        for (Field field : structure.getDeclaredFields()) {
            if (field.getName().toLowerCase(Locale.ROOT).equals(name.replace("_", ""))) {
                field.setAccessible(true);
                return field;
            }
        }
        throw new IllegalStateException(structure + " has no " + name);
    }
}
