import java.nio.ByteBuffer;
import java.util.Base64;
import java.util.List;

/** The little JSON that the generators print; bytes are base64. */
final class Json {
    static byte[] bytes(ByteBuffer buffer) {
        if (buffer == null) return null;
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return bytes;
    }

    static String text(byte[] bytes) {
        return bytes == null ? "null" : '"' + Base64.getEncoder().encodeToString(bytes) + '"';
    }

    static String record(long offset, Long timestamp, byte[] key, byte[] value, List<String> headers) {
        return "[" + offset + "," + timestamp + "," + text(key) + "," + text(value) + "," + headers + "]";
    }
}
