import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.CreateDelegationTokenOptions;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.token.delegation.DelegationToken;

/** The life of a delegation token (KIP-48). Usage: Tokens BOOTSTRAP */
public class Tokens {
    public static void main(String[] args) throws Exception {
        try (Admin alice = admin(args[0], "alice", "alice", "not-a-secret", "")) {
            DelegationToken token = alice.createDelegationToken(new CreateDelegationTokenOptions()
                .renewers(List.of(new KafkaPrincipal("User", "bob"))).maxLifetimeMs(600_000)).delegationToken().get();
            Thread.sleep(500); // until the broker has heard of it from the controller
            System.out.println(alice.describeDelegationToken().delegationTokens().get().size() + " token");
            String password = java.util.Base64.getEncoder().encodeToString(token.hmac());
            try (Admin bearer = admin(args[0], "bearer", token.tokenInfo().tokenId(), password, " tokenauth=true")) {
                System.out.println(bearer.listTopics().names().get());
            }
            System.out.println(alice.renewDelegationToken(token.hmac()).expiryTimestamp().get());
            System.out.println(alice.expireDelegationToken(token.hmac()).expiryTimestamp().get());
        }
    }

    private static Admin admin(String bootstrap, String clientId, String user, String password, String more) {
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", bootstrap);
        config.put("client.id", clientId);
        config.put("security.protocol", "SASL_PLAINTEXT");
        config.put("sasl.mechanism", "SCRAM-SHA-256");
        config.put("sasl.jaas.config", "org.apache.kafka.common.security.scram.ScramLoginModule required username=\""
            + user + "\" password=\"" + password + "\"" + more + ";");
        return Admin.create(config);
    }
}
