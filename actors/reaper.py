"""Ends what a killed driver leaves behind: `python -m actors.reaper PID FOLDER`, started by the driver itself.

A driver that ends by itself stops its Ray; one that is killed cannot, and some of Ray's processes live on. The reaper
knows the processes of that Ray, waits on its standard input, and when that closes without a word kills those that are
still there and removes the run's temporary folder. What else the driver has started is left alone. Where the reaper is
killed as well, the kernel ends Ray's services with the driver, workers follow within seconds, and Ray's agents give up
after a minute; only the folder stays.
"""

import contextlib
import select
import shutil
import sys
import time

import psutil

_LOOK_EVERY_S = 2.0
_GRACE_S = 3.0


def main(driver: int, folder: str) -> None:
    """Watch until the driver is gone or says that all is well."""
    known: dict[tuple[int, float], psutil.Process] = {}
    while True:
        ready, _, _ = select.select([sys.stdin], [], [], _LOOK_EVERY_S)
        if ready:
            if sys.stdin.readline():
                return
            break
        for process in processes_of(driver, folder):
            known[process.pid, process.create_time()] = process
    time.sleep(_GRACE_S)  # most of Ray's processes end with their parent
    for process in known.values():
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()  # does nothing if another process has got its number
    shutil.rmtree(folder, ignore_errors=True)


def processes_of(driver: int, folder: str) -> list[psutil.Process]:
    """The processes of the Ray that the driver has started in that folder: children of it that were told of the folder,
    and all below them. None if the driver is gone."""
    found: list[psutil.Process] = []
    with contextlib.suppress(psutil.NoSuchProcess):
        for child in psutil.Process(driver).children():
            with contextlib.suppress(psutil.NoSuchProcess):
                command = child.cmdline()
                if any(folder in word for word in command) and "actors.reaper" not in command:
                    found += [child, *child.children(recursive=True)]
    return found


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
