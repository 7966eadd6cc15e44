"""Tables 1 and 2 of Guo (2010), Example 1, with the loss (1) that the paper states."""

from reproductions.sparse.example1 import EXAMPLE

REPRODUCTION = EXAMPLE.reproduction("lee", repetitions=5)
