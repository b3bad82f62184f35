"""Python classes for the project's .proto files, generated into a folder of the caller's by stock grpcio-tools."""
import importlib
import importlib.resources
import pathlib
import sys

from grpc_tools import protoc


def load(source_root, out_folder, *names):
    """Generates and imports proto/<name>.proto for each name; returns [(messages, services)]."""
    source_root = pathlib.Path(source_root)
    for path in sorted((source_root / "proto").glob("*.proto")):
        roots = [f"-I{source_root}", f"-I{importlib.resources.files('grpc_tools') / '_proto'}"]
        arguments = ["protoc", *roots, f"--python_out={out_folder}", f"--grpc_python_out={out_folder}", str(path)]
        if protoc.main(arguments) != 0:
            sys.exit(f"protoc failed on {path}")
    sys.path.insert(0, str(out_folder))
    return [
        (importlib.import_module(f"proto.{name}_pb2"), importlib.import_module(f"proto.{name}_pb2_grpc"))
        for name in names
    ]
