"""The floor: a native loop that receives and sends the datagrams, one system call each, and nothing else."""

NAME = "floor"
VARIANTS = ("",)
REQUIRES: tuple[str, ...] = ()
GIVES = "a native loop, one system call for each datagram"
LACKS = (
    "everything else: what stands here is the system's part, which nobody who sends datagrams singly can save"
)
SWARM = "udp"
RELIABLE = False
DATAGRAMS = True
UNRELIABLE = True
NATIVE = True
WAKES = "it has no Python, which is what is woken here"


def missing(_variant: str) -> str | None:
    return None
