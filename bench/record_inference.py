"""Record what mbi infers on small models, for ``tests/test_publication_tree.py`` to agree with.

``PYTHON bench/record_inference.py > tests/recorded/inference.json`` with the interpreter of an
environment in which ``mbi`` is installed; 350 MB that no test needs.
"""

from __future__ import annotations

import itertools
import json

import numpy as np

MODELS = (
    # sizes, edges, strength of the potentials
    ((3, 2, 4), ((0, 1), (1, 2)), 1),
    ((2, 3, 2, 4), ((0, 1), (1, 2), (2, 3), (3, 0)), 2),
    ((3, 3, 3, 2, 2), ((0, 1), (0, 2), (1, 2), (2, 3), (3, 4)), 4),
    ((4, 2, 3, 2, 3), ((0, 4), (1, 4), (2, 4), (3, 4)), 30),
    ((2, 2, 2, 2, 2, 2), tuple(itertools.combinations(range(6), 2))[::2], 60),
)


def main() -> None:
    import jax

    jax.config.update("jax_enable_x64", True)
    import mbi
    from mbi import marginal_oracles

    draw = np.random.default_rng(7)
    found = []
    for sizes, edges, strength in MODELS:
        names = [f"c{place}" for place in range(len(sizes))]
        domain = mbi.Domain(names, sizes)
        cliques = [(names[a], names[b]) for a, b in edges]
        # Whole eighths: a potential is the same number in both programs.
        tables = [
            np.rint(8 * strength * draw.normal(size=(sizes[a], sizes[b]))) / 8 for a, b in edges
        ]
        factors = {
            clique: mbi.Factor(domain.project(clique), jax.numpy.asarray(table))
            for clique, table in zip(cliques, tables, strict=True)
        }
        vector = mbi.CliqueVector(domain, cliques, factors)
        told = marginal_oracles.message_passing_stable(vector)
        found.append(
            {
                "sizes": sizes,
                "edges": edges,
                "potentials": [table.tolist() for table in tables],
                "marginals": [np.asarray(told[clique].values).tolist() for clique in cliques],
            }
        )
    print(json.dumps({"mbi": "1.1.0", "models": found}))


if __name__ == "__main__":
    main()
