"""Trains the same network on the digits with Lockstep and with TensorFlow, and compares: parameter servers with
SyncReplicasOptimizer, replicated training with MultiWorkerMirroredStrategy.

    end_to_end.py SOURCE_ROOT PROGRAMS

PROGRAMS is the folder with ps/ps, worker/worker, chief/chief and deploy/cli/up. Same initial values and batches, two
replicas, both needed. For each optimizer the losses of all steps must agree to 1e-4, relative, and the final variables
to 1e-4 of their largest magnitude; 1e-5 with MultiWorkerMirroredStrategy. Prints the worst of both and ends with "N passed, N failed". Needs requirements.txt.
"""
import os
import pathlib
import sys
import tempfile

import numpy as np

from mlp import with_lockstep, with_mirrored_strategy, with_tensorflow
from mlp.task import OPTIMIZERS, STEPS, Digits

# Of losses and variables, by our strategy.
TOLERANCE = {"parameter_server": 1e-4, "replicated": 1e-5}


def worst_loss(ours, theirs):
    """Largest relative difference of a step's loss."""
    if len(ours) != STEPS or len(theirs) != STEPS:
        raise RuntimeError(f"expected the losses of {STEPS} steps, got {len(ours)} and {len(theirs)}")
    ours, theirs = np.array(ours), np.array(theirs)
    return float(np.max(np.abs(ours - theirs) / np.abs(theirs)))


def worst_variable(ours, theirs):
    """Largest difference as a share of the variable's largest magnitude."""
    return max(float(np.max(np.abs(ours[name] - theirs[name])) / np.max(np.abs(theirs[name]))) for name in theirs)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source_root, programs = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
    folder_of_digits = source_root / "deploy/data/digits"
    digits = Digits(folder_of_digits)
    passed = 0
    with tempfile.TemporaryDirectory() as folder:
        initial = with_lockstep.initial_values(folder, programs, folder_of_digits)
        judges = {
            "replicated": lambda name: with_mirrored_strategy.train(folder_of_digits, initial, name),
            "parameter_server": lambda name: with_tensorflow.train(digits, initial, name),
        }
        for strategy, name in ((strategy, name) for strategy in judges for name in OPTIMIZERS):
            ours = with_lockstep.train(folder, programs, folder_of_digits, name, strategy)
            theirs = judges[strategy](name)
            loss = worst_loss(ours[0], theirs[0])
            variable = worst_variable(ours[1], theirs[1])
            agrees = max(loss, variable) <= TOLERANCE[strategy]
            passed += agrees
            print(f"{strategy:16s} {name:10s} {'agrees' if agrees else 'DIFFERS'}: loss of a step within {loss:.2g}, from "
                  f"{theirs[0][0]:.4f} to {theirs[0][-1]:.4f}; final variables within {variable:.2g}", flush=True)
    failed = len(TOLERANCE) * len(OPTIMIZERS) - passed
    print(f"{passed} passed, {failed} failed", flush=True)
    os._exit(1 if failed else 0)  # TensorFlow's servers do not end


if __name__ == "__main__":
    main()
