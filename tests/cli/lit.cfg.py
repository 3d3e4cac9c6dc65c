import os

import lit.formats

build = lit_config.params["build"]

config.name = "cli"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".test"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(build, "tests", "cli")

config.environment["PATH"] = os.pathsep.join(
    [os.path.join(build, "bin"), "/usr/lib/llvm-22/bin", os.environ["PATH"]]
)
# Tests share what they compile, but with nothing outside the build folder.
config.environment["XDG_CACHE_HOME"] = os.path.join(config.test_exec_root, "cache")
for name in ("CUDA_HOME", "GDNC_PTXAS", "GDNC_NVDISASM", "GDN_DRIVER"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

config.substitutions += [
    ("%build-folder", build),
    ("%root", os.path.dirname(os.path.dirname(config.test_source_root))),
    ("%python", lit_config.params["python"]),
    ("%cmake", lit_config.params["cmake"]),
    # `%exit N command` fails unless the command exits with N.
    ("%exit", lit_config.params["python"] + " " + os.path.join(config.test_source_root, "exits.py")),
    # The quickest bundle of real kernels there is: one of 64 x 64.
    ("%one", "--arch sm_90a --dtype bf16 --state k-first --features none"),
]
