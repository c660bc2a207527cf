"""The libraries of all users below one root."""

from __future__ import annotations

import threading
from pathlib import Path

from ttsr_proxy.library.errors import InvalidArgument
from ttsr_proxy.library.storage.user_library import UserLibrary
from ttsr_proxy.library.uris import is_user_id


class Libraries:
    """Hands out one `UserLibrary` for each user; the user's name comes from authentication only."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._users = root / "users"
        self._open: dict[str, UserLibrary] = {}
        self._mutex = threading.Lock()

    def of(self, user: str) -> UserLibrary:
        """The user's library, which may not exist on disk yet.

        Raises InvalidArgument for a name that cannot be a user, or that differs from another user's only in
        case: their folders are one on some file systems.
        """
        with self._mutex:
            if user not in self._open:
                self._check(user)
                self._open[user] = UserLibrary(self._users / user / "memories" / "rules", user)
            return self._open[user]

    def _check(self, user: str) -> None:
        if not is_user_id(user):
            raise InvalidArgument(f"{user[:100]!r} cannot be a user's name")
        present = {path.name for path in self._users.iterdir()} if self._users.is_dir() else set()
        for other in (present | self._open.keys()) - {user}:
            if other.casefold() == user.casefold():
                raise InvalidArgument(f"user {user!r} differs from user {other!r} only in case")
