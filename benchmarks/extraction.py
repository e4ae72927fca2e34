"""Counts how many kernels of public repositories `tunesmith extract` makes stand alone, and which then run.

    python -m benchmarks.extraction FOLDER [--group GROUP] [--only TEXT] [--trim] [--json FILE]
    python -m benchmarks.extraction FOLDER --edits DIR --run

FOLDER holds checkouts under the names of their projects: vllm, apex, DeepSpeed, bitsandbytes, pytorch,
FasterTransformer, lightseq. A kernel *stands alone at once* where the command with its name, and its file's
where several have one, gives a folder whose kernel compiles with nothing else. Nothing is written but into a
temporary folder.

--edits DIR: DIR/PROJECT/KERNEL may have `options.toml` (`entry`, `defines` and the like, as the command takes
them) and files as they were edited by hand, which take the place of those that were written: the kernel's,
and `problem.toml` with everything filled in. A line that was changed, added or taken out counts once. Only
what has such a folder is tried. With --run what is filled in is checked on the cpu device, and watched there:
the kernel runs over its contract's edges, at small sizes. That compares it with nobody else's results.

Kernels of the group *met* are of those that the command was mended on at first; those of the group *new* it
met when it was done with these, and was mended on them after the count; those of the group *later* came last;
those of the group *framework* are PyTorch's own, and it was mended on them after the count.
docs/benchmarks/extraction.md has the figures.
"""

from __future__ import annotations

import argparse
import difflib
import json
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import tunesmith
from tunesmith.base.errors import TunesmithError
from tunesmith.base.text import truncate_text

MET, NEW, LATER, OWN = "met", "new", "later", "framework"
_INFERENCE = "inference/csrc"
# Project, file where several define the name, kernels.
KERNELS: dict[str, tuple[tuple[str, str, str], ...]] = {
    MET: (
        ("vllm", "layernorm_kernels.cu", "rms_norm_kernel fused_add_rms_norm_kernel"),
        ("vllm", "pos_encoding_kernels.cu", "rotary_embedding_kernel"),
        ("vllm", "cache_kernels.cu", "reshape_and_cache_kernel reshape_and_cache_flash_kernel"),
        ("vllm", "sampler.cu", "apply_repetition_penalties_kernel"),
        ("vllm", "libtorch_stable/activation_kernels.cu", "act_and_mul_kernel activation_kernel"),
        ("vllm", "moe_align_sum_kernels.cu", "moe_sum_vec_kernel moe_align_block_size_kernel"),
        ("vllm", "selective_scan_fwd.cu", "selective_scan_fwd_kernel"),
        ("vllm", "merge_attn_states.cu", "merge_attn_states_kernel"),
        ("apex", "layer_norm_cuda_kernel.cu", "cuApplyLayerNorm cuApplyRMSNorm"),
        ("apex", "fused_rotary_positional_embedding.h", "fused_rope_forward"),
        ("apex", "scaled_masked_softmax.h", "scaled_masked_softmax_warp_forward"),
        ("DeepSpeed", f"{_INFERENCE}/gelu.cu", "fused_bias_gelu fused_bias_residual"),
        ("DeepSpeed", f"{_INFERENCE}/apply_rotary_pos_emb.cu", "apply_rotary_pos_half"),
        ("DeepSpeed", f"{_INFERENCE}/softmax.cu", "attn_softmax_v2"),
        ("DeepSpeed", f"{_INFERENCE}/layer_norm.cu", "fused_ln"),
        ("bitsandbytes", "", "kQuantizeBlockwise kDequantizeBlockwise kdequant_mm_int32_fp16"),
        ("FasterTransformer", "layernorm_kernels.cu", "generalLayerNorm"),
        ("FasterTransformer", "unfused_attention_kernels.cu", "softmax_kernel transpose"),
        ("FasterTransformer", "unfused_attention_kernels.cu", "addRelativeAttentionBias"),
    ),
    NEW: (
        ("vllm", "layernorm_quant_kernels.cu", "rms_norm_static_fp8_quant_kernel"),
        ("vllm", "cache_kernels.cu", "concat_and_cache_mla_kernel convert_fp8_kernel"),
        ("vllm", "cache_kernels.cu", "indexer_k_quant_and_cache_kernel"),
        ("apex", "focal_loss_cuda_kernel.cu", "focal_loss_forward_cuda_kernel"),
        ("apex", "index_mul_2d_cuda_kernel.cu", "index_mul_2d_float_dim64"),
        ("apex", "xentropy_kernel.cu", "cunn_SoftMaxXEntropyForward"),
        ("apex", "welford.cu", "welford_kernel batchnorm_forward_kernel"),
        ("apex", "multi_tensor_apply.cuh", "multi_tensor_apply_kernel"),
        ("apex", "group_norm_nhwc_fwd_two_pass.cu", "group_norm_nhwc_fwd_sum_kernel"),
        ("DeepSpeed", "moe_gather_cuda.cu", "moe_gather_kernel"),
        ("DeepSpeed", "embed_cuda.cu", "ragged_embed_kernel"),
        ("DeepSpeed", "gather_scatter.cu", "gather_tokens_impl"),
        ("DeepSpeed", "swizzled_quantize.cu", "swizzled_quant_kernel"),
        ("DeepSpeed", "opt_bias_add.cu", "opt_bias_add_add"),
        ("bitsandbytes", "", "kgemm_4bit_inference_naive kOptimizer32bit1State kInt8VectorQuant"),
        ("lightseq", "", "ker_layer_norm"),
    ),
    LATER: (
        ("vllm", "cache_kernels.cu", "gather_and_maybe_dequant_cache_page cp_gather_cache_page"),
        ("vllm", "cache_kernels_fused.cu", "concat_and_cache_mla_rope_fused_kernel"),
        ("apex", "transducer_joint_kernel.cu", "transducer_joint_forward"),
        ("apex", "welford.cu", "reduce_bn_kernel"),
        ("DeepSpeed", "moe_scatter_cuda.cu", "moe_scatter_kernel"),
        ("DeepSpeed", "top_k_gating_cuda.cu", "top_k_gating_kernel"),
        ("DeepSpeed", "logits_gather_cuda.cu", "logits_gather_kernel"),
        ("DeepSpeed", "slice_attn_masks.cu", "slice_gpt_mask_impl"),
        ("bitsandbytes", "", "kOptimizerStatic8bit2StateBlockwise kPreconditionOptimizer32bit1State"),
        ("FasterTransformer", "activation_kernels.cu", "add_bias_tanh"),
        ("FasterTransformer", "gen_relative_pos_bias.cu", "gen_relative_pos_bias"),
        ("lightseq", "cuda/softmax_kernels.cu", "ker_attn_softmax_lt32"),
        ("lightseq", "", "kernel_silu_elewise_product"),
    ),
    OWN: (
        ("pytorch", "AveragePool2d.cu", "avg_pool2d_out_cuda_frame"),
        ("pytorch", "DilatedMaxPool2d.cu", "max_pool_forward_nchw"),
        ("pytorch", "AdaptiveAveragePooling.cu", "adaptive_average_pool"),
        ("pytorch", "Loss.cu", "nll_loss_forward_no_reduce_cuda_kernel"),
        ("pytorch", "PersistentSoftmax.cuh", "softmax_warp_forward"),
        ("pytorch", "SoftMax.cu", "cunn_SoftMaxForward"),
        ("pytorch", "layer_norm_kernel.cu", "vectorized_layer_norm_kernel RowwiseMomentsCUDAKernel"),
        ("pytorch", "ActivationGluKernel.cu", "glu_backward_kernel"),
        ("pytorch", "RNN.cu", "lstm_cell_forward"),
        ("pytorch", "GridSampler.cu", "grid_sampler_2d_kernel"),
        ("pytorch", "UpSampleBilinear2d.cu", "upsample_bilinear2d_out_frame"),
        ("pytorch", "UpSampleNearest2d.cu", "upsample_nearest2d_out_frame"),
        ("pytorch", "EmbeddingBag.cu", "EmbeddingBag_updateOutputKernel_sum_mean"),
        ("pytorch", "Normalization.cuh", "batch_norm_transform_input_kernel"),
        ("pytorch", "ReflectionPad.cu", "reflection_pad1d_out_kernel"),
        ("pytorch", "native/cuda/Bucketization.cu", "searchsorted_cuda_kernel"),
        ("pytorch", "MaxUnpooling.cu", "max_unpooling2d_forward_kernel"),
        ("pytorch", "AmpKernels.cu", "amp_update_scale_cuda_kernel"),
        ("pytorch", "MultinomialKernel.cu", "renormRowsL1"),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class CountedKernel:
    group: str
    project: str
    kernel: str
    alone: bool
    fills: int
    lines: int
    seconds: float
    why: str = ""  # it does not
    file: str = ""
    options: tuple[str, ...] = ()  # besides the kernel's name and file
    kernel_edits: int = 0  # lines of its code
    problem_edits: int = 0  # lines of the problem file
    compiles: bool = False  # with the options and edits
    cases: int = 0  # of its contract that the cpu device ran
    watched: bool = False  # and nothing was found by looking at every access
    stopped: str = ""  # why it did not run, or what was found


def wanted(groups: Sequence[str], only: str) -> Iterator[tuple[str, str, str, str]]:
    for group in groups:
        for project, file, kernels in KERNELS[group]:
            for kernel in kernels.split():
                if only in f"{project} {kernel}":
                    yield group, project, file, kernel


def counted_kernel(
    group: str, root: Path, file: str, kernel: str, asked: argparse.Namespace
) -> CountedKernel:
    edits = asked.edits / root.name / kernel if asked.edits else None
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as out:
        place = Path(out, "problem")
        one = CountedKernel(group, root.name, kernel, False, 0, 0, 0.0)
        try:
            found = tunesmith.extract(root, kernel=kernel, file=file or None, out=place, trim=asked.trim)
            told = truncate_text("; ".join(found.missing).replace("\n", "; "), 160)
            sizes = (found.fills, found.lines, time.monotonic() - begun)
            one = CountedKernel(group, root.name, kernel, found.stands_alone, *sizes, told)
            one = replace(one, file=found.place.rpartition(":")[0], compiles=found.stands_alone)
        except TunesmithError as refused:
            one = replace(one, why=_line(refused), seconds=time.monotonic() - begun)
        if edits is None:
            return one
        return _edited(one, root, file, edits, Path(out), asked)


def _line(refused: TunesmithError) -> str:
    return truncate_text(str(refused).replace("\n", "; "), 160)


def _edited(
    one: CountedKernel, root: Path, file: str, edits: Path, out: Path, asked: argparse.Namespace
) -> CountedKernel:
    """The same with options and with what was edited by hand; then run."""
    place = out / "problem"
    listed = edits / "options.toml"
    options: dict[str, Any] = tomllib.loads(listed.read_text()) if listed.is_file() else {}
    try:
        if options:
            place = out / "with_options"
            found = tunesmith.extract(
                root, kernel=one.kernel, file=file or None, out=place, trim=asked.trim, **options
            )
            one = replace(one, compiles=found.stands_alone, file=found.place.rpartition(":")[0])
        one = replace(one, options=tuple(f"{name} = {value}" for name, value in options.items()))
        for path in sorted(edits.iterdir()):
            if path.name == listed.name:
                continue
            own = place / path.name
            lines = edited_lines(own.read_text() if own.is_file() else "", path.read_text())
            own.write_text(path.read_text())
            if path.name == "problem.toml":
                one = replace(one, problem_edits=lines)
            else:
                one = replace(one, kernel_edits=one.kernel_edits + lines)
        if not asked.run or not (edits / "problem.toml").is_file():
            return one if not one.kernel_edits else replace(one, stopped="edited, and not compiled again")
        done = tunesmith.check(place, sanitize=True)
        watched = any(one.tools and not one.findings for one in done.sanitized)
        one = replace(one, compiles=True, cases=done.cases, watched=watched)
        return one if done.cases else replace(one, stopped=truncate_text("; ".join(done.notes), 160))
    except TunesmithError as refused:
        return replace(one, stopped=_line(refused))


def edited_lines(before: str, after: str) -> int:
    """Lines that were changed, added or taken out, each once; not blank ones, comments, and where it was."""
    left, right = (_counted_lines(text) for text in (before, after))
    matcher = difflib.SequenceMatcher(None, left, right, autojunk=False)
    return sum(max(b - a, d - c) for tag, a, b, c, d in matcher.get_opcodes() if tag != "equal")


def _counted_lines(text: str) -> list[str]:
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith(("# ", "//", "repository = "))]


def each(found: Sequence[CountedKernel]) -> Iterator[str]:
    """A line for every kernel, with what it took."""
    yield "| project | file | kernel | at once | options | edits: code | edits: problem | cpu device |"
    yield "|---|---|---|---|---|---:|---:|---|"
    for one in found:
        ran = (
            f"runs, {one.cases} cases{'' if one.watched else ', not watched'}"
            if one.cases
            else f"no: {one.stopped or one.why or 'not tried'}"
        )
        cells = (one.project, one.file.rpartition("/")[2], one.kernel, "yes" if one.alone else "no")
        more = ("; ".join(one.options), str(one.kernel_edits), str(one.problem_edits), ran)
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in (*cells, *more)) + " |"


def table(found: Sequence[CountedKernel]) -> Iterator[str]:
    yield "| project | kernels tried | stand alone at once: compile | not |"
    yield "|---|---:|---:|---:|"
    tried = Counter(one.project for one in found)
    alone = Counter(one.project for one in found if one.alone)
    for project, count in tried.items():
        yield f"| {project} | {count} | {alone[project]} | {count - alone[project]} |"
    yield f"| all | {len(found)} | {alone.total()} | {len(found) - alone.total()} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, help="checkouts, under the names of their projects")
    parser.add_argument("--group", choices=tuple(KERNELS))
    parser.add_argument("--only", default="", help="kernels with this in their project or name")
    parser.add_argument(
        "--trim", action="store_true", help="leave out overloads as the command does by itself"
    )
    parser.add_argument("--edits", type=Path, help="options and edited files, under PROJECT/KERNEL")
    parser.add_argument("--run", action="store_true", help="run what was filled in on the cpu device")
    parser.add_argument("--json", type=Path, help="figures of each kernel go there")
    asked = parser.parse_args()
    if asked.run and not asked.edits:
        parser.error("--run needs problem files without FILL: --edits DIR")
    found: list[CountedKernel] = []
    for group, project, file, kernel in wanted((asked.group,) if asked.group else tuple(KERNELS), asked.only):
        root = asked.folder / project
        if asked.edits and not (asked.edits / project / kernel).is_dir():
            continue
        if not root.is_dir():
            print(f"{project:<18} {kernel:<40} left out: there is no folder {root}")
            continue
        one = counted_kernel(group, root, file, kernel, asked)
        found.append(one)
        told = f"alone (it compiles), {one.lines} lines, {one.fills} FILL" if one.alone else f"not: {one.why}"
        print(f"{project:<18} {kernel:<40} {one.seconds:5.1f} s  {told}", flush=True)
    if asked.edits:
        print("\n".join(["", *each(found)]))
    for group in KERNELS:
        of_group = [one for one in found if one.group == group]
        if of_group:
            print("\n".join(["", f"group {group}:", "", *table(of_group)]))
    if asked.json:
        asked.json.write_text(json.dumps([asdict(one) for one in found], indent=1) + "\n")


if __name__ == "__main__":
    main()
