"""Giving up root once the sockets of a live capture are open, so that what comes from the network is read by an
ordinary user.

It is tcpdump's order: sockets first, then another user, then files, which belong to that user. ``-Z USER`` names them;
otherwise it is who called sudo, or nobody, unless the files to read or write are out of their reach.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from kwiresniff.errors import CaptureError

#: Who has no files anywhere.
NOBODY = "nobody"


@dataclass(frozen=True, slots=True)
class Identity:
    """A user to become. ``chosen`` was given by name; otherwise staying root is better than failing."""

    name: str
    uid: int
    gid: int
    chosen: bool


def successor(name: str | None) -> Identity | None:
    """The identity to take instead of root, None for none (``-Z root``). Raises CaptureError for an unusable name."""
    if name is not None:
        try:
            user = pwd.getpwnam(name)
        except (KeyError, ValueError):
            raise CaptureError(f"-Z {name}: no user has this name; see: getent passwd") from None
        if os.geteuid() != 0 and user.pw_uid != os.geteuid():
            raise CaptureError(f"-Z {name}: only root can become another user")
        return Identity(name, user.pw_uid, user.pw_gid, True) if user.pw_uid != os.geteuid() else None
    if os.geteuid() != 0:
        return None
    caller, group = os.environ.get("SUDO_UID", ""), os.environ.get("SUDO_GID", "")
    if caller.isdecimal() and group.isdecimal() and 0 < int(caller) < 1 << 32 and int(group) < 1 << 32:
        return Identity(_name(int(caller)), int(caller), int(group), False)
    try:
        user = pwd.getpwnam(NOBODY)
    except KeyError:
        return None
    return Identity(NOBODY, user.pw_uid, user.pw_gid, False) if user.pw_uid else None


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def obstacle(identity: Identity, *, read: Sequence[str], write: Sequence[str] = (), rotates: bool = False) -> str:
    """The file that ``identity`` cannot ``read`` or ``write``, or an empty text; with ``rotates`` its folder must be
    writable. Raises CaptureError for a user chosen by name.
    """
    with _acting_as(identity):
        found = _out_of_reach(identity, read, write, rotates)
    if found and identity.chosen:
        raise CaptureError(f"-Z {identity.name}: {identity.name} {found}; choose another user or place")
    return f"{identity.name} {found}" if found else ""


def may_read(identity: Identity, paths: Iterable[str]) -> bool:
    """Whether all of them can be read."""
    with _acting_as(identity):
        return all(_may(path, os.R_OK) for path in paths)


def give_up_root(identity: Identity) -> None:
    """Becomes ``identity`` for good, with no way back. Raises CaptureError."""
    try:
        os.setgroups(_groups(identity))
        os.setgid(identity.gid)
        os.setuid(identity.uid)  # root's sets the saved one too, from which there would be a way back
    except OSError as error:
        raise _refused(identity, error) from None
    # Programs that we run look for their settings; tshark breaks down where it may not look.
    for name in [name for name in os.environ if name.startswith("XDG_")]:
        del os.environ[name]
    os.environ.update(HOME=_home(identity), USER=identity.name, LOGNAME=identity.name)


def _home(identity: Identity) -> str:
    try:
        return pwd.getpwuid(identity.uid).pw_dir
    except KeyError:
        return "/nonexistent"


@contextmanager
def _acting_as(identity: Identity) -> Iterator[None]:
    """Has the operating system check permissions as for ``identity``."""
    groups = os.getgroups()
    try:
        os.setgroups(_groups(identity))
        os.setegid(identity.gid)
        os.seteuid(identity.uid)
        yield
    except OSError as error:
        raise _refused(identity, error) from None
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)


def _groups(identity: Identity) -> list[int]:
    return os.getgrouplist(identity.name, identity.gid) if not identity.name.isdecimal() else [identity.gid]


def _refused(identity: Identity, error: OSError) -> CaptureError:
    return CaptureError(f"cannot become {identity.name}: {error.strerror}; -Z root captures as root")


def _out_of_reach(identity: Identity, read: Sequence[str], write: Sequence[str], rotates: bool) -> str:
    for path in read:
        there = os.path.exists(path)
        reading = os.R_OK | os.X_OK if os.path.isdir(path) else os.R_OK
        # Whoever will write it will hardly write it for everybody.
        foreseen = _may(_folder(path), os.X_OK) and (identity.chosen or identity.name != NOBODY)
        if not (_may(path, reading) if there else foreseen):
            return f"may not read {path}"
    for path in write:
        there = os.path.exists(path)
        if (there and not _may(path, os.W_OK)) or ((rotates or not there) and not _may(_folder(path), _TO_CREATE)):
            return f"may not write {path}"
    return ""


_TO_CREATE = os.W_OK | os.X_OK


def _folder(path: str) -> str:
    return os.path.dirname(os.path.abspath(path))


def _may(path: str, what: int) -> bool:
    return os.access(path, what, effective_ids=os.access in os.supports_effective_ids)
