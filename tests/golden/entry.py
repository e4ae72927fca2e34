"""All that the net imports of Tunesmith: who moves or renames a module adapts this file, no other here."""
# ruff: noqa: F401

from __future__ import annotations

from tunesmith.base import plugins
from tunesmith.base.codec import decode_json, encode_json, encode_tagged
from tunesmith.base.errors import BadInput, WaitingForModel
from tunesmith.base.text import sha256_hex
from tunesmith.cli.app import app
from tunesmith.expert.author import ExpertAuthor, read_call, reading_of_call
from tunesmith.expert.moves import MOVES, OWN_TEXT
from tunesmith.plugins.fleet.plan import read_plan
from tunesmith.plugins.hosts.hosts import read_hosts
from tunesmith.problem import device
from tunesmith.problem.device import Device
from tunesmith.problem.dispatch import read_dispatch
from tunesmith.problem.plan import Status
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Template
from tunesmith.profiles.diagnose import diagnose_profile
from tunesmith.run.config import RunConfig, resolve_config
from tunesmith.run.events import (
    EVENT_TYPES,
    Attached,
    Baseline,
    Drafted,
    Enlisted,
    Event,
    Extended,
    Instructed,
    LeftOut,
    Measured,
    NoReply,
    Pending,
    Primed,
    Profiled,
    Protected,
    Recorded,
    Rehearsed,
    Replied,
    Reply,
    Request,
    RunInstruction,
    Served,
    ServedSize,
    Settings,
    Started,
    Surveyed,
    Unanswered,
    Verified,
)
from tunesmith.run.folder import FolderInbox, RunFolder
from tunesmith.run.journal import FIRST as FIRST_DIGEST
from tunesmith.run.journal import decode_record, encode_record
from tunesmith.run.loop import Loop
from tunesmith.run.outcome import Outcome, Trial
from tunesmith.run.ports import Declined, Delivery, Power, Refactoring, RunLog, SizedCall, Written
from tunesmith.run.stages import World
from tunesmith.run.state import State, apply_record, fold_records
from tunesmith.search import load_searcher
from tunesmith.session.problems import change_workloads, load_problem, load_template, templates_of
from tunesmith.session.problems import store_texts as keep_texts
from tunesmith.session.roles import create_talking, prompts_for
from tunesmith.session.roles import of_run as casting_of_run
from tunesmith.space.configset import Config

EXPORTS = plugins.our_names("exports")
