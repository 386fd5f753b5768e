import java.lang.reflect.AccessibleObject;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import java.util.jar.JarFile;
import java.util.regex.Pattern;
import org.apache.kafka.common.config.ConfigDef;

/**
 * Prints the configs that Kafka's own definitions give the type PASSWORD, and those of another type whose name suggests
 * a secret all the same: name and type, sorted, one a line. Searched is every ConfigDef that a class of the given jars
 * holds in a static field or makes in a static method without arguments. What could not be loaded is counted on the
 * standard error stream.
 */
public final class PasswordConfigs {
    private static final Pattern SUGGESTIVE =
            Pattern.compile(
                    "secret|pass|pwd|token|credential|key|jaas|jwt|auth$|signature|authorization|user.?info|licen[cs]e"
                            + "|cookie|hmac|webhook|sensitive|\\b(pw|pin|sas|salt|oauth|bearer|session.?id)\\b",
                    Pattern.CASE_INSENSITIVE);
    private static final TreeSet<String> NAMES = new TreeSet<>();
    private static int definitions;
    private static int failures;

    public static void main(String[] jars) throws Exception {
        for (String jar : jars) {
            for (String name : classes(jar)) {
                try {
                    look(Class.forName(name, false, PasswordConfigs.class.getClassLoader()));
                } catch (Throwable error) {
                    failures++; // its artifact names libraries that only some of its classes need
                }
            }
        }
        NAMES.forEach(System.out::println);
        System.err.println(definitions + " definitions, " + failures + " classes not loaded");
        System.exit(definitions == 0 ? 1 : 0); // a class that was looked at may have left a thread running
    }

    private static List<String> classes(String jar) throws Exception {
        List<String> names = new ArrayList<>();
        try (JarFile file = new JarFile(jar)) {
            file.stream()
                    .map(entry -> entry.getName())
                    .filter(entry -> entry.endsWith(".class") && !entry.startsWith("META-INF"))
                    .forEach(entry -> names.add(entry.substring(0, entry.length() - 6).replace('/', '.')));
        }
        return names;
    }

    private static void look(Class<?> type) throws Exception {
        for (Field field : type.getDeclaredFields()) {
            if (Modifier.isStatic(field.getModifiers()) && ConfigDef.class.isAssignableFrom(field.getType())) {
                open(field);
                add(field.get(null));
            }
        }
        for (Method method : type.getDeclaredMethods()) {
            if (Modifier.isStatic(method.getModifiers())
                    && method.getParameterCount() == 0
                    && ConfigDef.class.isAssignableFrom(method.getReturnType())) {
                open(method);
                add(method.invoke(null));
            }
        }
    }

    private static void open(AccessibleObject member) {
        member.setAccessible(true);
    }

    private static void add(Object definition) {
        if (definition != null) {
            definitions++;
            ((ConfigDef) definition).configKeys().values().stream()
                    .filter(key -> key.type == ConfigDef.Type.PASSWORD || SUGGESTIVE.matcher(key.name).find())
                    .forEach(key -> NAMES.add(key.name + " " + key.type));
        }
    }
}
