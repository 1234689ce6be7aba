"""Host ports in use, by address and by row."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from eclectus.cluster.host_ports import ANY_ADDRESS, HostPorts
from eclectus.model.objects import HostPort

PORTS = st.builds(
    HostPort,
    st.integers(1, 2),
    st.sampled_from(["TCP", "UDP"]),
    st.sampled_from([ANY_ADDRESS, "10.0.0.1", "10.0.0.2"]),
)
HELD = st.lists(st.tuples(PORTS, st.integers(0, 2)), max_size=8)


def conflicts(one: HostPort, other: HostPort) -> bool:
    same = (one.port, one.protocol) == (other.port, other.protocol)
    return same and (one.ip == other.ip or ANY_ADDRESS in (one.ip, other.ip))


@given(HELD, HELD, PORTS)
def test_each_held_port_that_overlaps_is_counted_once(
    held: list[tuple[HostPort, int]], gone: list[tuple[HostPort, int]], wanted: HostPort
) -> None:
    ports = HostPorts()
    for port, row in (*held, *gone):
        ports.hold(port, row)
    for port, row in gone:
        ports.release(port, row)
    for row in range(3):
        assert ports.count(wanted, row) == sum(at == row and conflicts(wanted, port) for port, at in held)
    assert {row for pods in ports.conflicting(wanted) for row in pods} == {
        row for port, row in held if conflicts(wanted, port)
    }
