"""Paper 3: Guo (2010), Class-specific variable selection for multicategory SVMs. Statistics and Its Interface."""
