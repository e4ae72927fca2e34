"""What a kernel needs of a device that OpenCL leaves open, said where a build fails for want of it."""

from __future__ import annotations

import re

from tunesmith.csource.lex import without_comments

# In words, the extensions any of which brings it, the words of a source that take it, and those of the log.
_OPTIONAL = (
    ("half precision", ("cl_khr_fp16",), r"\bhalf\d*\b", r"\bhalf\d*\b|cl_khr_fp16"),
    ("double precision", ("cl_khr_fp64", "cl_amd_fp64"), r"\bdouble\d*\b", r"\bdouble\d*\b|cl_khr_fp64"),
    (
        "sub-groups",
        ("cl_khr_subgroups", "cl_intel_subgroups"),
        r"\b(?:intel_|get_)?sub_group\w+",
        r"sub_group|subgroups",
    ),
)


def lacking(source: str, log: str, extensions: str, device: str) -> str:
    """A sentence for each thing that the source uses, the log complains of, and the device has not."""
    text, here = without_comments(source), set(extensions.split())
    missing = [
        f"the kernel needs {what} ({names[0]}), which {device} does not have"
        for what, names, used, said in _OPTIONAL
        if not here.intersection(names) and re.search(used, text) and re.search(said, log)
    ]
    return "; ".join(missing)
