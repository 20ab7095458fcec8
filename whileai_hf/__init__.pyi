# The front door, by room. lazy_loader reads this file: one line a name.
from .errors import AgentFailed as AgentFailed
from .errors import GuardError as GuardError
from .errors import InputError as InputError
from .errors import MissingExtra as MissingExtra
from .errors import SchemaError as SchemaError
from .errors import WhileaiError as WhileaiError
from .grade.runner import grade as grade
from .hub.load import load as load
from .hub.push import push as push
from .importers import from_chats as from_chats
from .importers import rows as rows
from .measure.interval import Interval as Interval
from .measure.pass_at import PassAt as PassAt
from .measure.pass_at import pass_at as pass_at
from .messages import tool_calls as tool_calls
from .rollouts import Rollouts as Rollouts
from .schema import FEATURES as FEATURES
from .simulate.engine import simulate as simulate
from .simulate.grid import coverage as coverage
from .simulate.seeded_agent import seeded_agent as seeded_agent
from .training.monitor import HackMonitor as HackMonitor
from .world.tools import tool as tool
from .world.tools import tool_schemas as tool_schemas
from .world.world import World as World

__version__: str
