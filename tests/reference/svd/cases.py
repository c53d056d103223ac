"""Matrices that singular values are compared on: a flat spectrum, the words of text, digits, heavy tails, equal rows, one column
that is full."""
import re

import numpy as np
import scipy.sparse as sp

def words(paths):
    lines = [re.findall("[a-z]{3,}", line.lower()) for path in paths for line in open(path)]
    lines = [line for line in lines if len(line) > 2][:350]
    known = {w: i for i, w in enumerate(sorted({w for line in lines for w in line}))}
    a = sp.lil_matrix((len(lines), len(known)))
    for i, line in enumerate(lines):
        for w in line:
            a[i, known[w]] += 1
    a = a.tocsr()
    weights = np.log((1 + a.shape[0]) / (1 + np.bincount(a.indices, minlength=a.shape[1]))) + 1
    a = a @ sp.diags(weights)
    return sp.diags(1 / np.sqrt(a.multiply(a).sum(1).A1)) @ a

def of(digits, texts):
    rng = np.random.default_rng(0)
    column = sp.random(200, 150, 0.02, format="lil", random_state=2)
    column[:, 7] = rng.standard_normal((200, 1))
    return {
        "random": sp.random(300, 900, 0.02, format="csr", random_state=0),
        "words": words(texts),
        "digits": sp.csr_matrix(np.load(digits)[:400].astype(float)),
        "heavy tails": sp.csr_matrix(rng.standard_t(1.2, (300, 200))),
        "equal rows": sp.csr_matrix(np.tile(rng.standard_normal(120), (200, 1))),
        "one column": column,
    }
