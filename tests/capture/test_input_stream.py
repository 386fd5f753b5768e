"""Reading from pipes."""

from __future__ import annotations

import _thread
import os
import signal
from collections.abc import Iterator
from threading import Timer
from time import monotonic

import pytest

from kwiresniff.capture.input_stream import PIPE_WAIT_MS, Stream


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Python's own handler of Ctrl-C, which it does not install in a job that was started in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("buffering", [-1, 0], ids=["standard input", "FIFO"])
def test_an_interrupt_that_comes_just_before_the_system_call_is_heard(buffering: int) -> None:
    """``interrupt_main`` marks the signal as arrived without waking up the call, as in that race."""
    read_end, write_end = os.pipe()
    os.write(write_end, b"0123456789")
    interrupt = Timer(0.2, _thread.interrupt_main)
    rescue = Timer(20, os.write, (write_end, b"x"))
    with open(read_end, "rb", buffering=buffering) as file:
        stream = Stream("pipe", file)
        assert stream.exactly(10) == b"0123456789"
        interrupt.start()
        rescue.start()
        start = monotonic()
        with pytest.raises(KeyboardInterrupt):
            stream.read()
        rescue.cancel()
        assert monotonic() - start < 10 * PIPE_WAIT_MS / 1000
    os.close(write_end)
