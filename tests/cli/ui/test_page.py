"""The page of `eclectus ui` in headless Chromium, used by clicks and keys."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from browser import chromium, opened_page
from eclectus.cli.ui.comparison import read_comparison
from eclectus.cli.ui.readings import PAGE_ITEMS, Readings
from eclectus.cli.ui.server import application
from visibility_server import HOSTILE, VisibilityServer

pytestmark = [
    pytest.mark.skipif(chromium() is None, reason="no Chromium: apt-get install chromium brings it"),
    pytest.mark.long,
]
TOKEN = "t" * 20
CHANGED = "document.dispatchEvent(new Event('visibilitychange'));"  # upon which a page that is seen asks
SEEN = "Object.defineProperty(document, 'hidden', {value: %s, configurable: true}); " + CHANGED
PLANNED = "planned = []; setTimeout = (act) => planned.push(act);"  # instead of waiting


@asynccontextmanager
async def visited(folder, width=1400, comparison=None, first="#queue table", **numbers):
    """A page that shows a cluster, and perhaps a comparison: (page, upstream)."""
    upstream = VisibilityServer(**numbers)
    async with upstream.client() as client:
        app = application(Readings(client), TOKEN, {"namespace": "shop", "server": "https://c"}, comparison)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            async with opened_page(folder) as page:
                await page.resize(width, 1000)
                page.url = url
                await page.open(f"{url}/#token={TOKEN}")
                await page.until(shown(first))
                yield page, upstream
                assert page.problems == []
        finally:
            await runner.cleanup()


def shown(selector):
    return f"document.querySelector('{selector}')?.getClientRects().length"


def has(selector, words):
    return f"document.querySelector('{selector}')?.innerText.includes('{words}')"


def row(key):
    return f'[data-key="{key}"]'


def test_a_click_on_a_pod_explains_it_and_the_form_says_what_would_be_different(tmp_path):
    async def play():
        async with visited(tmp_path) as (page, _):
            await page.click(row("shop/web-00001"))
            await page.until(has("#queue article pre", "State:   unschedulable"))
            await page.type("#changes", "request.cpu=1\npriority=7")
            await page.click("#what-if button")
            await page.until("document.querySelectorAll('#queue article pre').length === 2")
            said = await page.value("document.querySelectorAll('#queue article pre')[1].innerText")
            assert "What if:   request.cpu=1\nWhat if:   priority=7" in said
            await page.click("#queue article .close")
            await page.until(f"document.activeElement.matches('{row('shop/web-00001')}')")

    asyncio.run(play())


def test_while_the_scheduler_is_asked_too_much_the_page_says_so_and_asks_again(tmp_path):
    async def play():
        async with visited(tmp_path) as (page, upstream):
            await page.click(row("shop/web-00001"))
            await page.until(shown("#what-if"))
            await page.type("#policy", "kube")
            await page.value(PLANNED)
            upstream.busy = [4, 9]
            await page.click("#what-if button")
            for seconds in (4, 9):
                await page.until(has("#queue article", f"too many. Asking again in {seconds} s"))
                await page.value("planned.splice(0).forEach((act) => act())")
            await page.until(has("[data-key=answer]", "Answer:"))

    asyncio.run(play())


def test_what_a_tenant_writes_stays_text_and_the_secret_leaves_the_address(tmp_path):
    async def play():
        async with visited(tmp_path) as (page, _):
            assert HOSTILE in await page.text("#queue table")
            await page.click(row("shop/web-00000"))
            await page.until(has("#queue article pre", "<img"))
            assert await page.value("document.querySelectorAll('main img').length") == 0
            assert TOKEN not in await page.value("location.href")

    asyncio.run(play())


def test_a_long_queue_is_turned_page_by_page(tmp_path):
    async def play():
        async with visited(tmp_path, pods=2 * PAGE_ITEMS + 1) as (page, _):
            count = "document.querySelectorAll('#queue tbody tr').length"
            assert await page.value(count) == PAGE_ITEMS
            assert f"{PAGE_ITEMS + 1} more after them" in await page.text("#queue .pager")
            await page.click(row("page-next"))
            await page.until(has("#queue .pager", "Page 2"))
            await page.click(row("page-next"))
            await page.until(f"{count} === 1 && {has('#queue .pager', 'Page 3: 1 pod')}")
            await page.click(row("page-before"))
            await page.until(has("#queue .pager", "Page 2"))

    asyncio.run(play())


def test_nodes_have_a_chart_and_a_click_says_what_runs_there(tmp_path):
    async def play():
        async with visited(tmp_path, nodes=10) as (page, _):
            await page.click('nav a[href="#nodes"]')
            await page.until("document.querySelectorAll('#nodes figure polyline').length === 9")
            await page.click(row("node-00003"))
            await page.until(has("#nodes article table", "5500m"))
            await page.until(shown("#nodes figure polyline.chosen"))
            points = (
                "document.querySelector('#nodes polyline.chosen').getAttribute('points').split(' ').length"
            )
            for _ in range(2):
                await page.value(CHANGED)
                await page.until(f"{points} > {await page.value(points)}")

    asyncio.run(play())


def test_pools_are_a_tree_with_bars(tmp_path):
    async def play():
        async with visited(tmp_path) as (page, _):
            await page.click('nav a[href="#pools"]')
            await page.until("document.querySelectorAll('#pools tbody tr').length === 5")
            lines = (await page.text("#pools tbody")).splitlines()
            assert [line.split("\t")[0].strip() for line in lines if "\tcpu" in line]
            indents = (
                "[...document.querySelectorAll('#pools td:first-child span')].map((e) => e.style.paddingLeft)"
            )
            assert await page.value(indents) == ["0em", "0em", "1.2em", "1.2em", "0em"]
            assert await page.value("document.querySelectorAll('#pools rect.above').length") == 1

    asyncio.run(play())


def test_a_click_on_a_job_draws_its_graph_and_when_its_stages_run(tmp_path):
    async def play():
        async with visited(tmp_path) as (page, _):
            await page.click('nav a[href="#jobs"]')
            await page.click(row("shop/diamond"))
            await page.until(shown("#jobs article svg rect.ran"))
            assert await page.value("document.querySelectorAll('#jobs rect.stage').length") == 4
            assert await page.value("document.querySelectorAll('#jobs path.edge').length") == 4
            assert "cpu=1.5" in await page.text("#jobs dl")
            assert "waits for left" in await page.text("#jobs article")

    asyncio.run(play())


def test_another_namespace_is_refused_in_words_and_the_page_recovers(tmp_path):
    async def play():
        async with visited(tmp_path) as (page, _):
            for namespace, seen in (
                ("others", has("#problem", "You may not see this")),
                ("shop", shown("#queue table")),
            ):
                await page.type("#namespace", namespace)
                await page.click("#place button")
                await page.until(seen)
            assert await page.value("document.querySelector('#problem').hidden")

    asyncio.run(play())


def test_the_page_is_used_by_keys_alone(tmp_path):
    async def play():
        async with visited(tmp_path) as (page, _):
            focused = "document.activeElement.dataset.key ?? document.activeElement.innerText"
            for _ in range(20):
                await page.press("Tab")
                if await page.value(focused) == "shop/web-00000":
                    break
            assert "none" not in await page.value("getComputedStyle(document.activeElement).outlineStyle")
            await page.press("Enter")
            await page.until(has("#queue article pre", "web-00000"))
            await page.press("Tab")
            assert await page.value(focused) == "close", "the keyboard goes on in what was opened"
            await page.press("Enter")
            await page.until(f"({focused}) === 'shop/web-00000'")

    asyncio.run(play())


def test_what_is_read_stays_where_it_is_when_it_is_drawn_again(tmp_path):
    async def play():
        async with visited(tmp_path, width=375) as (page, upstream):
            await page.click('nav a[href="#jobs"]')
            await page.click(row("shop/diamond"))
            await page.until(shown("#jobs article svg rect.ran"))
            await page.value("document.querySelector('[data-key=gantt]').scrollTo(50, 0)")
            await page.value("old = document.querySelector('#jobs svg')")
            await page.value(CHANGED)
            await page.until("!old.isConnected")
            assert await page.value("document.querySelector('[data-key=gantt]').scrollLeft") == 50
            # A text that is marked is not drawn anew.
            await page.value(
                "old = document.querySelector('#jobs dl'); getSelection().selectAllChildren(old)"
            )
            asked = len(upstream.asked)
            await page.value(PLANNED + CHANGED)
            await page.until("planned.length === 1")
            assert (len(upstream.asked) > asked, await page.value("old.isConnected")) == (True, True)

    asyncio.run(play())


@pytest.mark.parametrize("width", [375, 1400])
def test_a_saved_comparison_is_the_first_panel_with_charts_and_tables(tmp_path, comparison_file, width):
    async def play():
        found = read_comparison(comparison_file)
        async with visited(tmp_path, width, found, "#comparison table") as (page, upstream):
            assert upstream.asked == []
            assert await page.value("document.querySelectorAll('#comparison svg').length") == len(
                found["figures"]
            )
            dots = "document.querySelectorAll('#comparison svg:first-child circle.mean').length"
            assert await page.value(dots) == 2
            assert found["figures"][0]["values"][1]["text"] in await page.text("#comparison table")
            assert "<b>It shows.</b>" in await page.text("#comparison figure"), "as text"
            assert await page.value("document.documentElement.scrollWidth") <= width
            await page.click('nav a[href="#queue"]')
            await page.until(shown("#queue table"))
            await page.click('nav a[href="#comparison"]')
            await page.until(f"{shown('#comparison table')} && {has('#asked', 'As it was')}")

    asyncio.run(play())


def test_without_a_comparison_there_is_no_tab_for_it(tmp_path):
    async def play():
        async with visited(tmp_path) as (page, _):
            assert (await page.text("nav")).split("\n") == ["Queue", "Nodes", "Pools", "DAG jobs"]

    asyncio.run(play())


@pytest.mark.parametrize("panel", ["queue", "nodes", "pools", "jobs"])
def test_a_phone_need_not_be_scrolled_sideways(tmp_path, panel):
    async def play():
        async with visited(tmp_path, width=375) as (page, _):
            await page.click(f'nav a[href="#{panel}"]')
            await page.until(shown(f"#{panel} tbody tr"))
            if panel != "pools":
                await page.click(f"#{panel} button.row")
                await page.until(shown(f"#{panel} article pre"))
            assert await page.value("document.documentElement.scrollWidth") == 375

    asyncio.run(play())


def test_dark_is_dark(tmp_path):
    async def play():
        async with visited(tmp_path) as (page, _):
            ground = "getComputedStyle(document.body).backgroundColor"
            light = await page.value(ground)
            await page.resize(1400, 1000, dark=True)
            return light, await page.value(ground)

    assert asyncio.run(play()) == ("rgb(255, 255, 255)", "rgb(20, 23, 27)")


def test_a_page_that_cannot_be_seen_asks_nothing(tmp_path):
    async def play():
        async with visited(tmp_path) as (page, upstream):
            await page.value(PLANNED + CHANGED)
            await page.until("planned.length === 1")
            await page.value(SEEN % "true")
            asked = len(upstream.asked)
            await page.value("planned.pop()()")
            assert (len(upstream.asked), await page.value("planned.length")) == (asked, 0)
            await page.value(SEEN % "false")
            await page.until("planned.length === 1")
            assert len(upstream.asked) == asked + 1

    asyncio.run(play())


def test_without_the_secret_the_page_says_which_url_to_open(tmp_path):
    async def play():
        async with visited(tmp_path) as (page, _):
            await page.value("sessionStorage.clear()")
            await page.open("about:blank")
            await page.open(f"{page.url}/")
            await page.until(has("#problem", "Open the URL"))

    asyncio.run(play())
