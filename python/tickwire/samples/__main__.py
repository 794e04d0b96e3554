"""``python -m tickwire.samples``: says which samples there are."""

from tickwire import samples

if __name__ == "__main__":
    print((samples.__doc__ or "").replace("``", ""))
