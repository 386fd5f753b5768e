import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.lang.reflect.Method;

/**
 * Prints the schemas of requests and responses as a release of 0.8 to 2.8 has them in its code, one line of JSON each:
 * fields are [name, type] or, for structures, [name, type, fields]. Argument: the release.
 */
public final class OlderNames {
    private static final String PROTOCOL = "org.apache.kafka.common.protocol.";

    public static void main(String[] arguments) throws Exception {
        String release = arguments[0];
        try {
            Class<?> protocol = Class.forName(PROTOCOL + "Protocol"); // until 0.11
            Object requests = of(protocol, null, "REQUESTS");
            Object responses = of(protocol, null, "RESPONSES");
            for (int key = 0; key < Array.getLength(requests); key++) {
                print(release, key, "request", Array.get(requests, key));
                print(release, key, "response", Array.get(responses, key));
            }
        } catch (NoSuchFieldException error) {
            for (Object api : Class.forName(PROTOCOL + "ApiKeys").getEnumConstants()) {
                int key = ((Number) of(api.getClass(), api, "id")).intValue();
                print(release, key, "request", schemas(api, "requestSchemas"));
                print(release, key, "response", schemas(api, "responseSchemas"));
            }
        }
    }

    private static Object schemas(Object api, String name) throws Exception {
        try {
            return of(api.getClass(), api, name); // until 2.6
        } catch (NoSuchFieldException error) {
            Object type = of(api.getClass(), api, "messageType");
            Method method = type.getClass().getMethod(name);
            method.setAccessible(true);
            return method.invoke(type);
        }
    }

    private static void print(String release, int key, String direction, Object schemas) throws Exception {
        for (int version = 0; schemas != null && version < Array.getLength(schemas); version++) {
            Object schema = Array.get(schemas, version);
            if (schema != null) {
                System.out.println("{\"release\":\"" + release + "\",\"api_key\":" + key + ",\"direction\":\"" + direction
                        + "\",\"version\":" + version + ",\"fields\":" + fields(schema) + "}");
            }
        }
    }

    private static String fields(Object schema) throws Exception {
        StringBuilder text = new StringBuilder();
        for (Object field : (Object[]) of(schema.getClass(), schema, "fields")) {
            if (field.getClass().getSimpleName().equals("BoundField")) {
                field = of(field.getClass(), field, "def");
            }
            Object type = of(field.getClass(), field, "type");
            String prefix = "";
            if (type.getClass().getSimpleName().endsWith("ArrayOf")) {
                prefix = "[]";
                type = of(type.getClass(), type, "type");
            }
            boolean struct = type.getClass().getSimpleName().equals("Schema");
            if (!type.getClass().getSimpleName().equals("TaggedFields")) {
                text.append(text.length() > 0 ? "," : "").append("[\"").append(of(field.getClass(), field, "name"))
                        .append("\",\"").append(prefix).append(struct ? "struct" : type).append('"')
                        .append(struct ? "," + fields(type) : "").append(']');
            }
        }
        return "[" + text + "]";
    }

    private static Object of(Class<?> type, Object object, String name) throws Exception {
        for (Class<?> each = type; each != null; each = each.getSuperclass()) {
            for (Field field : each.getDeclaredFields()) {
                if (field.getName().equals(name)) {
                    field.setAccessible(true);
                    return field.get(object);
                }
            }
        }
        throw new NoSuchFieldException(name);
    }
}
