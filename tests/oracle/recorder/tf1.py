"""TensorFlow as the recorder uses it: graphs and sessions of version 1, quiet, on the CPU."""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"

import tensorflow.compat.v1 as tf  # noqa: E402

tf.disable_eager_execution()
tf.logging.set_verbosity(tf.logging.FATAL)

DTYPES = {"float16": tf.float16, "float32": tf.float32, "float64": tf.float64}


def session(graph):
    """One thread per op, so that no sum depends on how it was cut."""
    return tf.Session(
        graph=graph,
        config=tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=2),
    )
