"""Counts how many kernels of public repositories `tunesmith extract` makes stand alone at once.

    python -m benchmarks.extraction FOLDER [--group met|new|later] [--only TEXT] [--trim] [--json FILE]

FOLDER holds checkouts under the names of their projects: vllm, apex, DeepSpeed, bitsandbytes,
FasterTransformer, lightseq. A kernel *stands alone at once* where the command with its name, and its file's
where several have one, gives a folder whose kernel compiles with nothing else. Nothing is run on a device,
and nothing is written but into a temporary folder.

Kernels of the group *met* are of those that the command was mended on at first; those of the group *new* it
met when it was done with these, and was mended on them after the count; those of the group *later* came last.
docs/benchmarks/extraction.md has the figures.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import tunesmith
from tunesmith.errors import TunesmithError
from tunesmith.text import cut

MET, NEW, LATER = "met", "new", "later"
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


def wanted(groups: Sequence[str], only: str) -> Iterator[tuple[str, str, str, str]]:
    for group in groups:
        for project, file, kernels in KERNELS[group]:
            for kernel in kernels.split():
                if only in f"{project} {kernel}":
                    yield group, project, file, kernel


def counted_kernel(group: str, root: Path, file: str, kernel: str, trim: bool) -> CountedKernel:
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as out:
        try:
            found = tunesmith.extract(
                root, kernel=kernel, file=file or None, out=Path(out, "problem"), trim=trim
            )
        except TunesmithError as refused:
            why = cut(refused.message.replace("\n", "; "), 160)
            return CountedKernel(group, root.name, kernel, False, 0, 0, time.monotonic() - begun, why)
    why = cut("; ".join(found.missing).replace("\n", "; "), 160)
    sizes = (found.fills, found.lines, time.monotonic() - begun)
    return CountedKernel(group, root.name, kernel, found.stands_alone, *sizes, why)


def table(found: Sequence[CountedKernel]) -> Iterator[str]:
    yield "| project | kernels tried | stand alone at once: compile | not |"
    yield "| --- | ---: | ---: | ---: |"
    tried = Counter(one.project for one in found)
    alone = Counter(one.project for one in found if one.alone)
    for project, count in tried.items():
        yield f"| {project} | {count} | {alone[project]} | {count - alone[project]} |"
    yield f"| all | {len(found)} | {alone.total()} | {len(found) - alone.total()} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, help="checkouts, under the names of their projects")
    parser.add_argument("--group", choices=(MET, NEW, LATER))
    parser.add_argument("--only", default="", help="kernels with this in their project or name")
    parser.add_argument(
        "--trim", action="store_true", help="leave out overloads as the command does by itself"
    )
    parser.add_argument("--json", type=Path, help="figures of each kernel go there")
    asked = parser.parse_args()
    found: list[CountedKernel] = []
    for group, project, file, kernel in wanted((asked.group,) if asked.group else tuple(KERNELS), asked.only):
        root = asked.folder / project
        if not root.is_dir():
            print(f"{project:<18} {kernel:<40} left out: there is no folder {root}")
            continue
        one = counted_kernel(group, root, file, kernel, asked.trim)
        found.append(one)
        told = f"alone (it compiles), {one.lines} lines, {one.fills} FILL" if one.alone else f"not: {one.why}"
        print(f"{project:<18} {kernel:<40} {one.seconds:5.1f} s  {told}", flush=True)
    for group in KERNELS:
        of_group = [one for one in found if one.group == group]
        if of_group:
            print("\n".join(["", f"group {group}:", "", *table(of_group)]))
    if asked.json:
        asked.json.write_text(json.dumps([asdict(one) for one in found], indent=1) + "\n")


if __name__ == "__main__":
    main()
