"""tshark, run by pyshark on a stream that is written to it, as a source of decrypted bytes.

Importing this loads pyshark, so it is done only when something is to be decrypted.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from asyncio.subprocess import Process
from collections.abc import Iterator

from pyshark.capture.capture import TSharkCrashException
from pyshark.capture.pipe_capture import PipeCapture

from kwiresniff.capture.pyshark_settings import use_own_settings
from kwiresniff.capture.tshark_input import DATA_PORT
from kwiresniff.errors import CaptureError


class Tshark(PipeCapture):
    """Reads from the file descriptor ``pipe``, which is its own from then on."""

    def __init__(self, pipe: int, keylog: str | None) -> None:
        use_own_settings()
        preferences = {"tcp.reassemble_out_of_order": "TRUE"}
        if keylog is not None:
            preferences["tls.keylog_file"] = os.path.abspath(keylog)
        super().__init__(
            pipe,
            display_filter="tls && data",
            # What TLS carries goes to the dissector that only shows it: putting frames together is our own work.
            decode_as={f"tcp.port=={DATA_PORT}": "tls", f"tls.port=={DATA_PORT}": "data"},
            override_prefs=preferences,
            use_json=True,
            custom_parameters=["-j", "frame data"],  # the layers that are printed
            eventloop=asyncio.new_event_loop(),  # given one, pyshark leaves the process's own alone
        )

    def plaintexts(self) -> Iterator[tuple[int, bytes]]:
        """Yields ``(frame, data)`` of each decrypted record, by its last frame's number. Raises CaptureError."""
        try:
            for packet in self:
                layers = [layer for layer in packet.layers if layer.layer_name == "data"]
                for layer in layers:
                    for one in (layer, *layer.duplicate_layers):
                        yield int(packet.number), bytes.fromhex(str(one.get_field("data")).replace(":", ""))
        except TSharkCrashException:
            raise CaptureError(f"tshark failed: {self._last_error_line or 'it does not say why'}") from None

    def stop(self) -> None:
        """End the process, and give back what belongs to it."""
        with contextlib.suppress(TSharkCrashException):  # that it was killed
            self.eventloop.run_until_complete(self.close_async())
        self._running_processes.clear()
        self.eventloop.close()
        os.close(self._pipe)

    async def _cleanup_subprocess(self, process: Process) -> None:
        # At the end of its output the process ends by itself. pyshark would kill it there, and so lose its exit code.
        if self._eof_reached:
            await process.wait()
        await super()._cleanup_subprocess(process)
