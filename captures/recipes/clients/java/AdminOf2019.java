import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.DescribeClusterOptions;
import org.apache.kafka.clients.admin.DescribeConfigsOptions;
import org.apache.kafka.clients.admin.DescribeConsumerGroupsOptions;
import org.apache.kafka.clients.admin.DescribeTopicsOptions;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;

/**
 * What the admin client of 2.3 had learnt since 1.1: groups, elections, single settings, what one may do.
 *
 * Usage: AdminOf2019 BOOTSTRAP TOPIC GROUP
 */
public class AdminOf2019 {
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
        String topic = args[1];
        String group = args[2];
        ConfigResource settings = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        try (AdminClient admin = AdminClient.create(config)) {
            attempt("topic", () -> admin.describeTopics(Collections.singleton(topic),
                new DescribeTopicsOptions().includeAuthorizedOperations(true)).all().get());
            attempt("cluster", () -> admin.describeCluster(
                new DescribeClusterOptions().includeAuthorizedOperations(true)).authorizedOperations().get());
            attempt("alter", () -> admin.incrementalAlterConfigs(Collections.singletonMap(settings, Arrays.asList(
                new AlterConfigOp(new ConfigEntry("retention.ms", "700000"), AlterConfigOp.OpType.SET),
                new AlterConfigOp(new ConfigEntry("segment.ms", null), AlterConfigOp.OpType.DELETE)))).all().get());
            attempt("synonyms", () -> admin.describeConfigs(Collections.singleton(settings),
                new DescribeConfigsOptions().includeSynonyms(true)).all().get().size());
            attempt("elect", () -> admin.electPreferredLeaders(
                Arrays.asList(new TopicPartition(topic, 0), new TopicPartition(topic, 99))).all().get());
            attempt("groups", () -> admin.listConsumerGroups().all().get());
            attempt("group", () -> admin.describeConsumerGroups(Arrays.asList(group, "nobody"),
                new DescribeConsumerGroupsOptions().includeAuthorizedOperations(true)).all().get());
            attempt("offsets", () -> admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get());
            attempt("delete", () -> admin.deleteConsumerGroups(Arrays.asList(group, "nobody")).all().get());
        }
    }
}
