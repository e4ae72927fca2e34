"""The filter of system calls, run step by step as a kernel would."""

from __future__ import annotations

import errno
import struct

import pytest

from tunesmith.lab.worker import sandbox
from tunesmith.lab.worker.sandbox import ALLOW, DENY, FAIL, KILL, assemble_filter

UNKNOWN = FAIL | errno.ENOSYS
OWN = 4321


def verdict(program: bytes, architecture: int, number: int, *arguments: int) -> int:
    shown = struct.pack("<iIQ6Q", number, architecture, 0, *(*arguments, *[0] * 6)[:6])
    steps, at, value = list(struct.iter_unpack("<HBBI", program)), 0, 0
    while True:
        what, if_so, if_not, operand = steps[at]
        at += 1
        if what == 0x20:
            (value,) = struct.unpack_from("<I", shown, operand)
        elif what == 0x54:
            value &= operand
        elif what == 0x06:
            return int(operand)
        else:
            holds = {0x15: value == operand, 0x35: value >= operand, 0x45: bool(value & operand)}[what]
            at += if_so if holds else if_not


CASES = [
    # x86-64, aarch64, arguments, what becomes of it
    (0, 63, (), ALLOW),  # read
    (59, 221, (), ALLOW),  # execve
    (16, 29, (), ALLOW),  # ioctl
    (41, 198, (1,), DENY),  # socket, of any kind
    (42, 203, (), DENY),  # connect
    (53, 199, (1, 1 | 0o2000000), ALLOW),  # socketpair of streams, closed when a program starts
    (53, 199, (1, 2), DENY),  # of datagrams
    (53, 199, (2, 1), DENY),  # of another family
    (101, 117, (), DENY),  # ptrace
    (321, 280, (), DENY),  # bpf
    (425, 425, (), DENY),  # io_uring_setup
    (272, 97, (), DENY),  # unshare
    (435, 435, (), UNKNOWN),  # clone3
    (56, 220, (0x11,), ALLOW),  # clone, as fork does
    (56, 220, (0x10000011,), DENY),  # with a user namespace
    (302, 261, (0,), ALLOW),  # prlimit64 of itself
    (302, 261, (1,), DENY),
    (62, 129, (1,), ALLOW),  # kill: Landlock's to refuse
]


@pytest.mark.parametrize("machine", sandbox.MACHINES)
def test_calls(machine: str) -> None:
    audit, column = sandbox.MACHINES[machine]
    program = assemble_filter(machine)
    for *numbers, arguments, wanted in CASES:
        assert verdict(program, audit, numbers[column], *arguments) == wanted, numbers
    assert verdict(program, audit ^ 1, 0) == KILL, "of another machine"
    assert len(program) // 8 < 4096, "what a kernel takes"


def test_the_third_kind_of_calls_is_none() -> None:
    assert verdict(assemble_filter("x86_64"), 0xC000003E, 0x40000000) == KILL
    assert verdict(assemble_filter("x86_64"), 0xC000003E, -1) == KILL


def test_where_the_network_is_let_through() -> None:
    program = assemble_filter("x86_64", sockets="all")
    assert [verdict(program, 0xC000003E, number, 2, 2) for number in (41, 42, 53)] == [ALLOW] * 3
    assert verdict(program, 0xC000003E, 101) == DENY


def test_a_driver_may_wait_and_lets_nobody_in() -> None:
    program = assemble_filter("x86_64", sockets="listening")
    wait = [(41, 1, 5 | 0o2000000), (49,), (50,)]  # socket of sequenced packets, bind, listen
    assert [verdict(program, 0xC000003E, *call) for call in wait] == [ALLOW] * 3
    refused = [(41, 1, 1), (41, 1, 2), (41, 2, 5), (42,), (43,), (288,), (53, 1, 2)]
    assert [verdict(program, 0xC000003E, *call) for call in refused] == [DENY] * 7


@pytest.mark.parametrize("number", [62, 200, 234, 129, 297])
def test_signals_that_reach_nobody_else(number: int) -> None:
    program = assemble_filter("x86_64", own_process=OWN)
    verdicts = {who: verdict(program, 0xC000003E, number, who) for who in (OWN, 0, 1, 0xFFFFFFFF)}
    assert verdicts == {OWN: ALLOW, 0: ALLOW, 1: DENY, 0xFFFFFFFF: DENY}
    assert verdict(program, 0xC000003E, 424) == DENY


def test_a_machine_that_nobody_numbered() -> None:
    with pytest.raises(KeyError):
        assemble_filter("riscv64")
