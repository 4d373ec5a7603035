"""Trainings on handles: what is added up beside plain torch, what is refused, and a sealed run."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sealed_tables import held
from torch import nn
from torch.func import functional_call, grad
from torch.nn.functional import cross_entropy, embedding

from dpaudit import (
    AddRemove,
    Gaussian,
    Invocation,
    Ledger,
    Plan,
    PoissonSampling,
    PrivacyUnit,
    TrustModel,
)
from dpaudit.base.errors import DpAuditError, InputError, PlanMismatchError, UnsupportedError
from dpaudit.sealed.operations import FatalError
from dpaudit.sealed.sandbox import lacking
from dpaudit.training import Adaptive, SealedTrainer
from dpaudit.training.gradients.clipped import MARGIN, ClippedSums
from dpaudit.training.gradients.examples import UnitRows
from dpaudit.training.gradients.graphs import Graph
from dpaudit.training.gradients.tracing import traced
from dpaudit.training.gradients.trainer import Trainer
from dpaudit.workflow.running import run_subject
from dpaudit.workflow.verifying import verify_file

pytest.importorskip("duckdb")

COLUMNS = {
    "a": {"type": "number", "range": [-4, 4], "step": 0.25},
    "b": {"type": "number", "range": [-4, 4], "step": 0.25},
    "word": {"type": "integer", "range": [-3, 9]},
}
ROWS = [
    {"who": f"u{n % 5}", "a": str(n / 4 - 1), "b": str(1 - n / 2), "word": str(n % 7 - 2)}
    for n in range(9)
]


def plan_of(steps: int = 2, **facts: Any) -> Plan:
    about = PrivacyUnit("who"), AddRemove(), TrustModel.CENTRAL
    return Plan.of(Invocation(Gaussian(1.0), 0.5, *about, count=steps, at="gradient", **facts))


def two_layers() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 3)).double()


def loss_of(model: nn.Module) -> Any:
    def loss(parameters: Any, example: Any) -> Any:
        x, word = example
        return cross_entropy(functional_call(model, parameters, (x,)), word.clamp(0, 2))

    return loss


def vectors(asked: Any, most: int = 2) -> Any:
    rows = asked.data.group_rows(most)
    return rows.vector(["a", "b"]), rows.vector("word")


def natural(row: Any) -> tuple[Any, Any]:
    return torch.tensor([float(row["a"]), float(row["b"])]).double(), torch.tensor(int(row["word"]))


def clipped(loss: Any, parameters: Any, rows: Any, norm: float) -> Any:
    """The sum of clipped means of gradients, unit by unit, in plain torch."""
    total = 0.0
    for who in sorted({row["who"] for row in rows}):
        own = [grad(loss)(parameters, natural(row)) for row in rows if row["who"] == who]
        flat = torch.stack([torch.cat([g.reshape(-1) for g in each.values()]) for each in own])
        mean = flat.mean(0)
        total = total + mean * min(1.0, norm * (1 - MARGIN) / float(mean.norm()))
    return np.asarray(total)


def test_what_is_released_are_clipped_means_of_units(tmp_path: Path) -> None:
    """Beside the same sums by a loop over units; the loop's own steps go into the next one."""
    model = two_layers()
    loss = loss_of(model)
    with held(tmp_path, ROWS, plan_of(), columns=COLUMNS) as asked:
        trainer = SealedTrainer(loss, model, vectors(asked), asked.ledger, divisor=5)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        for number, _ in enumerate(trainer):
            now = {name: p.detach().clone() for name, p in model.named_parameters()}
            wanted = clipped(loss, now, ROWS, 0.5)
            assert np.allclose(asked.steps[number].value, wanted, atol=1e-6)
            optimizer.step()
        assert trainer.taken == 2


def test_a_unit_moves_what_is_released_by_the_clip_norm_at_most(tmp_path: Path) -> None:
    """Also one with a row for each of which the loss is NaN, infinite, or in no table."""
    found = []
    for rows in (ROWS, [row for row in ROWS if row["who"] != "u1"]):
        with held(tmp_path, rows, plan_of(1), columns=COLUMNS) as asked:
            weights = {"w": torch.ones(4, 3), "v": torch.full((2,), 3.0)}

            def loss(parameters: Any, example: Any) -> Any:
                x, word = example
                looked_up = embedding(word, parameters["w"])  # of −2 to 4, in a table of four
                return looked_up.sum() * 50 + (parameters["v"] * x).log().sum()

            next(SealedTrainer(loss, weights, vectors(asked), asked.ledger, divisor=5))
            found.append(np.asarray(asked.steps[0].value))
    assert 0 < np.linalg.norm(found[0] - found[1]) <= 0.5
    assert np.isfinite(found).all()


def test_a_loss_that_is_made_of_last_bits_moves_by_no_more(tmp_path: Path) -> None:
    """Where units share a product of matrices, its last bits follow from their places in it."""

    def last_bits(x: Any, w: Any) -> Any:
        mapped = torch.func.vmap(lambda zeros: (x + zeros) @ w)(torch.zeros(256, 17).double())
        return mapped.amin(0), mapped.amax(0)

    for seed in range(40):
        torch.manual_seed(seed)
        x, w = torch.randn(17).double(), torch.randn(17, 3).double()
        low, high = last_bits(x, w)
        if (low < high).any():
            break
    best = int((high - low).argmax())

    def loss(parameters: Any, sign: Any) -> Any:
        product = ((x + 0 * sign) @ w)[best]
        upper = ((product - low[best]) * 1e30).clamp(0, 1)  # 0 or 1, by the last bit
        return (parameters["t"] * (2 * upper - 1) * sign * 100).sum()

    columns = {"a": {"type": "number", "range": [-1, 1], "step": 0.5}}
    rows = [{"who": f"u{n:02}", "a": str(1 - 2 * (n % 2))} for n in range(60)]
    found = []
    for each in (rows, rows[1:]):
        with held(tmp_path, each, plan_of(1), columns=columns) as asked:
            parts = asked.data.group_rows(1).vector("a")
            parameters = {"t": torch.zeros(1).double()}
            next(SealedTrainer(loss, parameters, parts, asked.ledger, divisor=200))
            found.append(float(asked.steps[0].value[0]))
    assert abs(found[0] - found[1]) <= 0.5


@pytest.mark.parametrize("most", [1, 3])
def test_a_gradient_has_the_same_bits_alone_and_among_others(most: int) -> None:
    """So a sum is exactly that of its units one by one, in whatever order they come."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(17, 33), nn.Tanh(), nn.Linear(33, 3))
    own = {**dict(model.named_parameters()), "unused": torch.zeros(2)}
    rows = [torch.randn(60, 17), torch.randint(0, 3, (60,))]
    zeros = [torch.zeros(17), torch.zeros((), dtype=torch.int64)]
    graph, _ = Graph.read(traced(loss_of(model), own, zeros, list), own, zeros)
    units = 60 // most
    examples = UnitRows(rows, np.arange(60) % units, [f"u{n}" for n in range(units)], most)
    sums = ClippedSums(graph, own, examples, 1)
    alone = [sums.total(np.array([n]), 0.1)[0] for n in range(units)]
    order = np.random.default_rng(0).permutation(units)
    assert sums.total(order, 0.1)[0].tolist() == sum(alone[n] for n in order).tolist()
    assert not any(each[-2:].any() for each in alone)


def test_a_loss_of_no_parameter_has_gradients_of_zeros() -> None:
    own, zeros = {"w": torch.ones(3)}, [torch.zeros(2)]
    graph, _ = Graph.read(traced(lambda p, e: e[0].sum(), own, zeros, list), own, zeros)
    examples = UnitRows([torch.ones(4, 2)], np.arange(4), list("abcd"), 1)
    assert ClippedSums(graph, own, examples, 1).total(np.arange(4), 1.0)[0].tolist() == [0.0] * 3


def test_units_are_sampled_and_the_clip_norm_follows_where_it_is_asked_to(tmp_path: Path) -> None:
    plan = Plan.dp_sgd(noise_multiplier=1.0, sample_rate=0.5, steps=8, unit="who")
    model = two_layers()
    with held(tmp_path, ROWS, plan, columns=COLUMNS) as asked:
        trainer = SealedTrainer(
            loss_of(model),
            model,
            vectors(asked),
            asked.ledger,
            divisor=3,
            adaptive=Adaptive(),
            clip_norm=0.1,
        )
        assert len(list(trainer)) == 8
        sizes = {float(np.linalg.norm(step.value)) for step in asked.steps}
        assert len(sizes) > 2  # not all units at each step
        assert next(trainer, None) is None
        assert len(asked.ledger) == 8


@pytest.mark.parametrize("scale", [0.1, 3.0], ids=["unclipped", "clipped"])
def test_a_unit_of_the_roster_without_rows_is_not_counted_where_the_norm_follows(
    tmp_path: Path, scale: float
) -> None:
    """It is drawn like all others; counted as clipped, it would move by twice its sign."""
    columns = {"a": {"type": "number", "range": [-4, 4], "step": 0.25}}
    rows = [{"who": f"u{n}", "a": "1"} for n in range(4)]
    declared = Gaussian(1.0), 1.0, PrivacyUnit("who"), AddRemove(), TrustModel.CENTRAL
    plan = Plan.of(Invocation(*declared, at="gradient"))
    found = []
    for each in (rows, rows[1:]):
        roster = [row["who"] for row in rows]
        with held(tmp_path, each, plan, columns=columns, roster=roster) as asked:
            trainer = SealedTrainer(
                lambda p, a: (p["t"] * a).sum() * scale,
                {"t": torch.zeros(1).double()},
                asked.data.group_rows(1).vector("a"),
                asked.ledger,
                divisor=4,
                adaptive=Adaptive(share=0.6),
                clip_norm=1.0,
            )
            next(trainer)
            found.append(np.asarray(asked.steps[0].value))
    assert 0.6 <= np.linalg.norm(found[0] - found[1]) <= 1


# -- what is refused -------------------------------------------------------------------------------


def request_of(asked: Any, loss: Any, model: Any, handles: Any = None) -> dict[str, Any]:
    """The request that opens a training."""
    kept: list[dict[str, Any]] = []

    class Listening:
        def asked(self, op: str, **request: Any) -> int:
            kept.append({"op": op} | request)
            return 1

    SealedTrainer(loss, model, handles or vectors(asked), Listening(), divisor=5)  # type: ignore[arg-type]
    return json.loads(json.dumps(kept[0]))


def _set(*path: Any, to: Any) -> Any:
    def change(request: Any) -> None:
        for each in path[:-1]:
            request = request[each]
        request[path[-1]] = to

    return change


def _add(*nodes: Any) -> Any:
    return lambda request: request["loss"]["nodes"].extend(nodes)


EMPTY = ["empty.memory_format", [[4]], {}]
HOSTILE = {
    "a value of later": _set("loss", "nodes", 0, 1, 0, to={"value": 10**6}),
    "a value of itself": _set("loss", "result", to={"value": 10**30}),
    "no value": _set("loss", "result", to={"value": -1}),
    "a part of no list": _set("loss", "result", to={"value": 0, "part": 0}),
    "a vector for a loss": _set("loss", "result", to={"value": 0}),
    "memory that nobody wrote": _add(EMPTY),
    "memory as it lies": _add(["as_strided.default", [{"value": 0}, [4], [1]], {}]),
    "a number of Python": _add(["_local_scalar_dense.default", [{"value": 0}], {}]),
    "a shape by values": _add(["nonzero.default", [{"value": 0}], {}]),
    "draws": _add(["bernoulli.default", [{"value": 0}], {}]),
    "writes": _add(["relu_.default", [{"value": 0}], {}]),
    "code": _add(["__class__.__init__", [], {}]),
    "no call": _add("relu"),
    "no arguments": _add(["relu.default", [], {}]),
    "no name": _add([["relu"], [], {}]),
    "too large": _add(["full.default", [[10**6, 10**6], 1.0], {}]),
    "in too many parts": _add(
        ["full.default", [[2**20], 1.0], {}], ["unbind.int", [{"value": 17}], {}]
    ),
    "larger than all": _add(["full.default", [[10**40], 1.0], {}]),
    "too many": _add(*[["relu.default", [{"value": 0}], {}]] * 20_001),
    "shapes that do not fit": _add(["mm.default", [{"value": 0}, {"value": 0}], {}]),
    "half floats": _add(["zeros.default", [[2]], {"dtype": {"type": "float16"}}]),
    "no classes": _add(["nll_loss_forward.default", [{"value": 0}, {"value": 0}], {}]),
    "no axis": _add(["index_select.default", [{"value": 0}, "x", {"value": 5}], {}]),
    "deep": _add(["cat.default", json.loads("[" * 300 + "]" * 300), {}]),
    "no number": _add(["full.default", [[2], {"float": "1e400"}], {}]),
    "no text": _set("loss", "constants", to=[{"type": "float32", "shape": [1], "data": "!"}]),
    "a constant of another size": _set(
        "loss", "constants", to=[{"type": "float32", "shape": [9], "data": "AADAfw=="}]
    ),
    "a constant of objects": _set(
        "loss", "constants", to=[{"type": "object", "shape": [1], "data": "AADAfwAAAAA="}]
    ),
    "too many parameters": _set("parameters", to=[["w", [2**22]]]),
    "a name twice": _set("parameters", to=[["w", [2]], ["w", [2]]]),
    "no shapes": _set("parameters", to=[["w", [-1]]]),
    "another type": _set("type", to="float16"),
    "another handle": _set("of", to=[0]),
    "no handle": _set("of", to=[]),
    "no divisor": _set("divisor", to=0),
    "all memory": _add(*[["full.default", [[2**24], 1.0], {}]] * 30),
    "no rule": _set("adaptive", to={"rate": "x"}),
    "another label": _set("at", to="loss"),
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_no_request_reads_a_row_or_ends_the_run(tmp_path: Path, change: Any) -> None:
    """Each is answered in words that follow from it alone, before a row is read."""
    model = two_layers()
    with held(tmp_path, ROWS, plan_of(), columns=COLUMNS) as asked:
        request = request_of(asked, loss_of(model), model)
        asked.operations.real.store.values = None  # type: ignore[method-assign]
        change(request)
        said = asked.operations.answer(request)
        assert "error" in said
        assert "\n" not in said["error"]
        assert not asked.steps


@pytest.mark.parametrize("most", [1, 2])
def test_what_fails_for_any_unit_is_refused_of_a_table_without_rows(
    tmp_path: Path, most: int
) -> None:
    """A run that ended with the first unit would tell that somebody is among the rows."""
    for rows in (ROWS, []):
        with held(tmp_path, rows, plan_of(1), columns=COLUMNS) as asked:
            words = [asked.data.group_rows(most).vector("word")]

            def loss(parameters: Any, example: Any) -> Any:
                return embedding(example[0], parameters["w"], sparse=True).sum()

            request = request_of(asked, loss, {"w": torch.ones(4, 3)}, words)
            assert "sparse" in asked.operations.answer(request)["error"]


@pytest.mark.parametrize("rows", [[], ROWS], ids=["no rows", "rows"])
def test_a_step_that_fails_of_a_row_is_refused_however_rarely_one_is_drawn(
    rows: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = ClippedSums.total

    def total(sums: Any, places: Any, *given: Any, **named: Any) -> Any:
        if len(sums._examples.present(places)):
            raise InputError("it fails of a row.")
        return own(sums, places, *given, **named)

    monkeypatch.setattr(ClippedSums, "total", total)
    with held(tmp_path, rows, plan_of(1, sampling=PoissonSampling(1e-9)), columns=COLUMNS) as asked:
        ages = asked.data.group_rows(1).vector("word")
        loss = lambda parameters, example: (parameters["w"] * example[0]).sum()  # noqa: E731
        trainer = SealedTrainer(loss, {"w": torch.zeros(1)}, (ages,), asked.ledger, divisor=5)
        with pytest.raises(InputError, match="it fails of a row"):
            next(trainer)


@pytest.mark.parametrize(
    ("call", "arguments", "options"),
    [
        ("_to_copy.default", [{"value": 1}], {"dtype": -1}),
        ("clone.default", [{"value": 1}], {"memory_format": -1}),
        ("zeros_like.default", [{"value": 1}], {"layout": 1}),
        ("full.default", [[4], 1.0, -5], {}),
        ("sum.dim_IntList", [{"value": 1}, [{"value": 1}]], {}),
        ("_safe_softmax.default", [{"value": 1}, {"value": 0}], {}),
        ("_safe_softmax.default", [{"value": 1}, 0, {"type": "float64"}, 1], {}),
        ("clone.default", [{"value": 1}], {"device": "cpu"}),
    ],
)
def test_a_call_has_arguments_of_the_kinds_that_torch_declares(
    call: str, arguments: list[Any], options: dict[str, Any]
) -> None:
    """Torch takes a number for some of them without a look, and reads memory by it."""
    last = ["sum.default", [{"value": 2}], {}]
    record = {"constants": [], "nodes": [[call, arguments, options], last], "result": {"value": 3}}
    with pytest.raises(InputError, match="argument of another kind than it takes"):
        Graph.read(record, {"w": torch.zeros(4)}, [torch.zeros(4)])


@pytest.mark.parametrize("words", ["index is out of range", "can't allocate memory"])
def test_a_unit_for_which_torch_fails_adds_nothing(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that ended there would tell that it is among the rows; want of memory ends it."""
    model, own = two_layers(), Graph.__call__

    def call(graph: Graph, parameters: Any, example: Any) -> Any:
        if graph.is_total and example[0][0] == 3.75:
            raise RuntimeError(words)
        return own(graph, parameters, example)

    monkeypatch.setattr(Graph, "__call__", call)
    found = []
    for more in ([], [{"who": "x", "a": "3.75", "b": "1", "word": "0"}]):
        with held(tmp_path, [*ROWS, *more], plan_of(1), columns=COLUMNS) as asked:
            trainer = SealedTrainer(
                loss_of(model), model, vectors(asked, 1), asked.ledger, divisor=5
            )
            if more and "memory" in words:
                with pytest.raises(FatalError):
                    next(trainer)
                return
            next(trainer)
            found.append(asked.steps[0].value)
    assert np.array_equal(*found)
    assert np.any(found[0])


def test_a_failure_takes_no_other_unit_along(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a chunk of two, the one beside it would be moved by the one for which torch fails."""
    own, zeros = {"w": torch.ones(2)}, [torch.zeros(2)]
    graph, _ = Graph.read(traced(lambda p, e: (p["w"] * e[0]).sum(), own, zeros, list), own, zeros)
    examples = UnitRows([torch.ones(2, 2)], np.arange(2), list("ab"), 1)
    sums = [ClippedSums(replace(graph, is_total=True), own, examples, size) for size in (1, 2)]

    def fails(*_: Any) -> Any:
        raise RuntimeError("index is out of range")

    monkeypatch.setattr(Graph, "__call__", fails)
    assert not sums[0].total(np.arange(2), 1.0)[0].any()
    with pytest.raises(DpAuditError, match="the loss"):
        sums[1].total(np.arange(2), 1.0)


PARTLY = {
    "no classes": ["nll_loss_forward.default", [{"value": 2}, {"value": 1}, None, 1, 0], {}],
    "no classes of places": [
        "nll_loss2d_forward.default",
        [{"value": 3}, {"value": 4}, None, 1, 0],
        {},
    ],
    "no table": ["embedding.default", [{"value": 5}, {"value": 1}], {}],
    "a window of nothing": [
        "max_pool2d_with_indices.default",
        [{"value": 6}, [2, 1], [1, 1], [1, 0], [2, 1]],
        {},
    ],
    "a window of nothing, by name": [
        "max_pool2d_with_indices.default",
        [{"value": 6}, [2, 1]],
        {"stride": [1, 1], "padding": [1, 0], "dilation": [2, 1]},
    ],
}


@pytest.mark.parametrize("call", PARTLY.values(), ids=PARTLY)
def test_what_torch_fails_of_for_some_values_alone_is_refused_by_shapes(call: Any) -> None:
    """It would end the run for a label that is not ignored, or write beyond what it has made."""
    nodes = [
        ["slice.Tensor", [{"value": 0}, 0, 0, 0], {}],
        ["view.default", [{"value": 2}, [1, 0, 1, 1]], {}],
        ["view.default", [{"value": 1}, [1, 1, 1]], {}],
        ["view.default", [{"value": 2}, [0, 4]], {}],
        ["view.default", [{"value": 0}, [1, 1, 4]], {}],
        call,
        ["sum.default", [{"value": 0}], {}],
    ]
    record = {"constants": [], "nodes": nodes, "result": {"value": 8}}
    example = [torch.zeros((), dtype=torch.int64)]
    with pytest.raises(UnsupportedError, match=r"empty axis|with a dilation"):
        Graph.read(record, {"w": torch.zeros(4)}, example)


def test_constants_of_a_loss_are_not_compared_with_the_data() -> None:
    """Whether they are equal would be told by the end of the run, without noise."""

    class Guess(Graph):
        def __call__(self, parameters: Any, example: Any) -> Any:
            return self._computed(parameters, example) + 0 * self.constants[0].sum()

    own, zeros = {"t": torch.zeros(1)}, [torch.zeros(())]
    record = traced(lambda p, e: (p["t"] * e[0]).sum(), own, zeros, list)
    graph, _ = Graph.read(record, own, zeros)
    examples = UnitRows([torch.ones(4)], np.arange(4), list("abcd"), 1)
    guess = Guess((torch.ones(4),), graph.nodes, graph.result)
    ledger = Ledger(plan_of(1), rng=np.random.default_rng(0))
    assert len(Trainer(guess, own, examples, ledger, divisor=1, chunk=1)) == 1


@pytest.mark.parametrize(
    "flat",
    [[float("nan")] * 27, [0.0] * 26, [1e300] * 27],
    ids=["not finite", "another shape", "another type"],
)
def test_parameters_are_finite_and_of_the_training(tmp_path: Path, flat: Any) -> None:
    model = two_layers()
    with held(tmp_path, ROWS, plan_of(), columns=COLUMNS) as asked:
        trainer = SealedTrainer(loss_of(model), model, vectors(asked), asked.ledger, divisor=5)
        kind = torch.float32 if flat[0] > 1 else torch.float64
        trainer.parameters = {"w": torch.tensor(flat).to(kind)}
        with pytest.raises(InputError, match="parameters"):
            next(trainer)
        assert not asked.steps


def refused(asked: Any, loss: Any, match: str, handles: Any = None, **settings: Any) -> None:
    model = nn.Linear(2, 3)
    made = vectors(asked) if handles is None else handles
    with pytest.raises((InputError, PlanMismatchError, UnsupportedError), match=match):
        SealedTrainer(loss, model, made, asked.ledger, **({"divisor": 5} | settings))


def test_a_loss_that_no_graph_holds_is_refused_where_it_is_written(tmp_path: Path) -> None:
    with held(tmp_path, ROWS, plan_of(), columns=COLUMNS) as asked:
        x, word = vectors(asked)
        drop = nn.Dropout()
        refused(asked, lambda p, e: drop(e[0]).sum(), "dropout.*random")
        refused(asked, lambda p, e: e[0].sum() * e[0].sum().item(), "local_scalar")
        refused(asked, lambda p, e: e[0][e[0] > 0].sum(), "nonzero|index")
        refused(asked, lambda p, e: 3.0, "must be a tensor")
        refused(asked, lambda p, e: p["weight"].sum(0), "one number")
        drawn = iter(np.random.default_rng(0).normal(size=9).tolist())
        refused(asked, lambda p, e: p["weight"].sum() * next(drawn), "branches on values, draws")
        refused(asked, lambda p, e: p["weight"].sum(), "bound them", [asked.data.vector("a")])
        other = asked.data.group_rows(1).vector("a")
        refused(asked, lambda p, e: p["weight"].sum(), "vectors of different rows", [x, other])
        refused(asked, lambda p, e: p["weight"].sum(), "must be vectors", torch.zeros(9))
        refused(asked, lambda p, e: p["weight"].sum(), "divisor", divisor=-1)
        with pytest.raises((InputError, TypeError)):  # nor is a handle anything to compute with
            SealedTrainer(lambda p, e: x + 1, nn.Linear(2, 3), (x, word), asked.ledger, divisor=5)


def test_batches_by_the_order_of_units_are_refused(tmp_path: Path) -> None:
    declared = Gaussian(1.0), 0.5, PrivacyUnit("who"), AddRemove(), TrustModel.CENTRAL
    plan = Plan.of(Invocation(*declared, count=1, total=4, at="gradient"))
    with held(tmp_path, ROWS, plan, columns=COLUMNS) as asked:
        refused(asked, lambda p, e: p["weight"].sum(), "take turns|other batches")


def test_without_torch_the_answer_is_one_sentence(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("dpaudit.base.optional_import.find_spec", lambda name: None)
    with held(tmp_path, ROWS, plan_of(), columns=COLUMNS) as asked:
        said = asked.answer("training")
    assert said["kind"] == "UnsupportedError"
    assert said["error"].startswith("a training in a sealed run needs torch")


# -- graphs ----------------------------------------------------------------------------------------


class Causal(nn.Module):
    """Attention to what was before, by infinite numbers in a mask and in a call."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)
        mask = torch.full((5, 5), float("-inf")).triu(1)
        self.register_buffer("mask", mask)

    def forward(self, x: Any) -> Any:
        h = self.inner(x)[None]
        one = nn.functional.scaled_dot_product_attention(h, h, h, is_causal=True)
        two = nn.functional.scaled_dot_product_attention(h, h, h, attn_mask=self.mask)
        return one + 2 * two.masked_fill(two > 1e9, float("inf"))


LAYERS = {
    "convolutions": lambda: nn.Sequential(
        nn.Unflatten(0, (1, 5)), nn.Conv2d(1, 2, 2), nn.ReLU(inplace=True), nn.MaxPool2d(2)
    ),
    "attention": lambda: nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True),
    "masks": Causal,
    "LSTM": lambda: nn.LSTM(4, 3, batch_first=True),
    "GRU": lambda: nn.GRU(4, 3, batch_first=True),
    "norms": lambda: nn.Sequential(nn.LayerNorm(4), nn.RMSNorm(4), nn.GELU(), nn.PReLU()),
    "frozen": lambda: nn.Sequential(nn.Linear(4, 3).requires_grad_(False), nn.Linear(3, 2)),
}


@pytest.mark.parametrize("make", LAYERS.values(), ids=LAYERS)
def test_a_graph_has_the_gradients_of_its_loss(make: Any) -> None:
    """Those of torch's own autograd, for one example."""
    model = make()
    own = {name: p for name, p in model.named_parameters() if p.requires_grad}

    def loss(parameters: Any, example: Any) -> Any:
        found = functional_call(model, parameters, (example[0],))
        found = found[0] if isinstance(found, tuple) else found
        return found.square().sum()

    graph, _ = Graph.read(traced(loss, own, [torch.zeros(5, 4)], list), own, [torch.zeros(5, 4)])
    x = torch.randn(5, 4)
    loss(own, [x]).backward()
    made = grad(graph)({name: p.detach() for name, p in own.items()}, [x])
    for name, each in own.items():
        assert torch.allclose(made[name], each.grad, rtol=1e-4, atol=1e-5)


# -- a sealed run ----------------------------------------------------------------------------------

CODE = '''
from dataclasses import dataclass

import torch
from torch import nn
from torch.func import functional_call
from torch.nn.functional import binary_cross_entropy_with_logits

from dpaudit import Claim, Plan, RunResult, SealedSubject, Table
from dpaudit.training import SealedTrainer


@dataclass(frozen=True)
class Line(SealedSubject):
    """Which side of a line points lie on."""

    steps: int = 40

    def table(self):
        number = {"type": "number", "range": [-1, 1], "step": 0.001}
        side = {"type": "integer", "range": [0, 1]}
        return Table("points.csv", "who", {"x": number, "y": number, "side": side})

    def plan(self):
        return Plan.dp_sgd(noise_multiplier=1.5, sample_rate=0.2, steps=self.steps, unit="who")

    def claim(self):
        return Claim(8.0, 1e-5)

    def run(self, data, ledger, rng):
        model = nn.Linear(2, 1)
        nn.init.zeros_(model.weight), nn.init.zeros_(model.bias)

        def loss(parameters, example):
            point, side = example
            said = functional_call(model, parameters, (point,))[0]
            return binary_cross_entropy_with_logits(said, side.float())

        rows = data.group_rows(2)
        examples = rows.vector(["x", "y"]), rows.vector("side")
        trainer = SealedTrainer(loss, model, examples, ledger, divisor=30)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        for _ in trainer:
            optimizer.step()
        weights = model.weight[0].tolist()
        return RunResult({"steps": trainer.taken}, {"weights": weights})
'''


@pytest.mark.skipif(bool(lacking()), reason=f"nothing is sealed here: {lacking()}")
def test_a_sealed_training_learns_and_is_certified(tmp_path: Path, monkeypatch: Any) -> None:
    """150 units of two points, of which y > x: each step has noise of 0.05, and a gradient of 0.2.

    Weights grow by 0.1 a step in its direction; that forty of them end below 0.5 takes a mean noise
    of four steps' gradients.
    """
    monkeypatch.chdir(tmp_path)
    Path("line.py").write_text(CODE)
    points = np.random.default_rng(0).uniform(-1, 1, (300, 2)).round(3)
    lines = [f"w{n // 2},{x},{y},{int(y > x)}" for n, (x, y) in enumerate(points.tolist())]
    Path("points.csv").write_text("who,x,y,side\n" + "\n".join(lines) + "\n")
    run_subject("line.py:Line", [], None, None, Path("out"), sealed=True)
    verify_file(Path("out/certificate.json"), ledger=Path("out/ledger.jsonl"))
    made = json.loads(Path("out/certificate.json").read_text())
    assert made["scope"] == "sealed"
    assert made["verdict"] == "certified"
    assert made["checked"]
    weights = made["run"]["series"]["weights"]
    assert weights[0] < -0.5 < 0.5 < weights[1]
    assert "gradients-in-floats" not in {each["rule"] for each in made["findings"]}
    known = {each["premise"]: each["standing"] for each in made["assumptions"]}
    assumed = {premise for premise, standing in known.items() if standing == "assumed"}
    assert assumed == {
        "units and groups as named",
        "a unit's name is a person",
        "plan and public facts without these data",
    }


@pytest.mark.pages
@pytest.mark.skipif(bool(lacking()), reason=f"nothing is sealed here: {lacking()}")
def test_the_page_trains_as_it_says(tmp_path: Path, monkeypatch: Any) -> None:
    page = (Path(__file__).parents[4] / "docs" / "sealed.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n# costs\.py\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    Path("costs.py").write_text(code)
    run_subject("costs.py:Costs", [], "synthetic 2000", None, Path("out"), sealed=True)
    verify_file(Path("out/certificate.json"), ledger=Path("out/ledger.jsonl"))
    made = json.loads(Path("out/certificate.json").read_text())
    assert (made["scope"], made["verdict"]) == ("sealed", "certified")
    assert made["run"]["summary"]["steps"] == 100
