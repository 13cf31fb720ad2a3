"""Ends what a killed driver leaves behind: `python -m actors.reaper PID FOLDER`, started by the driver itself.

A driver that ends by itself stops its Ray; one that is killed cannot, and some of Ray's processes live on. The reaper
knows the driver's descendants, waits on its standard input, and when that closes without a word kills those that are
still there and removes the run's temporary folder.
"""

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
        for process in descendants(driver):
            known[process.pid, process.create_time()] = process
    time.sleep(_GRACE_S)  # most of Ray's processes end with their parent
    own = psutil.Process().pid
    for process in known.values():
        if process.pid != own and process.is_running():
            process.kill()
    shutil.rmtree(folder, ignore_errors=True)


def descendants(driver: int) -> list[psutil.Process]:
    """All processes under the driver, none if it is gone."""
    try:
        return list(psutil.Process(driver).children(recursive=True))
    except psutil.NoSuchProcess:
        return []


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
