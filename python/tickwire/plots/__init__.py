"""``tickwire plot``: plots of captures and soak runs (with matplotlib, the extra ``plots``)."""

from tickwire.plots.series import Series, series_of
from tickwire.plots.soak import Soak, read_soak

__all__ = ["Series", "Soak", "read_soak", "series_of"]
