"""What the names of the package are, for type checkers, who see those of plugins too."""

from tunesmith.api import Budget as Budget
from tunesmith.api import check as check
from tunesmith.api import devices as devices
from tunesmith.api import explain as explain
from tunesmith.api import explain_file as explain_file
from tunesmith.api import export as export
from tunesmith.api import load_run as load_run
from tunesmith.api import profile as profile
from tunesmith.api import resume as resume
from tunesmith.api import retune as retune
from tunesmith.api import tune as tune
from tunesmith.api import verify as verify
from tunesmith.api import write_template as write_template
from tunesmith.errors import BadInput as BadInput
from tunesmith.errors import DeviceMissing as DeviceMissing
from tunesmith.errors import Interrupted as Interrupted
from tunesmith.errors import KernelWrong as KernelWrong
from tunesmith.errors import TunesmithError as TunesmithError
from tunesmith.errors import WaitingForModel as WaitingForModel
from tunesmith.run.report import Report as Report
from tunesmith.session.listening import ProgressUpdate as ProgressUpdate
from tunesmith.session.problems import LoadedProblem
from tunesmith.session.repositories import apply as apply
from tunesmith.session.repositories import capture as capture
from tunesmith.session.repositories import capture_program as capture_program
from tunesmith.session.repositories import extract as extract
from tunesmith.session.repositories import load_capture as load_capture
from tunesmith.session.run_result import Run as Run
from tunesmith.session.studies import bench as bench
from tunesmith.session.studies import compare as compare
from tunesmith.session.studies import diff as diff
from tunesmith.session.studies import resume_comparison as resume_comparison

Problem = LoadedProblem
__version__: str
