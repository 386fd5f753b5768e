import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.DescribeClusterOptions;
import org.apache.kafka.clients.admin.DescribeFeaturesOptions;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionReplica;
import org.apache.kafka.common.config.ConfigResource;

/** A day in an administrator's life: topics, their settings, their partitions, the cluster. Usage: AdminTopics BOOTSTRAP */
public class AdminTopics {
    /** A call whose failure is part of the recording. */
    interface Call {
        Object get() throws Exception;
    }

    static void attempt(String what, Call call) throws Exception {
        try {
            System.out.println(what + ": " + String.valueOf(call.get()).lines().findFirst().orElse(""));
        } catch (ExecutionException failed) {
            System.out.println(what + " failed: " + failed.getCause());
        }
    }

    public static void main(String[] args) throws Exception {
        TopicPartition first = new TopicPartition("inventory", 0);
        ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, "inventory");
        ConfigResource logger = new ConfigResource(ConfigResource.Type.BROKER_LOGGER, "1");
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", args[0], "client.id", "administrator"))) {
            attempt("create", () -> admin.createTopics(List.of(
                new NewTopic("inventory", 2, (short) 1).configs(Map.of("cleanup.policy", "compact", "segment.ms", "3600000")),
                new NewTopic("too-many-replicas", 1, (short) 3),
                new NewTopic("bad name!", 1, (short) 1))).all().get());
            attempt("assigned", () -> admin.createTopics(List.of(
                new NewTopic("assigned", Map.of(0, List.of(1), 1, List.of(1))))).all().get());
            attempt("list", () -> admin.listTopics().names().get());
            attempt("describe", () -> admin.describeTopics(List.of("inventory", "missing")).allTopicNames().get());
            attempt("partitions", () -> admin.createPartitions(Map.of("inventory", NewPartitions.increaseTo(3))).all().get());
            attempt("fewer", () -> admin.createPartitions(Map.of("inventory", NewPartitions.increaseTo(1))).all().get());
            attempt("alter", () -> admin.incrementalAlterConfigs(Map.of(topic, List.of(
                new AlterConfigOp(new ConfigEntry("retention.ms", "600000"), AlterConfigOp.OpType.SET),
                new AlterConfigOp(new ConfigEntry("segment.ms", null), AlterConfigOp.OpType.DELETE)))).all().get());
            attempt("invalid", () -> admin.incrementalAlterConfigs(Map.of(topic, List.of(
                new AlterConfigOp(new ConfigEntry("retention.ms", "soon"), AlterConfigOp.OpType.SET)))).all().get());
            attempt("configs", () -> admin.describeConfigs(List.of(topic)).all().get());
            attempt("resources", () -> admin.listConfigResources(Set.of(ConfigResource.Type.TOPIC), new org.apache.kafka.clients.admin.ListConfigResourcesOptions()).all().get());
            attempt("offsets", () -> admin.listOffsets(Map.of(
                first, OffsetSpec.latest(), new TopicPartition("inventory", 1), OffsetSpec.earliest(),
                new TopicPartition("inventory", 2), OffsetSpec.maxTimestamp())).all().get());
            attempt("truncate", () -> admin.deleteRecords(Map.of(first, RecordsToDelete.beforeOffset(0))).all().get());
            attempt("truncate", () -> admin.deleteRecords(
                Map.of(new TopicPartition("assigned", 0), RecordsToDelete.beforeOffset(5))).all().get());
            attempt("elect", () -> admin.electLeaders(ElectionType.PREFERRED, Set.of(first)).all().get());
            attempt("reassign", () -> admin.alterPartitionReassignments(Map.of(
                first, Optional.of(new NewPartitionReassignment(List.of(7))))).all().get());
            attempt("cancel", () -> admin.alterPartitionReassignments(Map.of(first, Optional.empty())).all().get());
            attempt("reassignments", () -> admin.listPartitionReassignments().reassignments().get());
            attempt("cluster", () -> admin.describeCluster(
                new DescribeClusterOptions().includeAuthorizedOperations(true)).nodes().get());
            attempt("features", () -> admin.describeFeatures(new DescribeFeaturesOptions()).featureMetadata().get());
            attempt("quorum", () -> admin.describeMetadataQuorum().quorumInfo().get().leaderId());
            attempt("producers", () -> admin.describeProducers(List.of(first)).all().get());
            attempt("transactions", () -> admin.listTransactions().all().get());
            attempt("transaction", () -> admin.describeTransactions(List.of("no-such-transaction")).all().get());
            attempt("replicas", () -> admin.describeReplicaLogDirs(List.of(new TopicPartitionReplica("inventory", 0, 1))).all().get().size());
            attempt("move", () -> admin.alterReplicaLogDirs(
                Map.of(new TopicPartitionReplica("inventory", 0, 1), "/no/such/folder")).all().get());
            attempt("unregister", () -> admin.unregisterBroker(99).all().get());
            attempt("delete", () -> admin.deleteTopics(List.of("inventory", "missing")).all().get());
        }
    }
}
