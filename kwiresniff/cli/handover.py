"""``sniff`` as root: opens the sockets, becomes another user, then does everything else."""

from __future__ import annotations

import os
import sys

from kwiresniff.base.address_names import AddressNames
from kwiresniff.capture.live import LiveCapture, LiveOptions, Rotation, open_live
from kwiresniff.capture.live.privileges import NOBODY, Identity, give_up_root, may_read, obstacle, successor
from kwiresniff.cli.options import ReadOptions
from kwiresniff.cli.preload import preload


def open_and_hand_over(
    live_options: LiveOptions,
    options: ReadOptions,
    user: str | None,
    write: str | None,
    rotation: Rotation,
    mode: int,
    names: AddressNames,
    *,
    has_screen: bool = False,
) -> LiveCapture:
    """The capture, with the files for its packets, read by a process that is root no longer. ``names`` are told in
    comments on the packets.

    It stays root only when what it was asked for is out of everybody else's reach, and says so. Raises CaptureError.
    """
    identity = successor(user)
    live = open_live(live_options, identity.name if identity is not None else None, names)
    try:
        if identity is not None and _needs_nobody_else(live, identity, options, write, rotation, mode):
            if not may_read(identity, [__file__, os.__file__, *filter(os.path.isdir, sys.path)]):
                preload(screen=has_screen, values=any(options.plugin_options))
            give_up_root(identity)
        if write is not None and not live.writes:
            live.write_to(write, rotation, mode)
    except BaseException:
        live.close()
        raise
    return live


def _needs_nobody_else(
    live: LiveCapture, identity: Identity, options: ReadOptions, write: str | None, rotation: Rotation, mode: int
) -> bool:
    """Whether root can be given up: ``identity`` can read and write all that is needed, or root has opened it."""
    schemas = [place for place in options.schemas if os.path.exists(place)]
    read = [*options.plugin, *schemas, *filter(None, (options.keylog, options.topics, options.hosts))]
    files = [rotation.first_name(write)] if write is not None else []
    why_not = obstacle(identity, read=read, write=files, rotates=rotation.rotates)
    if why_not and write is not None and not rotation.rotates and not obstacle(identity, read=read):
        # The only file there will be: root opens it, for who called sudo, or for itself.
        live.write_to(write, rotation, mode, None if identity.name == NOBODY else (identity.uid, identity.gid))
        return True
    if why_not and not options.quiet:
        print(f"kwiresniff: goes on as root: {why_not}; -Z USER names another user", file=sys.stderr)
    return not why_not
