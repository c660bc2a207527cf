"""How the paths of tool calls are spelled before a glob meets them."""

from __future__ import annotations


def normalise_path(path: str, project_root: str | None) -> str:
    """The path with `/` for `\\`, relative to the project when it lies below `project_root`.

    Nothing else changes: `./`, `..` and paths outside the root stay as the model wrote them.
    """
    path = path.replace("\\", "/")
    if not project_root:
        return path
    root = project_root.replace("\\", "/").rstrip("/") + "/"
    # Drive letters mark a file system that does not tell case apart.
    ignores_case = root[1:2] == ":"
    below = path.lower().startswith(root.lower()) if ignores_case else path.startswith(root)
    return path[len(root) :] if below and len(path) > len(root) else path
