"""Tables 1 and 2 of Guo (2010), Example 1: four classes, two informative variables among 102."""

from reproductions.sparse._simulation import Example

TABLE1 = {
    "L2": (54.5, 3.99, 2.0, 0.0, 100.0, 0.0),
    "L1": (51.1, 2.86, 2.0, 0.0, 99.9, 0.36),
    "SN": (50.1, 2.72, 2.0, 0.0, 99.8, 0.55),
    "PF": (51.3, 2.85, 2.0, 0.0, 99.9, 0.48),
    "AL1": (17.9, 3.27, 2.0, 0.0, 4.4, 5.56),
    "ASN-I": (15.0, 1.59, 2.0, 0.0, 1.2, 1.95),
    "ASN-II": (16.8, 3.15, 2.0, 0.0, 0.9, 2.44),
    "APF": (14.0, 1.00, 2.0, 0.0, 0.1, 0.31),
}
PAIRS = ("1: 2/3", "2: 1/2", "2: 3/4")
TABLE2 = {
    "L2": (0.00, 0.00, 0.00),
    "L1": (0.02, 0.00, 0.00),
    "AL1": (0.28, 0.00, 0.00),
    "SN": (0.00, 0.38, 0.38),
    "ASN-I": (0.00, 0.92, 0.92),
    "ASN-II": (0.00, 0.00, 0.00),
    "PF": (0.02, 0.24, 0.32),
    "APF": (0.28, 0.62, 0.74),
}
EXAMPLE = Example(1, TABLE1, TABLE2, PAIRS)

REPRODUCTION = EXAMPLE.reproduction("weston", repetitions=50)
