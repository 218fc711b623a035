#!/usr/bin/env python3
"""peak.py PROGRAM ARGUMENT...: runs it without its output, and prints the most KiB of memory that
it had."""
import resource
import subprocess
import sys

subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
