"""Asks the library for blocks, through dump_block."""

import json
import subprocess

import numpy as np


class Library:
    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def block(self, descriptor, row, rows, col, cols, dtype="f64"):
        x = {"gnomon": "operator", "version": 1, **descriptor}
        line = f"{dtype} {row} {rows} {col} {cols} {json.dumps(x)}\n"
        self.process.stdin.write(line.encode())
        self.process.stdin.flush()
        kind = np.float32 if dtype == "f32" else np.float64
        want = rows * cols * np.dtype(kind).itemsize
        data = self.process.stdout.read(want)
        if len(data) != want:
            raise SystemExit(f"dump_block failed on {line}")
        return np.frombuffer(data, dtype=kind).reshape(rows, cols)

    def close(self):
        self.process.stdin.close()
        assert self.process.wait() == 0
