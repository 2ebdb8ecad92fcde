"""usage: host.py LIBRARY ROUNDS [churn]: what host.c does, by ctypes."""
import ctypes
import sys

lib = ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
churn = len(sys.argv) > 3
work = lib.churn if churn else lib.busy
work.argtypes, work.restype = [ctypes.c_long], ctypes.c_long
lib.getAllocations.restype = ctypes.c_ulong
lib.hs_init(None, None)
print("started", flush=True)
print(sum(work(100000 if churn else 3000000 + i) for i in range(int(sys.argv[2]))))
if churn:
    print("allocated", lib.getAllocations())
