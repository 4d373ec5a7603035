"""Models of Hugging Face, built here: their gradients are those of a loop over examples."""

import numpy as np
import pytest
import torch
from example_losses import clipped_by_loop
from torch.func import functional_call

from dpaudit.training.gradients.clipped import ClippedSums
from dpaudit.training.gradients.examples import Examples

transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.filterwarnings("ignore")  # of theirs, and of attention in vmap

SIZES = {"vocab_size": 50, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
WIDE = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}


def bert():
    config = transformers.BertConfig(intermediate_size=16, **SIZES, **WIDE)
    return transformers.BertForSequenceClassification(config)


def gpt2():
    config = transformers.GPT2Config(n_embd=16, n_layer=1, n_head=2, n_positions=16, **SIZES)
    return transformers.GPT2LMHeadModel(config)  # its first and last weights are one


def llama():
    config = transformers.LlamaConfig(intermediate_size=16, **SIZES, **WIDE)
    return transformers.LlamaForCausalLM(config)


@pytest.mark.parametrize("make", [bert, gpt2, llama])
def test_their_gradients_are_those_of_a_loop(make):
    torch.manual_seed(0)
    model = make().double().eval()  # without dropout
    words = torch.randint(3, 50, (6, 8))
    labels = words if make is not bert else (words[:, 0] > 24).long()

    def loss(parameters, example):
        tokens, label = example
        mask = torch.ones(1, 8, dtype=torch.long)  # without one they look for padding
        given = {"input_ids": tokens[None], "labels": label[None], "attention_mask": mask}
        return functional_call(model, parameters, (), given).loss

    parameters = dict(model.named_parameters())
    sums = ClippedSums(loss, parameters, Examples((words, labels)), 4, model)
    total, _ = sums.total(np.arange(6), 0.5)
    truth = clipped_by_loop(loss, parameters, (words, labels), range(6), 0.5 * (1 - 2.0**-10))
    assert total == pytest.approx(truth, abs=1e-9)
