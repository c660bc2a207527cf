"""Where the bars of a chart stand."""

from __future__ import annotations

from ttsr_proxy.interrupts.store import Tally
from ttsr_proxy.web.dashboard.charts import HEIGHT, WIDTH, chart, period_of


def tally(count: int) -> Tally:
    return Tally((), count, 0, 0.0, 0, 0.0)


def test_every_period_has_its_place_and_the_highest_bar_fills_the_chart() -> None:
    drawn = chart([(3600.0, "clean", tally(3)), (3600.0, "failed", tally(1))], 0.0, 10_800.0, 3600.0)
    assert [bar.start for bar in drawn.bars] == [0.0, 3600.0, 7200.0, 10_800.0]
    assert [bar.count for bar in drawn.bars] == [0, 4, 0, 0]
    assert [bar.start for bar in drawn.counted] == [3600.0]
    held, again = drawn.bars[1].parts
    assert (held.series, held.y, held.height) == ("held", HEIGHT / 4, HEIGHT * 3 / 4)
    assert (again.series, again.y, again.height) == ("again", 0.0, HEIGHT / 4)
    assert drawn.bars[-1].x + drawn.bars[-1].width <= WIDTH


def test_a_chart_of_nothing_has_empty_bars() -> None:
    drawn = chart([], 0.0, 86_400.0, period_of(86_400.0))
    assert (len(drawn.bars), drawn.highest, drawn.counted) == (25, 0, ())
