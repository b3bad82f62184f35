"""One suite of tests on each kind of device (test_device.h)."""

load("//common/bazel:cc.bzl", "cc_test")

def device_tests(name, deps, devices = ["cpu", "deferred", "cuda", "gpu"], env = {}, tags = [], **kwargs):
    """<name>_test on the CPU, and <name>_<device>_test on each other. Those that need a GPU have the tag `gpu`."""
    for device in devices:
        cc_test(
            name = name + ("_test" if device == "cpu" else "_{}_test".format(device)),
            deps = deps,
            env = dict(env, LOCKSTEP_TEST_DEVICE = device, OMP_WAIT_POLICY = "passive"),
            tags = tags + (["gpu", "exclusive"] if device.startswith("gpu") else []),
            **kwargs
        )
