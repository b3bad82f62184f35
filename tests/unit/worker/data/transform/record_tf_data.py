"""Writes what tf.data answers to random pipelines without a shuffle.

    python3 record_tf_data.py > tf_data.txt      # in tests/oracle's virtual environment

A line: the number of examples, the transformations in order, "=>", and the batches ("|" between them), at most
MOST_BATCHES. `make_stream_test.cc` asks our streams the same.
"""
import random

import tensorflow as tf

SCRIPTS = 96
MOST_BATCHES = 24


def random_steps(rng):
    steps = []
    for _ in range(rng.randint(0, 3)):
        steps.append(random_order(rng))
    steps.append(("batch", rng.randint(1, 6), rng.randint(0, 1)))
    for _ in range(rng.randint(0, 2)):
        steps.append(random_order(rng))
    return steps


def random_order(rng):
    if rng.random() < 0.5:
        shards = rng.randint(1, 4)
        return ("shard", shards, rng.randrange(shards))
    return ("repeat", rng.randint(0, 3), 0)


def apply(dataset, step):
    kind, size, other = step
    if kind == "shard":
        return dataset.shard(size, other)
    if kind == "repeat":
        return dataset.repeat(size if size > 0 else None)
    return dataset.batch(size, drop_remainder=bool(other))


def main():
    rng = random.Random(16)
    print("# tf.data", tf.__version__, "by record_tf_data.py")
    for _ in range(SCRIPTS):
        examples = rng.randint(0, 14)
        steps = random_steps(rng)
        dataset = tf.data.Dataset.range(examples)
        for step in steps:
            dataset = apply(dataset, step)
        batches = [" ".join(str(x) for x in b) for b in dataset.take(MOST_BATCHES).as_numpy_iterator()]
        text = " ".join(f"{kind} {size} {other}" for kind, size, other in steps)
        print(f"{examples} {text} => {'|'.join(batches)}")


if __name__ == "__main__":
    main()
