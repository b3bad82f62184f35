"""Records what TensorFlow's own synchronisation ops answer, as scripts to replay.

    record.py FOLDER --seed N [--cases N] [--kinds KIND,KIND...]

Needs requirements.txt. Writes FOLDER/<kind>.jsonl.gz, one script a line; every number in it is TensorFlow's.
Equal seeds make equal scripts. All scripts have "kind", "name", "seed" and "tensorflow" (its version).

training     One accumulator, one optimizer, one moving average. "log" is a list of
               push  {local_step, values[, indices], num_accumulated}    num_accumulated: after it
               apply {aggregate, global_step, learning_rate, variable, average}
                     take(aggregate), apply, global_step += 1, then the average
             "learning_rate" of the script is a number or a schedule {"schedule": name, ...}, evaluated at the step
             before the apply. "averages": {"decay", "num_updates"}; num_updates: global_step limits the decay.
accumulator  Dense or sparse, MEAN or SUM, float16, float32 or float64. "log":
               push     {local_step, values, values_shape[, indices, indices_shape][, dense_shape], error}
               take     {id, num_required, error}                        waits; error only for a bad request
               set_step {step}
             error: null or {code, message}. Each with "num_accumulated" and "completed", the takes that have
             completed since the line before: {id, values[, indices, dense_shape]}, by their ids.
cluster      SyncReplicasOptimizer on servers: one ps, `total_num_replicas` workers. "log":
               run {worker, gradients}: the worker starts one step: pushes all, then waits for a token.
             What holds when everything has settled: "finished": workers whose step has returned, "waiting": those
             that wait for a token, "local_step" of every worker, "global_step", "variables".
schedule     {"spec", "values": [[step, learning rate], ...]}
ftrl         Ftrl alone, float32, with powers other than the root. "log": {indices, gradient, variable, accum, linear}
cross_tower  ReductionToOneDevice or HierarchicalCopyAllReduce, one batch on up to 8 towers. "aggregation", "num_packs",
             "reduce_to_device" or null, "accumulation": add or maximum. "log", one entry for each value of the batch:
               {devices, shapes, values[, indices], destinations, result_shape, result[, result_indices]}
             "shapes", "values" and "indices" by device, "result" and "result_indices" by destination.
local_sync   A classifier with batch norm, float64, on up to 4 towers that share its variables. "towers",
             "max_per_device_batch_size", "features", "hidden", "classes", "bn_momentum", "bn_epsilon",
             "batch_norm_updates", "optimizer", "learning_rate", "global_norm" or null, "initial". "log":
               load_data {features, labels, tuples_per_device, per_device_batch_size}
               optimize  {batch_index, device_losses, variables}             variables: after the step
async_towers A linear regression, float64, of up to 4 towers that apply their gradients by themselves. "scale_gradient":
             each is multiplied by 1 / towers. "rows" and "targets" by tower. "log":
               pull {tower}                                                  takes the variables of now
               push {tower, loss, variables}                                 of what it has pulled; variables: after it
gan          A generator and a discriminator, each with an RMSProp, which take turns of 10 steps and 1. "model" is our model
             file of TensorFlow's network, "losses" what its parts train: {name, steps, loss, trains, optimizer}. "log", one
             entry for each step: {features, loss, variables}; the loss is that whose turn it is.
clipping     {"op", "clip", "tensors", "clipped", "norm"}; "nan", "inf" and "-inf" stand for what JSON cannot write.

What an exact implementation keeps: steps, counts, who waits, indices and error codes are equal; a value differs by at
most 1e-6 (float64: 1e-12) of the largest magnitude in its tensor (kinds local_sync, async_towers and gan, which
a replay computes in float32: 5e-6 of the largest that it has had so far); float16, and the values of kinds ftrl and cross_tower,
not at all.
"""
import argparse
import os
import pathlib
import sys

import numpy as np

from recorder.accumulator import record_accumulator
from recorder.async_towers import record_async_towers
from recorder.clipping import record_clipping
from recorder.cluster import record_cluster
from recorder.cross_tower import record_cross_tower
from recorder.ftrl import record_ftrl
from recorder.gan import record_gan
from recorder.local_sync import record_local_sync
from recorder.optimizers import MAKE
from recorder.schedules import record_schedule
from recorder.script_file import write
from recorder.tf1 import tf
from recorder.training import record_training

WAYS = {False: "dense", True: "sparse"}


def training(rng):
    for optimizer in MAKE:
        for sparse, way in WAYS.items():
            yield f"{optimizer}_{way}", record_training(rng, optimizer, sparse)


def accumulator(rng):
    for sparse, way in WAYS.items():
        yield way, record_accumulator(rng, sparse)


def ftrl(rng):
    for sparse, way in WAYS.items():
        yield way, record_ftrl(rng, sparse)


def cross_tower(rng):
    for op in ("reduction_to_one_device", "hierarchical_copy"):
        yield op, record_cross_tower(rng, op)


# One case of a kind: some scripts with their names.
KINDS = {
    "training": training,
    "accumulator": accumulator,
    "cluster": lambda rng: [("fifo", record_cluster(rng))],
    "schedule": lambda rng: [("rates", record_schedule(rng))],
    "clipping": lambda rng: [("tensors", record_clipping(rng))],
    "ftrl": ftrl,
    "cross_tower": cross_tower,
    "local_sync": lambda rng: [("loads", record_local_sync(rng))],
    "async_towers": lambda rng: [("towers", record_async_towers(rng))],
    "gan": lambda rng: [("turns", record_gan(rng))],
}


# How many cases, where nothing is said: scripts of towers are quick to record, so there are 24 of each.
CASES = {"cross_tower": 12, "local_sync": 24, "async_towers": 24, "gan": 24}
FEW = 2


def record(kind, seed, cases):
    # A stream of its own for each kind, so that leaving one out does not change the others.
    rng = np.random.default_rng([seed, list(KINDS).index(kind)])
    for case in range(cases):
        for name, script in KINDS[kind](rng):
            yield {"name": f"{kind}_{name}_{case}", "seed": seed, "tensorflow": tf.__version__, **script}


def parse():
    parser = argparse.ArgumentParser(description="Records what TensorFlow answers, as scripts to replay.")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--cases", type=int, help="of each kind")
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=list(KINDS))
    arguments = parser.parse_args()
    unknown = set(arguments.kinds) - set(KINDS)
    if unknown:
        parser.error(f"--kinds: expected some of {', '.join(KINDS)}, got {', '.join(sorted(unknown))}")
    return arguments


def main():
    arguments = parse()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    count = 0
    for kind in arguments.kinds:
        scripts = record(kind, arguments.seed, arguments.cases or CASES.get(kind, FEW))
        count += write(arguments.folder / f"{kind}.jsonl.gz", scripts)
    print(f"{count} scripts from TensorFlow {tf.__version__}, seed {arguments.seed}")
    sys.stdout.flush()
    os._exit(0)  # servers, and threads that wait in them, do not end


if __name__ == "__main__":
    main()
