# How lit runs the .mlir files below: programs of the build first, then LLVM's.
import os

import lit.formats

config.name = "gdnc"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = lit_config.params["output"]
config.environment["PATH"] = os.pathsep.join([lit_config.params["programs"], lit_config.params["llvm"], os.environ["PATH"]])
for name in ("CUDA_HOME", "GDNC_PTXAS", "GDNC_NVDISASM", "TMPDIR"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
