import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionReplica;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AccessControlEntryFilter;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.requests.DescribeLogDirsResponse;
import org.apache.kafka.common.resource.Resource;
import org.apache.kafka.common.resource.ResourceFilter;
import org.apache.kafka.common.resource.ResourceType;

/**
 * What the first admin client could do, that of 1.1: topics, partitions, settings, access rules, records, log folders,
 * with refusals among them.
 *
 * Usage: OldAdmin BOOTSTRAP
 */
public class OldAdmin {
    /** A call whose failure is part of the recording. */
    interface Call {
        Object get() throws Exception;
    }

    static void attempt(String what, Call call) throws Exception {
        try {
            System.out.println(what + ": " + call.get());
        } catch (ExecutionException failed) {
            System.out.println(what + " failed: " + failed.getCause());
        }
    }

    public static void main(String[] args) throws Exception {
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", args[0]);
        config.put("client.id", "administrator");
        TopicPartition first = new TopicPartition("inventory", 0);
        ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, "inventory");
        ConfigResource broker = new ConfigResource(ConfigResource.Type.BROKER, "1");
        try (AdminClient admin = AdminClient.create(config)) {
            attempt("create", () -> admin.createTopics(Arrays.asList(
                new NewTopic("inventory", 2, (short) 2).configs(Collections.singletonMap("cleanup.policy", "delete")),
                new NewTopic("too-many-replicas", 1, (short) 9))).all().get());
            attempt("assigned", () -> admin.createTopics(Collections.singleton(
                new NewTopic("assigned", Collections.singletonMap(0, Arrays.asList(1, 2))))).all().get());
            attempt("validate", () -> admin.createTopics(Collections.singleton(
                new NewTopic("never", 1, (short) 1)), new CreateTopicsOptions().validateOnly(true)).all().get());
            Thread.sleep(500); // until every broker has heard of them
            attempt("list", () -> admin.listTopics().names().get());
            attempt("describe", () -> admin.describeTopics(Arrays.asList("inventory", "missing")).all().get());
            attempt("cluster", () -> admin.describeCluster().nodes().get());
            attempt("partitions", () -> admin.createPartitions(
                Collections.singletonMap("inventory", NewPartitions.increaseTo(3))).all().get());
            attempt("alter", () -> admin.alterConfigs(Collections.singletonMap(topic,
                new Config(Collections.singleton(new ConfigEntry("retention.ms", "600000"))))).all().get());
            attempt("invalid", () -> admin.alterConfigs(Collections.singletonMap(topic,
                new Config(Collections.singleton(new ConfigEntry("retention.ms", "soon"))))).all().get());
            attempt("topic's settings", () -> admin.describeConfigs(Collections.singleton(topic)).all().get().size());
            attempt("broker's settings", () -> admin.describeConfigs(Collections.singleton(broker)).all().get().size());

            attempt("allow", () -> admin.createAcls(Collections.singleton(new AclBinding(
                new Resource(ResourceType.TOPIC, "invoices"),
                new AccessControlEntry("User:alice", "*", AclOperation.READ, AclPermissionType.ALLOW)))).all().get());
            attempt("rules", () -> admin.describeAcls(AclBindingFilter.ANY).values().get());
            attempt("forget", () -> admin.deleteAcls(Collections.singleton(new AclBindingFilter(
                new ResourceFilter(ResourceType.TOPIC, "invoices"), AccessControlEntryFilter.ANY))).all().get());

            attempt("truncate", () -> admin.deleteRecords(
                Collections.singletonMap(first, RecordsToDelete.beforeOffset(0))).all().get());
            attempt("too far", () -> admin.deleteRecords(
                Collections.singletonMap(first, RecordsToDelete.beforeOffset(99))).all().get());
            Map<Integer, Map<String, DescribeLogDirsResponse.LogDirInfo>> folders =
                admin.describeLogDirs(Arrays.asList(1, 2)).all().get();
            attempt("folders", () -> folders.size());
            attempt("move", () -> admin.alterReplicaLogDirs(Collections.singletonMap(
                new TopicPartitionReplica("assigned", 0, 1), emptier(folders.get(1)))).all().get());
            attempt("nowhere", () -> admin.alterReplicaLogDirs(Collections.singletonMap(
                new TopicPartitionReplica("assigned", 0, 2), "/no/such/folder")).all().get());
            attempt("replica", () -> admin.describeReplicaLogDirs(Collections.singleton(
                new TopicPartitionReplica("assigned", 0, 1))).all().get().size());
            attempt("delete", () -> admin.deleteTopics(Arrays.asList("inventory", "missing")).all().get());
        }
    }

    /** The folder that does not have the replica yet. */
    private static String emptier(Map<String, DescribeLogDirsResponse.LogDirInfo> folders) {
        for (Map.Entry<String, DescribeLogDirsResponse.LogDirInfo> folder : folders.entrySet()) {
            if (!folder.getValue().replicaInfos.containsKey(new TopicPartition("assigned", 0))) {
                return folder.getKey();
            }
        }
        throw new IllegalStateException("the replica is everywhere");
    }
}
