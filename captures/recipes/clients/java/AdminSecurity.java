import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.UserScramCredentialDeletion;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.quota.ClientQuotaFilterComponent;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;

/** Access rules, SCRAM users and quotas. Usage: AdminSecurity BOOTSTRAP */
public class AdminSecurity {
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
        AclBinding allowed = new AclBinding(
            new ResourcePattern(ResourceType.TOPIC, "invoices-", PatternType.PREFIXED),
            new AccessControlEntry("User:alice", "*", AclOperation.READ, AclPermissionType.ALLOW));
        AclBinding denied = new AclBinding(
            new ResourcePattern(ResourceType.GROUP, "payroll", PatternType.LITERAL),
            new AccessControlEntry("User:bob", "10.9.0.2", AclOperation.ALL, AclPermissionType.DENY));
        ClientQuotaEntity alice = new ClientQuotaEntity(Map.of(ClientQuotaEntity.USER, "alice"));
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", args[0], "client.id", "security-officer"))) {
            attempt("create acls", () -> admin.createAcls(List.of(allowed, denied)).all().get());
            attempt("describe acls", () -> admin.describeAcls(AclBindingFilter.ANY).values().get());
            attempt("delete acls", () -> admin.deleteAcls(List.of(denied.toFilter())).all().get());
            attempt("upsert user", () -> admin.alterUserScramCredentials(List.of(
                new UserScramCredentialUpsertion(
                    "alice", new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), "not-a-secret".getBytes(),
                    "not-a-salt-either".getBytes()),
                new UserScramCredentialDeletion("nobody", ScramMechanism.SCRAM_SHA_512))).all().get());
            attempt("users", () -> admin.describeUserScramCredentials(List.of("alice", "nobody")).all().get());
            attempt("set quota", () -> admin.alterClientQuotas(List.of(new ClientQuotaAlteration(alice, List.of(
                new ClientQuotaAlteration.Op("producer_byte_rate", 1048576.0),
                new ClientQuotaAlteration.Op("request_percentage", 12.5))))).all().get());
            Thread.sleep(500); // until the broker has heard of it from the controller
            attempt("quotas", () -> admin.describeClientQuotas(ClientQuotaFilter.containsOnly(List.of(
                ClientQuotaFilterComponent.ofEntityType(ClientQuotaEntity.USER)))).entities().get());
        }
    }
}
