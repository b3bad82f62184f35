"""unity_sources: one source that includes all others of a library, so that their headers are read once.

Three quarters of a build's time go into headers. With --config=unity, which ./lockstep uses, a library is compiled
as one translation unit; without it each file is its own, which is quicker after a change and what editors want.
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
