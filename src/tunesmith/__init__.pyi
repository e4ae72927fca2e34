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
from tunesmith.base.errors import BadInput as BadInput
from tunesmith.base.errors import DeviceMissing as DeviceMissing
from tunesmith.base.errors import Interrupted as Interrupted
from tunesmith.base.errors import KernelWrong as KernelWrong
from tunesmith.base.errors import TunesmithError as TunesmithError
from tunesmith.base.errors import WaitingForModel as WaitingForModel
from tunesmith.plugins.repo.api import apply as apply
from tunesmith.plugins.repo.api import capture as capture
from tunesmith.plugins.repo.api import capture_program as capture_program
from tunesmith.plugins.repo.api import extract as extract
from tunesmith.plugins.repo.api import load_capture as load_capture
from tunesmith.plugins.studies.api import bench as bench
from tunesmith.plugins.studies.api import compare as compare
from tunesmith.plugins.studies.api import diff as diff
from tunesmith.plugins.studies.api import resume_comparison as resume_comparison
from tunesmith.run.report import Report as Report
from tunesmith.session.problems import LoadedProblem
from tunesmith.session.progress import ProgressUpdate as ProgressUpdate
from tunesmith.session.result import Run as Run

Problem = LoadedProblem
__version__: str
