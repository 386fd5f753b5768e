import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.QuorumInfo;
import org.apache.kafka.clients.admin.RaftVoterEndpoint;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.common.Uuid;

/**
 * What somebody does to the controllers, one errand an argument: Quorum BOOTSTRAP "add 14 HOST PORT" ...
 * After "controllers HOST:PORT,..." the errands go to them. An errand that fails says so, and the next one follows.
 */
public class Quorum {
    static Admin admin;

    public static void main(String[] args) throws Exception {
        admin = Admin.create(Map.of("bootstrap.servers", args[0], "client.id", "electoral-office"));
        for (String errand : List.of(args).subList(1, args.length)) {
            try {
                System.out.println(errand + ": " + run(errand.split(" ")));
            } catch (ExecutionException failed) {
                System.out.println(errand + ": " + failed.getCause());
            }
        }
        admin.close();
    }

    /** The directory id of a controller, by the quorum's own account. */
    static Uuid directory(int node) throws Exception {
        QuorumInfo quorum = admin.describeMetadataQuorum().quorumInfo().get();
        return Stream.concat(quorum.voters().stream(), quorum.observers().stream())
            .filter(one -> one.replicaId() == node).findFirst().get().replicaDirectoryId();
    }

    static Object run(String[] words) throws Exception {
        switch (words[0]) {
            case "controllers":
                admin.close();
                admin = Admin.create(Map.of("bootstrap.controllers", words[1], "client.id", "electoral-office"));
                return "";
            case "quorum":
                return admin.describeMetadataQuorum().quorumInfo().get();
            case "cluster":
                return admin.describeCluster().nodes().get();
            case "features":
                return admin.describeFeatures().featureMetadata().get();
            case "feature":
                return admin.updateFeatures(
                    Map.of(words[1], new FeatureUpdate(Short.parseShort(words[2]), FeatureUpdate.UpgradeType.valueOf(words[3]))),
                    new UpdateFeaturesOptions().validateOnly(words.length > 4)).all().get();
            case "add":
                return admin.addRaftVoter(Integer.parseInt(words[1]), directory(Integer.parseInt(words[1])),
                    Set.of(new RaftVoterEndpoint("CONTROLLER", words[2], Integer.parseInt(words[3])))).all().get();
            case "remove":
                return admin.removeRaftVoter(Integer.parseInt(words[1]), directory(Integer.parseInt(words[1]))).all().get();
            case "unregister-broker":
                return admin.unregisterBroker(Integer.parseInt(words[1])).all().get();
            case "unregister-controller":
                return admin.unregisterController(Integer.parseInt(words[1])).all().get();
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }
}
