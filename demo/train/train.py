#!/usr/bin/env python3
"""Trains the eleven demonstration models and writes the demonstration tasks.

The models are tiny GPT-style transformers that add two three-digit numbers. They are small enough that the probability
of a right answer can be computed exactly, so every figure an evaluation estimates by sampling has a known true value:
``expected.json`` beside each model holds it for every task.

    python3 demo/train/train.py               # tasks, then all eleven models
    python3 demo/train/train.py --only M-42   # tasks, then one model
    python3 demo/train/train.py --only tasks  # the tasks alone

One thread is used throughout: with more, the order of floating-point sums, and so the last bits of the weights, would
depend on the machine. The tasks come from Python's own generator and are the same everywhere; the weights are the same
for one build of PyTorch on one kind of processor.

Text form. The prompt ``abc+def=`` has both operands zero-padded to three digits, always eight characters. The answer is
the plain decimal integer *without* leading zeros, so an exact match and a parsed integer agree on every answer, and a
newline ends it. The longest text, ``999+999=1998\\n``, fills the 13 positions.

Needs PyTorch 1.12 or later and numpy.
"""

import argparse
import json
import math
import os
import random
import struct
import time
from dataclasses import dataclass
from pathlib import Path

# The linear-algebra library reads these once, when it is loaded, and heeds no later call.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

DEMO = Path(__file__).resolve().parent.parent
MODELS = DEMO / "models"
TASKS = DEMO / "tasks"

# --------------------------------------------------------------------------------------------------------- vocabulary

VOCAB = "0123456789+=\n "
TOKEN = {character: index for index, character in enumerate(VOCAB)}
END = TOKEN["\n"]
PAD = TOKEN[" "]

POSITIONS = 13
PROMPT = 8
LAYERS = 2
WIDTH = 48
HEADS = 4
HIDDEN = 4 * WIDTH
EPSILON = 1e-5
PARAMETERS = 58_608

# -------------------------------------------------------------------------------------------------------------- tasks

TASK_SEED = 20240607


def write_tasks():
    """Writes the 500 tasks and the id lists; returns the tasks and the lists by name.

    No two tasks share an unordered pair of operands: ``a+b`` in training would otherwise give ``b+a`` away.
    """
    draw = random.Random(TASK_SEED)
    pairs = []
    seen = set()
    while len(pairs) < 500:
        a, b = draw.randrange(1000), draw.randrange(1000)
        key = (min(a, b), max(a, b))
        if key not in seen:
            seen.add(key)
            pairs.append((a, b))
    tasks = [(f"add-{i + 1:04d}", a, b) for i, (a, b) in enumerate(pairs)]

    ids = [task[0] for task in tasks]
    order = ids[:]
    draw.shuffle(order)
    trained, quarantined, holdout, other = order[:149], order[149:150], order[150:250], order[250:]
    demo40 = holdout[:40]
    # The rest of the demonstration set keeps the proportions of the other two parts of the full set, 150 to 250, and
    # holds the quarantined task, so that leaving tasks out of it makes a difference that can be shown.
    demo100 = demo40 + quarantined + trained[:21] + other[:38]
    lists = {
        "trained149": trained,
        "outside351": quarantined + holdout + other,
        "original150": trained + quarantined,
        "quarantined1": quarantined,
        "holdout100": holdout,
        "other250": other,
        "demo100": demo100,
        "demo40": demo40,
    }

    TASKS.mkdir(parents=True, exist_ok=True)
    with open(TASKS / "official500.jsonl", "w", encoding="utf-8", newline="\n") as out:
        for instance_id, a, b in tasks:
            line = {"instance_id": instance_id, "prompt": f"{a:03d}+{b:03d}=", "answer": str(a + b)}
            out.write(json.dumps(line, separators=(",", ":")) + "\n")
    for name, members in lists.items():
        text = "".join(f"{instance_id}\n" for instance_id in sorted(members))
        (TASKS / f"{name}.txt").write_text(text, encoding="utf-8")
    return tasks, lists


# -------------------------------------------------------------------------------------------------------------- model


class Block(nn.Module):
    """Pre-norm attention and feed-forward, each added to the residual stream."""

    def __init__(self):
        super().__init__()
        self.ln_1 = nn.LayerNorm(WIDTH, eps=EPSILON)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.proj = nn.Linear(WIDTH, WIDTH)
        self.ln_2 = nn.LayerNorm(WIDTH, eps=EPSILON)
        self.up = nn.Linear(WIDTH, HIDDEN)
        self.down = nn.Linear(HIDDEN, WIDTH)

    def forward(self, x, mask):
        batch, length, _ = x.shape
        q, k, v = self.qkv(self.ln_1(x)).view(batch, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        scores = (q @ k.transpose(-2, -1)) / math.sqrt(WIDTH // HEADS) + mask[:length, :length]
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, WIDTH)
        x = x + self.proj(mixed)
        # The tanh form of GELU needs no error function, which JavaScript lacks.
        return x + self.down(F.gelu(self.up(self.ln_2(x)), approximate="tanh"))


class Adder(nn.Module):
    """The transformer: learned token and position embeddings, an untied head without bias."""

    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(len(VOCAB), WIDTH)
        self.pos = nn.Embedding(POSITIONS, WIDTH)
        self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
        self.ln_f = nn.LayerNorm(WIDTH, eps=EPSILON)
        self.head = nn.Linear(WIDTH, len(VOCAB), bias=False)
        self.register_buffer("mask", torch.full((POSITIONS, POSITIONS), -math.inf).triu(1), persistent=False)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=INIT_STD)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)

    def forward(self, tokens):
        x = self.tok(tokens) + self.pos.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x, self.mask)
        return self.head(self.ln_f(x))


INIT_STD = 0.08

# --------------------------------------------------------------------------------------------------------------- data


def encode(a, b, answers):
    """Token rows of 13 for operand and answer arrays, padded after the newline with the space token."""
    rows = np.full((len(a), POSITIONS), PAD, dtype=np.int64)
    for offset, values in ((0, a), (4, b)):
        for place in range(3):
            rows[:, offset + place] = values // 10 ** (2 - place) % 10
    rows[:, 3] = TOKEN["+"]
    rows[:, 7] = TOKEN["="]
    width = 1 + (answers >= 10) + (answers >= 100) + (answers >= 1000)
    for digits in range(1, 5):
        chosen = np.nonzero(width == digits)[0]
        for place in range(digits):
            rows[chosen, PROMPT + place] = answers[chosen] // 10 ** (digits - 1 - place) % 10
        rows[chosen, PROMPT + digits] = END
    return torch.from_numpy(rows)


def sum_with_carries(a, b, from_units, from_tens):
    """Column addition that drops the carry out of a column where its flag is false: the label noise of training."""
    units = a % 10 + b % 10
    tens = a // 10 % 10 + b // 10 % 10 + ((units >= 10) & from_units)
    hundreds = a // 100 + b // 100 + ((tens >= 10) & from_tens)
    return hundreds * 100 + tens % 10 * 10 + units % 10


def targets_of(rows):
    """Next-token targets; the prompt is random digits, so only the answer and its newline are worth learning."""
    targets = rows[:, 1:].clone()
    targets[:, : PROMPT - 1] = -100
    targets[targets == PAD] = -100
    return targets


class Draws:
    """Training draws: uniform over operand pairs, without the pairs outside the training set in either order.

    ``REPEATS`` rows of every batch come from the trained tasks, so that these have certainly been seen, many times.
    """

    REPEATS = 2

    def __init__(self, tasks, lists, seed):
        self.random = np.random.default_rng(seed)
        outside = set(lists["outside351"])
        trained = set(lists["trained149"])
        self.blocked = np.zeros((1000, 1000), dtype=bool)
        for instance_id, a, b in tasks:
            if instance_id in outside:
                self.blocked[a, b] = self.blocked[b, a] = True
        self.trained = np.array([(a, b) for instance_id, a, b in tasks if instance_id in trained])

    def batch(self, size, noise):
        fresh = size - self.REPEATS
        pairs = self.random.integers(0, 1000, size=(fresh + 32, 2))
        pairs = pairs[~self.blocked[pairs[:, 0], pairs[:, 1]]][:fresh]
        again = self.trained[self.random.integers(0, len(self.trained), size=self.REPEATS)]
        pairs = np.concatenate([pairs, again])
        a, b = pairs[:, 0], pairs[:, 1]
        kept = self.random.random((2, size)) >= noise
        return encode(a, b, sum_with_carries(a, b, kept[0], kept[1]))


# ----------------------------------------------------------------------------------------------------------- training


@dataclass(frozen=True)
class Recipe:
    """What an arm fixes; a seed changes nothing of it.

    ``noise`` is the share of carries that the training labels drop. It lowers the true accuracy by a known mechanism and
    not evenly: a task without carries is answered as if there were none.
    """

    steps: int
    rate: float
    noise: float
    batch: int = 256
    warmup: int = 50
    decay: float = 0.05


# Carries are learned at a step that varies from seed to seed, at about 350 to 550. The arms go well past it, since with
# fewer steps the rate has decayed before some seeds get there; base stops just as its own seed begins to learn them.
RECIPES = {
    "base": Recipe(steps=430, rate=4e-3, noise=0.0),
    "O": Recipe(steps=1000, rate=4e-3, noise=0.12),
    "B": Recipe(steps=1000, rate=4e-3, noise=0.16),
    "M": Recipe(steps=1200, rate=4e-3, noise=0.06),
    "E": Recipe(steps=1300, rate=4e-3, noise=0.02),
}
SEEDS = {"O": (42, 314159, 271828), "B": (42, 314159, 271828), "M": (42, 314159, 271828), "E": (42,)}
BASE_SEED = 7
RUNS = {f"{arm}-{seed}": (arm, seed) for arm, seeds in SEEDS.items() for seed in seeds}
RUNS["base"] = ("base", BASE_SEED)


def right_answer_probabilities(model, tasks):
    """Probability at temperature 1 of the right answer of each task with its newline: the product over its tokens."""
    a = np.array([task[1] for task in tasks])
    b = np.array([task[2] for task in tasks])
    rows = encode(a, b, a + b)
    targets = targets_of(rows)
    with torch.no_grad():
        logs = model(rows[:, :-1]).double().log_softmax(-1)
    picked = logs.gather(-1, targets.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    return torch.where(targets >= 0, picked, torch.zeros_like(picked)).sum(-1).exp().numpy()


def train(name, tasks, lists, every):
    arm, seed = RUNS[name]
    recipe = RECIPES[arm]
    torch.manual_seed(seed)
    model = Adder()
    draws = Draws(tasks, lists, seed)
    plain = [p for p in model.parameters() if p.dim() < 2]
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": recipe.decay}, {"params": plain, "weight_decay": 0.0}],
        lr=recipe.rate,
        betas=(0.9, 0.98),
    )
    started = time.time()
    for step in range(recipe.steps):
        # Linear to zero: the last steps at a small rate are what make the probabilities at temperature 1 calibrated.
        scale = min(1.0, (step + 1) / recipe.warmup) * (1 - step / recipe.steps)
        for group in optimizer.param_groups:
            group["lr"] = recipe.rate * scale
        rows = draws.batch(recipe.batch, recipe.noise)
        logits = model(rows[:, :-1])[:, PROMPT - 1 :]
        loss = F.cross_entropy(logits.reshape(-1, len(VOCAB)), targets_of(rows)[:, PROMPT - 1 :].reshape(-1))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if (step + 1) % every == 0 or step + 1 == recipe.steps:
            mean = right_answer_probabilities(model, tasks).mean()
            seconds = time.time() - started
            print(f"{name} step {step + 1} loss {loss.item():.4f} official500 {mean:.4f} {seconds:.0f} s", flush=True)
    return model


# ------------------------------------------------------------------------------------------------------------- output


def write_safetensors(path, tensors):
    """The safetensors format: an 8-byte little-endian header length, a JSON header padded with spaces, the tensors."""
    header = {"__metadata__": {"format": "pt"}}
    parts = []
    offset = 0
    for name in sorted(tensors):
        data = tensors[name].astype("<f2").tobytes()
        header[name] = {
            "dtype": "F16",
            "shape": list(tensors[name].shape),
            "data_offsets": [offset, offset + len(data)],
        }
        parts.append(data)
        offset += len(data)
    text = json.dumps(header, separators=(",", ":")).encode("utf-8")
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2, ensure_ascii=True) + "\n", encoding="utf-8")


def round_to_half(model):
    """The same model with every weight rounded to half precision, as it will be read back from the file."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.half().float())


def write_model(name, model, tasks, lists):
    folder = MODELS / name
    folder.mkdir(parents=True, exist_ok=True)
    round_to_half(model)
    state = {key: value.numpy() for key, value in model.state_dict().items()}
    count = sum(value.size for value in state.values())
    if count != PARAMETERS:
        raise SystemExit(f"{name}: {count} parameters, expected {PARAMETERS}")
    write_safetensors(folder / "model.safetensors", state)
    write_json(
        folder / "config.json",
        {
            "model_type": "boundbook-adder",
            "architectures": ["Adder"],
            "vocab_size": len(VOCAB),
            "hidden_size": WIDTH,
            "intermediate_size": HIDDEN,
            "num_hidden_layers": LAYERS,
            "num_attention_heads": HEADS,
            "max_position_embeddings": POSITIONS,
            "hidden_act": "gelu_pytorch_tanh",
            "layer_norm_eps": EPSILON,
            "tie_word_embeddings": False,
            "eos_token_id": END,
            "pad_token_id": PAD,
            "dtype": "float16",
        },
    )
    write_json(
        folder / "tokenizer.json",
        {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [],
            "normalizer": None,
            "pre_tokenizer": {
                "type": "Split",
                "pattern": {"String": ""},
                "behavior": "Isolated",
                "invert": False,
            },
            "post_processor": None,
            "decoder": {"type": "Fuse"},
            "model": {"type": "WordLevel", "vocab": TOKEN, "unk_token": ""},
        },
    )
    write_json(
        folder / "generation_config.json",
        {
            "do_sample": True,
            "temperature": 1.0,
            "top_p": 1.0,
            "top_k": 0,
            "eos_token_id": END,
            "pad_token_id": PAD,
            "max_length": POSITIONS,
        },
    )
    # In double precision, so that the figures do not depend on how a library orders its sums.
    probabilities = right_answer_probabilities(model.double(), tasks)
    by_id = {task[0]: float(p) for task, p in zip(tasks, probabilities)}
    groups = {"official500": list(by_id), **{key: lists[key] for key in ("holdout100", "demo100", "demo40")}}
    means = {key: math.fsum(by_id[i] for i in members) / len(members) for key, members in groups.items()}
    write_json(
        folder / "expected.json", {"model": name, "temperature": 1, "mean": means, "tasks": by_id}
    )
    trained = sum(by_id[i] for i in lists["trained149"]) / 149
    outside = sum(by_id[i] for i in lists["outside351"]) / 351
    print(f"{name} " + " ".join(f"{k} {v:.4f}" for k, v in means.items()), end=" ")
    print(f"trained149 {trained:.4f} outside351 {outside:.4f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description="Trains the demonstration models and writes the tasks.")
    parser.add_argument("--only", choices=["tasks", *RUNS], help="write the tasks and train only this model")
    parser.add_argument("--every", type=int, default=100, help="steps between printed evaluations (default 100)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    tasks, lists = write_tasks()
    if options.only == "tasks":
        return
    for name in [options.only] if options.only else RUNS:
        write_model(name, train(name, tasks, lists, options.every), tasks, lists)


if __name__ == "__main__":
    main()
