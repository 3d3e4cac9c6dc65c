"""exits.py N COMMAND...: runs the command and fails unless it exits with N."""
import subprocess
import sys

wanted = int(sys.argv[1])
got = subprocess.run(sys.argv[2:]).returncode
if got != wanted:
    sys.exit(f"expected exit code {wanted}, got {got}")
