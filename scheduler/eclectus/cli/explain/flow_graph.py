"""The picture of a flow problem's part that is about a pod: one file of HTML, without scripts."""

from html import escape

from eclectus.cli.explain.explained_text import quantity
from eclectus.model.explanation import FlowArc, FlowPart, PodExplanation

WIDTH, ROW, TOP = 720, 30, 40  # pixels

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>{title}</title>
<style>
body {{ font: 14px sans-serif; margin: 2em }}
line {{ stroke: #999 }}
line.flow {{ stroke: #0b6e4f }}
text.number {{ fill: #666; font-size: 12px }}
</style>
<h1>{title}</h1>
<p>{about}</p>
<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" aria-label="{about}">
{body}
</svg>
<p>Lines: cost of one pod, and how many pods of the group are sent that way. Green: some are.</p>
</html>
"""


def flow_page(pod: PodExplanation) -> str:
    """The page. Raises LookupError where the pod was in no flow problem, or not in the last one."""
    flow = pod.flow
    if flow is None:
        raise LookupError(
            f"{pod.namespace}/{pod.name} was not in the last flow problem of its profile, or that has none"
        )
    arcs = [(flow.without_node, flow.staying, flow.stay, ""), *_arcs(flow)]
    height = TOP + ROW * (len(arcs) + 1)
    middle = height // 2
    body = [_text(10, middle, f"{flow.pods} pods")]
    for at, (name, cost, pods, slots) in enumerate(arcs):
        y = TOP + ROW * at
        kind = ' class="flow"' if pods else ""
        width = min(1 + pods, 12)
        body.append(f'<line{kind} x1="80" y1="{middle}" x2="430" y2="{y}" stroke-width="{width}"/>')
        body.append(_text(440, y, name))
        body.append(_text(610, y, f"cost {cost}, {pods} pods{slots}", ' class="number"'))
    why = f": {flow.why}" if flow.why else ""
    about = (
        f"Asked {flow.asked:.1f} s before; {flow.groups} groups and {flow.arcs} arcs in all; "
        f"{flow.answer}{why}. {flow.not_listed} dearer nodes are left out."
    )
    title = f"Flow of {pod.namespace}/{pod.name}"
    width = WIDTH + 160
    return _PAGE.format(
        title=escape(title), about=escape(about), width=width, height=height, body="\n".join(body)
    )


def _arcs(flow: FlowPart) -> list[tuple[str, int, int, str]]:
    return [(each.node, each.cost, each.flow, f" of {each.slots} slots{_moved(each)}") for each in flow.nodes]


def _moved(arc: FlowArc) -> str:
    """How many bytes of the pod's data would move to the node."""
    if arc.in_rack is None or arc.across is None:
        return ""
    return f"; {quantity('memory', arc.in_rack)} from its rack, {quantity('memory', arc.across)} from others"


def _text(x: int, y: int, words: str, kind: str = "") -> str:
    return f'<text{kind} x="{x}" y="{y + 5}">{escape(words)}</text>'
