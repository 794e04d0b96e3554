"""``tickwire plot``: pictures of captures (with matplotlib, the extra ``plots``)."""

from tickwire.plots.series import Series, series_of

__all__ = ["Series", "series_of"]
