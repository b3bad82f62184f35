"""The project's C++ rules: the system's, with our warnings, abseil, and for tests the shared Catch2 main."""

load("@rules_cc//cc:defs.bzl", _cc_binary = "cc_binary", _cc_library = "cc_library", _cc_test = "cc_test")
load("//common/bazel:unity.bzl", "unity_sources", "unity_tests")

_COPTS = ["-Wall", "-Wextra", "-Werror", "-Wno-sign-compare", "-Wno-missing-field-initializers"]

# In every program, for what the sanitizers cannot see in the system's libraries.
_SANITIZER_DEPS = select({
    "//tests/support:under_tsan": ["//tests/support:tsan"],
    "//conditions:default": [],
})

def cc_library(name, srcs = [], copts = [], deps = [], **kwargs):
    kwargs.update(unity_sources(name, srcs))
    kwargs.setdefault("linkstatic", True)  # otherwise `bazel test //...` links a shared library of each, too
    _cc_library(name = name, copts = _COPTS + copts, deps = deps + ["@system//:absl"], **kwargs)

def cc_binary(name, copts = [], deps = [], **kwargs):
    _cc_binary(name = name, copts = _COPTS + copts, deps = deps + ["@system//:absl"] + _SANITIZER_DEPS, **kwargs)

def cc_test(name, srcs = [], copts = [], deps = [], size = "small", **kwargs):
    _cc_test(
        name = name,
        srcs = unity_tests(name, srcs),
        copts = _COPTS + copts,
        deps = deps + ["@system//:absl", "@system//:catch2", "//tests/support:catch_main"] + _SANITIZER_DEPS,
        size = size,
        **kwargs
    )
