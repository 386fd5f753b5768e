import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import org.apache.kafka.common.protocol.Protocol;
import org.apache.kafka.common.protocol.types.Schema;

/**
 * Prints responses as Kafka 0.10.2 and 0.11 print them: a line API_KEY VERSION HEX on standard input, without the correlation id,
 * becomes the fields of the body by Kafka's own schema. Bytes left over are an error.
 */
public class Responses {
    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            int key = Integer.parseInt(words[0]);
            Schema[] versions = Protocol.RESPONSES[key];
            int version = Integer.parseInt(words[1]);
            if (key == 7) {
                version = 1; // its first version differs in the request's header alone
            } else if (key == 18 && version >= versions.length) {
                version = 0; // how an unknown version is refused
            }
            Schema schema = versions[version];
            ByteBuffer body = ByteBuffer.wrap(bytes(words.length > 2 ? words[2] : ""));
            String text = schema.read(body).toString();
            if (body.hasRemaining()) {
                throw new IllegalStateException(body.remaining() + " bytes are left over: " + line);
            }
            System.out.println(text);
        }
    }

    private static byte[] bytes(String hex) {
        byte[] made = new byte[hex.length() / 2];
        for (int i = 0; i < made.length; i++) {
            made[i] = (byte) Integer.parseInt(hex.substring(2 * i, 2 * i + 2), 16);
        }
        return made;
    }
}
