/* Makes a program that is dynamically linked with OpenSSL (1.1.1 or newer) write a TLS key log, to the file that the
 * environment names in SSLKEYLOGFILE:
 *
 *     cc -shared -fPIC -o keylog.so keylog.c -ldl
 *     SSLKEYLOGFILE=keys.log LD_PRELOAD=./keylog.so kcat -b broker:9093 -X security.protocol=ssl -L
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct ssl_ctx_st SSL_CTX;
typedef struct ssl_st SSL;

static void write_line(const SSL *ssl, const char *line) {
    const char *path = getenv("SSLKEYLOGFILE");
    int file = path ? open(path, O_WRONLY | O_APPEND | O_CREAT, 0600) : -1;
    char text[512];
    size_t length = strlen(line);
    (void)ssl;
    if (file < 0)
        return;
    if (length < sizeof text) {
        memcpy(text, line, length);
        text[length] = '\n';
        if (write(file, text, length + 1) < 0)
            unsetenv("SSLKEYLOGFILE");
    }
    close(file);
}

SSL *SSL_new(SSL_CTX *context) {
    SSL *(*make)(SSL_CTX *) = (SSL *(*)(SSL_CTX *))dlsym(RTLD_NEXT, "SSL_new");
    void (*set)(SSL_CTX *, void (*)(const SSL *, const char *)) =
        (void (*)(SSL_CTX *, void (*)(const SSL *, const char *)))dlsym(RTLD_NEXT, "SSL_CTX_set_keylog_callback");
    if (set)
        set(context, write_line);
    return make(context);
}
