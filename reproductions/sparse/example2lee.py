"""Tables 1 and 2 of Guo (2010), Example 2, with the loss (1) that the paper states."""

from reproductions.sparse.example2 import EXAMPLE

REPRODUCTION = EXAMPLE.reproduction("lee", repetitions=5)
