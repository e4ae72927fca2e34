"""Tiles for maps that load along one axis and store along another: through shared memory, in order both ways.

    block (TILE x ACROSS)    load along the source's axis  ->  tile  ->  barrier  ->  store along the other

A block's LANES * TASKS threads take the tile's packs in turn. All of a thread's loads are under way before
the first is put into the tile. Its rows are PAD elements longer, so that a column's lie in other banks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tunesmith.expert.read.integers import BUILTINS, index_stride
from tunesmith.expert.read.model import Each, KernelModel, Task
from tunesmith.expert.write.fast_math import FastMath, known_types
from tunesmith.expert.write.given import Unwritable, item_axis, parenthesize_term
from tunesmith.expert.write.loops import add_unroll_pragmas
from tunesmith.expert.write.packs import Pack, pack_accesses, pack_replacements
from tunesmith.expert.write.plan import WritingPlan
from tunesmith.expert.write.sites import AccessSite, Sites
from tunesmith.source import tree as c
from tunesmith.source.snippets import Wording
from tunesmith.source.substitution import substitute
from tunesmith.source.types import byte_size, integer_literal
from tunesmith.source.walk import map_nodes, names_in
from tunesmith.space.expr import product_text

ROLES = ("tile", "across", "pad")
_STATIC = 48 << 10  # bytes of shared memory that a kernel may declare
_MAX_YZ = 65535  # blocks along the grid's further axes


@dataclass(frozen=True)
class TiledMap:
    """`near`: the axis along which it stores; `far`: the one along which `loads` lie side by side."""

    each: Each
    near: Task
    far: Task
    others: tuple[Task, ...]
    loads: tuple[AccessSite, ...]


def tiled_map(kernel: KernelModel, written: frozenset[str], arrays: Sequence[str]) -> TiledMap | None:
    """None where no load would come through a tile."""
    if len(kernel.steps) != 1 or not isinstance(kernel.steps[0], Each) or kernel.staged or not kernel.tasks:
        return None
    each = kernel.steps[0]
    if each.totals or each.start != c.Number("0", 0):
        return None
    axes = (*kernel.tasks, Task(each.index, each.stop, each.type))
    if any(names_in(task.extent) & set(BUILTINS) or task.count for task in axes):
        return None
    sites = Sites.of(each.body, arrays)
    known = {name for task in axes for name in (task.name, *names_in(task.extent))}

    def lies(site: AccessSite, axis: Task) -> bool:
        found = index_stride(site.index, axis.name)
        return found is not None and found.step == 1 and not found.within

    stores = [site for site in sites.found if site.kind == "store"]
    for near in axes:
        if not stores or not all(lies(site, near) for site in stores):
            continue
        for far in axes:
            loads = [
                site
                for site in sites.found
                if site.kind == "load" and site.sure and not site.loops and site.element is None
                and site.array not in written | sites.escaped and near.name in names_in(site.index) <= known
                and far != near and lies(site, far) and not lies(site, near)
            ]  # fmt: skip
            if loads:
                one = {site.node: site for site in loads}
                others = tuple(task for task in axes if task not in (near, far))
                return TiledMap(each, near, far, others, tuple(one.values()))
    return None


class TileText:
    """The kernel's body."""

    def __init__(self, plan: WritingPlan, fast: FastMath) -> None:
        found = tile_of(plan)
        assert found is not None
        self._plan, self._fast, self._map = plan, fast, found
        places = {word: plan.names.fresh(word) for word in ("thread", "near_first", "far_first", "at")}
        chosen = {role.upper(): plan.draft.schedule[role].name for role in ROLES}
        names = {"N": found.near.name, "F": found.far.name}
        self.words = Wording({**plan.words.words, **places, **chosen, **names})
        self._turns = self.words.expr("TILE * ACROSS / (LANES * TASKS * VEC)")

    def text(self) -> tuple[c.Stmt, ...]:
        return tuple(self._statements())

    def _statements(self) -> Iterator[c.Stmt]:
        plan, found, w = self._plan, self._map, self.words
        yield from w.code(
            """const int thread = threadIdx.y * LANES + lane;
            const T near_first = (T)blockIdx.x * TILE;
            const U far_first = (U)blockIdx.y * ACROSS;""",
            T=found.near.type, U=found.far.type,
        )  # fmt: skip
        rest: c.Expr = c.Name("blockIdx.z")
        for number, task in enumerate(reversed(found.others)):
            last = number == len(found.others) - 1
            value = rest if last else c.Binary("%", rest, task.extent)
            yield c.Declare(c.Type(task.type, const=True), task.name, c.Cast(c.Type(task.type), value))
            rest = c.Binary("/", rest, task.extent)
        tiles = {site.node: plan.names.fresh(f"{site.array}_tile") for site in found.loads}
        row = w.expr("ACROSS + PAD")
        for site in found.loads:
            base = plan.arrays[site.array].base
            yield c.Declare(c.Type(base), tiles[site.node], dims=(w.expr("TILE"), row), storage="shared")
        yield from self._filled(tiles)
        yield c.Evaluate(c.Call("__syncthreads"))
        yield from self._used(tiles)

    def _pack_place(self, slow: Task, fast: Task, width: str, first: str) -> tuple[c.Stmt, ...]:
        """Which pack of the tile a thread has in this turn, and the names of its first element."""
        w, found = self.words, self._map
        firsts = {task.name: w.expr(word) for task, word in
                  ((found.near, "near_first"), (found.far, "far_first"))}  # fmt: skip
        (at,) = w.code("const int at = (thread + k * (LANES * TASKS)) * VEC;")
        row = w.expr(f"start + at / {width}", start=firsts[slow.name])
        column = w.expr(f"start + at % {width}", start=firsts[fast.name])
        return (
            at,
            c.Declare(c.Type(slow.type, const=True), slow.name, row),
            c.Declare(c.Type(fast.type, const=True), first, column),
        )

    def _inside(self, near: c.Expr) -> c.Expr:
        found = self._map
        return self.words.expr("near < a && F < b", near=near, a=found.near.extent, b=found.far.extent)

    def _filled(self, tiles: dict[c.Expr, str]) -> Iterator[c.Stmt]:
        """Packs along the far axis, all of them loaded before the first is put into its tile."""
        plan, found, w = self._plan, self._map, self.words
        ahead = {site.node: plan.names.fresh(f"{site.array}_ahead") for site in found.loads}
        place = self._pack_place(found.near, found.far, "ACROSS", found.far.name)
        inside = self._inside(c.Name(found.near.name))
        loads: list[c.Stmt] = []
        puts: list[c.Stmt] = []
        for site in found.loads:
            register = c.Index(c.Name(ahead[site.node]), w.expr("k"))
            aligned = any(site.node == node for pack in far_packs(plan, found) for node, _ in pack.sites)
            yield c.Declare(c.Type(self._type(site.array, aligned)), ahead[site.node], dims=(self._turns,))
            way = "load_once" if "load_hint" in plan.draft.schedule else "load"
            loads.append(_move_pack(register, way, c.Index(c.Name(site.array), site.index)))
            puts += w.code("tile[at / ACROSS][at % ACROSS + v] = value;", tile=tiles[site.node],
                           value=c.Index(c.Member(register, "at"), w.expr("v")))  # fmt: skip
        yield from self._over("k", self._turns, (*place, c.If(inside, tuple(loads))))
        put = self._over("v", w.expr("VEC"), puts)
        yield from self._over("k", self._turns, (*place, c.If(inside, put)))

    def _used(self, tiles: dict[c.Expr, str]) -> Iterator[c.Stmt]:
        """The body along the near axis, on the tile in place of its far loads."""
        plan, found, w = self._plan, self._map, self.words
        body, _ = self._fast.statements(found.each.body, known_types(plan.kernel))
        body = add_unroll_pragmas(body, plan)
        packs = near_packs(plan, found)
        names = {p.key: plan.names.fresh(f"{p.array}_pack") for p in packs}
        elements: dict[c.Expr, c.Expr] = {
            node: w.expr("tile[at % TILE + v][at / TILE]", tile=tile) for node, tile in tiles.items()
        }
        at_hand = {key: c.Index(c.Name(name), integer_literal(0)) for key, name in names.items()}
        elements |= pack_replacements(packs, at_hand, w.expr("v"))
        index = w.code("const T N = here + v;", T=found.near.type)
        turn = [*index, *map_nodes(body, lambda node: elements.get(node, node))]
        inner: list[c.Stmt] = [
            c.Declare(c.Type(self._type(pack.array, True)), names[pack.key], dims=(integer_literal(1),))
            for pack in packs
        ]
        inner += [_move_pack(at_hand[pack.key], "load", self._first(pack)) for pack in packs if pack.loads]
        inner += self._over("v", w.expr("VEC"), turn)
        way = "store_once" if "store_hint" in plan.draft.schedule else "store"
        inner += [_move_pack(at_hand[pack.key], way, self._first(pack)) for pack in packs if pack.stores]
        place = self._pack_place(found.far, found.near, "TILE", self._plan.word("here"))
        inside = self._inside(w.expr("here"))
        yield from self._over("k", self._turns, (*place, c.If(inside, tuple(inner))))

    def _over(self, word: str, count: c.Expr, body: Sequence[c.Stmt]) -> tuple[c.Stmt, ...]:
        return item_axis(self._plan.word(word), count).over(body)

    def _first(self, pack: Pack) -> c.Index:
        here = self.words.expr("here")
        return c.Index(c.Name(pack.array), substitute(pack.index, {self._map.near.name: here}))

    def _type(self, array: str, aligned: bool) -> str:
        base = self._plan.arrays[array].base
        align = self._plan.element_align.get(array, 1) if aligned else byte_size(base) or 1
        return f"{self._plan.word('Pack')}<{base}, {self._plan.knobs.vector.name}, {align}>"


def _move_pack(pack: c.Expr, way: str, first: c.Expr) -> c.Stmt:
    return c.Evaluate(c.Call(way, (c.Unary("&", first),), of=pack))


def tile_of(plan: WritingPlan) -> TiledMap | None:
    """What goes through tiles, where the schedule has them."""
    if "tile" not in plan.draft.schedule:
        return None
    found = tiled_map(plan.kernel, plan.written, tuple(plan.arrays))
    if found is None or plan.language == "opencl":
        raise Unwritable("no load lies along another axis than the stores")
    for task in (found.near, found.far):
        if task.type == "int" and not plan.sizes.fits_int(task.extent, c.Number("2", 2)):
            raise Unwritable(f"the last tile along {task.name} may end beyond an int")
    return found


def far_packs(plan: WritingPlan, found: TiledMap) -> tuple[Pack, ...]:
    loads = tuple(c.Evaluate(site.node) for site in found.loads)
    return _plain_packs(plan, Each(found.far.name, c.Number("0", 0), found.far.extent, loads))


def near_packs(plan: WritingPlan, found: TiledMap) -> tuple[Pack, ...]:
    return _plain_packs(plan, Each(found.near.name, c.Number("0", 0), found.near.extent, found.each.body))


def _plain_packs(plan: WritingPlan, each: Each) -> tuple[Pack, ...]:
    """Packs of one element to an index; of an array all or none."""
    packs = pack_accesses(each, plan.arrays, (), plan.sizes, plan.knobs.vector.most, True)
    odd = {pack.array for pack in packs if pack.width != 1 or pack.element is not None}
    return tuple(pack for pack in packs if pack.array not in odd)


def tile_rules(plan: WritingPlan) -> list[tuple[str, str]]:
    """What tiles rely on, as the template's `require`."""
    found = tile_of(plan)
    if found is None:
        return []
    schedule, knobs = plan.draft.schedule, plan.knobs
    tile, across, pad = (schedule[role].name for role in ROLES)
    several = [knobs.lanes.size_text, knobs.tasks.size_text, knobs.vector.size_text]
    threads = product_text([text for text in several if text != "1"])
    even = [f"{tile} * {across} % {parenthesize_term(threads)} == 0"]
    if knobs.vector.most > 1:
        even += [f"{side} % {knobs.vector.size_text} == 0" for side in (tile, across)]
    rules = [("whole_tiles", " and ".join(even))]
    if knobs.vector.most > 1:
        packs = (*far_packs(plan, found), *near_packs(plan, found))
        needs = {found.near.extent, found.far.extent}.union(*(pack.needs for pack in packs))
        texts = {
            f"{parenthesize_term(_extent_text(plan, need))} % {knobs.vector.size_text} == 0" for need in needs
        }
        rules.append(("whole_vectors_of_tiles", " and ".join(sorted(texts))))
    bytes_ = sum(byte_size(plan.arrays[site.array].base) or 16 for site in found.loads)
    rules.append(("tile_fits", f"{tile} * ({across} + {pad}) * {bytes_} <= {_STATIC}"))
    blocks = tile_grid(plan, found)[1:]
    rules.append(("tiles_in_grid", " and ".join(f"{b} <= {_MAX_YZ}" for b in blocks)))
    return rules


def _extent_text(plan: WritingPlan, extent: c.Expr) -> str:
    text = plan.sizes.text(extent)
    if text is None:
        raise Unwritable("how far an axis of the tiles goes is not told by the contract")
    return text


def tile_grid(plan: WritingPlan, found: TiledMap) -> list[str]:
    """Blocks of the launch."""
    tile, across = (plan.draft.schedule[role].name for role in ROLES[:2])
    others = [task.size or _extent_text(plan, task.extent) for task in found.others]
    near, far = (_extent_text(plan, task.extent) for task in (found.near, found.far))
    grid = [f"ceildiv({near}, {tile})", f"ceildiv({far}, {across})"]
    return [*grid, product_text(others)] if others else grid
