"""Launches by calls of CUDA's runtime: the same parts as of `<<<...>>>`."""

from __future__ import annotations

import pytest

from tunesmith.csource.syntax import syntax_tree
from tunesmith.expert.reading.headers import LaunchSite
from tunesmith.expert.reading.launches import read_launches

HEAD = "void host(torch::Tensor x, int n) {\n  int rows = x.size(0);\n  dim3 grid(rows, 2);\n"


def sites(body: str) -> list[LaunchSite]:
    text = f"{HEAD}{body}\n}}\n"
    return list(read_launches(syntax_tree(text, "cuda"), text))


def parts(site: LaunchSite) -> tuple[object, ...]:
    return site.kernel, site.template_args, site.grid, site.block, site.shared, site.arguments


FIELDS = """
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3(256);
  config.dynamicSmemBytes = 4 * n;
  config.stream = stream;
"""
ADDRESSES = "  auto* out = x.data_ptr<float>();\n  void* args[] = {&out, (void*)&rows};\n"
SAME = ("scale", "float, 4", ("rows", "2"), ("256",), "4 * n")


@pytest.mark.parametrize(
    "body",
    [
        f"{FIELDS}  cudaLaunchKernelEx(&config, scale<float, 4>, out, rows);",
        f"{FIELDS}  CHECK(cudaLaunchKernelEx(&config, own::scale<float, 4>, out, rows));",
        "  cudaLaunchConfig_t config{grid, 256, 4 * n, stream};\n"
        "  cudaLaunchKernelEx(&config, scale<float, 4>, out, rows);",
        "  cudaLaunchConfig_t config = {.gridDim = grid, .blockDim = 256, .dynamicSmemBytes = 4 * n};\n"
        "  cudaLaunchKernelEx(&config, scale<float, 4>, out, rows);",
        f"{FIELDS}{ADDRESSES}  cudaLaunchKernelExC(&config, (const void*)scale<float, 4>, args);",
        f"{ADDRESSES}  cudaLaunchKernel((void*)&scale<float, 4>, grid, 256, args, 4 * n, stream);",
        f"{ADDRESSES}  cudaLaunchCooperativeKernel("
        "reinterpret_cast<void*>(&scale<float, 4>), grid, dim3(256), args, 4 * n);",
    ],
)
def test_all_ways_are_alike(body: str) -> None:
    (site,) = sites(body)
    assert parts(site) == (*SAME, ("out", "rows"))
    assert dict(site.settled)["rows"] == "x.size(0)"  # its address among others changes nothing


@pytest.mark.parametrize(
    "body",
    [
        "  cudaLaunchKernelEx(config, scale<float>, out, rows);",  # nobody says what it holds
        "  cudaLaunchConfig_t config;\n  config.gridDim = 3;\n  cudaLaunchKernelEx(&config, scale, out);",
        f"{FIELDS}  cudaLaunchKernelExC(&config, (void*)scale, arguments);",
        "  cudaMemcpyAsync(a, b, c, d, e, f);",
    ],
)
def test_without_geometry_or_arguments_there_is_no_launch(body: str) -> None:
    assert sites(body) == []


def test_an_address_that_goes_elsewhere_may_change_its_variable() -> None:
    (site,) = sites("  int n = 4;\n  fill(&n);\n  scale<<<n, 32>>>(x, n);")
    assert "n" not in dict(site.settled)
