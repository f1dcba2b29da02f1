"""Which file systems tell everything that happens in them: those that only this machine writes to."""

from collections.abc import Iterable

LOCAL = frozenset({"btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "tmpfs", "xfs"})
"""File systems that are changed through this kernel only. Not zfs: it can put an older state back under open files."""


def tells_everything(folder: str, mountinfo: str) -> bool:
    """Tell whether all that leads to a folder and lies in it is local, as /proc/self/mountinfo says it.

    Nothing may be mounted inside: what is written to a single file that is mounted is told where it comes from.
    """
    kinds = [kind for point, kind in _mounts(mountinfo) if _leads_to(point, folder)]
    inside = any(point.startswith(f"{folder}/") for point, _ in _mounts(mountinfo))
    return bool(kinds) and not inside and LOCAL.issuperset(kinds)


def _mounts(mountinfo: str) -> Iterable[tuple[str, str]]:
    """Return each place where something is mounted, and the kind of its file system."""
    for line in mountinfo.splitlines():
        place, _, source = line.partition(" - ")
        yield _plain(place.split(" ")[4]), source.split(" ")[0]


def _leads_to(point: str, folder: str) -> bool:
    return point == "/" or folder == point or folder.startswith(f"{point}/")


def _plain(path: str) -> str:
    """Return a path whose spaces, tabs, line ends and backslashes were written as octal numbers."""
    for character in (" ", "\t", "\n", "\\"):
        path = path.replace(f"\\{ord(character):03o}", character)
    return path
