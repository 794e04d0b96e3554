"""All features, in the order in which they act."""

from explore.features.boxes import Boxes
from explore.features.budget import Budget
from explore.features.calls import Calls
from explore.features.chunks import Chunks
from explore.features.churn import Churn
from explore.features.columns import Columns
from explore.features.ghosts import CodedGhosts, Ghosts
from explore.features.grid import Grid
from explore.features.hidden import Hidden
from explore.features.hooks import Hooks
from explore.features.inputs import Inputs
from explore.features.line import BadLine
from explore.features.messages import Messages
from explore.features.past import Past
from explore.features.payloads import Payloads
from explore.features.prediction import Avatars
from explore.features.quiet import Quiet
from explore.features.rates import Rates
from explore.features.redial import Redial
from explore.features.references import References
from explore.features.requests import Requests
from explore.features.rooms import Rooms
from explore.features.stalls import Stalls
from explore.features.styles import Styles
from explore.features.views import Views
from explore.game import Feature

ALL: dict[str, type[Feature]] = {
    # What the game is like.
    "line": BadLine,
    "rates": Rates,
    "styles": Styles,
    "quiet": Quiet,
    "churn": Churn,
    "redial": Redial,
    "budget": Budget,
    "stalls": Stalls,
    "hooks": Hooks,
    # What it uses.
    "chunks": Chunks,
    "messages": Messages,
    "calls": Calls,
    "requests": Requests,
    "rooms": Rooms,
    "columns": Columns,
    "payloads": Payloads,
    "ghosts": Ghosts,
    "coded": CodedGhosts,
    "hidden": Hidden,
    "boxes": Boxes,
    "references": References,
    "grid": Grid,
    "inputs": Inputs,
    "prediction": Avatars,
    "views": Views,
    "past": Past,
}
