"""The same training with jax-privacy: its sampler, its clipping, its noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from audits.opacus.audited import CLASSES, PIXELS, ROWS, Floats, Setting


@dataclass(frozen=True)
class JaxPath:
    """A linear model, or one with convolutions, beside a coordinate for each canary."""

    name: str = "jax-privacy"

    def train(
        self, setting: Setting, network: Any, data: Any, canaries: int, seed: int
    ) -> tuple[None, Floats]:
        """What the canaries' coordinates moved by, (canaries, steps); as of the other paths."""
        import jax
        import jax.numpy as jnp
        from jax_privacy import batch_selection, clipping, noise_addition

        x, y = (np.asarray(each) for each in data.tensors)
        drawing = np.random.default_rng(seed)
        weights: Any = {
            "kernel": jnp.asarray(drawing.normal(0, 0.3, (8, 1, 3, 3)), dtype=jnp.float32),
            "out": jnp.zeros((8 * PIXELS, CLASSES)),
            "marks": jnp.zeros(canaries + 1),
        }

        def loss(at: Any, pixels: Any, label: Any) -> Any:
            picture = pixels[:, :PIXELS].reshape(-1, 1, 8, 8)
            seen = jax.nn.relu(jax.lax.conv(picture, at["kernel"], (1, 1), "SAME"))
            logits = jax.nn.log_softmax(seen.reshape(len(label), -1) @ at["out"])
            usual = -jnp.take_along_axis(logits, jnp.maximum(label, 0)[:, None], 1)[:, 0]
            mark = at["marks"][pixels[:, PIXELS].astype(int)]
            return jnp.where(label < 0, 1e3 * mark, usual).mean()

        clipped = jax.jit(clipping.clipped_grad(loss, l2_clip_norm=1.0, batch_argnums=(1, 2)))
        noise = noise_addition.gaussian_privatizer(stddev=setting.noise, prng_key=seed)
        state, moved = noise.init(weights), []
        steps = setting.batches * setting.epochs
        batches = batch_selection.CyclicPoissonSampling(1 / setting.batches, steps)
        expected = ROWS / setting.batches
        for drawn in batches.batch_iterator(len(x), drawing):
            # Of one size, so that the step is compiled once.
            rows = batch_selection.pad_to_multiple_of(drawn, len(x))
            sums = clipped(weights, x[rows], y[rows], is_padding_example=rows < 0)
            noisy, state = noise.update(sums, state, weights)
            moved.append(np.asarray(noisy["marks"])[:canaries])
            weights = jax.tree.map(
                lambda one, by: one - setting.rate / expected * by, weights, noisy
            )
        return None, np.stack(moved, axis=1).astype(float)
