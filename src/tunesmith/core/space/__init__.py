"""Search spaces: parameters, constraints, and the configurations they leave."""

from tunesmith.core.space.configset import ConfigSet
from tunesmith.core.space.params import Config, Param
from tunesmith.core.space.space import Constraint, Space, Violation

__all__ = ["Config", "ConfigSet", "Constraint", "Param", "Space", "Violation"]
