"""kcat, which is librdkafka linked with the system's OpenSSL, over TLS with a key log: it writes lines and reads them.

Usage: kcat_tls.py BOOTSTRAP TOPIC KEYLOG (needs kcat and a C compiler)
"""

import os
import subprocess
import sys
from pathlib import Path

bootstrap, topic, keylog = sys.argv[1:]
source = Path(__file__).parents[1] / "c" / "keylog.c"
subprocess.run(["cc", "-shared", "-fPIC", "-o", "keylog.so", str(source), "-ldl"], check=True)
environment = os.environ | {"SSLKEYLOGFILE": keylog, "LD_PRELOAD": "./keylog.so"}
kcat = ["kcat", "-b", bootstrap, "-X", "security.protocol=ssl", "-X", "enable.ssl.certificate.verification=false"]
lines = "".join(f"box-{number}:{'gold ' * 40}\n" for number in range(10))
for options in (("-P", "-t", topic, "-K", ":"), ("-C", "-t", topic, "-e", "-q")):
    subprocess.run([*kcat, *options], input=lines, check=True, env=environment, text=True, timeout=30)
