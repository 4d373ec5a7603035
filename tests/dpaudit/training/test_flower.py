import logging
import math
import re
import runpy
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("flwr")

from flower_grid import MemoryGrid, failing, identify
from flwr.app import (
    Array,
    ArrayRecord,
    ConfigRecord,
    Context,
    Error,
    Message,
    MetricRecord,
    RecordDict,
)
from flwr.clientapp import ClientApp
from flwr.serverapp.strategy import (
    Bulyan,
    DifferentialPrivacyServerSideAdaptiveClipping,
    DifferentialPrivacyServerSideFixedClipping,
    FedAdam,
    FedAvg,
    FedMedian,
    FedXgbBagging,
    QFedAvg,
)
from flwr.supercore import privacy_accounting
from flwr.supercore.privacy_accounting import rdp_accountant

from dpaudit import (
    BudgetExceededError,
    Claim,
    FloatNoise,
    InputError,
    Ledger,
    Plan,
    PlanMismatchError,
    PrivacyUnit,
    guarantee,
)
from dpaudit.accounting import compose
from dpaudit.accounting.budgets import RenyiFilter
from dpaudit.auditing.replaying.recording import Routine
from dpaudit.auditing.replaying.replay import replay
from dpaudit.certificate import verify
from dpaudit.cli.main import main
from dpaudit.ledger import read_journal
from dpaudit.training.flower import Adaptive, PrivateStrategy, locally_private, update_plan

WIDTH = 6


@pytest.fixture(autouse=True)
def _in_a_server(monkeypatch):
    identify(monkeypatch)
    logging.getLogger("flwr").setLevel(logging.ERROR)


class Grid(MemoryGrid):
    """A grid that also waits for all answers, in one call."""

    def __init__(self, nodes):
        super().__init__(nodes)
        self.asked = []

    def send_and_receive(self, messages, *, timeout=None):
        messages = list(messages)
        self.asked.append(sorted(each.metadata.dst_node_id for each in messages))
        return self.pull_messages([name for name in self.push_messages(messages) if name])


def moving(vector, examples=1):
    """A node whose model is the one that it was sent, moved by a vector."""

    def node(message):
        (held,) = message.content.array_records.values()
        one, two = held.to_numpy_ndarrays()
        moved = [one + np.asarray(vector[:4]).reshape(2, 2), two + np.asarray(vector[4:])]
        arrays = ArrayRecord(moved)
        told = MetricRecord({"num-examples": examples, "loss": 0.25})
        reply = Message(RecordDict({"arrays": arrays, "metrics": told}), reply_to=message)
        reply.metadata.__dict__["_src_node_id"] = message.metadata.dst_node_id
        return reply

    return node


def zero():
    return ArrayRecord([np.zeros((2, 2)), np.zeros(2, dtype=np.float32)])


def everyone(**settings):
    settings = {"min_train_nodes": 1, "min_available_nodes": 1, "fraction_evaluate": 0.0} | settings
    return FedAvg(**settings)


def ledger(declared, seed=0, **settings):
    return Ledger(declared, noise=FloatNoise(np.random.default_rng(seed)), **settings)


def private(declared, norm=1.0, clients=1, *, inner=None, seed=0, **settings):
    """A strategy with a ledger of its own."""
    held = ledger(declared, seed)
    return PrivateStrategy(
        inner or everyone(), held, clip_norm=norm, expected_clients=clients, **settings
    )


def played(strategy, nodes, rounds=1):
    grid = Grid(nodes)
    result = strategy.start(grid, zero(), num_rounds=rounds)
    return flat(result.arrays), grid, result


def flat(arrays):
    return np.concatenate([each.ravel() for each in arrays.to_numpy_ndarrays()])


def crowd(number=10, length=3.0):
    return {n: moving(length * np.eye(WIDTH)[n % WIDTH]) for n in range(1, number + 1)}


def test_the_mean_is_that_of_clipped_updates_with_the_noise_of_flowers_own():
    """Noise zC/n on each entry: 600 values, χ² within its 1e-6 bounds."""
    z, norm, held = 2.0, 0.5, []
    clipped = sum(norm * np.eye(WIDTH)[n % WIDTH] for n in range(1, 11)) / 10
    for seed in range(100):
        strategy = private(update_plan(z, 1), norm, 10, seed=seed)
        held.append(played(strategy, crowd())[0] - clipped)
    theirs = z * norm / 10
    total = float(np.square(np.array(held) / theirs).sum())
    from scipy.stats import chi2

    assert chi2.ppf(5e-7, 600) < total < chi2.isf(5e-7, 600)


def test_epsilon_is_flowers_own():
    def theirs(method, relation, size, population):
        config = privacy_accounting.PrivacyConfig(1e-5, population, relation, method)
        own = rdp_accountant.RdpAccountant(config)
        own.compose(privacy_accounting.GaussianPrivacyEvent(1.5, size, population), count=20)
        return own.get_epsilon(1e-5)

    near = privacy_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE
    kinds = privacy_accounting.SamplingMethod
    whole, some = update_plan(1.5, 20), update_plan(1.5, 20, sample_rate=0.1)
    for declared, method in ((whole, kinds.NO_AMPLIFICATION), (some, kinds.POISSON)):
        found = theirs(method, near, 10, 100)
        assert compose(declared, "rdp").epsilon(1e-5).upper == pytest.approx(found, rel=5e-3)
        assert guarantee(declared, 1e-5).epsilon < found


@pytest.mark.parametrize("adaptive", [None, Adaptive()], ids=["fixed", "adaptive"])
def test_a_client_more_moves_a_round_by_what_is_declared_at_most(adaptive):
    """One of a million examples and a huge update, among nine others."""

    def rounds(nodes, held, rng):
        strategy = PrivateStrategy(
            everyone(), held, clip_norm=0.5, expected_clients=10, adaptive=adaptive
        )
        played(strategy, nodes, 3)

    nodes = crowd(9) | {10: moving([1e6] * WIDTH, examples=10**6)}
    report = replay(Routine(update_plan(1.0, 3), rounds), nodes, crowd(9), 1)
    assert not report.findings
    assert max(each.observed / each.declared for each in report.comparisons) > 0.99


@pytest.mark.parametrize("inner", [FedMedian, FedAdam, FedAvg])
def test_any_strategy_takes_the_private_mean(inner):
    own = inner(min_train_nodes=1, min_available_nodes=1, fraction_evaluate=1.0)
    strategy = private(update_plan(0.01, 3), 5.0, 4, inner=own)
    found, grid, result = played(strategy, {n: moving([1.0] * WIDTH) for n in range(1, 5)}, 3)
    assert not result.train_metrics_clientapp
    assert not result.evaluate_metrics_clientapp
    assert set(grid.kinds) == {"train"}
    if inner is not FedAdam:
        assert found == pytest.approx([3.0] * WIDTH, abs=0.5)
    else:
        assert (found > 0).all()


def test_the_ledger_draws_the_clients_and_rounds_of_nobody_are_rounds():
    strategy = private(update_plan(1.0, 30, sample_rate=0.2))
    _, grid, _ = played(strategy, crowd(5), 30)
    sizes = [len(each) for each in grid.asked[::2]]
    assert len(strategy.ledger) == 30
    assert 0 in sizes
    assert len(set(sizes)) > 2
    picky = private(update_plan(1.0, 1, sample_rate=0.2), inner=everyone(fraction_train=0.5))
    with pytest.raises(InputError, match="let the strategy ask all"):
        played(picky, crowd(5))


def test_the_clip_norm_follows_the_updates_by_released_numbers_alone():
    rule = Adaptive(quantile=0.5, rate=0.3)
    strategy = private(update_plan(0.05, 40), 0.1, 10, adaptive=rule)
    nodes = {n: moving(n / 2 * np.eye(WIDTH)[0]) for n in range(1, 11)}
    played(strategy, nodes, 40)
    assert 2.0 < strategy.clip_norm < 3.6  # the median length is 2.75


def test_failing_clients_are_missed_and_a_budget_ends_it():
    budget = RenyiFilter(epsilon=8.0, delta=1e-5)
    held = ledger(update_plan(1.0, 10), budget=budget)
    strategy = PrivateStrategy(everyone(), held, clip_norm=1.0, expected_clients=3)
    with pytest.raises(BudgetExceededError):
        played(strategy, crowd(3) | {4: failing}, 10)
    assert 0 < len(held) < 10
    assert compose(held.spent(), "rdp").epsilon(1e-5).upper <= 8.0


@pytest.mark.parametrize("held", [[np.zeros(3)], [], [np.array(["secret"] * 6)]])
def test_an_update_that_is_no_model_is_missed(held):
    def wrong(message):
        told = RecordDict({"arrays": ArrayRecord(held), "metrics": MetricRecord({"n": 1})})
        return Message(told, reply_to=message)

    ends = [
        played(private(update_plan(1.0, 1), clients=10), nodes)[0]
        for nodes in (crowd(9), crowd(9) | {10: wrong})
    ]
    assert np.allclose(*ends)


def test_a_client_that_answers_twice_counts_once():
    own = private(update_plan(0.001, 1))
    grid, node = Grid({1: moving([9.0] + [0.0] * 5)}), moving([9.0] + [0.0] * 5)
    own.strategy.min_available_nodes = 1
    (asked,) = own.configure_train(1, zero(), ConfigRecord(), grid)
    asked.metadata.__dict__["_message_id"] = "1"
    model, _ = own.aggregate_train(1, [node(asked), node(asked)])
    assert np.linalg.norm(flat(model)) == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"adaptive": 5}, "adaptive is a int.*Adaptive"),
        ({"strategy": 5}, "strategy is a int"),
        ({"strategy": QFedAvg(client_learning_rate=0.1)}, "strategy is a QFedAvg.*one mean"),
        ({"strategy": Bulyan()}, "strategy is a Bulyan"),
        ({"strategy": FedXgbBagging()}, "strategy is a FedXgbBagging"),
    ],
)
def test_what_cannot_take_a_private_mean_is_refused(settings, words):
    held = ledger(update_plan(1.0, 1))
    usual = {"strategy": everyone(), "ledger": held, "clip_norm": 1.0, "expected_clients": 2}
    with pytest.raises(InputError, match=words):
        PrivateStrategy(**usual | settings)


@pytest.mark.parametrize("there", [[3, 3, 3, 4], [4, 3, 3, 3], [3, 4, 4, 4], [4, 4, 4, 3]])
def test_a_node_may_join_or_leave_while_clients_are_asked(there):
    """Of all nodes, as many are asked as were there all the time."""

    class Busy(Grid):
        def get_node_ids(self):
            now = there.pop(0) if len(there) > 1 else there[0]
            return list(self.nodes)[:now]

    strategy = private(update_plan(1.0, 1, sample_rate=0.5))
    strategy.start(Busy(crowd(4)), zero(), num_rounds=1)
    assert len(strategy.ledger) == 1


@pytest.mark.parametrize("way", ["raises", "says", "sends"])
def test_what_a_client_fails_on_stays_with_it(way):
    def train(message, context):
        if way == "raises":
            raise ValueError("secret 4711")
        if way == "says":
            return Message(Error(2, "secret 4711"), reply_to=message)
        arrays = ArrayRecord([np.array(["secret 4711"] * WIDTH)])
        return Message(RecordDict({"arrays": arrays}), reply_to=message)

    held = ledger(update_plan(1.0, 1, local=True))
    app = ClientApp(mods=[locally_private(held, 1.0)])
    app.train()(train)
    message = Message(RecordDict({"arrays": zero()}), dst_node_id=1, message_type="train")
    message.metadata.__dict__["_message_id"] = "1"
    with pytest.raises(InputError, match="own log says why") as said:
        app(message, Context(1, 2, {}, RecordDict(), {}))
    assert "4711" not in str(said.value)
    assert not len(held)


@pytest.mark.parametrize("local", [False, True])
def test_the_plan_is_one_of_clients_and_of_who_draws_the_noise(local):
    right = update_plan(1.0, 1, local=local)
    (update,) = right.invocations
    for declared in (
        update_plan(1.0, 1, local=not local),
        Plan.of(replace(update, unit=PrivacyUnit("row"))),
        Plan.of(replace(update, at="gradient")),
    ):
        with pytest.raises(InputError, match=f"local={local}"):
            guarded(declared, local)
    guarded(right, local)
    guarded(Plan.of(replace(update, unit=PrivacyUnit("hospital"))), local)


def guarded(declared, local):
    if local:
        return locally_private(ledger(declared), 1.0)
    return private(declared)


def test_more_rounds_than_declared_are_refused():
    with pytest.raises(PlanMismatchError, match="charged that often"):
        played(private(update_plan(1.0, 1), clients=3), crowd(3), 2)


def local(vector, held, norm=0.5):
    app = ClientApp(mods=[locally_private(held, norm)])
    app.train()(lambda message, context: moving(vector, 7)(message))
    app.evaluate()(lambda message, context: moving(vector, 7)(message))
    context = Context(1, 2, {}, RecordDict(), {})

    def node(message):
        reply = app(message, context)
        reply.metadata.__dict__["_src_node_id"] = message.metadata.dst_node_id
        return reply

    return node


def test_local_noise_leaves_nothing_else():
    held = ledger(update_plan(0.01, 2, local=True))
    node = local([9.0] + [0.0] * (WIDTH - 1), held)

    message = Message(RecordDict({"arrays": zero()}), dst_node_id=1, message_type="train")
    message.metadata.__dict__["_message_id"] = "1"
    reply = node(message)
    update = flat(reply.content["arrays"])
    assert update == pytest.approx([0.5] + [0.0] * (WIDTH - 1), abs=0.05)
    assert dict(reply.content["metrics"]) == {"num-examples": 1.0}
    assert [each.dtype for each in reply.content["arrays"].to_numpy_ndarrays()] == [
        np.dtype("float64"),
        np.dtype("float32"),
    ]
    assert len(held) == 1
    other = Message(RecordDict({"arrays": zero()}), dst_node_id=1, message_type="evaluate")
    other.metadata.__dict__["_message_id"] = "2"
    with pytest.raises(InputError, match="message must ask for training"):
        node(other)
    # A replaced update moves two clip norms.
    assert held.plan.invocations[0].sensitivity == 2.0


def test_a_reply_under_local_noise_has_no_name_of_the_clients_own():
    labels = ["HIV", "flu"]  # of this client's rows

    def train(message, context):
        told = {f"accuracy of {each}": MetricRecord({each: 0.9}) for each in labels}
        content = RecordDict({"of HIV": message.content["model"], **told})
        message.content["of flu"] = content["of HIV"]
        return Message(content, reply_to=message)

    app = ClientApp(mods=[locally_private(ledger(update_plan(1.0, 1, local=True)), 1.0)])
    app.train()(train)
    message = Message(RecordDict({"model": zero()}), dst_node_id=1, message_type="train")
    message.metadata.__dict__["_message_id"] = "1"
    reply = app(message, Context(1, 2, {}, RecordDict(), {}))
    assert list(reply.content) == ["model", "metrics"]
    assert list(reply.content["model"]) == list(zero())
    assert dict(reply.content["metrics"]) == {"num-examples": 1.0}
    assert reply.metadata.reply_to_message_id == "1"


def answered(train, **settings):
    """The reply of a client with local noise, whose app is given."""
    held = ledger(update_plan(1.0, 1, local=True))
    app = ClientApp(mods=[locally_private(held, 1.0, **settings)])
    app.train()(train)
    message = Message(RecordDict({"arrays": zero()}), dst_node_id=1, message_type="train")
    message.metadata.__dict__["_message_id"] = "1"
    return app(message, Context(1, 2, {}, RecordDict(), {}))


def test_an_app_that_writes_to_an_array_in_place_changes_nothing_of_its_reply():
    def train(message, context):
        content = RecordDict({"arrays": zero()})
        for each in message.content["arrays"].values():
            each.data = Array(np.zeros((3, 1), dtype=np.float16)).data  # as many as it has rows
            each.shape, each.dtype = (3, 1), "float16"
        return Message(content, reply_to=message)

    made = answered(train).content["arrays"].to_numpy_ndarrays()
    wanted = zero().to_numpy_ndarrays()
    assert [(x.shape, x.dtype) for x in made] == [(x.shape, x.dtype) for x in wanted]


def test_a_reply_under_local_noise_weighs_as_the_strategy_calls_it():
    def train(message, context):
        metrics = MetricRecord({"samples": 7, "num-examples": 7})
        return Message(RecordDict({"arrays": zero(), "metrics": metrics}), reply_to=message)

    reply = answered(train, weighted_by_key="samples")
    assert dict(reply.content["metrics"]) == {"samples": 1.0}
    arrays, _ = FedAvg(weighted_by_key="samples").aggregate_train(1, [reply])
    assert flat(arrays) == pytest.approx(flat(reply.content["arrays"]))
    with pytest.raises(InputError, match="weighted_by_key is 5"):
        answered(train, weighted_by_key=5)


# -- what Flower's own do ----------------------------------------------------------------------


def moved(strategy, nodes, fewer, monkeypatch):
    """How far a client moves the exact model of a round, and the noise that is drawn on it."""
    drawn = []
    for module in ("dp_fixed_clipping", "dp_adaptive_clipping"):
        monkeypatch.setattr(
            f"flwr.serverapp.strategy.{module}.add_gaussian_noise_inplace",
            lambda arrays, deviation: drawn.append(deviation),
        )
    ends = [played(strategy(len(each)), each)[0] for each in (nodes, fewer)]
    return float(np.linalg.norm(ends[0] - ends[1])), drawn[0]


def test_flowers_fixed_clipping_is_weighed_by_what_clients_say(monkeypatch):
    """Without its accountant: one client of ten moves the mean by C, and the noise is zC/10."""
    nodes = crowd(9, length=1e-9) | {10: moving([1e6] + [0.0] * 5, examples=10**6)}
    far, noise = moved(
        lambda n: DifferentialPrivacyServerSideFixedClipping(everyone(), 1.0, 0.5, n),
        nodes,
        crowd(9, length=1e-9),
        monkeypatch,
    )
    assert noise == pytest.approx(0.05)
    assert far / noise == pytest.approx(10, rel=1e-3)  # and not 1


def test_flowers_adaptive_clipping_draws_the_noise_of_another_norm(monkeypatch):
    """Updates are clipped to C, and the noise is that of the next round's smaller norm.

    Where most are clipped it falls, and they are clipped the more: not Andrew et al.'s rule.
    """
    _, noise = moved(
        lambda n: DifferentialPrivacyServerSideAdaptiveClipping(
            everyone(),
            0.5,
            n,
            initial_clipping_norm=1.0,
            clip_norm_lr=0.7,
            clipped_count_stddev=1.0,
        ),
        crowd(10),
        crowd(9),
        monkeypatch,
    )
    right = (0.5**-2 - 2.0**-2) ** -0.5 / 10
    assert noise < 0.8 * right
    assert math.isclose(noise, right * math.exp(-0.35), rel_tol=0.15)  # count with noise 1 of 10


def test_an_update_of_zeros_is_one(monkeypatch):
    nodes = {n: moving([0.0] * WIDTH) for n in (1, 2)}
    with pytest.raises(ZeroDivisionError):
        played(DifferentialPrivacyServerSideFixedClipping(everyone(), 1.0, 0.5, 2), nodes)
    own = private(update_plan(0.001, 1), 0.5, 2)
    assert played(own, nodes)[0] == pytest.approx([0.0] * WIDTH, abs=0.01)


def page_files():
    page = (Path(__file__).parents[3] / "docs" / "federated.md").read_text("utf-8")
    for name, code in re.findall(r"```python\n# (\w+)\.py\n(.*?)```", page, re.DOTALL):
        Path(f"{name}.py").write_text(code, "utf-8")


def holds(certificate="certificate.json", journal="ledger.jsonl"):
    """Whether the command line takes both."""
    with pytest.raises(SystemExit) as left:
        main(["verify", certificate, "--ledger", journal])
    return left.value.code == 0


def test_the_page_does_what_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page_files()
    left = {name: runpy.run_path(f"{name}.py") for name in ("server", "client")}
    context = Context(1, 2, {}, RecordDict(), {})

    def node(message):
        reply = left["client"]["app"](message, context)
        reply.metadata.__dict__["_src_node_id"] = message.metadata.dst_node_id
        return reply

    left["server"]["main"](Grid({1: node, 2: node}), context)
    assert len(read_journal(tmp_path / "ledger.jsonl").entries) == 3
    assert holds()


@pytest.mark.pages
def test_the_simulation_of_the_page_leaves_a_certificate_that_is_verified(tmp_path, monkeypatch):
    pytest.importorskip("ray")
    monkeypatch.chdir(tmp_path)
    page_files()
    subprocess.run([sys.executable, "simulate.py"], check=True, capture_output=True, timeout=300)
    assert holds()


# -- certificates ------------------------------------------------------------------------------


def test_a_certificate_says_what_ran():
    held = ledger(update_plan(2.0, 3))
    strategy = PrivateStrategy(everyone(), held, clip_norm=0.5, expected_clients=2)
    with pytest.raises(PlanMismatchError):
        strategy.certificate(delta=1e-5)
    played(strategy, {n: moving([0.0] * WIDTH) for n in (1, 2)})
    held.close()
    made = strategy.certificate(delta=1e-5, claim=Claim(4.0, 1e-5), name="of two")
    assert made.guarantee.epsilon == pytest.approx(guarantee(held.plan, 1e-5).epsilon)
    assert made.subject.configuration["strategy"] == "FedAvg"
    rules = {each.rule for each in made.findings}
    assert ("training-seeded" in rules) == held.seeded
    assert "training-ended-early" in rules  # one round of three
    verify(made)
