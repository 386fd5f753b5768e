import java.io.IOException;
import java.util.List;
import java.util.Map;
import javax.security.auth.callback.Callback;
import javax.security.auth.callback.NameCallback;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.plain.PlainAuthenticateCallback;

/** Checks passwords as a broker does that asks a directory (LDAP): for each of alice it needs 1.5 s. */
public class SlowDirectory implements AuthenticateCallbackHandler {
    @Override
    public void configure(Map<String, ?> configs, String mechanism, List<AppConfigurationEntry> jaas) {}

    @Override
    public void handle(Callback[] callbacks) throws IOException {
        String user = null;
        for (Callback callback : callbacks) {
            if (callback instanceof NameCallback name) {
                user = name.getDefaultName();
            } else if (callback instanceof PlainAuthenticateCallback password) {
                ask(user);
                password.authenticated("not-a-secret".equals(new String(password.password())));
            }
        }
    }

    private static void ask(String user) throws IOException {
        try {
            Thread.sleep("alice".equals(user) ? 1_500 : 0);
        } catch (InterruptedException interrupted) {
            throw new IOException(interrupted);
        }
    }

    @Override
    public void close() {}
}
