import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.UserScramCredentialDeletion;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionReplica;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * What somebody does to a cluster, one errand an argument: Upkeep BOOTSTRAP "create boats 2 3" "elect preferred boats 0" ...
 * An errand that fails says so, and the next one follows. For clients from 2.8 on.
 */
public class Upkeep {
    static Admin admin;
    static String bootstrap;

    public static void main(String[] args) throws Exception {
        bootstrap = args[0];
        try (Admin made = Admin.create(Map.of("bootstrap.servers", bootstrap, "client.id", "caretaker"))) {
            admin = made;
            for (String errand : List.of(args).subList(1, args.length)) {
                try {
                    System.out.println(errand + ": " + run(errand.split(" ")));
                } catch (ExecutionException failed) {
                    System.out.println(errand + ": " + failed.getCause());
                } catch (KafkaException failed) {
                    System.out.println(errand + ": " + failed);
                }
            }
        }
    }

    static Object run(String[] words) throws Exception {
        switch (words[0]) {
            case "create":
                return admin.createTopics(List.of(new NewTopic(words[1], Integer.parseInt(words[2]), Short.parseShort(words[3]))
                    .configs(settings(words, 4)))).all().get();
            case "assign":
                return admin.createTopics(List.of(new NewTopic(words[1], Map.of(0, numbers(words[2])))
                    .configs(settings(words, 3)))).all().get();
            case "grow":
                return admin.createPartitions(Map.of(words[1], NewPartitions.increaseTo(Integer.parseInt(words[2])))).all().get();
            case "delete":
                return admin.deleteTopics(List.of(words[1])).all().get();
            case "reassign":
                return admin.alterPartitionReassignments(Map.of(partition(words, 1), words[3].equals("-")
                    ? Optional.empty() : Optional.of(new NewPartitionReassignment(numbers(words[3]))))).all().get();
            case "reassignments":
                return admin.listPartitionReassignments().reassignments().get();
            case "elect":
                return admin.electLeaders(words[1].equals("unclean") ? ElectionType.UNCLEAN : ElectionType.PREFERRED,
                    Set.of(partition(words, 2))).all().get();
            case "topic":
                return alter(new ConfigResource(ConfigResource.Type.TOPIC, words[1]), words);
            case "broker":
                return alter(new ConfigResource(ConfigResource.Type.BROKER, words[1]), words);
            case "quota":
                admin.alterClientQuotas(List.of(new ClientQuotaAlteration(
                    new ClientQuotaEntity(Map.of(ClientQuotaEntity.CLIENT_ID, words[1])),
                    List.of(new ClientQuotaAlteration.Op("producer_byte_rate", Double.valueOf(words[2])))))).all().get();
                return admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get();
            case "scram":
                admin.alterUserScramCredentials(List.of(
                    new UserScramCredentialUpsertion("carol", new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), "not-a-secret"))).all().get();
                admin.describeUserScramCredentials().all().get();
                return admin.alterUserScramCredentials(List.of(
                    new UserScramCredentialDeletion("carol", ScramMechanism.SCRAM_SHA_256))).all().get();
            case "move":
                return move(new TopicPartitionReplica(words[1], Integer.parseInt(words[2]), Integer.parseInt(words[3])));
            case "dirs":
                return admin.describeLogDirs(numbers(words[1])).descriptions().size();
            case "dir":
                return admin.describeReplicaLogDirs(List.of(new TopicPartitionReplica(
                    words[1], Integer.parseInt(words[2]), Integer.parseInt(words[3])))).all().get();
            case "cluster":
                return admin.describeCluster().nodes().get();
            case "unregister":
                return admin.unregisterBroker(Integer.parseInt(words[1])).all().get();
            case "produce":
                return produce(words[1], Integer.parseInt(words[2]), "", Map.of());
            case "transact":
                return produce(words[1], Integer.parseInt(words[2]), words[3], settings(words, 4));
            case "read":
                return read(words[1], Integer.parseInt(words[2]));
            case "wait":
                Thread.sleep(Integer.parseInt(words[1]));
                return "";
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    /** Moves a replica to the other log directory of its broker. */
    static Object move(TopicPartitionReplica replica) throws Exception {
        String current = admin.describeReplicaLogDirs(List.of(replica)).all().get().get(replica).getCurrentReplicaLogDir();
        String other = admin.describeLogDirs(List.of(replica.brokerId())).descriptions().get(replica.brokerId()).get().keySet().stream()
            .filter(dir -> !dir.equals(current)).findFirst().get();
        return admin.alterReplicaLogDirs(Map.of(replica, other)).all().get();
    }

    static TopicPartition partition(String[] words, int at) {
        return new TopicPartition(words[at], Integer.parseInt(words[at + 1]));
    }

    static List<Integer> numbers(String word) {
        return Stream.of(word.split(",")).map(Integer::valueOf).collect(Collectors.toList());
    }

    static Map<String, String> settings(String[] words, int from) {
        return Arrays.stream(words).skip(from).map(word -> word.split("=", 2)).collect(Collectors.toMap(pair -> pair[0], pair -> pair[1]));
    }

    static Object alter(ConfigResource resource, String[] words) throws Exception {
        admin.incrementalAlterConfigs(Map.of(resource, settings(words, 2).entrySet().stream()
            .map(one -> new AlterConfigOp(new ConfigEntry(one.getKey(), one.getValue()), AlterConfigOp.OpType.SET))
            .collect(Collectors.toList()))).all().get();
        return admin.describeConfigs(List.of(resource)).all().get().size();
    }

    static Object produce(String topic, int count, String transactionalId, Map<String, String> more) throws Exception {
        Properties settings = new Properties();
        settings.putAll(more);
        settings.put("bootstrap.servers", bootstrap);
        settings.put("client.id", "supplier");
        settings.put("acks", "all");
        settings.put("delivery.timeout.ms", "15000");
        settings.put("request.timeout.ms", "5000");
        settings.put("linger.ms", "20");
        if (!transactionalId.isEmpty()) {
            settings.put("transactional.id", transactionalId);
        }
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            if (!transactionalId.isEmpty()) {
                producer.initTransactions();
                producer.beginTransaction();
            }
            for (int number = 0; number < count; number++) {
                producer.send(new ProducerRecord<>(topic, "crate-" + number, "{\"crate\": " + number + "}"));
            }
            producer.flush();
            if (!transactionalId.isEmpty()) {
                producer.commitTransaction();
            }
        }
        return count;
    }

    static Object read(String topic, int count) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("client.id", "inspector");
        settings.put(ConsumerConfig.GROUP_ID_CONFIG, "inspectors");
        settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        settings.put(ConsumerConfig.ISOLATION_LEVEL_CONFIG, "read_committed");
        int seen = 0;
        try (KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(List.of(topic));
            long end = System.currentTimeMillis() + 15000;
            while (seen < count && System.currentTimeMillis() < end) {
                seen += consumer.poll(java.time.Duration.ofMillis(500)).count();
            }
            consumer.commitSync();
        }
        return seen;
    }
}
