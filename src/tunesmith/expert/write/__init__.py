"""From a model and a schedule to a template file."""

from tunesmith.expert.write.given import Unwritable
from tunesmith.expert.write.page import render_draft
from tunesmith.expert.write.rules import structural_rules

__all__ = ["Unwritable", "render_draft", "structural_rules"]
