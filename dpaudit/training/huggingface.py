"""Private trainings with the ``Trainer`` of Hugging Face: every noisy step goes through a ledger.

It refuses the settings that do not go together with clipped gradients, and logs nothing that was
computed from private rows. ``docs/training.md`` tells what a ``Trainer`` does that is not private.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from inspect import signature
from typing import Any

import torch
from opacus import PrivacyEngine
from torch.nn import functional

from dpaudit.base import validate
from dpaudit.base.errors import BudgetExceededError, InputError
from dpaudit.base.optional_import import optional_import
from dpaudit.ledger import Ledger
from dpaudit.plan import Invocation, PoissonSampling, TruncatedPoissonSampling
from dpaudit.training.gradients.draws import drawn_by, public_seed, secret_seed
from dpaudit.training.opacus import PoissonLoader, attach
from dpaudit.training.opacus.loaders import fresh_generator

_hugging = partial(optional_import, "huggingface", what="a private Trainer")
_Trainer: Any = _hugging("transformers").Trainer
_known = _hugging("transformers.models.auto.modeling_auto")

_UNCLIPPED = {
    "gradient_accumulation_steps": (1, "declare the rate of the whole batch"),
    "fp16": (False, "it scales losses before gradients are clipped"),
    "gradient_checkpointing": (False, "it runs layers twice"),
    "include_num_input_tokens_seen": ("no", "the exact number of tokens is private"),
    "auto_find_batch_size": (False, "it starts again when memory runs out"),
    "label_smoothing_factor": (0.0, "give losses of your own"),
    "torch_compile": (False, "code that takes gradients of rows cannot be compiled"),
    "tf32": (None, "it rounds the sums of clipped gradients"),
    "use_liger_kernel": (False, "its layers give no gradients of rows"),
    "train_sampling_strategy": ("random", "batches are drawn by Poisson sampling"),
    "deepspeed": (None, "it takes steps without the ledger"),
    "n_gpu": (1, "a private training takes one device"),
    "world_size": (1, "a private training takes one device"),
    "debug": ([], "it shows values that layers compute from private rows"),
}
"""Settings that do not go together with clipped gradients, what they must be, and why."""

_EXACT = re.compile("loss|grad_norm|train_loss|train_samples_per_second|total_flos|.*_mem_.*")
"""What a ``Trainer`` logs of the data as they are."""


class PrivateTrainer(_Trainer):  # type: ignore[misc]
    """A ``Trainer`` whose steps are those that a plan declares. It ends where the budget does.

    The model must give ``logits``. Evaluation is as ever: take public rows for it.

    Args:
        given: those of ``Trainer``. The batch size of the arguments is that of evaluations.
        ledger: of a plan with one DP-SGD invocation at ``gradient``, sampled by coins.
        expected_batch_size: a public number that noisy sums are divided by.
        delta: δ of the ε that is logged.
        users: whose each row is, where the plan's unit is a user.
        losses: ``(logits, labels)`` to one loss for each row; by default cross-entropy, the mean
            over the labels of a row, or squared errors where labels are floats.
        seed: of noise and batches, for experiments that anyone can repeat; by the system if None.
        settings: further ones of ``Trainer``.

    Attributes:
        training: what :func:`~dpaudit.training.opacus.attach` returned.

    Raises:
        InputError: if the plan is of another kind, or the arguments are no private training.
    """

    def __init__(
        self,
        *given: Any,
        ledger: Ledger,
        expected_batch_size: float,
        delta: float = 1e-5,
        users: Sequence[Hashable] | None = None,
        losses: Callable[[Any, Any], Any] | None = None,
        seed: int | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(*given, **settings)
        declared = _declared(ledger)
        self._require_clippable()
        self.model_init = None  # Trainer would train another model, whose steps are not attached
        self._delta, self._seed = validate.probability(delta=delta), seed
        inner = getattr(self.model, "get_base_model", lambda: self.model)()  # of adapters
        shifted = type(inner).__name__ in _known.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values()
        self._losses = losses or partial(row_losses, shifted=shifted)
        self.args.max_grad_norm = 0.0  # gradients are clipped by row
        engine = PrivacyEngine(accountant="rdp")
        self.training = attach(engine, ledger, expected_batch_size=expected_batch_size)
        sampling, norm = declared.sampling, declared.sensitivity
        norm /= declared.relation.contribution_factor
        # A Trainer seeds torch's own generator with 42.
        noise = fresh_generator(seed, self.args.device)
        coins = fresh_generator(None if seed is None else seed + 1)
        self.model.train()
        _, self.optimizer, self._batches = engine.make_private(
            module=self.model,
            optimizer=self.create_optimizer(),
            data_loader=PoissonLoader(
                self.train_dataset,
                users,
                sample_rate=sampling.inclusion if sampling else 1.0,
                most=getattr(sampling, "size", None),
                generator=coins,
                collate_fn=partial(
                    _collated, self._get_collator_with_removed_columns(self.data_collator), inner
                ),
                num_workers=self.args.dataloader_num_workers,
            ),
            noise_multiplier=getattr(declared.mechanism, "sigma", 0.0) / norm,
            max_grad_norm=norm,
            noise_generator=noise,
            wrap_model=False,
        )
        self.optimizer.step = partial(self._within_budget, self.optimizer.step)

    def _require_clippable(self) -> None:
        for name, (right, why) in _UNCLIPPED.items():
            if (found := getattr(self.args, name, right)) not in (right, False):
                raise InputError(f"{name} is {found!r}; it must be {right!r}: {why}.")
        if re.search("lomo|layerwise", self.args.optim):
            raise InputError(f"optim is {self.args.optim.value!r}; it steps before there is noise.")
        if self.compute_loss_func is not None:
            raise InputError(
                "compute_loss_func is given; give losses instead, which returns one loss for each "
                "row."
            )
        held = self.eval_dataset if isinstance(self.eval_dataset, dict) else {"": self.eval_dataset}
        if any(each is self.train_dataset is not None for each in held.values()):
            raise InputError("eval_dataset is train_dataset; evaluate on public rows.")

    def get_train_dataloader(self) -> Any:
        """Return the one that draws the declared batches."""
        return self._batches

    def train(self, resume_from_checkpoint: Any = None, **settings: Any) -> Any:
        """Train until the end, or until the budget is spent; no checkpoint goes on."""
        if resume_from_checkpoint:
            raise InputError("resume_from_checkpoint is given; train privately from the start.")
        result = super().train(**settings)
        return result._replace(metrics=_public(result.metrics))

    def floating_point_ops(self, inputs: Any) -> int:
        """Return none are counted: their number is that of the tokens that were drawn."""
        return 0

    def training_step(self, *given: Any, **settings: Any) -> Any:
        """Compute gradients of one batch; its loss stays here."""
        inner = getattr(self.optimizer, "optimizer", self.optimizer)  # accelerate wraps it
        inner.zero_grad()  # the Trainer asks the model to, which knows no sums
        seed = secret_seed() if self._seed is None else public_seed()
        with drawn_by(seed, self.args.device):  # dropout, of which a Trainer seeds torch with 42
            return torch.zeros_like(super().training_step(*given, **settings))

    def compute_loss(self, model: Any, inputs: Any, return_outputs: bool = False, **_: Any) -> Any:
        """Return the mean of one loss for each row."""
        held = dict(inputs)
        labels = held.pop("labels", held.pop("label", None))
        if labels is None:
            raise InputError("a batch lacks 'labels', which the loss of a row needs; add them.")
        if not len(labels) and not return_outputs:
            return self._loss_of_nobody(model)
        outputs = model(**held)
        if not (isinstance(outputs, dict) and "logits" in outputs):
            raise InputError("model returns no logits; take a model for the task that does.")
        each = self._losses(outputs["logits"], labels)
        if each.shape != (len(labels),):
            raise InputError(
                f"losses gave the shape {tuple(each.shape)}; it must be one for each of "
                "the rows, so that the gradient of each can be clipped."
            )
        loss = each.sum() / max(1, len(each))
        return (loss, outputs) if return_outputs else loss

    @staticmethod
    def _loss_of_nobody(model: Any) -> Any:
        """Return the loss of an empty batch, which many models cannot reshape."""
        for each in model.parameters():
            if each.requires_grad:
                each.grad_sample = each.new_zeros((0, *each.shape))
        return torch.zeros((), requires_grad=True)

    def log(self, logs: dict[str, float], *given: Any) -> None:
        """Log ε so far in place of what was computed from private rows."""
        super().log(_public(logs) | {"epsilon": self.training.epsilon(self._delta)}, *given)

    def _within_budget(self, step: Callable[..., Any], *given: Any) -> Any:
        try:
            return step(*given)
        except BudgetExceededError:
            self.training.ledger.close()
            self.control.should_training_stop = True
            return None


def row_losses(logits: Any, labels: Any, *, shifted: bool = False) -> Any:
    """Return one loss for each row: no row's depends on another one.

    Args:
        logits: shape (n, …, classes), or (n,) or (n, outputs) for labels that are floats.
        labels: shape (n, …); −100 is none.
        shifted: whether each position predicts the next one.

    >>> row_losses(torch.zeros(2, 3, 4), torch.tensor([[1, 2, -100], [1, -100, -100]])).shape
    torch.Size([2])
    """
    if labels.is_floating_point():
        return (logits.reshape(labels.shape) - labels).square().reshape(len(labels), -1).mean(1)
    if shifted:
        logits, labels = logits[:, :-1], labels[:, 1:]
    flat = logits.reshape(-1, logits.shape[-1])
    each = functional.cross_entropy(flat, labels.reshape(-1), reduction="none")
    each = each.reshape(labels.shape).flatten(1) if labels.ndim > 1 else each[:, None]
    told = (labels.reshape(each.shape) != -100).sum(1)
    return each.sum(1) / told.clamp(min=1)


def _declared(ledger: Any) -> Invocation:
    """Return the one invocation of gradients."""
    kinds = PoissonSampling | TruncatedPoissonSampling | None
    plan = ledger.plan.invocations if isinstance(ledger, Ledger) else ()
    found = [each for each in plan if each.at.startswith("gradient")]
    if len(found) != 1 or not isinstance(found[0].sampling, kinds):
        raise InputError(
            "ledger does not have a plan with one DP-SGD at 'gradient' and Poisson sampling; "
            "take Ledger(Plan.dp_sgd(noise_multiplier=..., sample_rate=..., epochs=...))."
        )
    return found[0]


def _collated(collate: Any, model: Any, rows: list[Any]) -> Any:
    """Add positions for each row to a batch: a model's own are one row for all."""
    batch = dict(collate(rows))
    takes = "position_ids" in signature(model.forward).parameters
    if takes and "position_ids" not in batch and "input_ids" in batch:
        shape = batch["input_ids"].shape
        batch["position_ids"] = torch.arange(shape[-1]).expand(shape).contiguous()
    return batch


def _public(told: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in told.items() if not _EXACT.fullmatch(name)}
