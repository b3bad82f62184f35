"""The project's C++ rules: the system's, with our warnings, abseil, and for tests the shared Catch2 main."""

load("@rules_cc//cc:defs.bzl", _cc_binary = "cc_binary", _cc_library = "cc_library", _cc_test = "cc_test")
load("//common/bazel:precompiled_header.bzl", "precompiled_by")
load("//common/bazel:unity.bzl", "unity_sources", "unity_tests")

_COPTS = ["-Wall", "-Wextra", "-Werror", "-Wno-sign-compare", "-Wno-missing-field-initializers"]

# In every program, for what the sanitizers cannot see in the system's libraries.
_SANITIZER_DEPS = select({
    "//tests/support:under_tsan": ["//tests/support:tsan"],
    "//conditions:default": [],
})

# A precompiled header fits no file that is not C++, and none that is compiled with options of its own.
def _precompiled(header, srcs, copts):
    is_possible = not copts and all([file.endswith((".cc", ".h")) for file in srcs])
    return precompiled_by(header) if is_possible and srcs else ([], [])

def cc_library(name, srcs = [], copts = [], deps = [], **kwargs):
    header, header_deps = _precompiled("library_headers", srcs, copts)
    kwargs.update(unity_sources(name, srcs))
    kwargs.setdefault("linkstatic", True)  # otherwise `bazel test //...` links a shared library of each, too
    _cc_library(name = name, copts = _COPTS + copts + header, deps = deps + header_deps + ["@system//:absl"], **kwargs)

def cc_binary(name, srcs = [], copts = [], deps = [], **kwargs):
    header, header_deps = _precompiled("library_headers", srcs, copts)
    _cc_binary(
        name = name,
        srcs = srcs,
        copts = _COPTS + copts + header,
        deps = deps + header_deps + ["@system//:absl"] + _SANITIZER_DEPS,
        **kwargs
    )

def cc_test_cases(name, srcs, copts = [], deps = [], **kwargs):
    """The test cases of `srcs`, for the tests that have `name` among their deps: compiled once for all of them."""
    header, header_deps = _precompiled("test_headers", srcs, copts)
    _cc_library(
        name = name,
        testonly = True,
        srcs = unity_tests(name, srcs),
        copts = _COPTS + copts + header,
        linkstatic = True,
        deps = deps + header_deps + ["@system//:absl", "@system//:catch2"],
        alwayslink = True,
        **kwargs
    )

def cc_test(name, srcs = [], copts = [], deps = [], size = "small", **kwargs):
    header, header_deps = _precompiled("test_headers", srcs, copts)
    _cc_test(
        name = name,
        srcs = unity_tests(name, srcs),
        copts = _COPTS + copts + header,
        deps = deps + header_deps + ["@system//:absl", "@system//:catch2", "//tests/support:catch_main"] + _SANITIZER_DEPS,
        size = size,
        **kwargs
    )
