import json

import pytest
import torch
from torch.nn.functional import cross_entropy

pytest.importorskip("transformers")
pytest.importorskip("accelerate")

import transformers
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    TrainingArguments,
)

from dpaudit import (
    Claim,
    InputError,
    Ledger,
    Plan,
    PlanMismatchError,
    UnsupportedError,
    Verdict,
)
from dpaudit.accounting.budgets import RenyiFilter
from dpaudit.certificate import verify
from dpaudit.training.huggingface import PrivateTrainer, row_losses

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
SIZE, WORDS, LONG = 24, 20, 6
SMALL = {"vocab_size": WORDS, "bos_token_id": 0, "eos_token_id": 0}


@pytest.fixture(autouse=True)
def _one_thread():
    torch.set_num_threads(1)


def bert():
    torch.manual_seed(0)
    return BertForSequenceClassification(
        BertConfig(
            **SMALL,
            hidden_size=8,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=8,
            max_position_embeddings=LONG,
            num_labels=2,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
    )


def gpt2():
    torch.manual_seed(0)
    still = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    small = {"n_embd": 8, "n_layer": 1, "n_head": 2, "n_positions": LONG}
    return GPT2LMHeadModel(GPT2Config(**SMALL, **small, **still))


def rows(labels=lambda words, n: n % 2):
    drawing = torch.Generator().manual_seed(1)
    words = torch.randint(1, WORDS, (SIZE, LONG), generator=drawing)
    return [
        {"input_ids": each, "attention_mask": torch.ones(LONG).long(), "labels": labels(each, n)}
        for n, each in enumerate(words)
    ]


def plan(**settings):
    return Plan.dp_sgd(
        **{"noise_multiplier": 1.0, "max_grad_norm": 0.5, "sample_rate": 0.25, "steps": 6}
        | settings
    )


def arguments(folder, **settings):
    usual = {"max_steps": 6, "logging_steps": 1, "report_to": [], "save_strategy": "no"}
    return TrainingArguments(
        output_dir=str(folder), use_cpu=True, disable_tqdm=True, **usual | settings
    )


def made(folder, model=None, declared=None, *, budget=None, data=None, given=None, **settings):
    return PrivateTrainer(
        model or bert(),
        arguments(folder, **(given or {})),
        train_dataset=data or rows(),
        ledger=Ledger(declared or plan(), budget=budget),
        expected_batch_size=6,
        **settings,
    )


def test_a_classifier_is_trained_certified_and_logged_without_its_loss(tmp_path):
    trainer = made(tmp_path)
    before = [p.detach().clone() for p in trainer.model.parameters()]
    result = trainer.train()
    training = trainer.training
    certificate = training.certificate(1e-5, accountant="rdp")
    assert certificate.verdict is Verdict.CERTIFIED
    assert len(training.steps) == 6 == len(training.ledger)
    assert {each.max_grad_norm for each in training.steps} == {0.5}
    assert len({each.actual_batch_size for each in training.steps}) > 1
    assert any(
        not torch.equal(*two) for two in zip(before, trainer.model.parameters(), strict=True)
    )
    logged = trainer.state.log_history
    said = [each["epsilon"] for each in logged if "learning_rate" in each]
    assert len(said) == 6
    assert said == sorted(said)
    assert said[-1] == training.epsilon(1e-5) >= certificate.guarantee.epsilon
    exact = {"loss", "grad_norm", "train_loss", "total_flos", "train_samples_per_second"}
    assert not exact & set().union(*logged, result.metrics)
    assert trainer.state.total_flos == 0  # which is written beside checkpoints
    assert result.training_loss == 0.0
    assert "0.69" not in json.dumps(logged)  # nearly the loss of a fresh classifier


def test_a_budget_ends_it(tmp_path):
    trainer = made(tmp_path, budget=RenyiFilter(epsilon=5.0, delta=1e-5))
    kept = []
    step = trainer.training._optimizers[0]._optimizer.original_optimizer
    step.register_step_post_hook(lambda *_: kept.append(1))
    trainer.train()
    ran = len(trainer.training.steps)
    assert 0 < ran < 6
    assert len(kept) == ran
    assert trainer.training.ledger.closed
    assert trainer.training.epsilon(1e-5) <= 5.0
    certificate = trainer.training.certificate(claim=Claim(5.0, 1e-5))
    assert certificate.verdict is Verdict.CERTIFIED
    assert certificate.guarantee.epsilon <= 5.0
    assert certificate.filtered.admitted == {"gradient": ran}
    verify(certificate)


def clipped_sum(model, parameters, batch, labels, shifted):
    """Of gradients that autograd takes of one row after the other."""
    total = 0.0
    for n, own in enumerate(labels):
        out = model(**{name: value[n : n + 1] for name, value in batch.items()}).logits[0]
        loss = cross_entropy(out[:-1], own[1:]) if shifted else cross_entropy(out, own)
        flat = torch.cat([each.flatten() for each in torch.autograd.grad(loss, parameters)])
        total = total + flat * min(1.0, 0.5 / float(flat.norm()))
    return total


@pytest.mark.parametrize("shifted", [False, True], ids=["bert", "gpt2, tied weights, ragged"])
def test_every_row_is_clipped_by_its_own_loss(tmp_path, shifted):
    def ragged(words, n):
        return torch.where(torch.arange(LONG) < 2 + n % 5, words, -100)

    data = rows(ragged) if shifted else rows()
    trainer = made(tmp_path, gpt2() if shifted else bert(), plan(steps=1), data=data, seed=3)
    twin, seen = made(tmp_path, gpt2() if shifted else bert(), data=data, seed=3), []
    held = next(iter(twin.get_train_dataloader()))  # what the seed draws
    inner = trainer.optimizer
    inner.attach_step_hook(
        lambda _: seen.append(torch.cat([p.summed_grad.flatten() for p in inner.params]))
    )
    before = (gpt2() if shifted else bert()).train()
    names = {id(p): name for name, p in trainer.model.named_parameters()}
    known = dict(before.named_parameters())
    trainer.args.max_steps = 1
    trainer.train()
    labels = held.pop("labels")
    own = [known[names[id(p)]] for p in inner.params]
    expected = clipped_sum(before, own, held, labels, shifted)
    assert len(labels) > 2
    assert torch.allclose(seen[0], expected, atol=2e-5)


def test_public_seeds_do_not_reach_noise_and_batches(tmp_path):
    """A Trainer seeds torch with 42: two runs would have the same noise, and everyone knows it."""
    ends, drawn = [], []
    for _ in range(2):
        trainer = made(tmp_path, given={"max_steps": 1}, declared=plan(steps=1, sample_rate=1.0))
        trainer.train()
        ends.append(torch.cat([p.detach().flatten() for p in trainer.model.parameters()]))
        drawn.append(list(made(tmp_path).get_train_dataloader().batch_sampler))
    assert not torch.equal(*ends)
    assert drawn[0] != drawn[1]


def test_users_with_all_their_rows(tmp_path):
    trainer = made(
        tmp_path, declared=plan(unit="user"), users=[n // 4 for n in range(SIZE)], seed=1
    )
    trainer.train()
    assert trainer.training.certificate(1e-5, accountant="rdp").verdict is Verdict.CERTIFIED
    assert max(each.actual_batch_size for each in trainer.training.steps) <= SIZE // 4


@pytest.mark.parametrize(
    ("unit", "users"), [("user", None), ("example", [n // 4 for n in range(SIZE)])]
)
def test_users_are_drawn_where_users_are_protected(tmp_path, unit, users):
    with pytest.raises(PlanMismatchError, match="PrivateTrainer"):
        made(tmp_path, declared=plan(unit=unit), users=users)


REFUSED = {
    "gradient_accumulation_steps": 2,
    "include_num_input_tokens_seen": "all",
    "gradient_checkpointing": True,
    "activation_checkpointing": True,
    "label_smoothing_factor": 0.1,
    "auto_find_batch_size": True,
    "torch_compile": True,
    "use_liger_kernel": True,
    "train_sampling_strategy": "group_by_length",
    "debug": "underflow_overflow",
    "optim": "lomo",
}
TAKEN = {
    "average_tokens_across_devices": True,
    "bf16": True,
    "data_seed": 3,
    "dataloader_drop_last": True,
    "dataloader_num_workers": 0,
    "enable_jit_checkpoint": True,
    "full_determinism": False,
    "include_for_metrics": ["loss", "inputs"],
    "label_names": ["labels"],
    "logging_nan_inf_filter": False,
    "lr_scheduler_type": "cosine",
    "max_grad_norm": 9.0,  # the plan's is the one
    "neftune_noise_alpha": 5.0,
    "optim": "adafactor",
    "per_device_train_batch_size": 2,  # as are its batches
    "prediction_loss_only": True,
    "push_to_hub": False,
    "remove_unused_columns": True,
    "restore_callback_states_from_checkpoint": True,
    "resume_from_checkpoint": "of train alone",
    "save_only_model": True,
    "seed": 3,
    "skip_memory_metrics": False,
    "torch_empty_cache_steps": 2,
    "warmup_steps": 2,
    "weight_decay": 0.1,
}


def test_batches_that_nobody_is_in_are_steps_too(tmp_path):
    """All six batches have somebody with a chance of 2e-10; BERT alone cannot take an empty one."""
    trainer = PrivateTrainer(
        bert(),
        arguments(tmp_path),
        train_dataset=rows(),
        ledger=Ledger(plan(sample_rate=0.001)),
        expected_batch_size=1,
    )
    trainer.train()
    assert trainer.training.certificate(1e-5, accountant="rdp").verdict is Verdict.CERTIFIED
    assert min(each.actual_batch_size for each in trainer.training.steps) == 0


@pytest.mark.parametrize("name", REFUSED)
def test_settings_that_do_not_go_together_with_clipping_are_refused(tmp_path, name):
    said = name.replace("activation", "gradient")  # as transformers calls it
    with pytest.raises(InputError, match=f"{said} is .*; it "):
        made(tmp_path, given={name: REFUSED[name]})


def test_other_settings_are_honoured_or_harmless(tmp_path):
    extra = [row | {"text": "of a row", "number": 5} for row in rows()]
    trainer = made(tmp_path, data=extra, given=TAKEN)
    assert "number" not in next(iter(trainer.get_train_dataloader()))
    trainer = made(tmp_path, data=extra, given=TAKEN)
    metrics = trainer.train().metrics
    assert not any("mem" in name for name in metrics)  # which tells how large a batch was
    training = trainer.training
    assert training.certificate(1e-5, accountant="rdp").verdict is Verdict.CERTIFIED
    assert {each.max_grad_norm for each in training.steps} == {0.5}
    assert len({each.actual_batch_size for each in training.steps}) > 1


SMALLER = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
OTHERS = {
    "DebertaV2": {**SMALLER, "intermediate_size": 8, "relative_attention": True}
    | {"pos_att_type": ["c2p"], "position_buckets": 4},
    "XLNet": {"d_model": 8, "n_layer": 1, "n_head": 2, "d_inner": 8},
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_model_that_opacus_does_not_know_is_refused_in_a_sentence(tmp_path, name):
    config = getattr(transformers, f"{name}Config")(vocab_size=WORDS, **OTHERS[name])
    model = getattr(transformers, f"{name}ForSequenceClassification")(config)
    trainer = made(tmp_path, model, plan(sample_rate=1.0))
    with pytest.raises(UnsupportedError, match=r"no gradients of rows for .*such as BERT"):
        trainer.train()
    assert not len(trainer.training.ledger)


class Silent(torch.nn.Module):
    def forward(self, input_ids, **_):
        return {"scores": input_ids}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"seed": "a"}, "seed is 'a'"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 2**63}, "at most 9223"),
        ({"compute_loss_func": lambda *_, **__: 0.0}, "compute_loss_func is given; give losses"),
        ({"eval_dataset": "train"}, "eval_dataset is train_dataset"),
        ({"model": "silent"}, "model returns no logits"),
        ({"declared": plan(noise_multiplier=[1.0, 2.0], steps=[3, 3])}, "one DP-SGD at"),
        ({"losses": lambda logits, labels: logits.mean()}, "one for each of the rows"),
    ],
)
def test_what_is_no_private_training_is_refused(tmp_path, settings, words):
    if "eval_dataset" in settings:
        data = rows()
        settings = {"data": data, "eval_dataset": {"public": rows(), "private": data}}
    if "model" in settings:
        model = bert()
        model.forward = Silent().forward
        settings = {"model": model}
    with pytest.raises(InputError, match=words):
        made(tmp_path, **settings).train()


def test_a_model_that_is_made_by_a_function_is_the_one_that_is_trained(tmp_path):
    """A Trainer makes another one when it begins, and trains that without noise."""
    trainer = PrivateTrainer(
        None,
        arguments(tmp_path),
        train_dataset=rows(),
        model_init=bert,
        ledger=Ledger(plan()),
        expected_batch_size=6,
    )
    trainer.train()
    assert trainer.training.certificate(1e-5, accountant="rdp").verdict is Verdict.CERTIFIED


def test_a_language_model_with_adapters_is_a_language_model(tmp_path):
    model = gpt2()
    inner = {"get_base_model": lambda own: gpt2()}
    model.__class__ = type("Adapted", (GPT2LMHeadModel,), inner)
    assert made(tmp_path, model)._losses.keywords == {"shifted": True}
    assert made(tmp_path)._losses.keywords == {"shifted": False}


def test_a_checkpoint_is_not_resumed(tmp_path):
    with pytest.raises(InputError, match="resume_from_checkpoint"):
        made(tmp_path).train(resume_from_checkpoint=True)


def test_losses_of_rows():
    logits, labels = torch.randn(3, 4, 5), torch.tensor([[1, 2, -100, -100]] * 2 + [[-100] * 4])
    each = row_losses(logits, labels)
    for n in range(2):
        alone = torch.nn.functional.cross_entropy(logits[n, :2], labels[n, :2])
        assert torch.allclose(each[n], alone)
    assert each[2] == 0
    assert torch.allclose(
        row_losses(torch.tensor([[1.0], [3.0]]), torch.tensor([0.0, 1.0])), torch.tensor([1.0, 4.0])
    )


@pytest.mark.parametrize("seed", [None, 5])
def test_dropout_follows_from_no_public_seed_but_one_that_is_given(tmp_path, seed):
    """A Trainer seeds torch with 42, by which masks move where a row joins."""
    seen = []

    def losses(logits, labels):
        seen.append(torch.initial_seed())
        return row_losses(logits, labels)

    states = []
    for _ in range(2):
        made(tmp_path, losses=losses, seed=seed, given={"max_steps": 2}).train()
        states.append(torch.get_rng_state())
    assert torch.equal(*states)  # how many masks were drawn is not left behind
    assert 42 not in seen
    half = len(seen) // 2
    assert (seen[:half] == seen[half:]) == (seed is not None)
