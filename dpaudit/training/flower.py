"""Federated learning with Flower: the updates of clients go through a ledger.

Central: clipped updates are summed with noise, and the wrapped strategy gets the mean as one
client's model; what it makes of that is post-processing (DP-FedAvg: McMahan et al. 2018, Algorithm
1, with a fixed denominator; adaptive: Andrew et al. 2021, Algorithm 1). Local: each client's noise.
What clients measure besides is not asked for, or does not leave them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, Message, MessageType, MetricRecord, RecordDict
from flwr.serverapp.strategy import Bulyan, FedXgbBagging, FedXgbCyclic, QFedAvg, Strategy
from numpy.typing import NDArray

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.certificate import Certificate, SubjectRecord
from dpaudit.ledger import Ledger
from dpaudit.mechanisms import Gaussian
from dpaudit.plan import (
    AddRemove,
    Contribution,
    Invocation,
    Plan,
    PoissonSampling,
    PrivacyUnit,
    ReplaceOne,
    TrustModel,
)
from dpaudit.training.certifying import LedgerTraining, Wanted
from dpaudit.training.declared import Adaptive

Floats = NDArray[np.float64]
_OF_MANY = (Bulyan, QFedAvg, FedXgbBagging, FedXgbCyclic)
"""Strategies that compare what clients send, or grow trees of it."""


def update_plan(
    noise_multiplier: float, rounds: int, *, sample_rate: float | None = None, local: bool = False
) -> Plan:
    """Return the plan of updates, measured in clip norms.

    Args:
        noise_multiplier: z, of a whole round; also where the norm adapts.
        rounds: at most.
        sample_rate: at which the ledger draws clients; all take part where not given.
        local: whether each client adds noise itself, so that a replaced update moves 2 clip norms.

    >>> update_plan(1.0, 50, sample_rate=0.1).invocations[0].sensitivity
    1.0
    """
    return Plan.of(
        Invocation.bounded(
            Gaussian(noise_multiplier),
            Contribution(1.0),
            PrivacyUnit("client"),
            ReplaceOne() if local else AddRemove(),
            TrustModel.LOCAL if local else TrustModel.CENTRAL,
            count=rounds,
            sampling=None if sample_rate is None else PoissonSampling(sample_rate),
            at="update",
        )
    )


class PrivateStrategy(LedgerTraining, Strategy):  # type: ignore[misc]
    """A strategy whose models keep each client private; what clients measure is not asked for.

    Args:
        strategy: that takes the private mean for one client's model. Where the plan samples it
            must ask all nodes (``fraction_train=1``), of which the ledger takes some.
        ledger: of an :func:`update_plan`.
        clip_norm: of a client's update; the first one where it adapts.
        expected_clients: of a round: a public number, that sums are divided by.
        adaptive: how the clip norm follows.
    """

    usual_name = "federated training"
    not_covered = (
        "Who takes part, which messages are sent and when, and that a client fails.",
        "What server and clients log, write or send apart from the model of a round.",
        "Updates on their way to the server, which sees each of them.",
        "Several clients that are one person, or a client that joins again under another name.",
    )

    def __init__(
        self,
        strategy: Any,
        ledger: Ledger,
        *,
        clip_norm: float,
        expected_clients: float,
        adaptive: Adaptive | None = None,
    ) -> None:
        _require_plan(ledger, local=False)
        if not isinstance(strategy, Strategy) or isinstance(strategy, _OF_MANY):
            kind = type(strategy).__name__
            raise InputError(
                f"strategy is a {kind}; it must make its model from one mean, as FedAvg does."
            )
        if adaptive is not None:
            validate.instance(Adaptive, adaptive=adaptive)
        self.strategy, self.ledger, self.adaptive = strategy, ledger, adaptive
        self.clip_norm = validate.positive(clip_norm=clip_norm)
        self._expected = validate.positive(expected_clients=expected_clients)
        self._current = ArrayRecord()

    def configure_train(
        self, server_round: int, arrays: Any, config: Any, grid: Any
    ) -> Iterable[Any]:
        """Ask the clients that the ledger draws."""
        there = len(set(grid.get_node_ids()))
        asked = list(self.strategy.configure_train(server_round, arrays, config, grid))
        self._current, nodes = arrays, [each.metadata.dst_node_id for each in asked]
        if len(set(nodes)) < len(nodes):
            raise InputError("strategy asks a client twice; ask each once a round.")
        if any(each.sampling for each in self.ledger.plan.invocations):
            if len(nodes) < min(there, len(set(grid.get_node_ids()))):  # some may join or leave
                raise InputError(
                    "strategy chooses clients, but the ledger draws them; let the strategy ask all."
                )
            drawn = self.ledger.sample([str(node) for node in nodes], at="update")
            asked = [asked[place] for place in drawn]
        return asked

    def aggregate_train(self, server_round: int, replies: Iterable[Any]) -> tuple[Any, None]:
        """Return the model that the wrapped strategy makes of the private mean, and no metrics."""
        start = _flat(self._current)
        read = [(each.metadata.src_node_id, _model(each, start.size)) for each in replies]
        told = [(str(name), model - start) for name, model in read if model is not None]
        updates = np.array([update for _, update in told]).reshape(len(told), start.size)
        mean = self._private_mean(updates, [name for name, _ in told])
        arrays = getattr(self.strategy, "arrayrecord_key", "arrays")
        equally = MetricRecord({getattr(self.strategy, "weighted_by_key", "num-examples"): 1.0})
        content = RecordDict({arrays: _like(start + mean, self._current), "metrics": equally})
        one = Message(content, dst_node_id=0, message_type=MessageType.TRAIN)
        return self.strategy.aggregate_train(server_round, [one])[0], None

    def _private_mean(self, updates: Floats, names: list[str]) -> Floats:
        """Return the noisy sum of clipped updates over the public number of clients."""
        norm, adaptive = self.clip_norm, self.adaptive
        if adaptive is None:
            total = self.ledger.sum(updates / norm, units=names, at="update")
            return np.asarray(total) * norm / self._expected
        lengths = np.linalg.norm(updates, axis=1, keepdims=True)
        clipped = updates / np.maximum(lengths, norm) * adaptive.of_sum
        bits = adaptive.share * np.where(lengths <= norm, 1.0, -1.0)  # 2·share·(b − ½)
        both = np.hstack([clipped, bits])
        total = np.asarray(self.ledger.sum(both, units=names, at="update"), dtype=float)
        self.clip_norm = adaptive.moved(norm, float(total[-1]), self._expected)
        mean: Floats = total[:-1] * norm / adaptive.of_sum / self._expected
        return mean

    def configure_evaluate(self, *_: Any) -> Iterable[Any]:
        """Ask no client."""
        return []

    def aggregate_evaluate(self, *_: Any) -> None:
        """Return nothing was asked."""

    def summary(self) -> None:
        """Return that of the wrapped strategy."""
        self.strategy.summary()

    def _certified(self, wanted: Wanted) -> Certificate:
        if not self.ledger.closed:
            self.ledger.check()
        facts = {
            "strategy": type(self.strategy).__name__,
            "expected_clients": self._expected,
            "clipping": "fixed" if self.adaptive is None else "adaptive",
        }
        return self.recorded(
            wanted,
            SubjectRecord(wanted.name, facts),
            (),
            {"noisy_rounds": len(self.ledger)},
            declared=[each for each in self.ledger.plan.invocations if each.at == "update"],
        )


def locally_private(
    ledger: Ledger, clip_norm: float, *, weighted_by_key: str = "num-examples"
) -> Callable[..., Any]:
    """Return a mod of a client: its update is clipped and gets noise before it leaves.

    Its reply follows from the message and that update alone: nothing else of what the app answers
    leaves, and the only metric is the weight of the update, which is 1. Only training is answered.

    Args:
        ledger: of the client, of a plan as ``update_plan(..., local=True)``.
        clip_norm: of the update.
        weighted_by_key: what the server's strategy calls the weight of an update.
    """
    validate.text(weighted_by_key=weighted_by_key)
    norm = validate.positive(clip_norm=clip_norm)
    _require_plan(ledger, local=True)

    def mod(message: Any, context: Any, call_next: Callable[..., Any]) -> Any:
        if not message.metadata.message_type.startswith(MessageType.TRAIN):
            raise InputError("message must ask for training; nothing else is private here.")
        # The app may write to the message, to its record, and to each of the arrays there.
        begun = copy.deepcopy(_only(message.content))
        (name,) = message.content.array_records
        answer = Message(RecordDict(), reply_to=message)
        start, failed = _flat(begun), InputError("the app fails; its client's own log says why.")
        try:
            model = _model(call_next(message, context), start.size)
        except Exception as error:
            raise failed from error  # Flower tells the server the text of the one that it gets
        if model is None:
            raise failed
        update = (model - start) / norm
        noisy = np.asarray(ledger.sum(update[None], at="update"), dtype=float)
        equally = MetricRecord({weighted_by_key: 1.0})
        answer.content = RecordDict({name: _like(start + norm * noisy, begun), "metrics": equally})
        return answer

    return mod


def _require_plan(ledger: Any, *, local: bool) -> None:
    """Refuse a plan of others than clients, or of noise that another party draws."""
    plan = ledger.plan.invocations if isinstance(ledger, Ledger) else ()
    trusts = {each.trust for each in plan if each.at == "update" and not each.unit.is_row}
    if trusts != {TrustModel.LOCAL if local else TrustModel.CENTRAL}:
        raise InputError(
            f"ledger does not have an update_plan with local={local}; this noise protects "
            "clients with all their rows, and must be drawn where the plan says."
        )


def _only(content: Any) -> Any:
    """Return the one record of arrays."""
    held = list(content.array_records.values())
    if len(held) != 1:
        raise InputError(f"a message has {len(held)} records of arrays; an update must have one.")
    return held[0]


def _model(reply: Any, size: int) -> Floats | None:
    """Read the model of an answer; None if it failed or is none, as one ends no round."""
    if reply.has_error():
        return None
    try:
        held = _flat(_only(reply.content))
    except (InputError, TypeError, ValueError):
        return None
    return held if held.size == size else None


def _flat(arrays: Any) -> Floats:
    held = [np.asarray(each, dtype=np.float64).ravel() for each in arrays.to_numpy_ndarrays()]
    return np.concatenate([np.zeros(0), *held])


def _like(flat: Floats, arrays: Any) -> Any:
    """Return a vector as arrays of the names, shapes and types of others."""
    made, at = {}, 0
    for name, each in zip(arrays.keys(), arrays.to_numpy_ndarrays(), strict=True):
        part = flat[at : at + each.size].reshape(each.shape)
        made[name], at = Array(np.asarray(part.astype(each.dtype))), at + each.size
    return ArrayRecord(made)
