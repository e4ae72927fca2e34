"""The export `vllm`: a custom operator of vLLM, in C++, with its schema and Python's side of it."""

from __future__ import annotations

from tunesmith.deliver.artefact import Artefact, Export, Target
from tunesmith.plugins.exports.tensor_call import TensorCall, plain_name
from tunesmith.plugins.exports.torch_cpp import TorchBinding, TorchOp

NAMESPACE = "_C"


def _export_vllm(artefact: Artefact) -> Export:
    call = TensorCall(artefact)
    name = call.name
    ops = (
        TorchOp(f"{name}_tuned", "tuned", original=False, allocates=False),
        TorchOp(f"{name}_tuned_original", "original", original=True, allocates=False),
    )
    binding = TorchBinding(call, NAMESPACE, ops, by_keyword=False)
    about = f"{artefact.problem} as operators of vLLM, which pass every array in."
    files = {
        f"csrc/tuned/{name}.h": call.host.header,
        f"csrc/tuned/{name}.cpp": call.host.source,
        f"csrc/tuned/{name}_tensors.h": call.header,
        f"csrc/tuned/{name}_op.cpp": binding.source(about).encode(),
        f"{name}_tuned.py": _vllm_module(call).encode(),
        "README.md": _vllm_readme(call, binding).encode(),
    }
    return Export(files, call.host.left_out)


_MODULE = '''"""A tuned kernel for vLLM, written by Tunesmith. README.md says where the files go."""

import pathlib

import torch


def _tunesmith_registered() -> bool:
    return hasattr(torch.ops.{namespace}, "{name}_tuned")


def build() -> None:
    """Build the operators where vLLM was not built with them, from csrc/tuned beside this file."""
    from torch.utils.cpp_extension import load

    folder = pathlib.Path(__file__).resolve().parent / "csrc" / "tuned"
    sources = [str(folder / "{name}.cpp"), str(folder / "{name}_op.cpp")]
    load(name="{name}_tuned_ops", sources=sources, with_cuda=True, is_python_module=False)


if not _tunesmith_registered():
    build()


def {name}_tuned({taken}) -> None:
    """Arrays that are written are passed in: {written}."""
    torch.ops.{namespace}.{name}_tuned({passed})


def {name}_tuned_original({taken}) -> None:
    """The kernel as it was before it was tuned."""
    torch.ops.{namespace}.{name}_tuned_original({passed})


@torch.library.register_fake("{namespace}::{name}_tuned")
def _tunesmith_fake({taken}) -> None:
    return None


@torch.library.register_fake("{namespace}::{name}_tuned_original")
def _tunesmith_fake_original({taken}) -> None:
    return None
'''


def _vllm_module(call: TensorCall) -> str:
    return _MODULE.format(
        namespace=NAMESPACE,
        name=call.name,
        taken=call.python_taken,
        passed=call.python_passed,
        written=", ".join(plain_name(a.name) for a in call.written) or "none",
    )


_README = """# {name} for vLLM

Tuned by Tunesmith on {devices}.

| file | where it goes in vLLM |
|---|---|
| `csrc/tuned/*` | `csrc/tuned/` |
| `{name}_tuned.py` | `vllm/`, or its functions into `vllm/_custom_ops.py` |

Add the two sources to `CMakeLists.txt`, to the list `VLLM_EXT_SRC` of the extension `_C`:

```cmake
"csrc/tuned/{name}.cpp"
"csrc/tuned/{name}_op.cpp"
```

Versions that build `_C` for CUDA against PyTorch's stable ABI (`csrc/libtorch_stable`) cannot have these
sources in it: there give them an extension of their own, or leave the build to `{name}_tuned.py` as below.

`{name}_op.cpp` registers its operators itself, as `torch.ops.{namespace}.{name}_tuned` and
`{name}_tuned_original`. Where you want that in `csrc/torch_bindings.cpp`, compile `{name}_op.cpp` with
`-DTUNESMITH_REGISTERED_ELSEWHERE`, add to `csrc/ops.h`

```cpp
{declared}
```

and to `TORCH_LIBRARY_EXPAND` or `TORCH_LIBRARY_FRAGMENT` of `{namespace}` in `csrc/torch_bindings.cpp`

```cpp
{lines}
```

To try it without building vLLM leave the files together, anywhere on the Python path: `{name}_tuned.py`
builds what lies beside it where the operator is not registered.

```python
from {name}_tuned import {name}_tuned
```

It takes, in this order:

{arrays}

You allocate the outputs. It runs on the current stream, in `torch.compile` and in CUDA graphs.
The kernels are machine code, to the byte what was verified; a C++ compiler builds only the code around them,
and nothing is linked with libcuda. `csrc/tuned/{name}.h` says which kernel serves which sizes. A tensor of
the wrong type, shape, layout or device raises an error that says what to do.

{elsewhere} A line on stderr says, once, how to tune there.{left_out}
"""


def _vllm_readme(call: TensorCall, binding: TorchBinding) -> str:
    name = call.name
    declared = "\n".join(f"namespace {name}_tuned {{ {line} }}" for line in binding.declarations())
    lines = binding.definitions(f"{name}_tuned::", "").rstrip()
    known = {"name": name, "namespace": NAMESPACE, "declared": declared, "lines": lines}
    return _README.format(**known, **call.readme_words)


TARGET = Target("vllm", "a custom operator of vLLM", ("cuda",), _export_vllm)
