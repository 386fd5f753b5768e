import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;

/** A streams group (KIP-1071) of which one instance stays and one comes and goes. Usage: StreamsChurn BOOTSTRAP INPUT OUTPUT */
public class StreamsChurn {
    public static void main(String[] args) throws Exception {
        KafkaStreams steady = start(args, "counter-steady");
        for (int i = 0; i < 4; i++) {
            KafkaStreams restless = start(args, "counter-restless");
            Thread.sleep(800);
            restless.close(new KafkaStreams.CloseOptions().leaveGroup(true).timeout(Duration.ofSeconds(10)));
            Thread.sleep(500);
        }
        System.out.println("fact: counter-restless came and went 4 times");
        steady.close(Duration.ofSeconds(10));
    }

    static KafkaStreams start(String[] args, String clientId) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        settings.put("application.id", "word-count");
        settings.put("client.id", clientId);
        settings.put("group.protocol", "streams");
        settings.put("state.dir", "state-" + clientId);
        settings.put("num.stream.threads", "1");
        settings.put("commit.interval.ms", "1000");
        settings.put("poll.ms", "500");
        settings.put("default.key.serde", Serdes.StringSerde.class.getName());
        settings.put("default.value.serde", Serdes.StringSerde.class.getName());
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(args[1]).mapValues(value -> value.toUpperCase()).to(args[2]);
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.start();
        long end = System.currentTimeMillis() + 20000;
        while (streams.state() != KafkaStreams.State.RUNNING && System.currentTimeMillis() < end) {
            Thread.sleep(50);
        }
        System.out.println(clientId + " is " + streams.state());
        return streams;
    }
}
