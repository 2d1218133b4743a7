"""A temporary directory that does not outlast its process."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager


@contextmanager
def temporary_directory() -> Iterator[str]:
    """A new directory. A process of our own removes it when its input closes, as even our death by kill does; in a
    separate session, Ctrl-C does not reach it. Without a shell, as on Windows, only a normal end removes it.
    """
    directory = tempfile.mkdtemp(prefix="firstflight-")
    remove = ["sh", "-c", 'read _; rm -rf -- "$1"', "sh", directory]
    with ExitStack() as ending:
        ending.callback(shutil.rmtree, directory, ignore_errors=True)
        if shutil.which("sh"):
            ending.enter_context(subprocess.Popen(remove, stdin=subprocess.PIPE, start_new_session=True))
        yield directory
