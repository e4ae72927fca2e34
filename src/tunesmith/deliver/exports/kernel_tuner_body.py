"""The part of the Kernel Tuner script that is the same for every kernel. What differs stands before it, as
constants and functions of `v`: the sizes of a workload, the limits of the device, the parameters."""

BODY = '''\
SIDES = ["block_size_x", "block_size_y", "block_size_z"]


def value(function, v):
    """The integer that an expression has, or None where it has none."""
    try:
        return int(function(v))
    except (ArithmeticError, ValueError):
        return None


def values_at(sizes, p):
    return {**DEVICE, **sizes, **p}


def sides(functions, v):
    return [value(f, v) for f in functions] + [1] * (3 - len(functions))


def can_run(name, p):
    """Whether the template allows the configuration at this workload. Those that failed there in the run are
    left out: Kernel Tuner ends where one of them does not build or gives a wrong result."""
    v = values_at(WORKLOADS[name], p)
    if not all(value(condition, v) for condition in REQUIRE.values()):
        return False
    if any(value(define, v) is None for define in DEFINES.values()):
        return False
    if any(side is None or side < 1 for side in sides(GRID, v) + sides(BLOCK, v)):
        return False
    if SHARED is not None:
        shared = value(SHARED, v)
        if shared is None or not 0 <= shared <= MOST_SHARED:
            return False
    return tuple(p[own] for own in PARAMETERS) not in FAILED[name]


def restrictions_at(name, parameters, best=False):
    """Kernel Tuner calls it with a dictionary, with values in order, or with named values. What the run
    picked may be outside what the template prefers at a workload: it has proved right there."""

    def allowed(*given, **named):
        if given and isinstance(given[0], dict):
            p = given[0]
        else:
            p = {**dict(zip(parameters, given)), **named}
        v = values_at(WORKLOADS[name], p)
        if any(value(side, v) != p[axis] for axis, (_, side) in BLOCK_PARAMETERS.items()):
            return False
        return best or can_run(name, p)

    return allowed


def with_block_parameters(name, parameters):
    """Kernel Tuner reads a block's size from parameters alone: a side that is an expression becomes one,
    whose value the restrictions tie to the others."""
    found = dict(parameters)
    for axis, (used, side) in BLOCK_PARAMETERS.items():
        combinations = itertools.product(*(parameters[own] for own in used))
        each = (values_at(WORKLOADS[name], dict(zip(used, own))) for own in combinations)
        found[axis] = sorted({s for s in (value(side, v) for v in each) if s is not None and s > 0})
    return found


# -- arguments ------------------------------------------------------------------------------------------


class Array:
    """An array as the kernel sees it: its memory, and its elements in their shape."""

    def __init__(self, own, v):
        self.own = own
        self.shape = tuple(max(0, int(f(v))) for f in own["shape"])
        dense = tuple(math.prod(self.shape[axis + 1 :]) for axis in range(len(self.shape)))
        self.strides = tuple(int(f(v)) for f in own["strides"]) or dense
        reach = sum((n - 1) * s for n, s in zip(self.shape, self.strides))
        self.extent = 1 + reach if math.prod(self.shape) else 0
        self.dtype = dtype_of(own["type"])

    def empty(self):
        return np.zeros(max(1, self.extent), self.dtype)

    def elements(self, memory):
        # As plain words: NumPy makes no strided view of a type that is not its own.
        words = memory.view(f"u{memory.itemsize}")
        steps = tuple(s * memory.itemsize for s in self.strides)
        return np.lib.stride_tricks.as_strided(words, self.shape, steps)

    def seen_in(self, memory):
        """The elements, by their own type, in memory that came back."""
        own = np.ascontiguousarray(memory).reshape(-1).view(self.dtype)
        return self.elements(own).copy().view(self.dtype)

    def drawn(self, rng):
        kind, bounds, count = self.own["values"], self.own["range"], max(1, self.extent)
        if kind in ("zeros", "ones"):
            return np.full(count, kind == "ones").astype(self.dtype)
        if self.own["kind"] != "float":
            limits = np.iinfo(self.dtype)
            low, high = bounds or (0, 100)
            low, high = max(math.ceil(low), limits.min), min(math.floor(high), limits.max)
            return rng.integers(low, high, count, dtype=self.dtype, endpoint=True)
        if kind == "integers":
            low, high = bounds or (0, 100)
            return rng.integers(math.ceil(low), math.floor(high), count, endpoint=True).astype(self.dtype)
        if bounds is not None:
            return rng.uniform(bounds[0], bounds[1], count).astype(self.dtype)
        if kind == "positive":
            return (1 - rng.random(count)).astype(self.dtype)
        if kind == "uniform":
            return rng.uniform(-1, 1, count).astype(self.dtype)
        return rng.standard_normal(count).astype(self.dtype)


def dtype_of(name):
    if name in ("bfloat16", "float8_e4m3", "float8_e5m2"):
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, {"float8_e4m3": "float8_e4m3fn"}.get(name, name)))
    return np.dtype(name)


def called(place, offered):
    """The user's function, with those of the offered names that it asks for."""
    file, name = place
    function = runpy.run_path(str(HERE / file))[name]
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return function(**offered)
    return function(**{p.name: offered[p.name] for p in parameters if p.name in offered})


def host_values(name):
    """Every argument at a workload, by name: the memory of arrays, scalars of the kernel's own type."""
    sizes, found, arrays = WORKLOADS[name], {}, {}
    v = {**DEVICE, **sizes}
    rng = np.random.default_rng(0)
    made = called(INPUTS, {"rng": np.random.default_rng(0), **sizes}) if INPUTS else {}
    for own in ARGUMENTS:
        if own["role"] == "scalar":
            found[own["name"]] = dtype_of(own["type"]).type(own["value"](v))
            continue
        array = arrays[own["name"]] = Array(own, v)
        memory = array.empty()
        if own["name"] in made:
            values = np.asarray(made[own["name"]]).astype(array.dtype)
            array.elements(memory)[...] = values.view(f"u{memory.itemsize}")
        elif own["role"] in ("input", "inout"):
            memory = array.drawn(rng)
        elif own["init"] is not None:
            memory[...] = own["init"]
        found[own["name"]] = memory
    return found, arrays


def to_pass(value):
    """Types that NumPy has not are passed as plain words."""
    is_foreign = isinstance(value, np.ndarray) and value.dtype.kind == "V"
    return value.view(f"u{value.itemsize}") if is_foreign else value


def arguments_for(names, name, found, parameters):
    """In the kernel's order; what depends on parameters is scratch alone."""
    made = []
    for own in names:
        if own in found:
            made.append(to_pass(found[own]))
            continue
        used, count, dtype = SCRATCH[own]["used"], SCRATCH[own]["count"], dtype_of(SCRATCH[own]["type"])
        combinations = itertools.product(*(parameters[each] for each in used))
        each = [value(count, values_at(WORKLOADS[name], dict(zip(used, c)))) for c in combinations]
        counts = sorted({max(1, n) for n in each if n is not None})
        if SCRATCH[own]["role"] == "local":
            made.append(local_memory(name, count, counts, dtype))
        else:
            made.append(to_pass(np.zeros(counts[-1], dtype)))
    return made


def local_memory(name, count, counts, dtype):
    import pyopencl
    from kernel_tuner.accuracy import Tunable

    def chosen(p):
        return max(1, int(count(values_at(WORKLOADS[name], p))))

    return Tunable(chosen, {n: pyopencl.LocalMemory(n * dtype.itemsize) for n in counts})


# -- what is right --------------------------------------------------------------------------------------


def expected_at(name, found, arrays, where):
    """Every output as it should be, by name: from the problem's reference, else from the original kernel."""
    outputs = [own["name"] for own in ARGUMENTS if own["role"] in ("output", "inout")]
    if REFERENCE:
        offered = dict(WORKLOADS[name])
        for own in ARGUMENTS:
            seen = found[own["name"]]
            if own["role"] == "scalar":
                offered.setdefault(own["name"], seen.item())
            elif own["role"] in ("input", "inout"):
                seen = arrays[own["name"]].seen_in(seen)
                offered[own["name"]] = seen.astype(np.float64) if own["kind"] == "float" else seen
        answer = called(REFERENCE, offered)
        if not isinstance(answer, dict):
            answer = dict(zip(outputs, answer if isinstance(answer, tuple) else (answer,)))
        return {own: np.asarray(answer[own]) for own in outputs}
    if ORIGINAL is None:
        return {}
    from kernel_tuner import tune_kernel

    v, order, seen = {**DEVICE, **WORKLOADS[name]}, ORIGINAL["args"], {}
    shared = {} if ORIGINAL["shared"] is None else {"smem_args": {"size": int(ORIGINAL["shared"](v))}}

    def keep(answer, results, atol=None):
        seen.update({own: np.array(got) for own, got in zip(order, results) if own in outputs})
        return True

    # As the only configuration there is; run_kernel would not take local memory.
    passed = arguments_for(order, name, found, {})
    tune_kernel(
        entry_at(ORIGINAL["entry"], name),
        str(HERE / ORIGINAL["file"]),
        tuple(sides(ORIGINAL["grid"], v)),
        passed,
        {side: [n] for side, n in zip(SIDES, sides(ORIGINAL["block"], v))},
        block_size_names=list(SIDES),
        defines={key: (lambda p, text=text: text) for key, text in ORIGINAL["defines"].items()},
        compiler_options=options_at(ORIGINAL["options"]),
        answer=[argument if own in outputs else None for own, argument in zip(order, passed)],
        verify=keep,
        iterations=1,
        quiet=True,
        **no_divisors(),
        **shared,
        **where,
    )
    return {own: arrays[own].seen_in(seen[own]) for own in outputs}


def is_right(own, got, expected):
    """By the problem's own tolerance for this output."""
    if own["compare"] == "exact":
        return bool(np.array_equal(got, expected))
    with np.errstate(all="ignore"):
        g, e = got.astype(np.float64), expected.astype(np.float64)
        near = own["atol"] + own["rtol"] * np.abs(e)
        if own["compare"] == "codes":
            e = np.clip(e, *own["bounds"])
            error, near = np.abs(g - e), own["atol"] + own["rtol"] * np.abs(e)
            steps = np.abs(g - np.rint(e)) if own["kind"] != "float" else np.zeros_like(e)
            right = (steps <= 1) & (error <= 0.5 * step_of(own, e) + near)
            return bool(np.all(right | (np.isnan(g) & np.isnan(e))))
        rounded = e.astype(got.dtype).astype(np.float64)
        finite = np.isfinite(rounded)
        close = np.abs(g - e) <= np.maximum(near, 0.5 * step_of(own, e))
        same = (g == rounded) | (np.isnan(g) & np.isnan(rounded))
        return bool(np.all(np.where(finite, close, same)))


def step_of(own, values):
    """The distance of neighbouring numbers of a type."""
    if own["kind"] != "float":
        return np.ones_like(values)
    _, exponent = np.frexp(np.abs(values))
    floor = np.where(values == 0, own["min_exponent"], np.maximum(exponent - 1, own["min_exponent"]))
    return np.ldexp(1.0, floor - own["mantissa"])


# -- tuning ---------------------------------------------------------------------------------------------


def no_divisors():
    """The grid is given as it is launched."""
    return {"grid_div_x": [], "grid_div_y": [], "grid_div_z": []}


def entry_at(entry, name):
    for size, number in WORKLOADS[name].items():
        entry = entry.replace("{" + size + "}", str(number))
    return entry


def options_at(options):
    return [*options, *(f"-I{HERE / folder}" for folder in INCLUDE)]


def tune(name, chosen):
    from kernel_tuner import tune_kernel
    from kernel_tuner.file_utils import store_output_file

    sizes, where = WORKLOADS[name], {"lang": chosen.language, "device": chosen.device}
    if LANGUAGE == "OpenCL":
        where["platform"] = chosen.platform
    own = {key: [best] for key, best in BEST[name].items()} if chosen.best else PARAMETERS
    parameters = with_block_parameters(name, own)
    found, arrays = host_values(name)
    expected = {} if chosen.no_verify else expected_at(name, found, arrays, where)
    if not expected:
        print(f"{name}: outputs are not checked{'' if chosen.no_verify else ': ' + UNCHECKED}")
    judged = {own["name"]: own for own in ARGUMENTS}

    def verify(answer, results, atol=None):
        for argument, wanted, got in zip(ARGUMENT_ORDER, answer, results):
            if wanted is not None:
                if not is_right(judged[argument], arrays[argument].seen_in(got), wanted):
                    print(f"{name}: {argument} is wrong")
                    return False
        return True

    checks = {}
    if expected:
        checks = {"answer": [expected.get(argument) for argument in ARGUMENT_ORDER], "verify": verify}
    if SHARED is not None:
        checks["smem_args"] = {"size": lambda p: int(SHARED(values_at(sizes, p)))}
    defines = {key: (lambda p, text=text: text) for key, text in KERNEL_DEFINES.items()}
    defines |= {key: (lambda p, key=key: p[key]) for key in PARAMETERS}
    defines |= {
        key: (lambda p, define=define: int(define(values_at(sizes, p)))) for key, define in DEFINES.items()
    }
    options = {"max_fevals": chosen.evals} if chosen.evals else {}
    results, env = tune_kernel(
        entry_at(ENTRY, name),
        str(HERE / KERNEL),
        lambda p: tuple(sides(GRID, values_at(sizes, p))),
        arguments_for(ARGUMENT_ORDER, name, found, own),
        parameters,
        restrictions=restrictions_at(name, list(parameters), chosen.best),
        block_size_names=list(BLOCK_NAMES),
        defines=defines,
        compiler_options=options_at(OPTIONS),
        strategy=chosen.strategy,
        strategy_options=options,
        **no_divisors(),
        **checks,
        **where,
    )
    # Sides of the block that were added for Kernel Tuner are no part of the configuration.
    store_output_file(f"kernel-tuner-{FILE_NAMES[name]}", results, PARAMETERS)
    many = "" if len(results) == 1 else "s"
    print(f"{name}: {len(results)} configuration{many}, written to kernel-tuner-{FILE_NAMES[name]}.json")
    print(f"{name}: the run's best is {BEST[name]}")
    return results, env


def main():
    parser = argparse.ArgumentParser(description=f"Tune {PROBLEM} with Kernel Tuner.")
    known = ", ".join(WORKLOADS)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=f"of {known}; default: all")
    parser.add_argument("--best", action="store_true", help="time the run's best configuration alone")
    parser.add_argument("--strategy", default="brute_force", help="how Kernel Tuner searches")
    parser.add_argument("--evals", type=int, help="configurations at most")
    parser.add_argument("--no-verify", action="store_true", help="check no outputs")
    parser.add_argument("--language", default=LANGUAGE, help="as Kernel Tuner calls it: its backend")
    parser.add_argument("--device", type=int, default=0)
    if LANGUAGE == "OpenCL":
        parser.add_argument("--platform", type=int, default=PLATFORM)
    chosen = parser.parse_args()
    for name in chosen.workloads:
        if name not in WORKLOADS:
            parser.error(f"there is no workload {name!r}, only {known}")
    for name in chosen.workloads or WORKLOADS:
        tune(name, chosen)


if __name__ == "__main__":
    main()
'''
