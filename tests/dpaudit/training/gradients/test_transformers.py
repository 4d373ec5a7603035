"""Models of Hugging Face, built here: their gradients are those of a loop over examples."""

import numpy as np
import pytest
import torch
from example_losses import clipped_by_loop
from torch.func import functional_call

from dpaudit import FloatNoise, Ledger, Plan
from dpaudit.training import fit
from dpaudit.training.gradients.clipped import MARGIN, ClippedSums
from dpaudit.training.gradients.examples import Examples

transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.filterwarnings("ignore")  # of theirs, and of attention in vmap

SIZES = {"vocab_size": 50, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
WIDE = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2} | SIZES
LLAMA = WIDE | {"intermediate_size": 16, "num_key_value_heads": 2}
MODELS = {
    "BertForSequenceClassification": WIDE | {"intermediate_size": 16},
    "RobertaForSequenceClassification": WIDE | {"intermediate_size": 16},
    "GPT2LMHeadModel": SIZES | {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 16},
    "GPTNeoXForCausalLM": WIDE | {"intermediate_size": 16},
    "OPTForCausalLM": WIDE | {"ffn_dim": 16, "word_embed_proj_dim": 16},
    "LlamaForCausalLM": LLAMA,
    "MistralForCausalLM": LLAMA,
    "Qwen2ForCausalLM": LLAMA,
    "GemmaForCausalLM": LLAMA | {"head_dim": 8},
}
"""Some tie their first and last weights to one."""
ADAPTED = ("BertForSequenceClassification", "GPT2LMHeadModel", "LlamaForCausalLM")


def made(name):
    torch.manual_seed(0)
    kind = getattr(transformers, name)
    return kind(kind.config_class(**MODELS[name])).double().eval()  # without dropout


def adapted(name):
    """A model of which small matrices beside its own are trained, and for classes its head."""
    peft = pytest.importorskip("peft")
    task = "SEQ_CLS" if "Sequence" in name else "CAUSAL_LM"
    model = made(name)
    config = peft.LoraConfig(r=2, target_modules="all-linear", task_type=task)
    model = peft.get_peft_model(model, config).double().eval()
    with torch.no_grad():  # they begin at 0, where half of all gradients are
        for each in (p for p in model.parameters() if p.requires_grad):
            each.normal_(std=0.3)
    return model


def given(name):
    words = torch.randint(3, 50, (6, 8), generator=torch.Generator().manual_seed(0))
    return words, (words[:, 0] > 24).long() if "Sequence" in name else words


def loss_of(model):
    def loss(parameters, example):
        tokens, label = example
        mask = torch.ones(1, 8, dtype=torch.long)  # without one they look for padding
        said = {"input_ids": tokens[None], "labels": label[None], "attention_mask": mask}
        return functional_call(model, parameters, (), said).loss

    return loss


@pytest.mark.parametrize("name", MODELS)
def test_their_gradients_are_those_of_a_loop(name):
    _compare(made(name), given(name))


@pytest.mark.parametrize("name", ADAPTED)
def test_gradients_of_adapters_are_those_of_a_loop(name):
    model = adapted(name)
    trained = [each for each, p in model.named_parameters() if p.requires_grad]
    assert all("lora_" in each or "classifier" in each for each in trained)
    _compare(model, given(name))


def _compare(model, data):
    loss = loss_of(model)
    parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
    sums = ClippedSums(loss, parameters, Examples(data), 4, model)
    total, _ = sums.total(np.arange(6), 0.5)
    truth = clipped_by_loop(loss, parameters, data, range(6), 0.5 * (1 - MARGIN))
    assert total == pytest.approx(truth, abs=1e-9)


def test_a_training_moves_adapters_alone():
    model = adapted("GPT2LMHeadModel").train()  # with dropout
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    ledger = Ledger(Plan.dp_sgd(noise_multiplier=1.0, sample_rate=0.5, steps=2), noise=FloatNoise())
    own = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(own, lr=1.0)
    trainer = fit(
        loss_of(model), model, given("GPT2LMHeadModel"), ledger, optimizer=optimizer, divisor=3
    )
    moved = {n for n, p in model.named_parameters() if not torch.equal(p.detach(), before[n])}
    assert moved == set(trainer.parameters)
    assert all("lora_" in name for name in moved)
    assert str(trainer.certificate(delta=1e-5).verdict) == "certified"


def test_a_mask_of_four_dimensions_hides_padding():
    """Of an encoder; the loss of a padded text is that of the text."""
    model = made("BertForSequenceClassification")
    words, labels = given("BertForSequenceClassification")
    padded = torch.cat([words, torch.zeros(6, 3, dtype=torch.long)], 1)

    def loss(parameters, example):
        tokens, label = example
        mask = (tokens > 0).expand(1, 1, 11, 11)
        said = {"input_ids": tokens[None], "labels": label[None], "attention_mask": mask}
        return functional_call(model, parameters, (), said).loss

    parameters = dict(model.named_parameters())
    found, _ = ClippedSums(loss, parameters, Examples((padded, labels)), 6, model).total(
        np.arange(6), 0.5
    )
    whole = ClippedSums(loss_of(model), parameters, Examples((words, labels)), 6, model)
    assert found == pytest.approx(whole.total(np.arange(6), 0.5)[0], abs=1e-9)
