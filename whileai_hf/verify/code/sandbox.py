"""What a worker gives up before it runs a candidate: namespaces, Landlock, seccomp, rlimits."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import resource
import signal
import struct
import sys

LEVELS = ("namespaces", "landlock", "rlimit")
_LIBC = ctypes.CDLL(None, use_errno=True)
_NAMESPACES = 0x20000 | 0x4000000 | 0x8000000 | 0x10000000 | 0x20000000 | 0x40000000
_ARCH = {"x86_64": (0xC000003E, 0, 56, 435), "aarch64": (0xC00000B7, 1, 220, 435)}
# Refused calls: (x86_64, aarch64). Tracing, other processes' memory, mounts, keys, kernel modules,
# io_uring, bpf, persistent IPC, sockets.
_REFUSED = (
    (101, 117), (310, 270), (311, 271), (312, 272), (438, 438), (434, 434), (424, 424), (298, 241),
    (321, 280), (323, 282), (165, 40), (166, 39), (155, 41), (161, 51), (272, 97), (308, 268),
    (428, 428), (429, 429), (430, 430), (431, 431), (432, 432), (433, 433), (442, 442), (250, 219),
    (248, 217), (249, 218), (425, 425), (426, 426), (427, 427), (175, 105), (313, 273), (176, 106),
    (246, 104), (169, 142), (303, 264), (304, 265), (319, 279), (447, 447), (29, 194), (64, 190),
    (68, 186), (240, 180), (103, 116), (141, 140), (41, 198), (302, 261),
)  # fmt: skip


def _call(number: int, *args: object) -> int:
    result = int(_LIBC.syscall(ctypes.c_long(number), *args))
    if result < 0:
        raise OSError(ctypes.get_errno(), f"system call {number}")
    return result


def prctl(option: int, value: int = 0, pointer: int = 0) -> None:
    """Call prctl(2) and raise OSError when it refuses."""  # noqa: D402
    words = [ctypes.c_ulong(word) for word in (value, pointer, 0, 0)]
    if _LIBC.prctl(option, *words) < 0:
        raise OSError(ctypes.get_errno(), f"prctl {option}")


def die_with_parent() -> None:
    """Ask the kernel to kill this process when its parent ends."""
    if sys.platform == "linux":
        prctl(1, signal.SIGKILL)


def landlock_abi() -> int:
    """Landlock's ABI version, 0 where there is none."""
    if sys.platform != "linux" or platform.machine() not in _ARCH:
        return 0
    try:
        return _call(444, None, ctypes.c_size_t(0), 1)
    except OSError:
        return 0


def _landlock(scratch: str) -> None:
    abi = landlock_abi()
    rights = (1 << {1: 13, 2: 14, 3: 15, 4: 15}.get(abi, 16)) - 1
    attr = struct.pack("QQQ", rights, 3 if abi >= 4 else 0, 3 if abi >= 6 else 0)
    ruleset = _call(444, attr, ctypes.c_size_t(8 if abi < 4 else 16 if abi < 6 else 24), 0)
    system = ["/usr", "/lib", "/lib64", "/bin", sys.base_prefix, sys.prefix]
    rules = [(path, 1 | 4 | 8) for path in system]
    rules += [(scratch, rights & ~(1 << 6 | 1 << 11))]
    rules += [(path, 2 | 4) for path in ("/dev/null", "/dev/zero", "/dev/urandom")]
    for path, wanted in rules:
        with contextlib.suppress(FileNotFoundError):
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
            _call(445, ruleset, 1, struct.pack("=Qi", wanted & rights, fd), 0)
            os.close(fd)
    _call(446, ruleset, 0)
    os.close(ruleset)


def _seccomp() -> None:
    arch, column, clone, clone3 = _ARCH[platform.machine()]
    load, equal, at_least, bits, give = 0x20, 0x15, 0x35, 0x45, 0x06
    refuse = 0x00050000
    program = [(load, 0, 0, 4), (equal, 1, 0, arch), (give, 0, 0, 0x80000000), (load, 0, 0, 0)]
    program += [(at_least, 0, 1, 0x40000000), (give, 0, 0, refuse | 38)]
    for numbers in _REFUSED:
        program += [(equal, 0, 1, numbers[column]), (give, 0, 0, refuse | 1)]
    program += [(equal, 0, 1, clone3), (give, 0, 0, refuse | 38)]
    program += [(equal, 0, 3, clone), (load, 0, 0, 16)]
    program += [(bits, 0, 1, 0x7E020080), (give, 0, 0, refuse | 1), (give, 0, 0, 0x7FFF0000)]
    code = b"".join(struct.pack("HBBI", *step) for step in program)
    buffer = ctypes.create_string_buffer(code)
    header = ctypes.create_string_buffer(
        struct.pack("HxxxxxxP", len(program), ctypes.addressof(buffer))
    )
    prctl(22, 2, ctypes.addressof(header))


def _limits(timeout: float, memory_mb: int) -> None:
    wanted = {
        resource.RLIMIT_AS: memory_mb << 20,
        resource.RLIMIT_CPU: int(timeout) + 1,
        resource.RLIMIT_FSIZE: 16 << 20,
        resource.RLIMIT_NOFILE: 64,
        resource.RLIMIT_NPROC: 32,
        resource.RLIMIT_CORE: 0,
    }
    for which, value in wanted.items():
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(which, (value, value))


def _own_user() -> None:
    """As root, become a user that owns nothing, so that limits bind and files are closed."""
    if os.geteuid() == 0:
        user = 61_000 + os.getpid() % 4_000
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
        prctl(4, 1)
        die_with_parent()


def _namespaces(scratch: str) -> None:
    uid, gid = os.geteuid(), os.getegid()
    if _LIBC.unshare(_NAMESPACES) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"1000 {uid} 1"),
        ("gid_map", f"1000 {gid} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:  # noqa: PTH123
            file.write(text)
    child = os.fork()
    if child:
        os.closerange(0, 256)
        os.waitpid(child, 0)
        os._exit(0)
    die_with_parent()
    _mount("none", "/", None, 16384 | 1 << 18)
    _mount("tmpfs", scratch, b"tmpfs", 6, b"size=64m,mode=0700,nr_inodes=10000")


def _mount(source: str, target: str, kind: bytes | None, flags: int, options: bytes = b"") -> None:
    words = (source.encode(), target.encode(), kind, ctypes.c_ulong(flags), options)
    if _LIBC.mount(*words) != 0:
        raise OSError(ctypes.get_errno(), f"mount {target}")


def _open_interpreter(scratch: str) -> None:
    """As root, in a mount namespace of our own, show an interpreter that lies in a private home.

    Imports of the candidate run as another user, which cannot walk through a closed folder.
    """
    blocked: dict[str, str] = {}
    for prefix in {sys.base_prefix, sys.prefix}:
        parts = prefix.strip("/").split("/")
        parents = ["/" + "/".join(parts[: i + 1]) for i in range(len(parts))]
        wall = next((path for path in parents if not os.stat(path).st_mode & 1), None)  # noqa: PTH116
        if wall is not None:
            blocked[prefix] = wall
    if not blocked or _LIBC.unshare(0x20000) != 0:
        return
    _mount("none", "/", None, 16384 | 1 << 18)
    stages = {prefix: f"{scratch}/{i}" for i, prefix in enumerate(blocked)}
    for prefix, stage in stages.items():
        os.mkdir(stage)  # noqa: PTH102
        _mount(prefix, stage, None, 4096 | 16384)
    for wall in set(blocked.values()):
        _mount("tmpfs", wall, b"tmpfs", 6, b"size=1m,mode=0755")
    for prefix, stage in stages.items():
        os.makedirs(prefix)  # noqa: PTH103
        _mount(stage, prefix, None, 4096 | 16384)
        _LIBC.umount2(stage.encode(), 2)
        os.rmdir(stage)  # noqa: PTH106


def enter(level: str, scratch: str, timeout: float, memory_mb: int) -> None:
    """Give up everything that `level` names; raises OSError when the machine refuses."""
    os.setsid()
    die_with_parent()
    if level != "rlimit":
        if os.geteuid() == 0:
            _open_interpreter(scratch)
        _own_user()
    if level == "namespaces":
        _namespaces(scratch)
    os.chdir(scratch)
    os.environ.clear()
    os.environ.update(HOME=scratch, TMPDIR=scratch, PATH="/usr/bin:/bin", LANG="C.UTF-8")
    _limits(timeout, memory_mb)
    if level != "rlimit":
        for capability in range(64):
            _LIBC.prctl(24, ctypes.c_ulong(capability), 0, 0, 0)
        prctl(38, 1)
        number = 126 if platform.machine() == "x86_64" else 91
        _call(number, struct.pack("Ii", 0x20080522, 0), b"\0" * 24)
        _landlock(scratch)
        _seccomp()
