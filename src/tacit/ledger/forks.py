"""Prevent forks in the middle of a SQLite transaction.

SQLite stores the locks of a process in its memory. If a process forks while one of its threads
holds a lock, the child believes that it owns the lock and never releases it.
"""

from __future__ import annotations

import os
import threading

#: Held while a connection is open, and while a process is forked.
no_fork = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=no_fork.acquire, after_in_parent=no_fork.release, after_in_child=no_fork.release
    )
