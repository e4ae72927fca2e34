"""A filter of system calls: what a worker may not ask of the kernel, as a program that the kernel runs."""

from __future__ import annotations

import errno
import struct

Number = int | tuple[int, int | None]
# By name: the numbers on x86-64 and on aarch64; one where it is the same on both.
_NETWORK = {"connect": (42, 203), "accept": (43, 202), "accept4": (288, 242)}
_LISTENING = {"bind": (49, 200), "listen": (50, 201)}
_DENIED: dict[str, Number] = {
    # other processes, and what would let a child outlive the group it is killed with
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_getfd": 438, "process_madvise": 440, "process_mrelease": 448,
    "setsid": (112, 157), "setpgid": (109, 154),
    # another view of the machine
    "unshare": (272, 97), "setns": (308, 268), "chroot": (161, 51), "pivot_root": (155, 41),
    "mount": (165, 40), "umount2": (166, 39), "open_tree": 428, "move_mount": 429, "fsopen": 430,
    "fsconfig": 431, "fsmount": 432, "fspick": 433, "mount_setattr": 442, "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262), "quotactl": (179, 60), "quotactl_fd": 443, "acct": (163, 89),
    "swapon": (167, 224), "swapoff": (168, 225),
    # wide doors into the kernel
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "io_uring_setup": 425,
    "io_uring_enter": 426, "io_uring_register": 427, "keyctl": (250, 219), "add_key": (248, 217),
    "request_key": (249, 218), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "kexec_load": (246, 104), "kexec_file_load": (320, 294),
    "syslog": (103, 116), "reboot": (169, 142), "vhangup": (153, 58), "sethostname": (170, 161),
    "setdomainname": (171, 162), "settimeofday": (164, 170), "clock_settime": (227, 112),
    "clock_adjtime": (305, 266), "iopl": (172, None), "ioperm": (173, None), "modify_ldt": (154, None),
}  # fmt: skip
_SOCKET, _SOCKETPAIR, _CLONE, _CLONE3, _PRLIMIT = (41, 198), (53, 199), (56, 220), 435, (302, 261)
# Which process each of these reaches is its first argument.
_SIGNALS = {
    "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
}  # fmt: skip
_PIDFD_SEND_SIGNAL = 424
MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}  # as an audit names them, and our column
_X32 = 0x40000000  # the first number of the calls of a third kind
_NAMESPACES = 0x7E020000  # CLONE_NEW*
_AF_UNIX, _SOCK_STREAM, _SOCK_SEQPACKET, _SOCK_TYPES = 1, 1, 5, 0xF
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
KILL, FAIL, ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
DENY, UNKNOWN = FAIL | errno.EPERM, FAIL | errno.ENOSYS
_NUMBER, _ARCHITECTURE = 0, 4  # where they lie in what a filter is shown
NONE, LISTENING, ALL = "none", "listening", "all"  # of sockets
Instruction = tuple[int, int, int, int]  # what, then how far to jump if so, if not, and the operand


def assemble(machine: str, *, sockets: str = NONE, own_process: int | None = None) -> bytes:
    """`sockets` that may be made: none; such as NVIDIA's driver waits at, where nobody is ever let in; all.
    With `own_process` signals reach that one alone, and none of its children: for kernels whose Landlock
    does not keep them in. KeyError for other machines."""
    audit, column = MACHINES[machine]

    def on_it(number: Number) -> int | None:
        return number if isinstance(number, int) else number[column]

    def when(number: Number, *then: Instruction) -> list[Instruction]:
        own = on_it(number)
        return [] if own is None else [(_EQUAL, 0, len(then), own), *then]

    code: list[Instruction] = [(_LOAD, 0, 0, _ARCHITECTURE), (_EQUAL, 1, 0, audit), (_RETURN, 0, 0, KILL)]
    code += [(_LOAD, 0, 0, _NUMBER), (_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, KILL)]
    deny, allow = (_RETURN, 0, 0, DENY), (_RETURN, 0, 0, ALLOW)
    for denied in _denied(sockets):
        code += when(denied, deny)
    # Its arguments lie in memory, where a filter does not look: callers go on with clone.
    code += when(_CLONE3, (_RETURN, 0, 0, UNKNOWN))
    code += when(_CLONE, _argument(0), (_ANY_BIT, 0, 1, _NAMESPACES), deny, allow)
    code += when(_PRLIMIT, _argument(0), (_EQUAL, 1, 0, 0), deny, allow)
    if sockets != ALL:
        local = [_argument(0), (_EQUAL, 0, 3, _AF_UNIX), _argument(1), (_AND, 0, 0, _SOCK_TYPES)]
        # Pairs of streams: a datagram of a pair could be sent elsewhere.
        code += when(_SOCKETPAIR, *local, (_EQUAL, 1, 0, _SOCK_STREAM), deny, allow)
    if sockets == LISTENING:
        code += when(_SOCKET, *local, (_EQUAL, 1, 0, _SOCK_SEQPACKET), deny, allow)
    if own_process is not None:
        code += when(_PIDFD_SEND_SIGNAL, deny)
        own_or_group = [(_EQUAL, 2, 0, 0), (_EQUAL, 1, 0, own_process)]
        for signal in _SIGNALS.values():
            code += when(signal, _argument(0), *own_or_group, deny, allow)
    return b"".join(struct.pack("<HBBI", *step) for step in [*code, allow])


def _denied(sockets: str) -> list[Number]:
    more = {NONE: [_SOCKET, *_NETWORK.values(), *_LISTENING.values()], LISTENING: list(_NETWORK.values())}
    return [*_DENIED.values(), *more.get(sockets, [])]


def _argument(place: int) -> Instruction:
    return (_LOAD, 0, 0, 16 + 8 * place)  # its lower half: that of every argument we look at
