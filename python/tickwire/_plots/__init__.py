"""``tickwire plot``: plots of captures (with matplotlib, the extra ``plots``)."""

from tickwire._plots.series import Series, series_of

__all__ = ["Series", "series_of"]
