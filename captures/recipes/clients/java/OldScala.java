import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Properties;
import kafka.consumer.Consumer;
import kafka.consumer.ConsumerConfig;
import kafka.consumer.ConsumerIterator;
import kafka.javaapi.consumer.ConsumerConnector;
import kafka.javaapi.producer.Producer;
import kafka.producer.KeyedMessage;
import kafka.producer.ProducerConfig;

/**
 * The clients that were written in Scala: a producer per codec and kind of acknowledgement, and the high-level consumer,
 * whose group agrees through ZooKeeper and keeps its offsets in Kafka. Usage: OldScala BOOTSTRAP ZOOKEEPER TOPIC
 */
public class OldScala {
    private static final int EACH = 4;

    public static void main(String[] args) {
        String[][] kinds = {{"none", "1"}, {"gzip", "-1"}, {"snappy", "1"}, {"none", "0"}};
        for (String[] kind : kinds) {
            Properties settings = new Properties();
            settings.put("metadata.broker.list", args[0]);
            settings.put("serializer.class", "kafka.serializer.StringEncoder");
            settings.put("client.id", kind[0] + kind[1]);
            settings.put("compression.codec", kind[0]);
            settings.put("request.required.acks", kind[1]);
            Producer<String, String> producer = new Producer<>(new ProducerConfig(settings));
            List<KeyedMessage<String, String>> messages = new ArrayList<>();
            for (int i = 0; i < EACH; i++) {
                messages.add(new KeyedMessage<>(args[2], "shelf-" + i, "{\"codec\": \"" + kind[0] + "\", \"item\": " + i + "}"));
            }
            producer.send(messages);
            producer.close();
        }

        Properties settings = new Properties();
        settings.put("zookeeper.connect", args[1]);
        settings.put("group.id", "librarians");
        settings.put("client.id", "librarian");
        settings.put("auto.offset.reset", "smallest");
        settings.put("auto.commit.enable", "false");
        settings.put("offsets.storage", "kafka");
        settings.put("dual.commit.enabled", "false");
        settings.put("fetch.wait.max.ms", "200");
        ConsumerConnector consumer = Consumer.createJavaConsumerConnector(new ConsumerConfig(settings));
        ConsumerIterator<byte[], byte[]> found =
            consumer.createMessageStreams(Collections.singletonMap(args[2], 1)).get(args[2]).get(0).iterator();
        for (int i = 0; i < EACH * kinds.length; i++) {
            found.next();
        }
        consumer.commitOffsets();
        consumer.shutdown();
    }
}
