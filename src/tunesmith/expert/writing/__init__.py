"""From a model and a schedule to a template file."""

from tunesmith.expert.writing.naming import Unwritable
from tunesmith.expert.writing.rules import structural_rules
from tunesmith.expert.writing.write import write

__all__ = ["Unwritable", "structural_rules", "write"]
