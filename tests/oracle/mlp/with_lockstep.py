"""The task as a job of Lockstep's: a chief, a ps and two workers on this machine."""
import json
import pathlib
import subprocess

import numpy as np

from wire import checkpoint

from .task import CLASSES, GLOBAL_BATCH, HIDDEN, OPTIMIZERS, REPLICAS, SCALE, STEPS, VARIABLES

_MODEL = f"""
name: "mlp"
input_shape: [8, 8, 1]
layers {{ name: "flat" flatten {{}} }}
layers {{ name: "hidden" dense {{ units: {HIDDEN} }} }}
layers {{ name: "relu" relu {{}} }}
layers {{ name: "scores" dense {{ units: {CLASSES} }} }}
layers {{ name: "loss" softmax_cross_entropy {{}} }}
"""


def _job(digits, optimizer, rate, steps, more=""):
    return f"""
name: "mlp"
model: "model.textproto"
data {{
  idx {{ train_images: "{digits}/train-images.idx.gz" train_labels: "{digits}/train-labels.idx.gz" }}
  scale: {SCALE}
  no_shuffle: true
}}
global_batch: {GLOBAL_BATCH}
max_steps: {steps}
optimizer {{ {optimizer} learning_rate {{ base: {rate} }} }}
checkpoint {{ folder: "checkpoints" }}
seed: 11
local {{ ps: 1 workers: {REPLICAS} }}
{more}
"""


def _run(folder, programs, job):
    """The run's summary, and {name: array} of the variables at its end."""
    folder.mkdir(parents=True)
    (folder / "model.textproto").write_text(_MODEL)
    (folder / "job.textproto").write_text(job)
    summary = folder / "summary.json"
    command = [
        str(programs / "deploy/cli/up"), f"--job={folder}/job.textproto", f"--bin_dir={programs}",
        f"--run_dir={folder}/run", f"--json={summary}",
    ]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    if ended.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} exited with {ended.returncode}\n{ended.stdout}{ended.stderr}")
    (shard,) = (folder / "checkpoints").glob("ckpt-*/shard-0-of-1.safetensors")
    tensors = checkpoint.read(shard)
    values = {name: np.array(tensors[name][1], np.float32).reshape(tensors[name][0]) for name in VARIABLES}
    return json.loads(summary.read_text()), values


def initial_values(folder, programs, digits):
    """The values that the seed begins with: what a step with a learning rate that changes nothing leaves."""
    _, values = _run(pathlib.Path(folder) / "initial", programs, _job(digits, "sgd {}", 1e-30, 1))
    return values


def train(folder, programs, digits, name, strategy="parameter_server"):
    """(the loss of every step, the final values)"""
    optimizer, rate = OPTIMIZERS[name]
    job = _job(digits, optimizer, rate, STEPS, f"strategy {{ {strategy} {{}} }}")
    summary, values = _run(pathlib.Path(folder) / strategy / name, programs, job)
    return summary["losses"], values
