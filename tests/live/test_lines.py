from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eclectus.kubeclient.api_errors import StaleError
from eclectus.live.watch.reflector import LineCutter


@given(
    st.lists(st.binary().map(lambda line: line.replace(b"\n", b"")), max_size=8), st.lists(st.integers(0, 40))
)
def test_however_a_stream_is_cut_into_reads_its_lines_come_out_whole(lines, cuts):
    stream = b"".join(line + b"\n" for line in lines)
    edges = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    cutter = LineCutter()
    found = [line for a, b in pairwise(edges) for line in cutter.feed(stream[a:b])]
    assert found == [line for line in lines if line]


def test_an_endless_line_is_rejected_before_it_fills_the_memory():
    cutter = LineCutter(longest=10)
    cutter.feed(b"123456789")
    with pytest.raises(StaleError, match="more than 10 bytes"):
        cutter.feed(b"123")
