"""No process is forked in the middle of a transaction with SQLite.

SQLite keeps the locks of a process in its memory. A child that is forked while a thread of its
parent holds one would take it for its own, for ever.
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
