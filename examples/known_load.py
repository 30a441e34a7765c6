"""A known load twice: as a test of an identification, and as the yardstick of the drive gains.

The robot is identified without and with a load whose parameters were weighed and measured; what the load must change
stands beside what the second identification found. Then drive gains are found from the same runs with only its mass.
The whole paper: `dynident papers gautier`.
Run: python examples/known_load.py
"""

import dynident as di
from dynident.papers.gautier.experiments import LOAD, find_gains, true_values, two_steps


def side_by_side(seed: int = 0, **options) -> di.payload.PayloadComparison:
    """Identify without and with the load, from different motions, and compare."""
    unloaded = two_steps(true_values(), seed, **options)
    loaded = two_steps(true_values(loaded=True), seed + 1, **options)
    return di.payload.compare_payload(unloaded, loaded, LOAD)


if __name__ == "__main__":
    found = side_by_side()
    print(found.table(), "\n")
    print(f"{100 * found.agreeing:.0f} % of the parameters agree within two standard deviations of the difference\n")
    print(find_gains().table())
