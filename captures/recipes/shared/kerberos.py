"""A broker with a Kerberos realm of its own (Debian's ``krb5-kdc`` and ``krb5-admin-server``) beside it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from captures.recipes.shared import rig

REALM = "KWIRESNIFF.TEST"
SERVICE = f"kafka/{rig.BROKER_IP}"
MODULE = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true"
#: Where the setup leaves the keys of a principal, in the folder that programs run in.
KEYTAB = "{name}.keytab"


def jaas(principal: str, keytab: str) -> str:
    return f'{MODULE} keyTab="{keytab}" principal="{principal}@{REALM}";'


@dataclass(frozen=True)
class KerberosSetup:
    """A broker whose clients authenticate by GSSAPI; alice's keys lie in ``alice.keytab``."""

    version: str = "4.4.0"
    ports: tuple[int, ...] = (rig.CONTROLLER_PORT, 9092)

    @property
    def described(self) -> str:
        return f"Apache Kafka {self.version} (KRaft), nodes: 1, and MIT Kerberos 1.20"

    def start(self, work: Path, scratch: Path) -> AbstractContextManager[rig.RunningBroker]:
        return self._start(work, scratch)

    @contextmanager
    def _start(self, work: Path, scratch: Path) -> Iterator[rig.RunningBroker]:
        with _realm(scratch):
            settings = {
                "listener.security.protocol.map": "CLIENT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
                "sasl.enabled.mechanisms": "GSSAPI",
                "sasl.mechanism.inter.broker.protocol": "GSSAPI",
                "sasl.kerberos.service.name": "kafka",
                "listener.name.client.gssapi.sasl.jaas.config": jaas(SERVICE, str(scratch / "broker.keytab")),
            }
            with rig.BrokerSetup(self.version, settings=settings).start(work, scratch) as running:
                yield running


@contextmanager
def _realm(scratch: Path) -> Iterator[None]:
    config, kdc = scratch / "krb5.conf", scratch / "kdc.conf"
    config.write_text(
        f"[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n rdns = false\n"
        f"[realms]\n {REALM} = {{\n  kdc = {rig.BROKER_IP}\n }}\n"
    )
    kdc.write_text(
        f'[kdcdefaults]\n kdc_ports = 88\n kdc_tcp_ports = ""\n[realms]\n {REALM} = {{\n'
        f"  database_name = {scratch}/principal\n  key_stash_file = {scratch}/stash\n }}\n"
    )
    changed = {
        "KRB5_CONFIG": str(config),
        "KRB5_KDC_PROFILE": str(kdc),
        "JAVA_TOOL_OPTIONS": f"-Djava.security.krb5.conf={config}",
    }
    before = {name: os.environ.get(name) for name in changed}
    os.environ.update(changed)
    process = None
    try:
        rig.run("kdb5_util", "create", "-s", "-r", REALM, "-P", "not-a-secret", quiet=True)
        for principal, name in ((SERVICE, "broker"), ("alice", "alice")):
            rig.run("kadmin.local", "-q", f"addprinc -randkey {principal}", quiet=True)
            rig.run("kadmin.local", "-q", f"ktadd -k {scratch / KEYTAB.format(name=name)} {principal}", quiet=True)
        process = subprocess.Popen(rig.inside(rig.BROKER_SPACE, "krb5kdc", "-n"), stderr=subprocess.DEVNULL)
        yield
    finally:
        if process is not None:
            rig.stop(process)
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
