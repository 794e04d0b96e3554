"""``python -m tickwire.samples``: lists the samples."""

from tickwire import samples

if __name__ == "__main__":
    print((samples.__doc__ or "").replace("``", ""))
