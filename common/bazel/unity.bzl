"""unity_sources, unity_tests: one source that includes all others of a target, so that their headers are read once.

Three quarters of a build's time go into headers. With --config=unity, which ./lockstep uses, a library or a test is
compiled as one translation unit; without it each file is its own, which is quicker after a change and what editors want.
"""

def _unity_file_impl(ctx):
    out = ctx.actions.declare_file(ctx.label.name + ".cc")
    ctx.actions.write(out, "".join(["#include \"%s\"\n" % source.short_path for source in ctx.files.srcs]))
    return [DefaultInfo(files = depset([out]))]

_unity_file = rule(
    implementation = _unity_file_impl,
    attrs = {"srcs": attr.label_list(allow_files = [".cc"])},
)

def unity_sources(name, srcs):
    """The attributes srcs and textual_hdrs of the library `name` with the files `srcs`."""
    units = [file for file in srcs if file.endswith(".cc")]
    if len(units) < 2:
        return {"srcs": srcs}
    _unity_file(name = name + "_unity", srcs = units, visibility = ["//visibility:private"])
    others = [file for file in srcs if file not in units]
    return {
        "srcs": select({
            "//common/bazel:unity": [":" + name + "_unity"] + others,
            "//conditions:default": srcs,
        }),
        "textual_hdrs": select({
            "//common/bazel:unity": units,
            "//conditions:default": [],
        }),
    }

# The rest of the file sees its names, as those of an unnamed namespace. On one line: places of errors stay.
_OWN_NAMESPACE = "namespace file_{0} {{}} using namespace file_{0}; namespace file_{0} {{\n"

def _unity_tests_file_impl(ctx):
    copies = []
    for number, source in enumerate(ctx.files.srcs):
        copy = ctx.actions.declare_file("%s/%s.inc" % (ctx.label.name, source.basename))
        ctx.actions.expand_template(
            template = source,
            output = copy,
            substitutions = {"\nnamespace {\n": "\n" + _OWN_NAMESPACE.format(number)},
        )
        copies.append(copy)
    out = ctx.actions.declare_file(ctx.label.name + ".cc")
    ctx.actions.write(out, "".join(["#include \"%s\"\n" % copy.short_path for copy in copies]))
    return [DefaultInfo(files = depset([out] + copies))]

_unity_tests_file = rule(
    implementation = _unity_tests_file_impl,
    attrs = {"srcs": attr.label_list(allow_files = [".cc"])},
)

def unity_tests(name, srcs):
    """The attribute srcs of the test `name` with the files `srcs`.

    Files of a test name what they need alike (Fixture, kSteps). What each has in its unnamed namespace is put into a
    namespace of its own, in a copy.
    """
    units = [file for file in srcs if file.endswith(".cc")]
    if len(units) < 2:
        return srcs
    _unity_tests_file(name = name + "_unity", srcs = units, testonly = True, visibility = ["//visibility:private"])
    return select({
        "//common/bazel:unity": [":" + name + "_unity"] + [file for file in srcs if file not in units],
        "//conditions:default": srcs,
    })
