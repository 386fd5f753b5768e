import java.util.Base64;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.CreateDelegationTokenOptions;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.token.delegation.DelegationToken;

/** The life of a delegation token (KIP-48) in the releases that had it first. Usage: OldTokens BOOTSTRAP */
public class OldTokens {
    public static void main(String[] args) throws Exception {
        try (AdminClient alice = admin(args[0], "alice", "alice", "not-a-secret", "")) {
            DelegationToken token = alice.createDelegationToken(new CreateDelegationTokenOptions()
                .renewers(Collections.singletonList(new KafkaPrincipal("User", "bob")))).delegationToken().get();
            Thread.sleep(1000); // until the brokers have heard of it from ZooKeeper
            System.out.println(alice.describeDelegationToken().delegationTokens().get().size() + " token");
            String password = Base64.getEncoder().encodeToString(token.hmac());
            try (AdminClient bearer = admin(args[0], "bearer", token.tokenInfo().tokenId(), password, " tokenauth=true")) {
                System.out.println(bearer.listTopics().names().get());
            }
            System.out.println(alice.renewDelegationToken(token.hmac()).expiryTimestamp().get());
            System.out.println(alice.expireDelegationToken(token.hmac()).expiryTimestamp().get());
        }
    }

    private static AdminClient admin(String bootstrap, String clientId, String user, String password, String more) {
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", bootstrap);
        config.put("client.id", clientId);
        config.put("security.protocol", "SASL_PLAINTEXT");
        config.put("sasl.mechanism", "SCRAM-SHA-256");
        config.put("sasl.jaas.config", "org.apache.kafka.common.security.scram.ScramLoginModule required username=\""
            + user + "\" password=\"" + password + "\"" + more + ";");
        return AdminClient.create(config);
    }
}
