"""The move: the definition of each knob takes its value from a parameter, and the launch follows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tunesmith.expert.knobs.find import (
    EntryPlace,
    MacroPlace,
    NumberPlace,
    TextPlace,
    entry_parts,
    evaluate_node,
    read_constant,
    used_names,
)
from tunesmith.expert.knobs.launch import LaunchTrees
from tunesmith.expert.knobs.plan import (
    KnobPlan,
    compare_node,
    knob_preferences,
    knob_requirements,
    plan_knobs,
    text_by_parameters,
)
from tunesmith.expert.knobs.text import Words, split_outside_parens
from tunesmith.expert.knobs.values import ABOUT, Bounds, Role, knob_remedies, values_of
from tunesmith.expert.moves.move import Context, define_move, merge_answers
from tunesmith.expert.moves.text_edits import Edit, LaunchText, LocalDraft
from tunesmith.expert.read.model import ParameterChoice
from tunesmith.expert.write.given import add_distinct_conditions
from tunesmith.problem.template import Remedy
from tunesmith.space.expr import Node, parse_expr

_UNROLL = re.compile(r"unroll[ \t]*(\(?)[ \t]*(\d+)[uU]?\b")
_SUFFIX = re.compile(r"\d([uUlL]+)\)?\Z")
_ANSWERS = (
    *(Remedy.BLOCK_SIZE, Remedy.MORE_BLOCKS, Remedy.ITEMS_IN_FLIGHT, Remedy.UNROLL, Remedy.LAUNCH_BOUNDS),
    *(Remedy.LESS_SHARED, Remedy.ROWS_PER_BLOCK, Remedy.PAD_SHARED),
)


@define_move(
    "knobs",
    needs="numbers that are part of what is computed; definitions under an `#if`, made twice, or in a header",
    turn="sharing",
    of_file=True,
    remedies=_ANSWERS,
    KNOB="with a name of the text behind it: a value for each of its own numbers",
)
def open_knobs(draft: LocalDraft, context: Context, name: str) -> LocalDraft | str:
    """The kernel's own numbers opened: constants, `#define`s, template arguments, unroll counts, launch
    bounds and the launch's block, or what it is cut short at; grid, block and shared memory follow them.

    Only definitions change, and at the default nothing does. Whether other values are right the code says as
    far as it can be read (assertions, quotients, whole warps, shared memory); the rest the gate decides.
    """
    problem = context.problem
    trees = [_launch_trees(one) for one in draft.launches]
    plan = plan_knobs(problem, trees, context.device)
    taken: set[str] = set()
    names = {
        key: _fresh_parameter_name(context, f"{name}_{dial.name}", taken)
        for dial in plan.dials
        for key in dial.keys[:1]
    }
    names |= {key: names[dial.keys[0]] for dial in plan.dials for key in dial.keys}
    work = _Opened(draft, context, plan, names)
    work.definitions()
    work.bounds(_fresh_parameter_name(context, f"{name}_MIN_BLOCKS", taken))
    work.unrolled(lambda: _fresh_parameter_name(context, f"{name}_UNROLL", taken))
    if not work.choices:
        return "; ".join(plan.left) or "no number of the text or the launch is one that was chosen"
    preferred = knob_preferences(plan, problem, context.device)
    require, prefer = (
        [(rule, text_by_parameters(node, names)) for rule, node in rules]
        for rules in (work.require(), preferred)
    )
    return replace(
        draft,
        launches=tuple(work.launch(number, one) for number, one in enumerate(draft.launches)),
        edits=(*draft.edits, *work.edits),
        preamble=(*draft.preamble, *work.preamble),
        choices=(*draft.choices, *work.choices),
        require=add_distinct_conditions(draft.require, require),
        prefer=add_distinct_conditions(draft.prefer, prefer),
        answers=merge_answers(draft.answers, work.answers),
        moves=(*draft.moves, "knobs"),
        notes=(*draft.notes, *(f"knobs: {sentence}" for sentence in plan.left)),
    )


def _fresh_parameter_name(context: Context, name: str, taken: set[str]) -> str:
    wanted, number = name, 2
    while name in taken or name in context.taken:
        name, number = f"{wanted}_{number}", number + 1
    taken.add(name)
    return name


def _launch_trees(one: LaunchText) -> LaunchTrees:
    grid, block = (tuple(parse_expr(text).tree for text in texts) for texts in (one.grid, one.block))
    return LaunchTrees(grid, block, one.launch.shared.tree if one.launch.shared is not None else None)


@dataclass
class _Opened:
    """What the template gets, as it is collected."""

    draft: LocalDraft
    context: Context
    plan: KnobPlan
    names: Mapping[str, str]  # key -> parameter

    def __post_init__(self) -> None:
        self.edits: list[Edit] = []
        self.preamble: list[str] = []
        self.choices: list[ParameterChoice] = []
        self.answers: list[tuple[str, str]] = []
        self._entries: dict[int, dict[int, str]] = {}
        self._more: list[tuple[str, Node]] = []

    def definitions(self) -> None:
        for dial in self.plan.dials:
            name = self.names[dial.keys[0]]
            self._open(name, dial.role, dial.today, dial.values, dial.description, is_shared=dial.shared)
            for key in dial.keys:
                if key in self.plan.constants.every:
                    self._define(key, name)

    def _define(self, key: str, name: str) -> None:
        place = self.plan.constants.every[key].place
        if isinstance(place, TextPlace | NumberPlace):
            for one in (place,) if isinstance(place, TextPlace) else place.places:
                suffix = _SUFFIX.search(self.draft.site.text[one.start : one.end])
                text = f"({name} + 0{suffix[1]})" if suffix else name
                self.edits.append(Edit(one.start, text, one.end - one.start))
        elif isinstance(place, MacroPlace):
            given = [f"#undef {place.name}"] if place.is_given else []
            self.preamble += [*given, f"#define {place.name} {name}"]
        elif isinstance(place, EntryPlace):
            for number in place.launches:
                self._entries.setdefault(number, {})[place.argument] = name

    def _open(
        self,
        name: str,
        role: Role,
        today: int,
        values: tuple[int, ...],
        about: str,
        *,
        is_shared: bool = False,
    ) -> None:
        self.choices.append(ParameterChoice(name, values, today, about, categorical=role == "switch"))
        answered = knob_remedies(role, name, today, is_shared=is_shared)
        self.answers = list(merge_answers(self.answers, [(str(remedy), text) for remedy, text in answered]))

    def bounds(self, name: str) -> None:
        """`__launch_bounds__` and OpenCL's and HIP's like: numbers that are the block's follow it."""
        for number, launch in enumerate(self.draft.launches):
            entry = entry_parts(launch.launch.entry)[0]
            for place in self.plan.text.entries(entry):
                item = self.plan.text.items[place]
                if not item.header and not item.macro:
                    self._open_header(number, item.tokens, place, name)

    def _open_header(self, number: int, tokens: Words, place: int, name: str) -> None:
        for at, token in enumerate(tokens):
            if token.text in ("{", ";"):
                return
            if at + 1 >= len(tokens) or tokens[at + 1].text != "(":
                continue
            if token.text == "__launch_bounds__":
                self._launch_bounds(number, split_outside_parens(",", tokens[at + 2 :]), place, name)
            elif token.text in ("reqd_work_group_size", "work_group_size_hint"):
                for axis, argument in enumerate(split_outside_parens(",", tokens[at + 2 :])):
                    if axis < len(self.plan.followed.launches[number].block):
                        self._replace_constant(argument, self.plan.followed.launches[number].block[axis])
            elif token.text == "amdgpu_flat_work_group_size":
                for argument in split_outside_parens(",", tokens[at + 2 :]):
                    self._replace_constant(argument, self.plan.threads(number))

    def _launch_bounds(self, number: int, arguments: Sequence[Words], place: int, name: str) -> None:
        threads, (first, *others) = self.plan.most_threads(number), arguments
        if not self._replace_constant(first, threads):
            constants = self.plan.constants
            most = read_constant(first, constants.resolve(place))
            value = None if most is None else evaluate_node(constants.meaning(most), self.plan.today())
            if value is not None and most is not None and not used_names(self._opened(number, most)):
                self._more.append(("within_bounds", compare_node(threads, "<=", value)))
        second = others[0] if others else []
        if len(second) == 1 and second[0].kind == "number" and not any(c.name == name for c in self.choices):
            today = int(second[0].text.rstrip("uUlL"))
            limits = self.context.device.limits
            block = evaluate_node(threads, self.plan.today()) or 1
            most_blocks = max(today, limits.threads_per_sm // block or 1)
            values = values_of("resident", today, Bounds(most_blocks))
            if len(values) > 1:
                self.edits.append(Edit(second[0].offset, name, len(second[0].text)))
                self._open(name, "resident", today, values, f"{ABOUT['resident']}, line {second[0].line}")

    def _opened(self, number: int, node: Node) -> Node:
        return self.plan.opened(number, self.plan.constants.meaning(node))

    def _replace_constant(self, argument: Words, node: Node) -> bool:
        """A number that is today's value of the tree becomes that tree; whether it was one."""
        if len(argument) != 1 or argument[0].kind != "number" or not used_names(node):
            return False
        if argument[0].text.rstrip("uUlL") != str(evaluate_node(node, self.plan.today())):
            return False
        edit = Edit(
            argument[0].offset,
            text_by_parameters(node, self.names).replace("//", "/"),
            len(argument[0].text),
        )
        if edit not in self.edits:
            self.edits.append(edit)
        return True

    def unrolled(self, fresh: Callable[[], str]) -> None:
        """One knob for all the counts that are the same today."""
        spans = [
            (item.tokens[0].offset, item.tokens[-1].offset)
            for places in self.plan.reached
            for item in (self.plan.text.items[place] for place in places)
            if item.tokens and not item.header and not item.macro
        ]
        counts: dict[int, list[tuple[int, int, int]]] = {}  # by count: line, place, length
        for pragma in self.plan.text.pragmas:
            found = _UNROLL.search(self.draft.site.text, pragma.start, pragma.end)
            if found and any(start < pragma.start < end for start, end in spans):
                counts.setdefault(int(found[2]), []).append((pragma.line, found.start(2), len(found[2])))
        for count, places in counts.items():
            name = fresh()
            self.edits += [Edit(start, name, length) for _, start, length in places]
            lines = ", ".join(str(line) for line, _, _ in places)
            values = values_of("unroll", count, Bounds())
            self._open(name, "unroll", count, values, f"{ABOUT['unroll']}, line {lines}")

    def require(self) -> Iterator[tuple[str, Node]]:
        yield from knob_requirements(self.plan, self.context.problem, self.context.device)
        for rule, node in self._more:
            if used_names(node):
                yield rule, node

    def launch(self, number: int, one: LaunchText) -> LaunchText:
        """What did not change keeps its own text."""
        before, after = _launch_trees(one), self.plan.followed.launches[number]
        grid, block = (
            tuple(
                old if a == b else text_by_parameters(b, self.names) for old, a, b in zip(*each, strict=True)
            )
            for each in ((one.grid, before.grid, after.grid), (one.block, before.block, after.block))
        )
        launch = replace(
            one.launch, block=tuple(parse_expr(text) for text in block), entry=self._entry(number, one)
        )
        if after.shared is not None and after.shared != before.shared:
            launch = replace(launch, shared=parse_expr(text_by_parameters(after.shared, self.names)))
        return LaunchText(launch, grid, block)

    def _entry(self, number: int, one: LaunchText) -> str:
        entry, changed = one.launch.entry, self._entries.get(number)
        if not changed:
            return entry
        _, args = entry_parts(entry)
        args = [f"{{{changed[place]}}}" if place in changed else arg for place, arg in enumerate(args)]
        return f"{entry.partition('<')[0]}<{', '.join(args)}>"
