"""usage: host.py LIBRARY ROUNDS: what host.c does, by ctypes."""
import ctypes
import sys

lib = ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
lib.busy.argtypes, lib.busy.restype = [ctypes.c_long], ctypes.c_long
lib.hs_init(None, None)
print("started", flush=True)
print(sum(lib.busy(3000000 + i) for i in range(int(sys.argv[2]))))
