"""Repositories that Bazel 4 insists on, written locally so that a build needs no network.

Bazel 4's own tools load @rules_cc and @rules_java and every cc_test names @remote_coverage_tools.
Debian's Bazel cannot fetch them, and none is needed beyond re-exporting the native rules.
"""

_CC = ["cc_binary", "cc_import", "cc_library", "cc_proto_library", "cc_test", "cc_toolchain", "cc_toolchain_suite", "objc_library"]
_JAVA = ["java_binary", "java_import", "java_library", "java_proto_library", "java_runtime", "java_test", "java_toolchain"]

def _reexport(names):
    return "\n".join(["{0} = native.{0}".format(name) for name in names]) + "\n"

def _stub_impl(ctx):
    ctx.file("WORKSPACE", "workspace(name = \"{}\")\n".format(ctx.name))
    ctx.file("BUILD", "\n".join([
        "filegroup(name = \"{}\", visibility = [\"//visibility:public\"])".format(name)
        for name in ctx.attr.filegroups
    ]) + "\n")
    if ctx.attr.defs_package:
        ctx.file(ctx.attr.defs_package + "/BUILD", "")
        ctx.file(ctx.attr.defs_package + "/defs.bzl", _reexport(ctx.attr.native_rules))

_stub = repository_rule(
    implementation = _stub_impl,
    attrs = {
        "defs_package": attr.string(),
        "native_rules": attr.string_list(),
        "filegroups": attr.string_list(),
    },
)

def stub_repositories():
    """Declares the stubs under a Bazel that has no registry (Debian's reports an empty version)."""
    version = native.bazel_version or ""
    if version != "" and not version.startswith("4."):
        return
    _stub(name = "rules_cc", defs_package = "cc", native_rules = _CC)
    _stub(name = "rules_java", defs_package = "java", native_rules = _JAVA)
    _stub(name = "remote_coverage_tools", filegroups = ["coverage_report_generator", "coverage_output_generator"])
