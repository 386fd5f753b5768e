import java.lang.reflect.Field;
import java.lang.reflect.Modifier;

import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;

/**
 * Prints Kafka's enumerations: for every argument OUR_NAME=CLASS a line OUR_NAME VALUE CONSTANT for each constant, whose
 * value is the first number or boolean that it holds. With the argument "errors" the error codes and whether a client may
 * try again.
 */
public final class Enums {
    public static void main(String[] arguments) throws Exception {
        for (String argument : arguments) {
            String[] parts = argument.split("=");
            if (parts[0].equals("errors")) {
                for (Errors error : Errors.values()) {
                    System.out.println("errors " + error.code() + " " + error
                            + (error.exception() instanceof RetriableException ? " retriable" : ""));
                }
                continue;
            }
            for (Object constant : Class.forName(parts[1]).getEnumConstants()) {
                System.out.println(parts[0] + " " + value(constant) + " " + ((Enum<?>) constant).name());
            }
        }
    }

    private static long value(Object constant) throws Exception {
        for (Field field : ((Enum<?>) constant).getDeclaringClass().getDeclaredFields()) {
            boolean told = !Modifier.isStatic(field.getModifiers());
            field.setAccessible(told);
            Object value = told ? field.get(constant) : null;
            if (value instanceof Number) {
                return ((Number) value).longValue();
            }
            if (value instanceof Boolean) {
                return (Boolean) value ? 1 : 0;
            }
        }
        return ((Enum<?>) constant).ordinal();
    }
}
